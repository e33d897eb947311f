"""How a node and its pods end: a graceful node shutdown, or a loss without notice."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from pulumi_holdfast.controller.kube.client import ApiError
from pulumi_holdfast.controller.kube.objects import name_of
from pulumi_holdfast.ladder.json import Json, mapping, sequence
from pulumi_holdfast.rehearsal.cluster_autoscaler.observation import SHUTTING_DOWN
from pulumi_holdfast.rehearsal.cluster_autoscaler.scale_up import node_of
from pulumi_holdfast.rehearsal.kubernetes import KubeClient
from pulumi_holdfast.rehearsal.objects import now

# As the kubelet writes them.
TERMINATED: Final = "TerminationByKubelet"
_REASON: Final = "Terminated"
_MESSAGE: Final = "Pod was terminated in response to imminent node shutdown."


def _failed(pod: Json, exit_code: int) -> Json:
    status = mapping(pod.get("status"))
    at = now()
    others = [
        each
        for each in map(mapping, sequence(status.get("conditions")))
        if each.get("type") not in ("Ready", "ContainersReady", "DisruptionTarget")
    ]
    not_ready = [
        {"type": kind, "status": "False", "reason": "PodFailed", "lastTransitionTime": at}
        for kind in ("Ready", "ContainersReady")
    ]
    target = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": TERMINATED,
        "message": _MESSAGE,
        "lastTransitionTime": at,
    }
    ended = [_terminated(mapping(each), exit_code, at) for each in sequence(status.get("containerStatuses"))]
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


def asked_grace(pod: Json) -> int:
    """The termination grace period of a pod in seconds."""
    given = mapping(pod.get("spec")).get("terminationGracePeriodSeconds")
    return given if isinstance(given, int) else _USUAL_SECONDS


def ending_of(pod: Json, grace: ShutdownGrace) -> Ending:
    """Return how a pod ends: it gets the smaller one of its own grace period and its node's."""
    asked = asked_grace(pod)
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
    _silence(client, node, "Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status.")
    client.delete("v1", "Node", node, propagation="Background")


def _silence(client: KubeClient, node: str, status: str, reason: str, message: str) -> None:
    """Stop the simulation of a node's kubelet, and set its Ready condition."""
    client.merge_patch("v1", "Node", node, {"metadata": {"annotations": {SILENT: "true"}}})
    ready = {"status": status, "reason": reason, "message": message, "lastTransitionTime": now()}
    found = mapping((client.get("v1", "Node", node) or {}).get("status"))
    conditions = [
        {**each, **ready} if each.get("type") == "Ready" else each
        for each in map(mapping, sequence(found.get("conditions")))
    ]
    client.merge_patch("v1", "Node", node, {"status": {"conditions": conditions}}, subresource="status")


#: The reason that the API server sets on an evicted pod.
EVICTED: Final = "EvictionByEvictionAPI"


def shut_down(client: KubeClient, node: str, grace: ShutdownGrace, say: Callable[[str], None]) -> None:
    """Shut a node down gracefully: terminate users' pods, then critical ones.

    `say` reports each pod that gets less than its grace period.
    """
    _silence(client, node, "False", "KubeletNotReady", SHUTTING_DOWN)
    if grace.is_none:
        say(f"node {node} is gone at once, without notice to its pods")
        return
    pods = [pod for pod in client.list("v1", "Pod") if node_of(pod) == node]
    for critical in (False, True):
        _end(client, [pod for pod in pods if is_critical(pod) is critical], grace, say)


def _end(client: KubeClient, pods: Iterable[Json], grace: ShutdownGrace, say: Callable[[str], None]) -> None:
    """Terminate pods in parallel, each when it stops or its grace period is over."""
    begin = time.monotonic()
    endings = sorted(
        ((ending_of(pod, grace), pod) for pod in pods), key=lambda each: (each[0].took, name_of(each[1]))
    )
    for ending, pod in endings:
        time.sleep(max(0.0, begin + ending.took - time.monotonic()))
        if ending.got < ending.asked:
            say(f"{name_of(pod)} gets {ending.got} s of its grace period of {ending.asked} s")
        status: Json = {"status": _failed(pod, ending.exit_code)}
        namespace = str(mapping(pod.get("metadata")).get("namespace"))
        try:
            client.merge_patch("v1", "Pod", name_of(pod), status, namespace=namespace, subresource="status")
        except ApiError as error:
            if not error.is_missing:
                raise
