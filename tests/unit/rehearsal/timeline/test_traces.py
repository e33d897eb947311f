"""What a watch shows of a job is kept, in the order in which it was seen."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.rehearsal.timeline.traces import JobTrace, moves_of, overlap
from tests.support.builders.job_timelines import TimelineBuilder, after, job, moved, pod

if TYPE_CHECKING:
    from holdfast.scheduling.json import Json


def test_each_state_of_a_pod_is_dated_when_it_was_first_seen() -> None:
    trace = JobTrace(name="train")
    trace.record_pod(pod("a"), after(0))
    trace.record_pod(pod("a", node="n1"), after(1))
    trace.record_pod(pod("a", node="n1", phase="Running"), after(2))
    trace.record_pod(
        pod("a", node="n1", phase="Running", deleted=True, lost="PreemptionByScheduler"), after(3)
    )
    seen = trace.record_pod(pod("a", node="n1", phase="Failed", deleted=True), after(4))
    again = trace.record_pod(pod("a", node="n1", phase="Failed", deleted=True), after(5), is_deleted=True)
    assert (seen.born_at, seen.bound_at, seen.running_at) == (after(0), after(1), after(2)), "as it came"
    assert (seen.leaving_at, seen.lost_at, seen.ended_at) == (after(3), after(3), after(4)), "as it went"
    assert again == seen, "that it is deleted is no second end"
    assert seen.is_alive(after(3)), "it lives until it has ended"
    assert not seen.is_alive(after(4)), "and no longer"


def test_a_job_is_kept_once_for_each_change() -> None:
    trace = JobTrace(name="train")
    trace.record_job(job(phase="Running", pool="spot-a"), after(0))
    trace.record_job(job(phase="Running", pool="spot-a"), after(1))
    trace.record_job(job(suspended=True, phase="Suspending", pool="spot-b"), after(2))
    assert [change.at for change in trace.changes] == [after(0), after(2)], "nothing had changed in between"
    assert (trace.last.suspended, trace.last.pool) == (True, "spot-b"), "the last is as it is now"


def test_an_annotation_that_is_no_state_is_none() -> None:
    broken = {**job(), "metadata": {"uid": "u", "annotations": {"fallback.holdfast.dev/state": "{"}}}
    trace = JobTrace(name="train")
    trace.record_job(broken, after(0))
    assert trace.last.phase == "", "it is not read"


def test_pods_that_a_fresh_list_does_not_show_have_ended() -> None:
    trace = JobTrace(name="train")
    trace.record_pod(pod("a"), after(0))
    trace.record_pod(pod("b"), after(0))
    trace.end_missing({"b-uid"}, after(9))
    assert [each.name for each in trace.alive()] == ["b"], "a went while nobody watched"


@pytest.mark.parametrize(
    ("other", "beside"),
    [
        (pod("b"), False),
        (pod("b", pool="spot-b"), True),
        (pod("b", attempt=1), True),
        (pod("b", owner="job-2"), True),
    ],
)
def test_a_pod_of_another_gang_is_told_apart(other: Json, beside: bool) -> None:
    trace = JobTrace(name="train")
    trace.record_pod(pod("a"), after(0))
    seen = trace.record_pod(other, after(1))
    assert (overlap(trace, seen) is not None) is beside, "another tier, another attempt or another Job"


def test_gangs_that_follow_one_another_do_not_overlap() -> None:
    trace = JobTrace(name="train")
    trace.record_pod(pod("a"), after(0))
    trace.record_pod(pod("a"), after(1), is_deleted=True)
    seen = trace.record_pod(pod("b", pool="spot-b"), after(1))
    assert overlap(trace, seen) is None, "the first had ended"


def test_a_move_has_the_time_of_each_step() -> None:
    (move,) = moves_of(moved().trace, 2)
    assert (move.source, move.target) == ("spot-a", "spot-b"), "from where to where"
    assert (move.suspended_at, move.gone_at, move.resumed_at) == (after(100.2), after(101), after(102)), (
        "the old gang is gone before the new one is resumed"
    )
    assert (move.bound_at, move.running_at) == (after(103.5), after(103.5)), "all of the new one have nodes"


def test_a_stay_without_nodes_has_no_time_for_them() -> None:
    watched = TimelineBuilder().job(0, phase="Running", pool="spot-a").gang(0)
    watched.evicted(10).job(10, phase="Suspending", pool="spot-b", suspended=True)
    watched.job(12, phase="Waiting", pool="spot-b", moves=1)
    watched.job(22, phase="Suspending", pool="cpu", suspended=True, moves=1)
    watched.job(23, phase="Waiting", pool="cpu", moves=2).gang(23.5, pool="cpu")
    first, second = moves_of(watched.trace, 2)
    assert (first.bound_at, second.bound_at) == (None, after(24.5)), "no pod found a node on the second tier"
    assert (second.source, second.target) == ("spot-b", "cpu"), "it left the tier that had none"
