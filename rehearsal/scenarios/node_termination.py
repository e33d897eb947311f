"""How a node and its pods end: a graceful node shutdown, a drain with a time limit, or a loss without notice."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from holdfast.rehearsal.scenarios.placement import name_of, node_of
from holdfast.scheduling.json import Json, mapping, sequence
from holdfast.simulator.cluster_autoscaler.observation import SHUTTING_DOWN
from holdfast.simulator.kubernetes_client.client import KubeClient
from holdfast.simulator.kubernetes_client.errors import KubeError, KubeTimeout

# As the kubelet writes them.
TERMINATED: Final = "TerminationByKubelet"
_REASON: Final = "Terminated"
_MESSAGE: Final = "Pod was terminated in response to imminent node shutdown."
_ENDED: Final = ("Succeeded", "Failed")


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


# GKE's defaults: of the 30 s that Compute Engine gives a spot machine, the last 15 s are for critical pods.
_TOTAL_SECONDS: Final = 30
_CRITICAL_SECONDS: Final = 15
# The priority of `system-cluster-critical`, the lower one of the two critical classes.
_CRITICAL_PRIORITY: Final = 2_000_000_000
_USUAL_SECONDS: Final = 30

# Annotation of a pod: the seconds it takes to stop after SIGTERM. Without it, the pod stops at once.
STOPS_AFTER: Final = "rehearsal.holdfast.dev/stops-after-seconds"
# The exit codes of a program that SIGTERM or SIGKILL ends.
_TERMINATED: Final = 143
_KILLED: Final = 137


@dataclass(frozen=True, kw_only=True)
class ShutdownGrace:
    """The grace periods of a node shutdown in seconds: users' pods first, then critical pods."""

    users: int
    critical: int

    @property
    def is_none(self) -> bool:
        """Whether pods get no grace period: they end with the node."""
        return not (self.users or self.critical)


@dataclass(frozen=True, kw_only=True)
class Ending:
    """How a pod ends: the seconds it requests, gets and takes, and its exit code."""

    asked: int
    got: int
    took: float
    exit_code: int


def grace_of(kubelet: Json) -> ShutdownGrace:
    """Return the grace periods of a node pool from its kubelet configuration."""
    total = _seconds(kubelet, "shutdownGracePeriodSeconds", _TOTAL_SECONDS)
    critical = min(total, _seconds(kubelet, "shutdownGracePeriodCriticalPodsSeconds", _CRITICAL_SECONDS))
    return ShutdownGrace(users=total - critical, critical=critical)


def is_critical(pod: Json) -> bool:
    """Whether a pod has a critical priority class."""
    priority = mapping(pod.get("spec")).get("priority")
    return isinstance(priority, int) and priority >= _CRITICAL_PRIORITY


def ending_of(pod: Json, grace: ShutdownGrace) -> Ending:
    """Return how a pod ends: it gets the smaller one of its own grace period and its node's."""
    given = mapping(pod.get("spec")).get("terminationGracePeriodSeconds")
    asked = given if isinstance(given, int) else _USUAL_SECONDS
    got = min(asked, grace.critical if is_critical(pod) else grace.users)
    needs = float(str(mapping(mapping(pod.get("metadata")).get("annotations")).get(STOPS_AFTER) or 0))
    return Ending(
        asked=asked, got=got, took=min(needs, got), exit_code=_TERMINATED if needs <= got else _KILLED
    )


def _seconds(kubelet: Json, field: str, usual: int) -> int:
    value = kubelet.get(field)
    return int(value) if isinstance(value, int | float) else usual


#: The reason that Kubernetes' pod garbage collector sets on pods without a node, within a minute.
ORPHANED: Final = "DeletionByPodGC"
#: Annotation of a node: its kubelet is not simulated any more.
SILENT: Final = "rehearsal.holdfast.dev/silent"


def lose_node(client: KubeClient, node: str) -> None:
    """Delete a node whose machine is gone, as a cloud's node controller does."""
    silence(client, node)
    found = client.get("v1", "Node", node) or {}
    conditions = [_unknown(each) if each.get("type") == "Ready" else each for each in _conditions(found)]
    client.merge_patch("v1", "Node", node, {"status": {"conditions": conditions}}, subresource="status")
    client.delete("v1", "Node", node, propagation="Background")


def silence(client: KubeClient, node: str) -> None:
    """Stop the simulation of a node's kubelet."""
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


#: The reason that the API server sets on an evicted pod.
EVICTED: Final = "EvictionByEvictionAPI"
# The taint that AKS sets on a node it drains.
_TAINT: Final = {"key": "remediator.kubernetes.azure.com/unschedulable", "effect": "NoSchedule"}


@dataclass(frozen=True, kw_only=True)
class NodeDrain:
    """The drain of one node within `seconds`; `say` reports each pod that gets less than its grace period."""

    client: KubeClient
    node: str
    seconds: float
    say: Callable[[str], None]

    def run(self) -> None:
        """Evict the node's pods, and return when they are gone or the time is over."""
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
            self.say(f"{name_of(pod)} gets {self.seconds:.0f} s of its grace period of {wanted} s")
        try:
            self.client.evict(str(mapping(pod.get("metadata")).get("namespace")), name_of(pod))
        except KubeError as error:
            # 429: a disruption budget forbids it, and Azure does not wait for that; 404: it is gone already.
            if error.status not in (404, 429):
                raise

    def _running(self, pods: list[Json]) -> list[Json]:
        return [pod for pod in pods if self._is_here(pod) and not _is_daemons(pod)]

    def _is_here(self, pod: Json) -> bool:
        return node_of(pod) == self.node and mapping(pod.get("status")).get("phase") not in _ENDED


def _is_daemons(pod: Json) -> bool:
    owners = map(mapping, sequence(mapping(pod.get("metadata")).get("ownerReferences")))
    return any(owner.get("kind") == "DaemonSet" for owner in owners)


@dataclass(frozen=True, kw_only=True)
class NodeShutdown:
    """A graceful shutdown of one node; `say` reports each pod that gets less than its grace period."""

    client: KubeClient
    node: str
    grace: ShutdownGrace
    say: Callable[[str], None]

    def run(self) -> None:
        """Terminate the node's pods, users' pods first."""
        self._stop_kubelet()
        if self.grace.is_none:
            self.say(f"node {self.node} is gone at once, without notice to its pods")
            return
        pods = [pod for pod in self.client.list("v1", "Pod") if self._is_running_here(pod)]
        for critical in (False, True):
            self._end(pod for pod in pods if is_critical(pod) is critical)

    def _stop_kubelet(self) -> None:
        """Set the node's Ready condition to False, and stop the simulation of its kubelet."""
        silence(self.client, self.node)
        node = self.client.get("v1", "Node", self.node) or {}
        conditions = [
            _not_ready() if mapping(each).get("type") == "Ready" else each
            for each in sequence(mapping(node.get("status")).get("conditions"))
        ]
        patch: Json = {"status": {"conditions": conditions}}
        self.client.merge_patch("v1", "Node", self.node, patch, subresource="status")

    def _end(self, pods: Iterable[Json]) -> None:
        """Terminate pods in parallel, each when it stops or its grace period is over."""
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
            self.say(f"{name_of(pod)} gets {ending.got} s of its grace period of {ending.asked} s")
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
            if not error.is_missing:
                raise

    def _is_running_here(self, pod: Json) -> bool:
        return node_of(pod) == self.node and mapping(pod.get("status")).get("phase") not in _ENDED
