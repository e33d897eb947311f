"""What pods ask of the node they run on. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from typing import Final, TypeAlias

from holdfast.scheduling.json import Json, JsonValue
from holdfast.scheduling.quantities import parse_quantity
from holdfast.simulator.kubernetes_client.objects import mapping, sequence

Resources: TypeAlias = Mapping[str, Fraction]

_ENDED: Final = ("Succeeded", "Failed")


@dataclass(frozen=True, kw_only=True)
class PodNeeds:
    """A pod, and what a node must have for it.

    `terms` are those of its node affinity, of which one must hold: an empty tuple is no affinity; `unschedulable_since` is
    when the scheduler first found no node for it, None where it has not.
    """

    namespace: str
    name: str
    uid: str
    requests: Resources
    selector: Mapping[str, str]
    terms: tuple[Json, ...]
    tolerations: tuple[Json, ...]
    unschedulable_since: datetime | None = None


def needs_of(pod: Json) -> PodNeeds:
    """Return what a pod asks for."""
    metadata, spec = mapping(pod.get("metadata")), mapping(pod.get("spec"))
    affinity = mapping(mapping(spec.get("affinity")).get("nodeAffinity"))
    required = mapping(affinity.get("requiredDuringSchedulingIgnoredDuringExecution"))
    return PodNeeds(
        namespace=str(metadata.get("namespace")),
        name=str(metadata.get("name")),
        uid=str(metadata.get("uid")),
        requests=requests_of(pod),
        selector={key: str(value) for key, value in mapping(spec.get("nodeSelector")).items()},
        terms=tuple(mapping(each) for each in sequence(required.get("nodeSelectorTerms"))),
        tolerations=tuple(mapping(each) for each in sequence(spec.get("tolerations"))),
        unschedulable_since=_unschedulable_since(pod),
    )


def requests_of(pod: Json) -> Resources:
    """Return what a pod takes of a node, itself among the pods that the node may run.

    Init containers run one after another and before the others, but for those that stay beside them.
    """
    spec = mapping(pod.get("spec"))
    beside, highest = _requests(spec.get("overhead")), dict[str, Fraction]()
    for each in map(mapping, sequence(spec.get("initContainers"))):
        asked = _requests(mapping(each.get("resources")).get("requests"))
        if each.get("restartPolicy") == "Always":
            beside = _sum(beside, asked)
        else:
            highest = _highest(highest, _sum(beside, asked))
    for each in map(mapping, sequence(spec.get("containers"))):
        beside = _sum(beside, _requests(mapping(each.get("resources")).get("requests")))
    return {**_highest(highest, beside), "pods": Fraction(1)}


def node_of(pod: Json) -> str:
    """Return the node a pod is on and takes room of; empty where it has none, or has ended."""
    has_ended = mapping(pod.get("status")).get("phase") in _ENDED
    return "" if has_ended else str(mapping(pod.get("spec")).get("nodeName") or "")


def is_daemons(pod: Json) -> bool:
    """Whether a pod is a DaemonSet's: it goes with its node and keeps none."""
    owners = map(mapping, sequence(mapping(pod.get("metadata")).get("ownerReferences")))
    return any(owner.get("kind") == "DaemonSet" for owner in owners)


def _unschedulable_since(pod: Json) -> datetime | None:
    is_leaving = mapping(pod.get("metadata")).get("deletionTimestamp") is not None
    for each in map(mapping, sequence(mapping(pod.get("status")).get("conditions"))):
        waits = each.get("type") == "PodScheduled" and each.get("status") == "False"
        if waits and each.get("reason") == "Unschedulable" and not is_leaving:
            return moment(each.get("lastTransitionTime"))
    return None


def moment(text: object) -> datetime:
    """Return a time as Kubernetes writes it; the beginning of all where there is none."""
    return datetime.fromisoformat(str(text or "1970-01-01T00:00:00Z"))


def _requests(requests: JsonValue) -> dict[str, Fraction]:
    return {name: parse_quantity(str(quantity)) for name, quantity in mapping(requests).items()}


def _sum(one: Resources, other: Resources) -> dict[str, Fraction]:
    return {name: one.get(name, Fraction(0)) + other.get(name, Fraction(0)) for name in {**one, **other}}


def _highest(one: Resources, other: Resources) -> dict[str, Fraction]:
    return {name: max(one.get(name, Fraction(0)), other.get(name, Fraction(0))) for name in {**one, **other}}
