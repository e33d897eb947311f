"""Plays the kubelet of a node whose machine is told to end: it ends its pods in good time, and says so of each."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from holdfast.rehearsal.scenarios.node_loss import silence
from holdfast.rehearsal.scenarios.placement import name_of, node_of
from holdfast.rehearsal.scenarios.shutdown_grace import Ending, ShutdownGrace, ending_of, is_critical
from holdfast.scheduling.json import Json
from holdfast.simulator.cluster_autoscaler.observing import SHUTTING_DOWN
from holdfast.simulator.kubernetes_client.client import KubeClient
from holdfast.simulator.kubernetes_client.errors import KubeError
from holdfast.simulator.kubernetes_client.summary import mapping, sequence

# As the kubelet writes them.
TERMINATED: Final = "TerminationByKubelet"
_REASON: Final = "Terminated"
_MESSAGE: Final = "Pod was terminated in response to imminent node shutdown."
_ENDED: Final = ("Succeeded", "Failed")


@dataclass(frozen=True, kw_only=True)
class NodeShutdown:
    """The shutdown of one node, with the grace that its pods get; `say` is told of each pod."""

    client: KubeClient
    node: str
    grace: ShutdownGrace
    say: Callable[[str], None]

    def play(self) -> None:
        """End the node's pods, users' first, and leave a node on which nothing runs."""
        self._stop_kubelet()
        if self.grace.is_none:
            self.say(f"node {self.node} is gone at once: its pods are told nothing")
            return
        pods = [pod for pod in self.client.list("v1", "Pod") if self._is_running_here(pod)]
        for critical in (False, True):
            self._end(pod for pod in pods if is_critical(pod) is critical)

    def _stop_kubelet(self) -> None:
        """Have the node say why it takes no more pods, and nobody put it right."""
        silence(self.client, self.node)
        node = self.client.get("v1", "Node", self.node) or {}
        conditions = [
            _not_ready() if mapping(each).get("type") == "Ready" else each
            for each in sequence(mapping(node.get("status")).get("conditions"))
        ]
        patch: Json = {"status": {"conditions": conditions}}
        self.client.merge_patch("v1", "Node", self.node, patch, subresource="status")

    def _end(self, pods: Iterable[Json]) -> None:
        """End pods at the same time, each when it is done or its grace is over."""
        begin = time.monotonic()
        endings = sorted(
            ((ending_of(pod, self.grace), pod) for pod in pods),
            key=lambda each: (each[0].took, name_of(each[1])),
        )
        for ending, pod in endings:
            time.sleep(max(0.0, begin + ending.took - time.monotonic()))
            self._tell(pod, ending)

    def _tell(self, pod: Json, ending: Ending) -> None:
        if ending.got < ending.asked:
            self.say(f"{name_of(pod)} gets {ending.got} s to end, of the {ending.asked} s it asks for")
        metadata = mapping(pod.get("metadata"))
        try:
            self.client.merge_patch(
                "v1",
                "Pod",
                name_of(pod),
                {"status": _failed(pod, ending.exit_code)},
                namespace=str(metadata.get("namespace")),
                subresource="status",
            )
        except KubeError as error:
            # It went by itself in the meantime.
            if error.status != 404:
                raise

    def _is_running_here(self, pod: Json) -> bool:
        return node_of(pod) == self.node and mapping(pod.get("status")).get("phase") not in _ENDED


def _failed(pod: Json, exit_code: int) -> Json:
    status = mapping(pod.get("status"))
    now = _now()
    others = [
        each
        for each in map(mapping, sequence(status.get("conditions")))
        if each.get("type") not in ("Ready", "ContainersReady", "DisruptionTarget")
    ]
    not_ready = [
        {"type": kind, "status": "False", "reason": "PodFailed", "lastTransitionTime": now}
        for kind in ("Ready", "ContainersReady")
    ]
    target = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": TERMINATED,
        "message": _MESSAGE,
        "lastTransitionTime": now,
    }
    ended = [_terminated(mapping(each), exit_code, now) for each in sequence(status.get("containerStatuses"))]
    return {
        "phase": "Failed",
        "reason": _REASON,
        "message": _MESSAGE,
        "conditions": [*others, *not_ready, target],
        "containerStatuses": ended,
    }


def _terminated(container: Json, exit_code: int, now: str) -> Json:
    running = mapping(mapping(container.get("state")).get("running"))
    state = {
        "exitCode": exit_code,
        "reason": "Error",
        "startedAt": running.get("startedAt") or now,
        "finishedAt": now,
    }
    return {**container, "ready": False, "started": False, "state": {"terminated": state}}


def _not_ready() -> Json:
    now = _now()
    return {
        "type": "Ready",
        "status": "False",
        "reason": "KubeletNotReady",
        "message": SHUTTING_DOWN,
        "lastHeartbeatTime": now,
        "lastTransitionTime": now,
    }


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
