"""What is seen of real RayJobs, and what KubeRay makes of our updates: no controller of ours runs here."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.fallback.state_machine.actions import Recreate, Resume, Suspend
from holdfast.fallback.state_machine.observation import Cause, Outcome, Part
from holdfast.fallback.state_machine.state import JobState, Phase
from tests.support.clusters.fallback import NAMESPACE, Looker
from tests.support.clusters.fallback_jobs import (
    NEVER_ENDS,
    annotate,
    applied,
    end,
    name_of,
    node_of,
    pods_of,
    real_rayjob,
    remove,
)
from tests.support.fallback_objects import NOW
from tests.support.json_objects import obj

if TYPE_CHECKING:
    from holdfast.scheduling.json import Json
    from holdfast.simulator.kubernetes_client.client import KubeClient
    from tests.support.clusters.fallback import LadderCluster

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]

STATE = JobState(uid="", phase=Phase.SUSPENDING, pool="cpu", rank=2, since=NOW)


def running(client: KubeClient, name: str) -> Looker:
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
    return [pod for pod in pods if obj(obj(pod["metadata"])["labels"]).get("ray.io/node-type") == part]


def pools_by_part(client: KubeClient, name: str) -> dict[str, set[str]]:
    """On which pools the parts of a job are."""
    pools = {
        name_of(node): str(obj(obj(node["metadata"])["labels"]).get("holdfast.dev/pool"))
        for node in client.list("v1", "Node")
    }
    pods = pods_of(client, name)
    return {part: {pools[node_of(pod)] for pod in the(part, pods)} for part in ("head", "worker")}


def test_a_job_is_moved_with_its_workers_and_without_its_head(cluster: LadderCluster) -> None:
    client = cluster.client
    with applied(client, real_rayjob("ray-moved")) as name:
        looker = running(client, name)
        assert pools_by_part(client, name) == {"head": {"cpu"}, "worker": {"spot-a"}}, "its workers select it"
        looker.patch(looker.kind.suspension(looker.job(), Suspend(state=STATE, pool="cpu"), "state"))
        seen = looker.wait(
            lambda seen: seen.is_suspension_complete and seen.pods_remaining == 0, "nothing is left of it"
        )
        assert (seen.pool, seen.outdated_children) == ("cpu", 0), (
            "its next cluster is made from the new template"
        )
        looker.patch(looker.kind.resumption(looker.job(), Resume(state=STATE, pool="cpu"), "state"))
        running(client, name)
        assert pools_by_part(client, name) == {"head": {"cpu"}, "worker": {"cpu"}}, (
            "its workers are on the next tier"
        )
        assert looker.look().restarts == 0, "a move is no failure"


def test_a_job_that_kuberay_calls_suspended_still_has_its_pods(cluster: LadderCluster) -> None:
    client = cluster.client
    job = real_rayjob("ray-slow", worker_annotations=NEVER_ENDS)
    with applied(client, job) as name:
        looker = running(client, name)
        looker.patch(looker.kind.suspension(looker.job(), Suspend(state=STATE, pool="cpu"), "state"))
        seen = looker.wait(lambda seen: seen.is_suspension_complete, "KubeRay calls it suspended")
        assert seen.pods_remaining >= 2, (
            "its RayCluster is gone, and its workers still write to the checkpoint"
        )
        for pod in the("worker", pods_of(client, name)):
            end(client, pod)
        looker.wait(lambda seen: seen.pods_remaining == 0, "now they have ended")


def test_an_evicted_worker_is_a_loss_that_kuberay_does_not_count(cluster: LadderCluster) -> None:
    client = cluster.client
    with applied(client, real_rayjob("ray-evicted")) as name:
        looker = running(client, name)
        with looker.watching():
            lost = the("worker", pods_of(client, name))[0]
            client.evict(NAMESPACE, name_of(lost))
            seen = looker.wait(
                lambda seen: seen.pods_started == 2 and bool(seen.losses), "KubeRay replaces the worker"
            )
        assert [(loss.cause, loss.part) for loss in seen.losses] == [(Cause.EVICTION, Part.WORKER)], "one pod"
        assert (seen.restarts, status(looker)) == (0, "Running"), "in status.failed there is nothing of it"


def test_a_lost_head_is_seen_until_another_answers(cluster: LadderCluster) -> None:
    client = cluster.client
    with applied(client, real_rayjob("ray-head")) as name:
        looker = running(client, name)
        with looker.watching():
            (head,) = the("head", pods_of(client, name))
            client.evict(NAMESPACE, name_of(head))
            seen = looker.wait(
                lambda seen: any(loss.part is Part.HEAD for loss in seen.losses), "its loss is seen"
            )
            assert status(looker) == "Running", "KubeRay asks a dashboard that is not there, again and again"
            seen = looker.wait(
                lambda seen: seen.head_unready_since is None and seen.pods_started == 2,
                "another head answers",
            )
        assert seen.restarts == 0, "KubeRay counts nothing, and submits the job anew"


def test_a_failed_attempt_is_recorded_and_retried(cluster: LadderCluster) -> None:
    client = cluster.client
    with applied(client, real_rayjob("ray-failing")) as name:
        looker = running(client, name)
        (head,) = the("head", pods_of(client, name))
        annotate(client, head, fail="true")
        seen = looker.wait(lambda seen: seen.restarts == 1, "KubeRay counts it")
        assert [(loss.cause, loss.part) for loss in seen.losses] == [(Cause.APPLICATION, Part.HEAD)], (
            "the driver"
        )
        assert seen.outcome is None, "it is retried on a new cluster"
        seen = running(client, name).look()
        assert seen.restarts == 1, "which is another attempt"


def test_a_job_that_has_failed_for_good_gets_a_successor_where_it_asks(cluster: LadderCluster) -> None:
    client = cluster.client
    job = real_rayjob("ray-dead", annotations={"fallback.holdfast.dev/recreate": "true"}, backoffLimit=0)
    with applied(client, job) as name:
        looker = running(client, name)
        (head,) = the("head", pods_of(client, name))
        annotate(client, head, fail="true")
        seen = looker.wait(lambda seen: seen.outcome is Outcome.FAILED, "it is over")
        assert (seen.can_be_recreated, seen.can_be_suspended) == (True, False), (
            "no suspension would revive it"
        )
        made = looker.kind.recreation(looker.job(), Recreate(state=STATE, pool="spot-b"), "{}")
        assert made is not None, "it asks for one"
        successor = client.create(made.manifest)
        try:
            looker.patch(made.patch)
            running(client, name_of(successor))
            assert pools_by_part(client, name_of(successor))["worker"] == {"spot-b"}, "on its tier"
            assert looker.look().can_be_recreated is False, "once is enough"
        finally:
            remove(client, successor)


def test_a_job_that_kuberay_once_calls_invalid_never_comes_back(cluster: LadderCluster) -> None:
    client = cluster.client
    job = real_rayjob("ray-invalid", shutdownAfterJobFinishes=False)
    with applied(client, job) as name:
        looker = running(client, name)
        assert looker.look().not_suspendable_reason is not None, "the ladder leaves it alone, and says why"
        looker.patch({"spec": {"suspend": True}})
        looker.wait(lambda _: status(looker) == "ValidationFailed", "KubeRay refuses the suspension")
        looker.patch({"spec": {"suspend": False, "shutdownAfterJobFinishes": True}})
        with applied(client, real_rayjob("ray-after")) as after:
            running(client, after)
        assert status(looker) == "ValidationFailed", (
            "its operator has seen the fix, and worked on others since"
        )
        assert looker.look().outcome is Outcome.FAILED, "it is lost, as though it had failed"
