"""A node whose machine is gone: nobody has told its pods, and nobody stops them."""

from datetime import UTC, datetime
from typing import Final

from holdfast.scheduling.json import Json
from holdfast.simulator.kubernetes_client.client import KubeClient
from holdfast.simulator.kubernetes_client.summary import mapping, sequence

#: What Kubernetes' own garbage collector writes of the pods that it finds on no node, a minute later at most.
ORPHANED: Final = "DeletionByPodGC"
#: On a node: whoever simulates nodes does not bring it back to life.
SILENT: Final = "rehearsal.holdfast.dev/silent"


def lose_node(client: KubeClient, node: str) -> None:
    """Take a node's machine away, and the node with it, as a cloud's controller does that finds no machine behind it."""
    silence(client, node)
    found = client.get("v1", "Node", node) or {}
    conditions = [_unknown(each) if each.get("type") == "Ready" else each for each in _conditions(found)]
    client.merge_patch("v1", "Node", node, {"status": {"conditions": conditions}}, subresource="status")
    client.delete("v1", "Node", node, propagation="Background")


def silence(client: KubeClient, node: str) -> None:
    """Have nobody simulate a node's kubelet any more."""
    client.merge_patch("v1", "Node", node, {"metadata": {"annotations": {SILENT: "true"}}})


def _conditions(node: Json) -> list[Json]:
    return [mapping(each) for each in sequence(mapping(node.get("status")).get("conditions"))]


def _unknown(ready: Json) -> Json:
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        **ready,
        "status": "Unknown",
        "reason": "NodeStatusUnknown",
        "message": "Kubelet stopped posting node status.",
        "lastTransitionTime": now,
    }
