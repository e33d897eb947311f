"""The placements of pods: node, pool and kind of machine. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from pulumi_holdfast.controller.jobs.pods_and_nodes import node_of
from pulumi_holdfast.controller.kube.objects import name_of
from pulumi_holdfast.ladder.json import Json, mapping, sequence
from pulumi_holdfast.ladder.labels import CAPACITY_TYPE, GPU_RESOURCE, INSTANCE_TYPE, ON_DEMAND, POOL, SPOT
from pulumi_holdfast.ladder.quantities import parse_quantity
from pulumi_holdfast.rehearsal.clouds.gcp.nodes import PROVISIONING


@dataclass(frozen=True, kw_only=True)
class PodPlacement:
    """A pod on a node: the node's pool, capacity type, machine type and number of GPUs.

    `host` is the node's uid: a later node may have the same name.
    """

    pod: str
    node: str
    pool: str
    capacity: str
    machine: str
    gpus: int
    host: str = ""


def placements(pods: Sequence[Json], nodes: Sequence[Json]) -> tuple[PodPlacement, ...]:
    """The placement of each pod that has a node, by pod name."""
    by_name = {name_of(node): node for node in nodes}
    found: list[PodPlacement] = []
    for pod in sorted(pods, key=name_of):
        node = by_name.get(node_of(pod))
        if node is not None:
            found.append(_placement(pod, node))
    return tuple(found)


def free_cpus(node: Json, pods: Sequence[Json]) -> Fraction:
    """How many CPUs of `node` the pods have not requested."""
    allocatable = mapping(mapping(node.get("status")).get("allocatable")).get("cpu")
    taken = sum((_requested_cpus(pod) for pod in pods if node_of(pod) == name_of(node)), Fraction(0))
    return parse_quantity(str(allocatable or "0")) - taken


def is_running(pod: Json) -> bool:
    """Whether a pod is running and is not being deleted."""
    deleted = mapping(pod.get("metadata")).get("deletionTimestamp")
    return mapping(pod.get("status")).get("phase") == "Running" and not deleted


def _placement(pod: Json, node: Json) -> PodPlacement:
    labels: Mapping[str, object] = mapping(mapping(node.get("metadata")).get("labels"))
    gpus = mapping(mapping(node.get("status")).get("allocatable")).get(GPU_RESOURCE)
    return PodPlacement(
        pod=name_of(pod),
        node=name_of(node),
        pool=str(labels.get(POOL, "")),
        capacity=_capacity(labels),
        machine=str(labels.get(INSTANCE_TYPE, "")),
        gpus=int(parse_quantity(str(gpus or "0"))),
        host=str(mapping(node.get("metadata")).get("uid") or ""),
    )


def _capacity(labels: Mapping[str, object]) -> str:
    """The capacity type of a node as Karpenter spells it, on every cloud."""
    on_gke = labels.get(PROVISIONING)
    if on_gke is not None:
        return SPOT if on_gke == "spot" else ON_DEMAND
    return str(labels.get(CAPACITY_TYPE, ""))


def _requested_cpus(pod: Json) -> Fraction:
    containers = [mapping(each) for each in sequence(mapping(pod.get("spec")).get("containers"))]
    requests = [mapping(mapping(each.get("resources")).get("requests")).get("cpu") for each in containers]
    return sum((parse_quantity(str(request or "0")) for request in requests), Fraction(0))
