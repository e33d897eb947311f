"""Which process of this machine stands behind a Service. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from holdfast.scheduling.json import Json
from holdfast.simulator.kubernetes_client.objects import mapping, sequence
from holdfast.simulator.operator_runner.containers import container_ports, identity_of, main_container


@dataclass(frozen=True, kw_only=True)
class Backend:
    """A hosted pod: `ports` maps its container's ports to this machine's while a process runs."""

    pod: Json
    ports: Mapping[int, int]
    ready: bool


@dataclass(frozen=True, kw_only=True)
class Route:
    """Where to connect on this machine; `port` is None where nowhere, and `reason` says why."""

    port: int | None = None
    reason: str = ""


def route(host: str, port: int, services: Sequence[Json], backends: Sequence[Backend]) -> Route:
    """Find the process behind `port` of the Service whose cluster IP is `host`.

    Like a kube-proxy it chooses among the pods that are ready.
    """
    service = next((each for each in services if host in _addresses(each)), None)
    if service is None:
        return Route(reason=f"no Service has the address {host}")
    metadata = mapping(service.get("metadata"))
    name = f"Service {metadata.get('namespace')}/{metadata.get('name')}"
    entry = next((each for each in _ports(service) if each.get("port") == port), None)
    if entry is None:
        return Route(reason=f"{name} has no port {port}")
    behind = [each for each in backends if _selects(service, each.pod)]
    for backend in behind:
        local = backend.ports.get(_target(entry, backend.pod))
        if backend.ready and local is not None:
            return Route(port=local)
    return Route(reason=f"of {len(behind)} hosted pods behind {name} none is ready on port {port}")


def _addresses(service: Json) -> Sequence[str]:
    spec = mapping(service.get("spec"))
    return [str(each) for each in (*sequence(spec.get("clusterIPs")), spec.get("clusterIP"))]


def _ports(service: Json) -> Sequence[Json]:
    return [mapping(each) for each in sequence(mapping(service.get("spec")).get("ports"))]


def _selects(service: Json, pod: Json) -> bool:
    selector = mapping(mapping(service.get("spec")).get("selector"))
    labels = mapping(mapping(pod.get("metadata")).get("labels"))
    same_namespace = mapping(service.get("metadata")).get("namespace") == identity_of(pod).namespace
    return (
        same_namespace and bool(selector) and all(labels.get(key) == value for key, value in selector.items())
    )


def _target(entry: Json, pod: Json) -> int:
    target = entry.get("targetPort", entry.get("port"))
    if isinstance(target, str):
        return container_ports(main_container(pod)).get(target, 0)
    return target if isinstance(target, int) else 0
