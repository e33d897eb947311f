"""Reads the shape of a job's pods from a pod, or from a pod template, all of whose fields are known.

A pod that the API server has admitted in a dry run has what admission adds: tolerations, the defaults of LimitRanges, the
overhead of its RuntimeClass and the value of its PriorityClass. The policy pack reads templates with unknown values itself.
"""

from collections.abc import Iterator, Mapping
from fractions import Fraction
from math import ceil
from typing import Final

from pulumi_holdfast.ladder.json import Json, JsonValue, mapping, sequence
from pulumi_holdfast.ladder.labels import (
    AKS_PRIORITY,
    AKS_SCALE_SET_PRIORITY,
    AKS_SPOT_VALUE,
    CAPACITY_TYPE,
    EFA_RESOURCE,
    GKE_PROVISIONING,
    GKE_SPOT,
    GKE_SPOT_VALUE,
    GPU_RESOURCE,
    HOSTNAME,
    SPOT,
    ZONE,
)
from pulumi_holdfast.ladder.quantities import remembered_requests
from pulumi_holdfast.ladder.reachability.affinity import Requirement, Term
from pulumi_holdfast.ladder.reachability.shape import (
    MOST_REQUESTED,
    MOVED_LABELS,
    Placement,
    Resources,
    Shape,
    is_in_bytes,
)
from pulumi_holdfast.ladder.taints import Toleration

_MIB: Final = 1024**2

#: The labels with which pods select spot on any cloud. A move removes them, and so does admission.
SPOT_SELECTIONS: Final[Mapping[str, str]] = {
    CAPACITY_TYPE: SPOT,
    GKE_SPOT: GKE_SPOT_VALUE,
    GKE_PROVISIONING: SPOT,
    AKS_SCALE_SET_PRIORITY: AKS_SPOT_VALUE,
    AKS_PRIORITY: AKS_SPOT_VALUE,
}
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
#: Each of them makes it uncertain that a term is about the pods of its own template.
_NARROWING: Final = ("namespaces", "matchLabelKeys", "mismatchLabelKeys")


def pod_shape(
    spec: Json,
    *,
    name: str,
    pods: int,
    labels: Mapping[str, str],
    after: frozenset[str] = frozenset(),
    apart_by: tuple[str, int] | None = None,
) -> Shape:
    """Return the shape of `pods` pods with this specification, without the labels that a move sets or removes.

    `labels` are those that all of its pods have, `after` the templates that end before it begins; `apart_by` as in Shape.
    """
    affinity = mapping(spec.get("affinity"))
    together, apart = (
        [*_own_topologies(affinity, kind, labels)] for kind in ("podAffinity", "podAntiAffinity")
    )
    # A node for each pod is what the gang is checked for.
    has_own_node = apart_by == (HOSTNAME, pods)
    priority = spec.get("priority")
    return Shape(
        name=name,
        pods=pods,
        requests=resources_of(remembered_requests(spec)),
        selector={
            key: str(value)
            for key, value in mapping(spec.get("nodeSelector")).items()
            if key not in MOVED_LABELS
        },
        affinity=_terms(affinity),
        tolerations=tolerations_of(spec),
        same_placement=Placement.ZONE if ZONE in together else None,
        one_per_node=has_own_node or HOSTNAME in apart or _takes_host_ports(spec),
        after=after,
        apart_by=None if has_own_node else apart_by,
        priority=priority if isinstance(priority, int) else None,
        unmodeled=tuple(_unmodeled(spec, together, apart)),
    )


def selects_spot(spec: Json) -> bool:
    """Whether pods with this specification select spot, by a label or by required affinity."""
    selector = mapping(spec.get("nodeSelector"))
    required = mapping(mapping(mapping(spec.get("affinity")).get("nodeAffinity")).get(_REQUIRED))
    requirements = [
        each
        for term in sequence(required.get("nodeSelectorTerms"))
        for each in _requirements(mapping(term))
        if each.operator == "In"
    ]
    return any(
        selector.get(key) == value or any(each.key == key and value in each.values for each in requirements)
        for key, value in SPOT_SELECTIONS.items()
    )


def tolerations_of(spec: Json) -> tuple[Toleration, ...]:
    """Return the tolerations of a pod."""
    return tuple(_toleration(mapping(each)) for each in sequence(spec.get("tolerations")))


def resources_of(amounts: Mapping[str, Fraction]) -> Resources:
    """Return amounts in base units as resources, rounded up."""
    own, none = {"cpu", "memory", GPU_RESOURCE, EFA_RESOURCE}, Fraction(0)
    return Resources(
        cpu_millis=_counted(amounts.get("cpu", none) * 1000),
        memory_mib=_counted(amounts.get("memory", none) / _MIB),
        gpus=_counted(amounts.get(GPU_RESOURCE, none)),
        efa=_counted(amounts.get(EFA_RESOURCE, none)),
        devices={
            name: _counted(amount / _MIB if is_in_bytes(name) else amount)
            for name, amount in amounts.items()
            if name not in own
        },
    )


def _counted(amount: Fraction) -> int:
    return min(ceil(amount), MOST_REQUESTED)


def _terms(affinity: Json) -> tuple[Term, ...]:
    """The terms of the required node affinity; none if a move leaves nothing of one of them, which then matches any node."""
    required = mapping(mapping(affinity.get("nodeAffinity")).get(_REQUIRED))
    terms = [tuple(_requirements(mapping(term))) for term in sequence(required.get("nodeSelectorTerms"))]
    kept = [tuple(each for each in term if each.key not in MOVED_LABELS) for term in terms]
    if any(term and not rest for term, rest in zip(terms, kept, strict=True)):
        return ()
    return tuple(kept)


def _requirements(term: Json) -> Iterator[Requirement]:
    for field in ("matchExpressions", "matchFields"):
        for each in map(mapping, sequence(term.get(field))):
            yield Requirement(
                key=str(each.get("key")),
                # What fields a node has is not known before it exists.
                operator=str(each.get("operator")) if field == "matchExpressions" else "",
                values=tuple(str(value) for value in sequence(each.get("values"))),
            )


def _toleration(written: Json) -> Toleration:
    return Toleration(
        key=str(written.get("key") or ""),
        value=None if written.get("operator") == "Exists" else str(written.get("value") or ""),
        effect=str(written.get("effect") or ""),
    )


def _own_topologies(affinity: Json, kind: str, labels: Mapping[str, str]) -> Iterator[str]:
    """Yield the topology keys of the terms that are about its own pods; the empty one for those about others."""
    for term in map(mapping, sequence(mapping(affinity.get(kind)).get(_REQUIRED))):
        selector = mapping(term.get("labelSelector"))
        wanted = mapping(selector.get("matchLabels"))
        is_own = (
            "labelSelector" in term
            and not any(term.get(field) for field in _NARROWING)
            and "namespaceSelector" not in term
            and not selector.get("matchExpressions")
            and all(labels.get(key) == value for key, value in wanted.items())
        )
        yield str(term.get("topologyKey")) if is_own else ""


def _takes_host_ports(spec: Json) -> bool:
    """Whether a container takes a port of its node; with the node's network it takes all that it lists."""
    ports = [
        mapping(port)
        for container in map(mapping, sequence(spec.get("containers")))
        for port in sequence(container.get("ports"))
    ]
    return bool(ports) and (spec.get("hostNetwork") is True or any(port.get("hostPort") for port in ports))


def _unmodeled(spec: Json, together: list[str], apart: list[str]) -> Iterator[str]:
    if any(key != ZONE for key in together):
        yield "whether its required pod affinity can be met is not judged"
    if any(key != HOSTNAME for key in apart):
        yield "whether its required pod anti-affinity can be met is not judged"
    if any(_is_hard(each) for each in sequence(spec.get("topologySpreadConstraints"))):
        yield "whether its topologySpreadConstraints can be met is not judged"


def _is_hard(constraint: JsonValue) -> bool:
    return mapping(constraint).get("whenUnsatisfiable") != "ScheduleAnyway"
