"""Standing reports are said when they are new, and what becomes of jobs is counted."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from holdfast.fallback.jobs.snapshot import JobKey
from holdfast.fallback.reconciler.metrics import Metrics
from holdfast.fallback.reconciler.reconciler import EventReporter
from holdfast.fallback.state_machine.events import JobEvent
from holdfast.fallback.state_machine.observation import Observation
from holdfast.fallback.state_machine.state import JobState, Phase, Purpose
from tests.support.fallback_objects import EARLIER, NOW

if TYPE_CHECKING:
    from holdfast.fallback.api.event_recorder import ObjectEvent

KEY = JobKey("JobSet", "vision", "train")
STANDING = JobEvent(reason="SlowStart", message="2 pods", is_warning=True, is_standing=True)
ONCE = JobEvent(reason="Moved", message="it moved")
WAITING = JobState(
    uid="u",
    phase=Phase.WAITING,
    pool="spot",
    rank=0,
    since=EARLIER,
    waiting_since=NOW - timedelta(seconds=30),
    suspended_at=NOW - timedelta(seconds=40),
)
SEEN = Observation(uid="u", created=EARLIER, now=NOW)


class Listening:
    """A reporter, and what it has said."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.metrics = Metrics(process=False)
        # It stands in for the log of Events, of which this alone is asked.
        self.reporter = EventReporter(self, self.metrics)  # type: ignore[arg-type]

    def record(self, occurrence: ObjectEvent) -> None:
        self.said.append(occurrence.message)

    def number(self, series: str) -> float:
        """What a series says."""
        lines = self.metrics.text().decode().splitlines()
        return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(f"{series} "))


def test_a_standing_report_is_said_when_it_is_new_differs_or_comes_again() -> None:
    heard = Listening()
    for reports in ([STANDING], [STANDING], [replace(STANDING, message="1 pod")], [], [STANDING]):
        heard.reporter.record(KEY, "u", reports)
    assert heard.said == ["2 pods", "1 pod", "2 pods"], "not with every look"


def test_any_other_report_is_said_each_time() -> None:
    heard = Listening()
    heard.reporter.record(KEY, "u", [ONCE, ONCE])
    assert heard.said == ["it moved", "it moved"], "each is something that was done"


def test_a_complaint_leaves_what_stands_as_it_is() -> None:
    heard = Listening()
    heard.reporter.record(KEY, "u", [STANDING])
    heard.reporter.record_one(KEY, "u", replace(ONCE, message="refused"))
    heard.reporter.record(KEY, "u", [STANDING])
    assert heard.said == ["2 pods", "refused"], "it has stood all the while"


def test_a_job_made_again_is_told_everything() -> None:
    heard = Listening()
    heard.reporter.record(KEY, "u", [STANDING])
    heard.reporter.forget(KEY)
    heard.reporter.record(KEY, "v", [STANDING])
    assert len(heard.said) == 2, "it is another job"


def test_arrivals_are_measured() -> None:
    heard = Listening()
    running = replace(WAITING, phase=Phase.RUNNING, waiting_since=None, suspended_at=None)
    heard.reporter.count(KEY, WAITING, running, SEEN)
    where = '{namespace="vision",pool="spot"}'
    assert heard.number(f"holdfast_fallback_capacity_wait_seconds_sum{where}") == 30, "the wait for nodes"
    assert heard.number(f"holdfast_fallback_move_seconds_sum{where}") == 40, "the whole of the move"
    heard.reporter.count(KEY, running, running, SEEN)
    assert heard.number(f"holdfast_fallback_move_seconds_count{where}") == 1, "a look is no move"


def test_moves_and_outages_are_counted_where_they_belong() -> None:
    heard = Listening()
    leaving = replace(WAITING, phase=Phase.SUSPENDING, purpose=Purpose.FAILOVER, evictions=1)
    heard.reporter.count(KEY, WAITING, leaving, SEEN)
    heard.reporter.count(KEY, leaving, replace(WAITING, pool="on-demand", moves=1), SEEN)
    outage = 'holdfast_fallback_outages_total{cause="eviction",namespace="vision",pool="spot"}'
    assert heard.number(outage) == 1, "it cost the old tier"
    move = 'holdfast_fallback_moves_total{namespace="vision",pool="on-demand",purpose="Failover"}'
    assert heard.number(move) == 1, "and led to the new one"


def test_a_first_look_counts_nothing() -> None:
    heard = Listening()
    heard.reporter.count(KEY, None, replace(WAITING, evictions=3), SEEN)
    assert b"outages_total{" not in heard.metrics.text(), "what was before nobody saw happen"
