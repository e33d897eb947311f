"""Reads the parts of a pod that its host acts on. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from holdfast.scheduling.json import Json
from holdfast.simulator.kubernetes_client.objects import mapping, sequence

APP = "app.kubernetes.io/name"


class CannotRunError(Exception):
    """The process behind a pod cannot be started (yet): the text says for want of what."""


@dataclass(frozen=True, kw_only=True)
class PodIdentity:
    """What tells a pod from every other, also from a later one of its name."""

    namespace: str
    name: str
    uid: str


def identity_of(pod: Json) -> PodIdentity:
    """The identity of a pod as the API server shows it."""
    metadata = mapping(pod.get("metadata"))
    return PodIdentity(
        namespace=str(metadata["namespace"]), name=str(metadata["name"]), uid=str(metadata["uid"])
    )


def app_of(pod: Json) -> str:
    """The application the pod says it belongs to; empty where it does not say."""
    return str(mapping(mapping(pod.get("metadata")).get("labels")).get(APP, ""))


def should_run(pod: Json) -> bool:
    """Whether a controller's pod is to have its process now: it has a node, and has not ended."""
    return (
        not mapping(pod.get("metadata")).get("deletionTimestamp")
        and bool(node_of(pod))
        and mapping(pod.get("status")).get("phase") not in ("Succeeded", "Failed")
    )


def node_of(pod: Json) -> str:
    """The node the pod is on; empty before it has one."""
    return str(mapping(pod.get("spec")).get("nodeName") or "")


def main_container(pod: Json) -> Json:
    """The container whose process is run: the first."""
    return mapping(next(iter(sequence(mapping(pod.get("spec")).get("containers"))), None))


def service_account_of(pod: Json) -> str:
    """The service account whose rights the process has."""
    return str(mapping(pod.get("spec")).get("serviceAccountName") or "default")


def grace_seconds_of(pod: Json) -> int:
    """How long the process may take to end after SIGTERM."""
    grace = mapping(pod.get("spec")).get("terminationGracePeriodSeconds")
    return grace if isinstance(grace, int) else 30


def restarts_of(pod: Json) -> int:
    """How often the process was started again, as the API server knows."""
    status = mapping(next(iter(sequence(mapping(pod.get("status")).get("containerStatuses"))), None))
    restarts = status.get("restartCount")
    return restarts if isinstance(restarts, int) else 0


def container_ports(container: Json) -> Mapping[str, int]:
    """The ports a container declares: by name, and by number for those without one."""
    ports: dict[str, int] = {}
    for each in sequence(container.get("ports")):
        number = mapping(each).get("containerPort")
        if isinstance(number, int):
            ports[str(mapping(each).get("name") or number)] = number
    return ports


@dataclass(frozen=True, kw_only=True)
class Probe:
    """An HTTP readiness probe of a container port."""

    port: int
    path: str


def readiness_probe(container: Json) -> Probe | None:
    """The container's HTTP readiness probe; None where it has none, and is ready when it runs."""
    get = mapping(mapping(container.get("readinessProbe")).get("httpGet"))
    port = get.get("port")
    if isinstance(port, str):
        port = container_ports(container).get(port)
    return Probe(port=port, path=str(get.get("path") or "/")) if isinstance(port, int) else None
