"""Failures of one job are reported and retried, and do not affect other jobs."""

import asyncio
import logging
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta

import pytest

from pulumi_holdfast.controller.jobs.actions import Action, EventReason, JobEvent, WriteState
from pulumi_holdfast.controller.jobs.cached_objects import CachedJob, too_large
from pulumi_holdfast.controller.jobs.kinds import KINDS
from pulumi_holdfast.controller.jobs.observation import NodeKind, Observation, PoolStatus
from pulumi_holdfast.controller.jobs.patches import read_state, write_state
from pulumi_holdfast.controller.jobs.pod_history import PodHistory
from pulumi_holdfast.controller.jobs.pods_and_nodes import JobKey
from pulumi_holdfast.controller.jobs.state import JobState, Ledger, Phase, PoolUse, Purpose
from pulumi_holdfast.controller.kube.client import ApiError, LeadershipLost, Unreachable
from pulumi_holdfast.controller.kube.events import ObjectEvent
from pulumi_holdfast.controller.kube.work_queue import WorkQueue
from pulumi_holdfast.controller.loop.action_executor import JobChanged, PodsRemain
from pulumi_holdfast.controller.loop.metrics import Metrics
from pulumi_holdfast.controller.loop.observer import JobContext
from pulumi_holdfast.controller.loop.policy_status import JobIndex
from pulumi_holdfast.controller.loop.reconciler import EventReporter, Reconciler
from pulumi_holdfast.controller.state_machine.ledger import with_ledger
from pulumi_holdfast.ladder.labels import CapacityType
from pulumi_holdfast.ladder.ladder import NoPolicy, Policy, Tier
from tests.support.builders.fallback_objects import EARLIER, NAMESPACE, NOW, jobset, node, snapshot, worker
from tests.support.coroutines import virtually

TRAIN = JobKey("JobSet", NAMESPACE, "train")
BROKEN = JobKey("JobSet", NAMESPACE, "broken")
POLICY = Policy(tiers=(Tier(pool="spot-a", max_failures=1), Tier(pool="on-demand")))


@dataclass
class ReconcilerFixture:
    """A reconciler whose API server does as a test says: it raises what is in `errors`, one for each try."""

    is_leader: bool = True
    errors: list[Exception] = field(default_factory=list[Exception])
    acted: list[tuple[Action, ...]] = field(default_factory=list[tuple[Action, ...]])
    event: list[ObjectEvent] = field(default_factory=list[ObjectEvent])
    settled: int = 0
    gone: bool = False
    excess: str = ""
    version: int = 41

    def __post_init__(self) -> None:
        self.queue = WorkQueue[JobKey]()
        self.metrics = Metrics(process=False)
        self.job_index = JobIndex(lambda _: None)
        # Fake of the observer, the executor and the recorder, with the methods that the reconciler calls.
        self.reconciler = Reconciler(
            self.queue,
            self,  # type: ignore[arg-type]  # a fake
            self,  # type: ignore[arg-type]  # a fake
            EventReporter(self, self.metrics),  # type: ignore[arg-type]  # a fake
            self.job_index,
            self.metrics,
            is_leader=lambda: self.is_leader,
        )

    def observe(self, key: JobKey) -> JobContext | None:
        """Return the context of a running job without state."""
        if key == BROKEN:
            raise KeyError("a bug")
        if self.gone:
            return None
        job = jobset()
        seen = snapshot(job, worker("w0", node="n"), worker("w1", node="n"), nodes=[node("n")])
        observed, _ = KINDS["JobSet"].observe(seen, PodHistory())
        return JobContext(
            key=key, kind=KINDS["JobSet"], snapshot=seen, state=None, seen=observed, policy=POLICY
        )

    def too_large(self, _: JobKey) -> CachedJob | None:
        return too_large(jobset(), self.excess) if self.excess else None

    def settle(self, _: JobContext) -> None:
        self.settled += 1

    def forget(self, _: JobKey) -> None: ...

    async def execute(self, _: JobContext, actions: tuple[Action, ...]) -> None:
        if self.errors:
            raise self.errors.pop(0)
        self.acted.append(actions)

    def record(self, event: ObjectEvent) -> None:
        self.event.append(event)

    async def work(self, seconds: float, *keys: JobKey) -> None:
        """Work on what is queued for some time."""
        for key in keys or (TRAIN,):
            self.queue.add(key)
        task = asyncio.create_task(self.reconciler.work())
        await asyncio.sleep(seconds)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    def counted(self, line: str) -> bool:
        """Whether the metrics have a line."""
        return line in self.metrics.text().decode().splitlines()


@virtually
async def test_a_job_is_observed_acted_on_and_reported() -> None:
    fixture = ReconcilerFixture()
    await fixture.work(1)
    assert [type(action) for (action,) in fixture.acted] == [WriteState]
    assert [event.reason for event in fixture.event] == ["Placed"]
    assert fixture.settled == 1
    assert len(fixture.job_index.in_namespace(NAMESPACE)) == 1


@virtually
async def test_a_job_that_is_too_large_gets_one_event_and_nothing_else() -> None:
    fixture = ReconcilerFixture(excess="A pod of it has 6000 containers.")
    await fixture.work(1)
    await fixture.work(1)
    assert not fixture.acted
    assert [(event.reason, event.message) for event in fixture.event] == [
        ("CannotFollow", "The job does not follow its ladder. A pod of it has 6000 containers.")
    ]


@virtually
async def test_a_standby_replica_observes_and_writes_nothing() -> None:
    fixture = ReconcilerFixture(is_leader=False)
    await fixture.work(1)
    assert (fixture.acted, fixture.event) == ([], [])


@virtually
async def test_failed_actions_record_no_event() -> None:
    for error in (
        ApiError(429, "TooManyRequests", "slow down", retry_after_seconds=3),
        Unreachable("server", "gone"),
        PodsRemain("2 pods are left"),
        ApiError(404, "NotFound", "gone"),
        ApiError(409, "Conflict", "a node or a child Job was modified, and the job itself may never be"),
    ):
        fixture = ReconcilerFixture(errors=[error])
        await fixture.work(0.01)
        assert fixture.event == [], f"{error}: it may not have come about"
        assert fixture.settled == 0
        await fixture.work(10)
        assert len(fixture.acted) >= 1, f"{error}: it is tried again"
        assert [event.reason for event in fixture.event][:1] == ["Placed"]


@virtually
async def test_a_rejected_version_is_not_written_again() -> None:
    fixture = ReconcilerFixture(errors=[JobChanged(409, "Conflict", "modified")])
    await fixture.work(120)
    assert fixture.acted == []
    assert fixture.counted('holdfast_fallback_failed_writes_total{reason="409"} 1.0')


@virtually
async def test_a_permanent_rejection_is_recorded_with_the_servers_message() -> None:
    fixture = ReconcilerFixture(errors=[ApiError(422, "Invalid", "spec.suspend: forbidden by a webhook")] * 3)
    await fixture.work(0.05)
    (event,) = fixture.event
    assert (event.reason, event.is_warning) == ("WriteRejected", True), "a user must fix it"
    assert "forbidden by a webhook" in event.message
    await fixture.work(60)
    assert len(fixture.acted) >= 1


@virtually
async def test_a_replica_that_loses_leadership_stops_writing() -> None:
    fixture = ReconcilerFixture(errors=[LeadershipLost()])
    await fixture.work(600)
    assert fixture.event == []
    assert fixture.acted == []


@virtually
async def test_an_error_in_one_job_does_not_stop_others(caplog: pytest.LogCaptureFixture) -> None:
    fixture = ReconcilerFixture()
    with caplog.at_level(logging.ERROR):
        await fixture.work(5, BROKEN, TRAIN)
    assert len(fixture.acted) == 1
    assert any(getattr(each, "job", None) == "JobSet/vision/broken" for each in caplog.records)


@virtually
async def test_a_deleted_job_is_removed_everywhere() -> None:
    fixture = ReconcilerFixture()
    await fixture.work(1)
    fixture.gone = True
    await fixture.work(1)
    assert fixture.job_index.in_namespace(NAMESPACE) == []


KEY = JobKey("JobSet", "vision", "train")
STANDING = JobEvent(reason=EventReason.SLOW_START, message="2 pods", is_warning=True, is_standing=True)
ONCE = JobEvent(reason=EventReason.MOVED, message="it moved")
WAITING = JobState(
    uid="u",
    phase=Phase.WAITING,
    pool="spot",
    rank=0,
    since=EARLIER,
    waiting_since=NOW - timedelta(seconds=30),
    suspended_at=NOW - timedelta(seconds=40),
)
POOLS = ("spot", "on-demand")
SEEN = Observation(uid="u", created=EARLIER, now=NOW, pools=dict.fromkeys(POOLS, PoolStatus()))


class RecordedEvents:
    """A reporter, and what it has event."""

    def __init__(self) -> None:
        self.event: list[str] = []
        self.metrics = Metrics(process=False)
        self.reporter = EventReporter(self, self.metrics)  # type: ignore[arg-type]  # a fake of its EventRecorder

    def record(self, occurrence: ObjectEvent) -> None:
        self.event.append(occurrence.message)

    def number(self, series: str) -> float:
        """What a series says."""
        lines = self.metrics.text().decode().splitlines()
        return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(f"{series} "))


def test_a_standing_event_is_recorded_when_new_changed_or_back() -> None:
    recorded = RecordedEvents()
    for reports in ([STANDING], [STANDING], [replace(STANDING, message="1 pod")], [], [STANDING]):
        recorded.reporter.record(KEY, "u", reports)
    assert recorded.event == ["2 pods", "1 pod", "2 pods"]
    recorded = RecordedEvents()
    recorded.reporter.record(KEY, "u", [ONCE, ONCE])
    assert recorded.event == ["it moved", "it moved"]
    recorded = RecordedEvents()
    recorded.reporter.record(KEY, "u", [STANDING])
    recorded.reporter.record_one(KEY, "u", replace(ONCE, message="refused"))
    recorded.reporter.record(KEY, "u", [STANDING])
    assert recorded.event == ["2 pods", "refused"]
    recorded = RecordedEvents()
    recorded.reporter.record(KEY, "u", [STANDING])
    recorded.reporter.forget(KEY)
    recorded.reporter.record(KEY, "v", [STANDING])
    assert len(recorded.event) == 2
    recorded = RecordedEvents()
    for _ in range(2):
        recorded.reporter.record(KEY, "u", [STANDING, replace(STANDING, message="1 node")])
    assert recorded.event == ["2 pods", "1 node"]
    recorded = RecordedEvents()
    for message in ("ends at 12:00", "ends at 12:10", "ends at 12:20"):
        recorded.reporter.record(KEY, "u", [replace(STANDING, message=message, compared="late")])
    assert recorded.event == ["ends at 12:00"]


def test_waits_and_moves_are_measured() -> None:
    recorded = RecordedEvents()
    running = replace(WAITING, phase=Phase.RUNNING, waiting_since=None, suspended_at=None)
    recorded.reporter.count(KEY, WAITING, running, SEEN)
    where = '{namespace="vision",pool="spot"}'
    assert recorded.number(f"holdfast_fallback_capacity_wait_seconds_sum{where}") == 30
    assert recorded.number(f"holdfast_fallback_move_seconds_sum{where}") == 40
    recorded.reporter.count(KEY, running, running, SEEN)
    assert recorded.number(f"holdfast_fallback_move_seconds_count{where}") == 1


def test_the_outage_that_causes_a_move_counts_for_the_pool_where_it_happened() -> None:
    recorded = RecordedEvents()
    leaving = replace(WAITING, phase=Phase.SUSPENDING, pool="on-demand", evictions=1)
    recorded.reporter.count(KEY, WAITING, leaving, SEEN)
    outage = 'holdfast_fallback_outages_total{cause="eviction",namespace="vision",pool="%s"}'
    assert recorded.number(outage % "spot") == 1
    assert recorded.number(outage % "on-demand") == 0


def test_moves_and_outages_are_counted_by_pool_after_the_first_reconciliation() -> None:
    recorded = RecordedEvents()
    leaving = replace(WAITING, phase=Phase.SUSPENDING, purpose=Purpose.FAILOVER, evictions=1)
    recorded.reporter.count(KEY, WAITING, leaving, SEEN)
    recorded.reporter.count(KEY, leaving, replace(WAITING, pool="on-demand", moves=1), SEEN)
    outage = 'holdfast_fallback_outages_total{cause="eviction",namespace="vision",pool="spot"}'
    assert recorded.number(outage) == 1
    move = 'holdfast_fallback_moves_total{namespace="vision",pool="on-demand",purpose="Failover"}'
    assert recorded.number(move) == 1
    recorded = RecordedEvents()
    recorded.reporter.count(KEY, None, replace(WAITING, evictions=3), SEEN)
    assert b"outages_total{" not in recorded.metrics.text()


def test_a_state_that_a_user_edits_makes_no_series_of_pools_that_do_not_exist() -> None:
    recorded = RecordedEvents()
    for edit in range(3):
        uses = tuple(PoolUse(pool=f"p{edit}-{number}") for number in range(200))
        counted = Ledger(counted_from=EARLIER, counted_until=NOW - timedelta(minutes=5), uses=uses)
        before = read_state(write_state(replace(WAITING, pool=f"p{edit}", ledger=counted)))
        assert isinstance(before, JobState)
        used = {NodeKind("spot", CapacityType.SPOT, 1.0): timedelta(minutes=5)}
        after = with_ledger(before, replace(SEEN, node_time=used), NoPolicy())
        recorded.reporter.count(KEY, before, replace(after, evictions=1, moves=0), SEEN)
        recorded.reporter.count(KEY, before, replace(after, moves=1), SEEN)
    text = recorded.metrics.text().decode()
    assert 'pool="p' not in text
    assert (
        recorded.number(
            'holdfast_fallback_node_seconds_total{capacity="spot",namespace="vision",pool="spot"}'
        )
        == 6 * 300
    )


@pytest.mark.parametrize(
    ("price", "on_demand", "instead"),
    [(1.0, 3.0, 6.0), (1.0, None, 2.0), (None, 3.0, 0.0)],
    ids=["with both prices", "without that of on-demand", "without that of the node"],
)
def test_the_cost_on_demand_is_counted_beside_the_cost_where_both_prices_are_known(
    price: float | None, on_demand: float | None, instead: float
) -> None:
    recorded = RecordedEvents()
    before = replace(WAITING, ledger=Ledger(counted_from=EARLIER, counted_until=NOW))
    used = {NodeKind("spot", CapacityType.SPOT, price): timedelta(hours=2)}
    after = with_ledger(before, replace(SEEN, node_time=used), NoPolicy())
    recorded.reporter.count(KEY, before, after, SEEN, on_demand)
    series = 'holdfast_fallback_%s_total{capacity="spot",namespace="vision",pool="spot"}'
    assert recorded.number(series % "on_demand_cost") == instead
    assert recorded.number(series % "cost") == 2 * (price or 0.0)


def test_a_ledger_with_more_pools_than_ladders_have_is_not_read() -> None:
    uses = tuple(PoolUse(pool=f"p-{number}") for number in range(1000))
    counted = Ledger(counted_from=EARLIER, counted_until=NOW, uses=uses)
    read = read_state(write_state(replace(WAITING, ledger=counted)))
    assert isinstance(read, JobState)
    assert read.ledger is None
