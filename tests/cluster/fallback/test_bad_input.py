"""Invalid ladders, and changes by users to jobs that move: the controller handles each, and no job is lost."""

import pytest

from pulumi_holdfast.controller.kube.client import ApiError
from pulumi_holdfast.controller.kube.objects import labels_of, name_of
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.rehearsal.kubernetes import KubeClient
from tests.support.clusters.fallback import NAMESPACE
from tests.support.clusters.fallback_jobs import (
    NEVER_ENDS,
    Ladder,
    applied,
    end,
    fail,
    pods_of,
    pools_of,
    real_jobset,
    real_rayjob,
    tier,
)
from tests.support.clusters.gangs import watched_gangs
from tests.support.json_objects import obj

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]

THREE = (tier("spot-a", maxFailures=1), tier("spot-b", maxFailures=1), tier("cpu"))


def evict_one(client: KubeClient, name: str) -> None:
    """Evict a worker of a job."""
    worker = next(pod for pod in pods_of(client, name) if "-worker-" in name_of(pod))
    client.evict(NAMESPACE, name_of(worker))


def in_the_middle_of_a_move(ladder: Ladder, name: str) -> None:
    """Evict a pod of a job whose pods take their time to end, and wait until its move has begun."""
    ladder.wait_running(name, "spot-a")
    evict_one(ladder.client, name)
    ladder.wait_phase(name, "Suspending")


def end_all(ladder: Ladder, name: str) -> None:
    """Let the pods of a job end at last."""
    for pod in pods_of(ladder.client, name):
        end(ladder.client, pod)


def test_a_tier_with_a_missing_pool_is_skipped(ladder: Ladder) -> None:
    ladder.says(tier("spot-a", maxFailures=1), tier("never-made", maxFailures=1), tier("cpu"))
    with applied(ladder.client, real_jobset("passes-over")) as name:
        ladder.wait_running(name, "spot-a")
        evict_one(ladder.client, name)
        kept = ladder.wait_running(name, "cpu")
        assert (kept["moves"], kept["rank"]) == (1, 2)


def test_a_job_on_no_tier_is_ignored(ladder: Ladder) -> None:
    ladder.says(tier("spot-b", maxFailures=1), tier("cpu"))
    with applied(ladder.client, real_jobset("elsewhere")) as name:
        said = ladder.wait_said(name, "NotOnLadder")
        assert "spot-a" in said
        assert ladder.state(name) == {}


def test_a_job_without_the_label_is_ignored(ladder: Ladder) -> None:
    ladder.says(*THREE)
    job = real_jobset("unlabelled")
    plain = {**job, "metadata": {"name": "unlabelled", "namespace": NAMESPACE}}
    with applied(ladder.client, plain) as name, applied(ladder.client, real_jobset("labelled")) as other:
        ladder.wait_running(other, "spot-a")
        ladder.wait(lambda: len(pools_of(ladder.client, name)) == 2, name, "it runs")
        evict_one(ladder.client, name)
        ladder.wait(lambda: obj(ladder.job(name)["status"])["restarts"] == 1, name, "JobSet restarts it")
        evict_one(ladder.client, other)
        ladder.wait_running(other, "spot-b")
        assert (ladder.state(name), ladder.said(name)) == ({}, {})
        assert not ladder.is_suspended(name)


def test_a_job_that_cannot_be_suspended_gets_an_event_with_the_fix(ladder: Ladder) -> None:
    ladder.says(*THREE)
    job = real_rayjob("ray-stays", shutdownAfterJobFinishes=False)
    with applied(ladder.client, job) as name:
        said = ladder.wait_said(name, "CannotFollow", "RayJob")
        assert "shutdownAfterJobFinishes" in said
        ladder.patch(name, {"spec": {"shutdownAfterJobFinishes": True}}, "RayJob")
        ladder.wait_running(name, "spot-a", kind="RayJob")
        evict_one(ladder.client, name)
        ladder.wait_running(name, "spot-b", kind="RayJob")


def quota_of(pods: str) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "few", "namespace": NAMESPACE},
        "spec": {"hard": {"pods": pods}},
    }


def test_pods_rejected_by_a_quota_are_no_wait_for_capacity(ladder: Ladder) -> None:
    ladder.says(*THREE)
    with applied(ladder.client, quota_of("1")), applied(ladder.client, real_jobset("few")) as name:
        said = ladder.wait_said(name, "PodsNotCreated")
        assert "1 of 2 pods" in said, "no machine would help them"
        assert "ResourceQuota" in said
        assert "Refused" not in ladder.said(name)
        assert not ladder.state(name).get("moves")


def test_a_job_whose_quota_has_no_room_for_any_pod_is_suspended_until_it_has(ladder: Ladder) -> None:
    ladder.says(*THREE)
    with applied(ladder.client, quota_of("0")), applied(ladder.client, real_jobset("refused")) as name:
        assert "exceeded quota: few, requested: pods=1" in ladder.wait_said(name, "Refused")
        assert ladder.is_suspended(name)
        ladder.client.apply(quota_of("9"), field_manager="test", force=True)
        ladder.wait_running(name, "spot-a")


def test_a_job_managed_by_kueue_is_ignored(ladder: Ladder) -> None:
    ladder.says(*THREE)
    job = real_jobset("queued")
    labels = {**labels_of(job), "kueue.x-k8s.io/queue-name": "team"}
    queued = {**job, "metadata": {"name": "queued", "namespace": NAMESPACE, "labels": labels}}
    with applied(ladder.client, queued) as name:
        ladder.wait_said(name, "CannotFollow")
        ladder.wait(lambda: len(pools_of(ladder.client, name)) == 2, name, "it runs")
        evict_one(ladder.client, name)
        ladder.wait(lambda: obj(ladder.job(name)["status"])["restarts"] == 1, name, "JobSet restarts it")
        assert not ladder.is_suspended(name)
        assert ladder.state(name) == {}


def test_a_job_deleted_during_its_move_is_not_recreated(ladder: Ladder) -> None:
    ladder.says(*THREE)
    client = ladder.client
    job = real_jobset("deleted", annotations=NEVER_ENDS)
    with applied(client, job) as name:
        in_the_middle_of_a_move(ladder, name)
    assert ladder.job("deleted") == {}
    with applied(client, real_jobset("deleted")) as name:
        kept = ladder.wait_running(name, "spot-a")
        assert (kept.get("evictions", 0), kept.get("moves", 0)) == (0, 0)


def test_a_move_skips_a_target_that_was_removed_from_the_ladder(ladder: Ladder) -> None:
    ladder.says(*THREE)
    with applied(ladder.client, real_jobset("retargeted", annotations=NEVER_ENDS)) as name:
        in_the_middle_of_a_move(ladder, name)
        ladder.says(tier("spot-a", maxFailures=1), tier("cpu"))
        ladder.wait(lambda: ladder.state(name).get("pool") == "cpu", name, "it is bound for what is left")
        end_all(ladder, name)
        ladder.wait_running(name, "cpu")


def test_a_deleted_ladder_leaves_no_job_suspended(ladder: Ladder) -> None:
    ladder.says(*THREE)
    with applied(ladder.client, real_jobset("bereft", annotations=NEVER_ENDS)) as name:
        in_the_middle_of_a_move(ladder, name)
        ladder.is_taken_away()
        end_all(ladder, name)
        ladder.wait(
            lambda: not ladder.is_suspended(name) and pools_of(ladder.client, name) == ["spot-b", "spot-b"],
            name,
            "it runs where it was bound for",
        )
        ladder.wait_said(name, "NotOnLadder")


def test_a_job_resumed_by_a_user_during_its_move_is_suspended_again(ladder: Ladder) -> None:
    ladder.says(*THREE)
    client = ladder.client
    with (
        applied(client, real_jobset("resumed", annotations=NEVER_ENDS)) as name,
        watched_gangs(client, NAMESPACE) as gangs,
    ):
        in_the_middle_of_a_move(ladder, name)
        ladder.patch(name, {"spec": {"suspend": False}})
        ladder.wait_said(name, "ResumedExternally")
        ladder.wait(lambda: ladder.is_suspended(name), name, "it is suspended")

        def ends() -> bool:
            # Pods that were made while it was resumed end with the others; those of the next gang are not being deleted.
            for pod in pods_of(client, name):
                if "deletionTimestamp" in obj(pod["metadata"]):
                    end(client, pod)
            return ladder.state(name).get("phase") == "Running"

        ladder.wait(ends, name, "its move goes on")
        kept = ladder.wait_running(name, "spot-b")
        assert (kept["moves"], kept.get("evictions", 0)) == (1, 0)
        assert not gangs.overlaps


def test_a_job_that_fails_during_its_move_has_failed(ladder: Ladder) -> None:
    ladder.says(*THREE)
    client = ladder.client
    with applied(client, real_jobset("fails-moving", annotations=NEVER_ENDS)) as name:
        in_the_middle_of_a_move(ladder, name)
        # As JobSet does it when a Job had failed just before it was to be suspended.
        failed = {"type": "Failed", "status": "True", "reason": "FailedJobs", "message": "jobset failed"}
        conditions = [{**failed, "lastTransitionTime": "2026-01-01T00:00:00Z"}]
        client.merge_patch(
            "jobset.x-k8s.io/v1alpha2",
            "JobSet",
            name,
            {"status": {"conditions": conditions, "terminalState": "Failed"}},
            namespace=NAMESPACE,
            subresource="status",
        )
        ladder.wait_phase(name, "Finished")
        # Events are written beside the state.
        ladder.wait(lambda: "Failed" in ladder.said(name), name, "its end is an Event")
        assert "in the middle of a move" in ladder.said(name)["Failed"]


def test_a_job_that_never_restarts_is_moved_before_its_eviction_fails_it(ladder: Ladder) -> None:
    ladder.says(*THREE)
    client = ladder.client
    job = real_jobset("fragile", annotations=NEVER_ENDS, rules=False)
    fragile = {**job, "spec": {**obj(job["spec"]), "failurePolicy": {"maxRestarts": 0}}}
    with applied(client, fragile) as name:
        in_the_middle_of_a_move(ladder, name)
        assert "EndsAtFirstLoss" in ladder.said(name)
        end_all(ladder, name)
        kept = ladder.wait_running(name, "spot-b")
        assert (kept["moves"], obj(ladder.job(name)["status"])["restarts"]) == (1, 0)


def test_a_program_that_exits_0_on_sigterm_gets_a_warning_event(ladder: Ladder) -> None:
    ladder.says(*THREE)
    client = ladder.client
    with applied(client, real_jobset("exits-0", pods=1, annotations=NEVER_ENDS)) as name:
        ladder.wait_running(name, "spot-a", pods=1)
        (pod,) = pods_of(client, name)
        client.evict(NAMESPACE, name_of(pod))
        fail(client, pod, exit_code=0)
        ladder.wait_said(name, "EndsAtFirstLoss")
        end_all(ladder, name)


def test_an_unreadable_state_is_replaced(ladder: Ladder) -> None:
    ladder.says(*THREE)
    with applied(ladder.client, real_jobset("garbled")) as name:
        ladder.wait_running(name, "spot-a")
        ladder.patch(name, {"metadata": {"annotations": {"fallback.holdfast.dev/state": "{"}}})
        ladder.wait_said(name, "StateUnreadable")
        kept = ladder.wait_running(name, "spot-a")
        assert kept["rank"] == 0


def test_a_state_copied_from_another_job_is_ignored(ladder: Ladder) -> None:
    ladder.says(*THREE)
    stolen = '{"uid":"another","phase":"Suspending","pool":"cpu","rank":2,"since":"2026-01-01T00:00:00Z"}'
    job = real_jobset("copied")
    annotated = {
        **job,
        "metadata": {**obj(job["metadata"]), "annotations": {"fallback.holdfast.dev/state": stolen}},
    }
    with applied(ladder.client, annotated) as name:
        kept = ladder.wait_running(name, "spot-a")
        assert kept["uid"] == obj(ladder.job(name)["metadata"])["uid"]


def test_a_ladder_without_tiers_is_refused(ladder: Ladder) -> None:
    with pytest.raises(ApiError) as refused:
        ladder.says()
    assert refused.value.status == 422


def test_a_pool_twice_is_refused(ladder: Ladder) -> None:
    with pytest.raises(ApiError) as refused:
        ladder.says(tier("spot-a", maxFailures=1), tier("spot-a", maxFailures=2), tier("cpu"))
    assert refused.value.status == 422
