"""What keeps a workload's pods from running, for the message that says it is not ready."""

from holdfast.scheduling.json import Json
from holdfast.simulator.kubernetes_client.client import KubeClient
from holdfast.simulator.kubernetes_client.errors import KubeError
from holdfast.simulator.kubernetes_client.objects import mapping, sequence
from holdfast.simulator.kubernetes_provider.readiness import condition

# A workload of hundreds of pods mostly has one trouble, hundreds of times.
_SHOWN = 3


def pod_trouble(pod: Json) -> str | None:
    """Return what is wrong with a pod, None when it is ready or has ended well."""
    if mapping(pod.get("status")).get("phase") == "Succeeded" or _is_true(pod, "Ready"):
        return None
    name = mapping(pod.get("metadata")).get("name")
    return f"pod {name}: {_unscheduled(pod) or _container_trouble(pod) or _state(pod)}"


def workload_troubles(client: KubeClient, workload: Json) -> list[str]:
    """Return the troubles of the pods a workload selects, the first few of them."""
    labels = mapping(mapping(mapping(workload.get("spec")).get("selector")).get("matchLabels"))
    if not labels:
        return []
    selector = ",".join(f"{name}={value}" for name, value in labels.items())
    namespace = str(mapping(workload.get("metadata")).get("namespace") or "default")
    return namespace_troubles(client, namespace, selector)


def namespace_troubles(client: KubeClient, namespace: str, selector: str | None = None) -> list[str]:
    """Return the troubles of the pods in a namespace, or of those with some labels, the first few of them."""
    try:
        pods = client.list("v1", "Pod", namespace=namespace, label_selector=selector)
    except KubeError:
        return []
    found = [trouble for pod in pods if (trouble := pod_trouble(pod))]
    more = [f"and {len(found) - _SHOWN} more pods"] if len(found) > _SHOWN else []
    return found[:_SHOWN] + more


def _unscheduled(pod: Json) -> str | None:
    scheduled = condition(pod, "PodScheduled")
    return str(scheduled.get("message")) if scheduled.get("status") == "False" else None


def _container_trouble(pod: Json) -> str | None:
    status = mapping(pod.get("status"))
    statuses = [*sequence(status.get("initContainerStatuses")), *sequence(status.get("containerStatuses"))]
    for each in map(mapping, statuses):
        state = mapping(each.get("state"))
        told = mapping(state.get("waiting")) or mapping(state.get("terminated"))
        if told and told.get("reason") != "Completed":
            return f"container {each.get('name')}: {told.get('reason')} {told.get('message') or ''}".rstrip()
    return None


def _state(pod: Json) -> str:
    status = mapping(pod.get("status"))
    return str(status.get("message") or condition(pod, "Ready").get("message") or f"is {status.get('phase')}")


def _is_true(obj: Json, name: str) -> bool:
    return condition(obj, name).get("status") == "True"
