"""Simulated nodes and pods live and die as real ones do."""

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from holdfast.simulator.kubernetes_client.objects import mapping, sequence
from tests.support.clusters.control_plane import NODE, Watched, apply, phase, run, trainer

if TYPE_CHECKING:
    from holdfast.scheduling.json import Json

pytestmark = pytest.mark.cluster


@pytest.fixture(autouse=True)
def node(watched: Watched) -> None:
    """The node the pods are on."""
    apply(watched.client, NODE)


def test_a_node_keeps_its_gpus_and_a_pod_on_it_runs(watched: Watched) -> None:
    node = watched.client.wait_for(
        "v1",
        "Node",
        "node-1",
        timeout_seconds=60,
        condition=lambda node: bool(mapping((node or {}).get("status")).get("conditions")),
        what="the node reports",
    )
    assert mapping(mapping((node or {})["status"])["allocatable"])["nvidia.com/gpu"] == "8", (
        "as its machine has"
    )
    statuses = mapping(run(watched.client, trainer("runs"))["status"])
    sidecar = mapping(sequence(statuses["initContainerStatuses"])[1])
    assert "running" in mapping(sidecar["state"]), "a sidecar stays up beside the training"


def test_a_node_that_changes_all_the_time_is_heard_of_nevertheless(watched: Watched) -> None:
    long_ago = (datetime.now(UTC) - timedelta(seconds=61)).strftime("%Y-%m-%dT%H:%M:%SZ")
    ready = {"type": "Ready", "status": "True", "lastHeartbeatTime": long_ago}
    watched.client.merge_patch(
        "v1", "Node", "node-1", {"status": {"conditions": [ready]}}, subresource="status"
    )
    heard = watched.client.wait_for(
        "v1",
        "Node",
        "node-1",
        timeout_seconds=30,
        condition=lambda node: last_heartbeat(node) > long_ago,
        what="the node's next heartbeat",
    )
    assert last_heartbeat(heard) > long_ago, (
        "60 s after the last heartbeat the next is overdue, and that somebody has just changed the node puts nothing off: "
        "else a node that is tainted and untainted is called silent by the node controller"
    )


def last_heartbeat(node: "Json | None") -> str:
    """When the Ready condition was last said; empty if it was not."""
    conditions = map(mapping, sequence(mapping((node or {}).get("status")).get("conditions")))
    return next(
        (str(each.get("lastHeartbeatTime")) for each in conditions if each.get("type") == "Ready"), ""
    )


def test_a_deleted_pod_is_seen_to_fail_of_sigterm_before_it_goes(watched: Watched) -> None:
    run(watched.client, trainer("evicted"))
    seen: list[tuple[str, Json]] = []
    for what, pod in watched.client.watch(
        "v1", "Pod", namespace="default", name="evicted", timeout_seconds=60
    ):
        if not seen:
            watched.client.evict("default", "evicted")
        seen.append((what, pod))
        if what == "DELETED":
            break
    failed = [pod for what, pod in seen if what == "MODIFIED" and phase(pod) == "Failed"]
    assert failed, "a pod failure policy looks at Failed pods, never at vanished ones"
    status = mapping(failed[0]["status"])
    terminated = mapping(mapping(mapping(sequence(status["containerStatuses"])[0])["state"])["terminated"])
    assert terminated["exitCode"] == 143, "what SIGTERM leaves behind"
    conditions = {str(mapping(each)["type"]) for each in sequence(status["conditions"])}
    assert "DisruptionTarget" in conditions, "and that it was an eviction stays on record"
    assert seen[-1][0] == "DELETED", "then it is gone"


def test_a_pod_succeeds_only_when_it_is_told_to(watched: Watched) -> None:
    run(watched.client, trainer("trains"))
    watched.client.merge_patch(
        "v1", "Pod", "trains", {"metadata": {"annotations": {"holdfast.dev/complete": "true"}}}
    )
    done = watched.client.wait_for(
        "v1",
        "Pod",
        "trains",
        timeout_seconds=60,
        condition=lambda pod: phase(pod) == "Succeeded",
        what="the training ends",
    )
    assert phase(done) == "Succeeded", "its author said so"


def test_a_hosted_pod_waits_for_its_host(watched: Watched) -> None:
    labels = {"app.kubernetes.io/name": "karpenter"}
    apply(watched.client, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "karpenter"}})
    apply(watched.client, trainer("hosted", namespace="karpenter", labels=labels))
    run(watched.client, trainer("not-hosted", labels=labels))
    hosted = watched.client.get("v1", "Pod", "hosted", "karpenter")
    assert phase(hosted) == "Pending", (
        "a pod that came after it runs already; this one is for its host to run"
    )
    watched.client.delete("v1", "Pod", "hosted", namespace="karpenter")
