"""Waits until an applied object is ready, and collects the problems of its pods for the error."""

import time
from collections.abc import Sequence

from pulumi_holdfast.ladder.json import Json, mapping, sequence
from pulumi_holdfast.rehearsal.errors import RehearsalError
from pulumi_holdfast.rehearsal.kubernetes_client.client import KubeClient
from pulumi_holdfast.rehearsal.kubernetes_client.errors import KubeError, KubeTimeout
from pulumi_holdfast.rehearsal.kubernetes_client.objects import condition, identity
from pulumi_holdfast.rehearsal.kubernetes_provider.operation import SKIP_AWAIT, is_set
from pulumi_holdfast.rehearsal.kubernetes_provider.readiness import READY, Readiness, Rule, rule_for

_CHECKED_ON_READ = frozenset({"DaemonSet", "Deployment", "Ingress", "Job", "Pod", "Service", "StatefulSet"})


class NotReadyError(RehearsalError):
    """An object exists but is not ready; `live` is its last state, `reasons` has one line per problem."""

    def __init__(self, live: Json, reason: str, problems: Sequence[str] = ()) -> None:
        self.live = live
        self.reasons = [f"{identity(live)} is not ready: {reason}", *problems]
        super().__init__("; ".join(self.reasons))


def wait_until_ready(client: KubeClient, applied: Json, *, seconds: float) -> Json:
    """Return the state of an object when it is ready; `applied` is the response to its apply request.

    Raises NotReadyError if it is not ready after `seconds`, or can no longer become ready.
    """
    rule = _rule(client, applied)
    if is_set(applied, SKIP_AWAIT) or rule is None:
        return applied
    deadline = time.monotonic() + seconds
    live = _wait_for_rule(client, applied, rule, seconds)
    if _selects_pods(live):
        _wait_for_endpoints(client, live, max(0.0, deadline - time.monotonic()))
    return live


def refuse_unready(client: KubeClient, live: Json) -> None:
    """Raise NotReadyError if an object of a checked kind is not ready now."""
    if live.get("kind") not in _CHECKED_ON_READ or is_set(live, SKIP_AWAIT):
        return
    rule = _rule(client, live)
    found = rule(live) if rule else None
    if found and found != READY:
        raise _not_ready(client, live, found.reason)


def _rule(client: KubeClient, obj: Json) -> Rule | None:
    if obj.get("kind") == "PersistentVolumeClaim" and _binds_late(client, obj):
        return None
    return rule_for(obj)


def _wait_for_rule(client: KubeClient, applied: Json, rule: Rule, seconds: float) -> Json:
    metadata = mapping(applied.get("metadata"))
    last: list[Readiness] = []

    def is_settled(obj: "Json | None") -> bool:
        if obj is None:
            raise NotReadyError(applied, "it was deleted during the wait")
        last[:] = [rule(obj)]
        return last[0].is_final or last[0] == READY

    try:
        live = client.wait_for(
            str(applied["apiVersion"]),
            str(applied["kind"]),
            str(metadata["name"]),
            namespace=str(metadata.get("namespace") or "default"),
            timeout_seconds=seconds,
            condition=is_settled,
            what=f"{identity(applied)} is ready",
        )
    except KubeTimeout as timeout:
        reason = f"after {seconds:.0f} s, {last[0].reason if last else 'it was not observed'}"
        raise _not_ready(client, timeout.last or applied, reason) from timeout
    live = live or applied
    if last[0] != READY:
        raise _not_ready(client, live, last[0].reason)
    return live


def _wait_for_endpoints(client: KubeClient, service: Json, seconds: float) -> None:
    """Wait for the EndpointSlices of a service, until no endpoint is unready; they may be empty."""
    metadata = mapping(service.get("metadata"))

    def are_ready(slices: list[Json]) -> bool:
        endpoints = [mapping(each) for found in slices for each in sequence(found.get("endpoints"))]
        return bool(slices) and all(
            mapping(each.get("conditions")).get("ready") is not False for each in endpoints
        )

    try:
        client.wait_list(
            "discovery.k8s.io/v1",
            "EndpointSlice",
            namespace=str(metadata.get("namespace")),
            label_selector=f"kubernetes.io/service-name={metadata.get('name')}",
            timeout_seconds=seconds,
            condition=are_ready,
            what=f"{identity(service)} has ready endpoints",
        )
    except KubeTimeout as timeout:
        reason = f"after {seconds:.0f} s, some selected pods are not ready"
        raise NotReadyError(service, reason) from timeout


def _selects_pods(obj: Json) -> bool:
    spec = mapping(obj.get("spec"))
    return (
        (obj.get("apiVersion"), obj.get("kind")) == ("v1", "Service")
        and bool(spec.get("selector"))
        and spec.get("clusterIP") != "None"
        and spec.get("type") != "ExternalName"
    )


def _binds_late(client: KubeClient, claim: Json) -> bool:
    name = mapping(claim.get("spec")).get("storageClassName")
    found = client.get("storage.k8s.io/v1", "StorageClass", str(name)) if name else None
    return found is not None and found.get("volumeBindingMode") == "WaitForFirstConsumer"


def _not_ready(client: KubeClient, live: Json, reason: str) -> NotReadyError:
    return NotReadyError(live, reason, workload_problems(client, live))


# The pods of a workload usually have the same problem.
_SHOWN = 3


def pod_problem(pod: Json) -> str | None:
    """Return the problem of a pod, None if it is ready or succeeded."""
    if mapping(pod.get("status")).get("phase") == "Succeeded" or _is_true(pod, "Ready"):
        return None
    name = mapping(pod.get("metadata")).get("name")
    return f"pod {name}: {_unscheduled(pod) or _container_problem(pod) or _state(pod)}"


def workload_problems(client: KubeClient, workload: Json) -> list[str]:
    """Return the first problems of the pods that a workload selects."""
    labels = mapping(mapping(mapping(workload.get("spec")).get("selector")).get("matchLabels"))
    if not labels:
        return []
    selector = ",".join(f"{name}={value}" for name, value in labels.items())
    namespace = str(mapping(workload.get("metadata")).get("namespace") or "default")
    return namespace_problems(client, namespace, selector)


def namespace_problems(client: KubeClient, namespace: str, selector: str | None = None) -> list[str]:
    """Return the first problems of the pods in a namespace, or of those that match a label selector."""
    try:
        pods = client.list("v1", "Pod", namespace=namespace, label_selector=selector)
    except KubeError:
        return []
    found = [problem for pod in pods if (problem := pod_problem(pod))]
    more = [f"and {len(found) - _SHOWN} more pods"] if len(found) > _SHOWN else []
    return found[:_SHOWN] + more


def _unscheduled(pod: Json) -> str | None:
    scheduled = condition(pod, "PodScheduled")
    return str(scheduled.get("message")) if scheduled.get("status") == "False" else None


def _container_problem(pod: Json) -> str | None:
    status = mapping(pod.get("status"))
    statuses = [*sequence(status.get("initContainerStatuses")), *sequence(status.get("containerStatuses"))]
    for each in map(mapping, statuses):
        state = mapping(each.get("state"))
        stopped = mapping(state.get("waiting")) or mapping(state.get("terminated"))
        if stopped and stopped.get("reason") != "Completed":
            return f"container {each.get('name')}: {stopped.get('reason')} {stopped.get('message') or ''}".rstrip()
    return None


def _state(pod: Json) -> str:
    status = mapping(pod.get("status"))
    return str(status.get("message") or condition(pod, "Ready").get("message") or f"is {status.get('phase')}")


def _is_true(obj: Json, name: str) -> bool:
    return condition(obj, name).get("status") == "True"
