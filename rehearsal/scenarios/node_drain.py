"""A node that is drained in a hurry: its pods are evicted, and get what is left of the time."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from holdfast.rehearsal.scenarios.placement import name_of, node_of
from holdfast.scheduling.json import Json
from holdfast.simulator.kubernetes_client.client import KubeClient
from holdfast.simulator.kubernetes_client.errors import KubeError, KubeTimeout
from holdfast.simulator.kubernetes_client.summary import mapping, sequence

#: What the API server writes of a pod that is evicted.
EVICTED: Final = "EvictionByEvictionAPI"
_USUAL_SECONDS: Final = 30
_ENDED: Final = ("Succeeded", "Failed")
# AKS's own word for a node that it drains.
_TAINT: Final = {"key": "remediator.kubernetes.azure.com/unschedulable", "effect": "NoSchedule"}


@dataclass(frozen=True, kw_only=True)
class NodeDrain:
    """The drain of one node, for which there are so many seconds; `say` is told of each pod that gets less than it asks."""

    client: KubeClient
    node: str
    seconds: float
    say: Callable[[str], None]

    def play(self) -> None:
        """Evict the node's pods, and come back when they have gone or the time is over."""
        end = time.monotonic() + self.seconds
        self._close()
        for pod in self._running(self.client.list("v1", "Pod")):
            self._evict(pod)
        try:
            self.client.wait_list(
                "v1",
                "Pod",
                timeout_seconds=max(0.1, end - time.monotonic()),
                condition=lambda pods: not self._running(pods),
                what=f"node {self.node} is drained",
            )
        except KubeTimeout:
            left = ", ".join(map(name_of, self._running(self.client.list("v1", "Pod"))))
            self.say(f"node {self.node} is gone with {left} still on it")

    def _close(self) -> None:
        node = self.client.get("v1", "Node", self.node) or {}
        taints = [*sequence(mapping(node.get("spec")).get("taints")), _TAINT]
        self.client.merge_patch("v1", "Node", self.node, {"spec": {"unschedulable": True, "taints": taints}})

    def _evict(self, pod: Json) -> None:
        asked = mapping(pod.get("spec")).get("terminationGracePeriodSeconds")
        wanted = asked if isinstance(asked, int) else _USUAL_SECONDS
        if wanted > self.seconds:
            self.say(f"{name_of(pod)} gets {self.seconds:.0f} s to end, of the {wanted} s it asks for")
        try:
            self.client.evict(str(mapping(pod.get("metadata")).get("namespace")), name_of(pod))
        except KubeError as error:
            # 429: a disruption budget forbids it, which Azure does not ask for; 404: it has gone by itself.
            if error.status not in (404, 429):
                raise

    def _running(self, pods: list[Json]) -> list[Json]:
        return [pod for pod in pods if self._is_here(pod) and not _is_daemons(pod)]

    def _is_here(self, pod: Json) -> bool:
        return node_of(pod) == self.node and mapping(pod.get("status")).get("phase") not in _ENDED


def _is_daemons(pod: Json) -> bool:
    owners = map(mapping, sequence(mapping(pod.get("metadata")).get("ownerReferences")))
    return any(owner.get("kind") == "DaemonSet" for owner in owners)
