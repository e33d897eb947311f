"""What the adapters of JobSet and RayJob observe of real jobs."""

import pytest

from pulumi_holdfast.controller.jobs.actions import Recreate, Resume, Suspend
from pulumi_holdfast.controller.jobs.observation import Cause, JobOutcome, Part
from pulumi_holdfast.controller.jobs.state import JobState, Phase
from pulumi_holdfast.controller.kube.client import ApiError
from pulumi_holdfast.controller.kube.objects import labels_of, name_of
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.rehearsal.kubernetes import KubeClient
from tests.support.builders.fallback_objects import NOW
from tests.support.clusters.fallback import NAMESPACE, LadderCluster, Looker
from tests.support.clusters.fallback_jobs import (
    NEVER_ENDS,
    annotate,
    applied,
    end,
    fail,
    interrupt,
    is_inactive,
    node_of,
    pods_of,
    pools_of,
    real_jobset,
    real_rayjob,
    remove,
    vanish,
)
from tests.support.json_objects import obj

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]


STATE = JobState(uid="u", phase=Phase.SUSPENDING, pool="cpu", rank=2, since=NOW)


def running_jobset(client: KubeClient, name: str, pods: int = 2) -> Looker:
    """A looker at a JobSet all of whose pods run."""
    looker = Looker(client, "JobSet", name)
    looker.wait(lambda seen: seen.pods_started == pods, f"the {pods} pods of {name} run")
    return looker


def suspended(looker: Looker, pool: str = "cpu", state: JobState = STATE) -> None:
    """Suspend as the controller does it."""
    looker.write(lambda job: looker.kind.suspension(job, Suspend(state=state, pool=pool), "state"))


def resumed(looker: Looker, pool: str = "cpu", state: JobState = STATE) -> None:
    """Resume as the controller does it."""
    looker.write(lambda job: looker.kind.resumption(job, Resume(state=state, pool=pool), "state"))


def test_a_job_is_moved_to_another_pool_without_a_restart(cluster: LadderCluster) -> None:
    client = cluster.client
    spot = {"holdfast.dev/pool": "spot-a", "karpenter.sh/capacity-type": "spot"}
    with applied(client, real_jobset("moved", selector=spot)) as name:
        looker = running_jobset(client, name)
        assert pools_of(client, name) == ["spot-a", "spot-a"]
        suspended(looker)
        seen = looker.wait(
            lambda seen: seen.is_suspension_complete and seen.pods_remaining == 0, "nothing is left of it"
        )
        assert (seen.suspended, seen.pool, seen.outdated_children) == (True, "cpu", 1)
        looker.delete_outdated_children()
        looker.wait(lambda seen: seen.outdated_children == 0, "JobSet recreates it from the new template")
        resumed(looker)
        seen = looker.wait(lambda seen: seen.pods_started == 2, "it runs again")
        assert pools_of(client, name) == ["cpu", "cpu"]
        assert (seen.restarts, seen.losses) == (0, ())


def test_a_job_whose_template_is_not_changed_keeps_its_children(cluster: LadderCluster) -> None:
    with applied(cluster.client, real_jobset("stays")) as name:
        looker = running_jobset(cluster.client, name)
        suspended(looker, "spot-a")
        looker.wait(
            lambda seen: seen.is_suspension_complete and seen.pods_remaining == 0, "nothing is left of it"
        )
        assert looker.look().outdated_children == 0


def test_a_suspended_job_has_pods_while_they_terminate(cluster: LadderCluster) -> None:
    client = cluster.client
    with applied(client, real_jobset("slow", annotations=NEVER_ENDS)) as name:
        looker = running_jobset(client, name)
        suspended(looker)
        looker.wait(lambda _: is_inactive(looker.job()), "JobSet calls it suspended")
        seen = looker.look()
        assert (seen.is_suspension_complete, seen.pods_remaining) == (False, 2)
        first, second = pods_of(client, name)
        end(client, first)
        looker.wait(lambda seen: seen.pods_remaining == 1, "one has ended")
        end(client, second)
        looker.wait(lambda seen: seen.is_suspension_complete and seen.pods_remaining == 0, "both have")


def test_an_evicted_pod_is_a_loss_and_its_peers_are_not(cluster: LadderCluster) -> None:
    client = cluster.client
    with applied(client, real_jobset("evicted", pods=3)) as name:
        looker = running_jobset(client, name, 3)
        with looker.watching():
            victim = pods_of(client, name)[0]
            client.evict(NAMESPACE, name_of(victim))
            seen = looker.wait(lambda seen: seen.restarts == 1 and seen.pods_started == 3, "it is restarted")
        assert [(loss.pod, loss.cause) for loss in seen.losses] == [
            (obj(victim["metadata"])["uid"], Cause.EVICTION)
        ]
        assert seen.disrupted_restarts == 1


def test_an_interrupted_machine_is_an_eviction(cluster: LadderCluster) -> None:
    client = cluster.client
    with applied(client, real_jobset("interrupted")) as name:
        looker = running_jobset(client, name)
        with looker.watching():
            lost = pods_of(client, name)[0]
            interrupt(client, node_of(lost))
            seen = looker.wait(lambda seen: seen.restarts == 1 and seen.pods_started == 2, "it is restarted")
        assert {loss.cause for loss in seen.losses} == {Cause.EVICTION}
        assert obj(lost["metadata"])["uid"] in {loss.pod for loss in seen.losses}


def test_the_pods_of_a_vanished_machine_are_lost(cluster: LadderCluster) -> None:
    client = cluster.client
    with applied(client, real_jobset("vanished")) as name:
        looker = running_jobset(client, name)
        with looker.watching():
            lost = pods_of(client, name)[0]
            vanish(client, node_of(lost))
            seen = looker.wait(lambda seen: bool(seen.losses), "its loss is seen at once, by its node")
            assert [loss.cause for loss in seen.losses] == [Cause.NODE_GONE]
            assert seen.dead_pods == (name_of(lost),)
            assert (seen.restarts, seen.pods_placed) == (0, 1)
            end(client, lost)


def test_a_failing_program_is_no_eviction(cluster: LadderCluster) -> None:
    client = cluster.client
    with applied(client, real_jobset("failing")) as name:
        looker = running_jobset(client, name)
        with looker.watching():
            fail(client, pods_of(client, name)[0])
            seen = looker.wait(lambda seen: seen.restarts == 1, "JobSet restarts it")
        assert [loss.cause for loss in seen.losses] == [Cause.APPLICATION]
        assert seen.disrupted_restarts == 0


def test_an_update_of_a_changed_job_is_rejected(cluster: LadderCluster) -> None:
    with applied(cluster.client, real_jobset("fenced")) as name:
        looker = running_jobset(cluster.client, name)
        patch = looker.kind.suspension(looker.job(), Suspend(state=STATE, pool="cpu"), "state")
        looker.patch({"metadata": {"labels": {"changed": "meanwhile"}}})
        with pytest.raises(ApiError) as refused:
            looker.patch(patch)
        assert refused.value.status == 409


def test_an_update_of_a_recreated_job_is_rejected(cluster: LadderCluster) -> None:
    job = real_jobset("another")
    with applied(cluster.client, job) as name:
        looker = running_jobset(cluster.client, name)
        patch = looker.kind.suspension(looker.job(), Suspend(state=STATE, pool="cpu"), "state")
    with applied(cluster.client, job), pytest.raises(ApiError) as refused:
        looker.patch(patch)
    assert refused.value.status == 409


RAYJOB_STATE = JobState(uid="", phase=Phase.SUSPENDING, pool="cpu", rank=2, since=NOW)


def running_rayjob(client: KubeClient, name: str) -> Looker:
    """A looker at a RayJob whose job is submitted and whose pods run."""
    looker = Looker(client, "RayJob", name)
    looker.wait(
        lambda seen: (
            seen.pods_started == 2 and status(looker) == "Running" and seen.head_unready_since is None
        ),
        f"{name} runs",
    )
    return looker


def status(looker: Looker) -> str:
    """The operator's own state of it."""
    return str(obj(looker.job().get("status")).get("jobDeploymentStatus") or "")


def the(part: str, pods: list[Json]) -> list[Json]:
    """The pods of a part of a Ray cluster."""
    return [pod for pod in pods if labels_of(pod).get("ray.io/node-type") == part]


def pools_by_part(client: KubeClient, name: str) -> dict[str, set[str]]:
    """On which pools the parts of a job are."""
    pools = {
        name_of(node): str(labels_of(node).get("holdfast.dev/pool")) for node in client.list("v1", "Node")
    }
    pods = pods_of(client, name)
    return {part: {pools[node_of(pod)] for pod in the(part, pods)} for part in ("head", "worker")}


def test_a_job_is_moved_with_its_workers_and_without_its_head(cluster: LadderCluster) -> None:
    client = cluster.client
    with applied(client, real_rayjob("ray-moved")) as name:
        looker = running_rayjob(client, name)
        assert pools_by_part(client, name) == {"head": {"cpu"}, "worker": {"spot-a"}}
        suspended(looker, state=RAYJOB_STATE)
        seen = looker.wait(
            lambda seen: seen.is_suspension_complete and seen.pods_remaining == 0, "nothing is left of it"
        )
        assert (seen.pool, seen.outdated_children) == ("cpu", 0)
        resumed(looker, state=RAYJOB_STATE)
        running_rayjob(client, name)
        assert pools_by_part(client, name) == {"head": {"cpu"}, "worker": {"cpu"}}
        assert looker.look().restarts == 0


def test_a_job_that_kuberay_calls_suspended_still_has_its_pods(cluster: LadderCluster) -> None:
    client = cluster.client
    job = real_rayjob("ray-slow", worker_annotations=NEVER_ENDS)
    with applied(client, job) as name:
        looker = running_rayjob(client, name)
        suspended(looker, state=RAYJOB_STATE)
        seen = looker.wait(lambda seen: seen.is_suspension_complete, "KubeRay calls it suspended")
        assert seen.pods_remaining >= 2
        for pod in the("worker", pods_of(client, name)):
            end(client, pod)
        looker.wait(lambda seen: seen.pods_remaining == 0, "now they have ended")


def test_an_evicted_worker_is_a_loss_that_kuberay_does_not_count(cluster: LadderCluster) -> None:
    client = cluster.client
    with applied(client, real_rayjob("ray-evicted")) as name:
        looker = running_rayjob(client, name)
        with looker.watching():
            lost = the("worker", pods_of(client, name))[0]
            client.evict(NAMESPACE, name_of(lost))
            seen = looker.wait(
                lambda seen: seen.pods_started == 2 and bool(seen.losses), "KubeRay replaces the worker"
            )
        assert [(loss.cause, loss.part) for loss in seen.losses] == [(Cause.EVICTION, Part.WORKER)]
        assert (seen.restarts, status(looker)) == (0, "Running")


def test_a_lost_head_is_observed_until_another_is_ready(cluster: LadderCluster) -> None:
    client = cluster.client
    with applied(client, real_rayjob("ray-head")) as name:
        looker = running_rayjob(client, name)
        with looker.watching():
            (head,) = the("head", pods_of(client, name))
            client.evict(NAMESPACE, name_of(head))
            seen = looker.wait(
                lambda seen: any(loss.part is Part.HEAD for loss in seen.losses), "its loss is seen"
            )
            assert status(looker) == "Running"
            seen = looker.wait(
                lambda seen: seen.head_unready_since is None and seen.pods_started == 2,
                "another head answers",
            )
        assert seen.restarts == 0


def test_a_failed_attempt_is_recorded_and_retried(cluster: LadderCluster) -> None:
    client = cluster.client
    with applied(client, real_rayjob("ray-failing")) as name:
        looker = running_rayjob(client, name)
        (head,) = the("head", pods_of(client, name))
        annotate(client, head, fail="true")
        seen = looker.wait(lambda seen: seen.restarts == 1, "KubeRay counts it")
        assert [(loss.cause, loss.part) for loss in seen.losses] == [(Cause.APPLICATION, Part.HEAD)]
        assert seen.outcome is None
        seen = running_rayjob(client, name).look()
        assert seen.restarts == 1


def test_a_failed_job_gets_a_successor_on_request(cluster: LadderCluster) -> None:
    client = cluster.client
    job = real_rayjob("ray-dead", annotations={"fallback.holdfast.dev/recreate": "true"}, backoffLimit=0)
    with applied(client, job) as name:
        looker = running_rayjob(client, name)
        (head,) = the("head", pods_of(client, name))
        annotate(client, head, fail="true")
        seen = looker.wait(lambda seen: seen.outcome is JobOutcome.FAILED, "it is over")
        assert (seen.can_be_recreated, seen.can_be_suspended) == (True, False)
        made = looker.kind.recreation(looker.job(), Recreate(state=RAYJOB_STATE, pool="spot-b"), "{}")
        assert made is not None
        successor = client.create(made.manifest)
        try:
            looker.patch(made.patch)
            running_rayjob(client, name_of(successor))
            assert pools_by_part(client, name_of(successor))["worker"] == {"spot-b"}
            assert looker.look().can_be_recreated is False
        finally:
            remove(client, successor)


def test_a_job_that_kuberay_rejects_stays_rejected(cluster: LadderCluster) -> None:
    client = cluster.client
    job = real_rayjob("ray-invalid", shutdownAfterJobFinishes=False)
    with applied(client, job) as name:
        looker = running_rayjob(client, name)
        assert looker.look().not_suspendable_reason is not None
        looker.patch({"spec": {"suspend": True}})
        looker.wait(lambda _: status(looker) == "ValidationFailed", "KubeRay refuses the suspension")
        looker.patch({"spec": {"suspend": False, "shutdownAfterJobFinishes": True}})
        with applied(client, real_rayjob("ray-after")) as after:
            running_rayjob(client, after)
        assert status(looker) == "ValidationFailed"
        assert looker.look().outcome is JobOutcome.FAILED
