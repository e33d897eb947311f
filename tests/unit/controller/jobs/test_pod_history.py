"""The pod history: which pods were lost and why, read from pods and nodes."""

from collections.abc import Sequence
from datetime import timedelta

import pytest

from pulumi_holdfast.controller.jobs.observation import Cause
from pulumi_holdfast.controller.jobs.pod_history import (
    RETENTION,
    PodHistory,
    dead_pods_of,
    losses_of,
    updated_history,
    with_pod,
)
from pulumi_holdfast.controller.jobs.trimmed_objects import trim_pod
from pulumi_holdfast.ladder.json import Json
from tests.support.builders.fallback_objects import NOW, disrupted, jobset, node, snapshot, worker
from tests.support.json_objects import obj

SECOND = timedelta(seconds=1)
EVICTED = worker("a", node="n1", phase="Failed", conditions=[disrupted(NOW)], deleted_at=NOW, ended_at=NOW)
FAILED = worker("a", node="n1", phase="Failed", ended_at=NOW)


def causes(history: PodHistory) -> list[Cause]:
    return [loss.cause for loss in losses_of(history)]


def observed(history: PodHistory, *pods: Json, nodes: Sequence[Json] = (), after: float = 0) -> PodHistory:
    """The history after an observation, so many seconds after NOW."""
    return updated_history(history, snapshot(jobset(), *pods, nodes=nodes, now=NOW + after * SECOND))


def test_an_evicted_pod_is_lost_at_the_time_of_its_condition_and_not_missed() -> None:
    pod = worker("a", node="n1", conditions=[disrupted(NOW)], deleted_at=NOW)
    (loss,) = losses_of(observed(PodHistory(), pod, nodes=[node("n1")], after=20))
    assert (loss.cause, loss.at, loss.pod, loss.pool) == (Cause.EVICTION, NOW, "uid-of-a", "spot-a")
    history = with_pod(PodHistory(), EVICTED, NOW)
    history = with_pod(history, EVICTED, NOW + SECOND, is_deleted=True)
    assert causes(observed(history, after=5)) == [Cause.EVICTION]


def test_the_kubelets_reason_tells_evictions_from_application_failures() -> None:
    target = disrupted(NOW + 9 * SECOND, "TerminationByKubelet")
    pod = worker(
        "a",
        node="n1",
        phase="Failed",
        reason="Terminated",
        conditions=[target],
        deleted_at=NOW + 2 * SECOND,
        ended_at=NOW + 9 * SECOND,
    )
    assert causes(observed(PodHistory(), pod, nodes=[node("n1")])) == [Cause.EVICTION]
    pod = worker("a", node="n1", phase="Failed", reason="NodeShutdown", ended_at=NOW)
    assert causes(observed(PodHistory(), pod, nodes=[node("n1")])) == [Cause.EVICTION]
    pod = worker(
        "a",
        node="n1",
        phase="Failed",
        reason="Evicted",
        conditions=[disrupted(NOW, "TerminationByKubelet")],
        ended_at=NOW,
    )
    assert causes(observed(PodHistory(), pod, nodes=[node("n1")])) == [Cause.APPLICATION]


def test_a_removed_disruption_condition_is_no_loss() -> None:
    marked = worker("a", node="n1", conditions=[disrupted(NOW)])
    history = observed(PodHistory(), marked, nodes=[node("n1")])
    assert causes(history) == [Cause.EVICTION]
    spared = worker("a", node="n1", conditions=[{**disrupted(NOW), "status": "False"}])
    assert causes(observed(history, spared, nodes=[node("n1")])) == []


def test_a_failure_on_a_healthy_node_is_an_application_failure() -> None:
    (loss,) = losses_of(observed(PodHistory(), FAILED, nodes=[node("n1")]))
    assert (loss.cause, loss.at) == (Cause.APPLICATION, NOW)


def test_a_pod_that_its_jobs_restart_ends_is_no_loss() -> None:
    pod = worker("a", node="n1", phase="Failed", deleted_at=NOW, ended_at=NOW + SECOND, exit_code=143)
    assert causes(observed(PodHistory(), pod, nodes=[node("n1")])) == []
    ended = worker("a", node="n1", phase="Failed", deleted_at=NOW, ended_at=NOW + SECOND)
    history = with_pod(PodHistory(), ended, NOW + SECOND)
    late = NOW + 9 * SECOND
    dropped = worker("a", node="n1", phase="Failed", deleted_at=late, grace=0, ended_at=NOW + SECOND)
    history = with_pod(history, dropped, late, is_deleted=True)
    assert causes(observed(history, nodes=[node("n1")], after=10)) == []


def test_a_pod_that_is_first_seen_when_its_kubelet_drops_it_is_no_loss() -> None:
    dropped = worker("a", node="n1", phase="Failed", deleted_at=NOW + 9 * SECOND, grace=0, ended_at=NOW)
    assert causes(observed(PodHistory(), dropped, nodes=[node("n1")])) == []
    twice = with_pod(PodHistory(), dropped, NOW + 9 * SECOND)
    assert causes(observed(twice, dropped, nodes=[node("n1")], after=10)) == []
    failed = with_pod(PodHistory(), FAILED, NOW)
    assert causes(observed(failed, dropped, nodes=[node("n1")])) == [Cause.APPLICATION]


def test_a_pod_that_failed_before_its_jobs_restart_stays_a_failure() -> None:
    history = with_pod(PodHistory(), FAILED, NOW)
    swept = worker("a", node="n1", phase="Failed", deleted_at=NOW, ended_at=NOW)
    assert causes(observed(history, swept, nodes=[node("n1")])) == [Cause.APPLICATION]


@pytest.mark.parametrize("taint", ["karpenter.sh/disrupted", "ToBeDeletedByClusterAutoscaler"])
def test_a_failure_on_a_draining_node_is_an_eviction(taint: str) -> None:
    history = observed(PodHistory(), FAILED, nodes=[node("n1", taints=[taint])])
    assert causes(history) == [Cause.EVICTION]


def test_a_failure_is_explained_by_its_nodes_later_loss() -> None:
    history = observed(PodHistory(), FAILED, nodes=[node("n1")])
    assert causes(history) == [Cause.APPLICATION]
    emptied = observed(history, FAILED, nodes=[node("n1", deleted=True)], after=60)
    assert causes(emptied) == [Cause.EVICTION]
    vanished = observed(history, FAILED, after=60)
    assert causes(vanished) == [Cause.NODE_GONE]
    later = observed(history, FAILED, nodes=[node("n1", deleted=True)], after=600)
    assert causes(later) == [Cause.APPLICATION], "the node was released because the job had left it"


def test_the_pods_of_a_removed_node_are_lost() -> None:
    pod = worker("a", node="n1")
    history = observed(PodHistory(), pod, nodes=[node("n1")])
    gone = observed(history, pod, after=3)
    assert [(loss.cause, loss.at) for loss in losses_of(gone)] == [(Cause.NODE_GONE, NOW + 3 * SECOND)]
    assert losses_of(observed(gone, pod, after=50))[0].at == NOW + 3 * SECOND
    assert dead_pods_of(gone) == ("a",)


def test_a_node_that_was_never_observed_or_answers_again_is_not_lost() -> None:
    pod = worker("a", node="n1")
    history = observed(PodHistory(), pod)
    assert causes(history) == [Cause.UNREACHABLE]
    assert dead_pods_of(history) == ()
    assert causes(observed(history, pod, nodes=[node("n1")], after=1)) == []
    pod = worker("a", node="n1")
    history = observed(PodHistory(), pod, nodes=[node("n1", ready="Unknown")])
    assert causes(history) == [Cause.UNREACHABLE]
    assert dead_pods_of(history) == ()
    assert causes(observed(history, pod, nodes=[node("n1")], after=30)) == []


def test_an_unreachable_node_without_nodeclaim_is_gone() -> None:
    pod = worker("a", node="n1")
    silent = snapshot(jobset(), pod, nodes=[node("n1", ready="Unknown")], claims={})
    history = updated_history(PodHistory(), silent)
    assert causes(history) == [Cause.NODE_GONE]
    assert dead_pods_of(history) == ("a",)


def test_a_node_that_shuts_down_is_draining_and_not_unreachable() -> None:
    leaving = node("n1", ready="False", message="node is shutting down")
    pod = worker("a", node="n1")
    history = observed(PodHistory(), pod, nodes=[leaving])
    assert causes(history) == []
    assert causes(observed(history, FAILED, nodes=[leaving], after=5)) == [Cause.EVICTION]


def test_a_pod_that_terminated_before_its_node_is_no_loss() -> None:
    pod = worker("a", node="n1", deleted_at=NOW)
    job = jobset(suspend=True)
    history = updated_history(PodHistory(), snapshot(job, pod, nodes=[node("n1")]))
    history = updated_history(history, snapshot(job, pod, now=NOW + 5 * SECOND))
    assert causes(history) == []
    assert dead_pods_of(history) == ("a",), "and yet it has to be forced, or the job would never be resumed"
    pod = worker("a", node="n1", deleted_at=NOW)
    history = with_pod(observed(PodHistory(), pod, nodes=[node("n1")]), pod, NOW, is_deleted=True)
    assert causes(observed(history, after=60)) == []
    target = disrupted(NOW + 60 * SECOND, "DeletionByPodGC")
    pod = worker("a", node="n1", deleted_at=NOW, conditions=[target], phase="Failed")
    history = updated_history(PodHistory(), snapshot(jobset(suspend=True), pod, now=NOW + 61 * SECOND))
    assert causes(history) == [], "the suspension ended it, and its node only went before it could say so"


def test_a_loss_stays_the_same_when_its_pod_or_node_is_removed_later() -> None:
    pod = worker("a", node="n1")
    history = observed(observed(PodHistory(), pod, nodes=[node("n1")]), pod, after=3)
    collected = disrupted(NOW + 70 * SECOND, "DeletionByPodGC")
    ended = worker("a", node="n1", phase="Failed", conditions=[collected], deleted_at=NOW + 70 * SECOND)
    assert [(loss.cause, loss.at) for loss in losses_of(observed(history, ended, after=71))] == [
        (Cause.NODE_GONE, NOW + 3 * SECOND)
    ]
    history = observed(PodHistory(), EVICTED, nodes=[node("n1")])
    assert [(loss.cause, loss.at) for loss in losses_of(observed(history, EVICTED, after=30))] == [
        (Cause.EVICTION, NOW)
    ]


def test_healthy_pods_are_removed_at_once_and_losses_after_the_retention() -> None:
    history = with_pod(observed(PodHistory(), EVICTED), EVICTED, NOW, is_deleted=True)
    assert len(observed(history, after=RETENTION.total_seconds()).pods) == 1
    assert not observed(history, after=RETENTION.total_seconds() + 1).pods
    pod = worker("a", node="n1")
    history = with_pod(observed(PodHistory(), pod, nodes=[node("n1")]), pod, NOW, is_deleted=True)
    assert not observed(history).pods


def test_the_pods_of_an_earlier_job_of_the_same_name_are_none_of_its_losses() -> None:
    before = worker(
        "a",
        node="n1",
        phase="Failed",
        conditions=[disrupted(NOW)],
        created=NOW - timedelta(days=1),
        ended_at=NOW,
    )
    assert causes(observed(with_pod(PodHistory(), before, NOW, is_deleted=True))) == []


def test_updating_a_history_twice_changes_nothing() -> None:
    seen = snapshot(jobset(), FAILED, EVICTED, worker("b", node="n2"), nodes=[node("n1", ready="Unknown")])
    once = updated_history(PodHistory(), seen)
    assert updated_history(once, seen) == once


def test_pods_created_and_deleted_without_end_leave_a_bounded_history() -> None:
    history = with_pod(PodHistory(), worker("stays"), NOW)
    (gone,) = with_pod(PodHistory(), worker("gone"), NOW, is_deleted=True).pods.values()
    history = PodHistory(pods={**{f"uid-{number}": gone for number in range(20_000)}, **history.pods})
    history = with_pod(history, worker("last"), NOW, is_deleted=True)
    assert len(history.pods) < 2_000
    assert {"uid-of-stays", "uid-of-last"} <= history.pods.keys()


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ({}, 30),
        ({"terminationGracePeriodSeconds": 90}, 90),
        ({"terminationGracePeriodSeconds": 10**12}, 3600),
    ],
)
def test_a_loss_knows_how_long_its_gangs_pods_may_take_to_end(written: Json, seconds: int) -> None:
    pod = trim_pod({**FAILED, "spec": {**obj(FAILED["spec"]), **written}})
    (loss,) = losses_of(observed(PodHistory(), pod, nodes=[node("n1")]))
    assert loss.grace == seconds * SECOND
