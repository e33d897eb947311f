"""Timelines of jobs and pods, moves and overlaps."""

import pytest

from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.rehearsal.timeline.traces import JobTrace, job_of_pod, moves_of, overlap
from tests.support.builders.job_timelines import TimelineBuilder, after, job, moved, pod


def test_each_state_of_a_pod_has_the_time_of_its_first_observation() -> None:
    trace = JobTrace(name="train")
    trace.record_pod(pod("a"), after(0))
    trace.record_pod(pod("a", node="n1"), after(1))
    trace.record_pod(pod("a", node="n1", phase="Running"), after(2))
    trace.record_pod(
        pod("a", node="n1", phase="Running", deleted=True, lost="PreemptionByScheduler"), after(3)
    )
    seen = trace.record_pod(pod("a", node="n1", phase="Failed", deleted=True), after(4))
    again = trace.record_pod(pod("a", node="n1", phase="Failed", deleted=True), after(5), is_deleted=True)
    assert (seen.born_at, seen.bound_at, seen.running_at) == (after(0), after(1), after(2))
    assert (seen.leaving_at, seen.lost_at, seen.ended_at) == (after(3), after(3), after(4))
    assert again == seen
    assert seen.is_alive(after(3)), "it is alive until it ends"
    assert not seen.is_alive(after(4))


def test_a_job_has_one_entry_for_each_change() -> None:
    trace = JobTrace(name="train")
    trace.record_job(job(phase="Running", pool="spot-a"), after(0))
    trace.record_job(job(phase="Running", pool="spot-a"), after(1))
    trace.record_job(job(suspended=True, phase="Suspending", pool="spot-b"), after(2))
    assert [change.at for change in trace.changes] == [after(0), after(2)]
    assert (trace.last.suspended, trace.last.pool) == (True, "spot-b")


def test_an_unreadable_annotation_is_ignored() -> None:
    broken = {**job(), "metadata": {"uid": "u", "annotations": {"fallback.holdfast.dev/state": "{"}}}
    trace = JobTrace(name="train")
    trace.record_job(broken, after(0))
    assert trace.last.phase == ""


def test_pods_missing_from_a_new_list_have_ended() -> None:
    trace = JobTrace(name="train")
    trace.record_pod(pod("a"), after(0))
    trace.record_pod(pod("b"), after(0))
    trace.end_missing({"b-uid"}, after(9))
    assert [each.name for each in trace.alive()] == ["b"]


@pytest.mark.parametrize(
    ("other", "beside"),
    [
        (pod("b"), False),
        (pod("b", pool="spot-b"), True),
        (pod("b", attempt=1), True),
        (pod("b", owner="job-2"), True),
    ],
)
def test_a_pod_of_another_gang_overlaps(other: Json, beside: bool) -> None:
    trace = JobTrace(name="train")
    trace.record_pod(pod("a"), after(0))
    seen = trace.record_pod(other, after(1))
    assert (overlap(trace, seen) is not None) is beside


def ray_pod(name: str, cluster: str, *, pool: str = "", head: bool = False) -> Json:
    """A pod of a RayCluster of the RayJob `train`."""
    labels: Json = {"ray.io/cluster": f"train-{cluster}", "ray.io/node-type": "head" if head else "worker"}
    selector: Json = {"holdfast.dev/pool": pool} if pool else {}
    return {"metadata": {"name": name, "uid": name, "labels": labels}, "spec": {"nodeSelector": selector}}


def test_a_rayjob_is_recorded_like_a_jobset() -> None:
    head, worker = ray_pod("h", "abcde", head=True), ray_pod("w", "abcde", pool="spot-a")
    assert job_of_pod(head) == job_of_pod(worker) == "train"
    assert job_of_pod({"metadata": {"name": "other"}}) is None
    trace = JobTrace(name="train")
    trace.record_pod(head, after(0))
    assert overlap(trace, trace.record_pod(worker, after(1))) is None
    for other in (ray_pod("v", "vwxyz", pool="spot-a"), ray_pod("k", "vwxyz", head=True)):
        assert overlap(trace, trace.record_pod(other, after(2)))
    ended: Json = {**job(), "status": {"jobDeploymentStatus": "Complete", "failed": 1}}
    trace.record_job(ended, after(3))
    assert (trace.last.outcome, trace.last.restarts) == ("Completed", 1)


def test_each_written_ledger_is_kept_once() -> None:
    trace = JobTrace(name="train")
    for phase, waited in (("Waiting", 0), ("Running", 3), ("Running", 3), ("Running", 5)):
        trace.record_job(job(phase=phase, ledger={"waited": waited}), after(waited))
    assert [state["ledger"] for state in trace.ledgers] == [{"waited": 0}, {"waited": 3}, {"waited": 5}]
    assert len(trace.changes) == 2


def test_consecutive_gangs_do_not_overlap() -> None:
    trace = JobTrace(name="train")
    trace.record_pod(pod("a"), after(0))
    trace.record_pod(pod("a"), after(1), is_deleted=True)
    seen = trace.record_pod(pod("b", pool="spot-b"), after(1))
    assert overlap(trace, seen) is None


def test_a_move_has_the_time_of_each_step() -> None:
    (move,) = moves_of(moved().trace, 2)
    assert (move.source, move.target) == ("spot-a", "spot-b")
    assert (move.suspended_at, move.gone_at, move.resumed_at) == (after(100.2), after(101), after(102))
    assert (move.bound_at, move.running_at) == (after(103.5), after(103.5))


def test_a_tier_visit_without_nodes_has_no_time_for_them() -> None:
    watched = TimelineBuilder().job(0, phase="Running", pool="spot-a").gang(0)
    watched.evicted(10).job(10, phase="Suspending", pool="spot-b", suspended=True)
    watched.job(12, phase="Waiting", pool="spot-b", moves=1)
    watched.job(22, phase="Suspending", pool="cpu", suspended=True, moves=1)
    watched.job(23, phase="Waiting", pool="cpu", moves=2).gang(23.5, pool="cpu")
    first, second = moves_of(watched.trace, 2)
    assert (first.bound_at, second.bound_at) == (None, after(24.5))
    assert (second.source, second.target) == ("spot-b", "cpu")
