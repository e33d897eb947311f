"""What a gang of pods needs: resource requests, machines, and where its pods may run.

Placement is translated for the placeholders that reserve capacity: one that ignores a zone, an affinity or a spread reserves
nodes that the job's pods cannot use. Terms about the job's own pods become terms about its placeholders. A placement that
cannot be translated is a problem: the job stays where it is.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from pulumi_holdfast.controller.kube.objects import objects, text
from pulumi_holdfast.ladder.json import Json, JsonValue, mapping, sequence
from pulumi_holdfast.ladder.labels import CAPACITY_KEYS, GPU_RESOURCE, POOL, RESERVED_FOR, SHAPE
from pulumi_holdfast.ladder.quantities import parse_quantity

if TYPE_CHECKING:
    from pulumi_holdfast.ladder.ladder import MachineResources


REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"

_POD_TERMS: Final = ("podAffinity", "podAntiAffinity")

#: What selects other pods than by their labels in the job's own namespace.
_OTHER_SELECTIONS: Final = ("namespaces", "namespaceSelector", "matchLabelKeys", "mismatchLabelKeys")


@dataclass(frozen=True, kw_only=True)
class PlacementRequirements:
    """The requirements of one template. `labels` are those of its pods, as far as they are known before they exist."""

    selector: Mapping[str, str]
    affinity: Json
    spread: tuple[Json, ...]
    labels: Mapping[str, str]
    problem: str | None = None


NO_PLACEMENT: Final = PlacementRequirements(selector={}, affinity={}, spread=(), labels={})


def placement_of(
    pod_spec: Json, labels: Mapping[str, str], problem: str | None = None
) -> PlacementRequirements:
    """Return the placement of a pod specification; preferences are not part of it.

    `problem`: what else decides where its pods run, as half a sentence.
    """
    affinity = mapping(pod_spec.get("affinity"))
    selector = mapping(pod_spec.get("nodeSelector"))
    return PlacementRequirements(
        selector={key: text(value) for key, value in selector.items() if key not in {POOL, *CAPACITY_KEYS}},
        affinity={
            kind: {REQUIRED: required}
            for kind in ("nodeAffinity", *_POD_TERMS)
            if (required := mapping(affinity.get(kind)).get(REQUIRED))
        },
        spread=tuple(
            each
            for each in objects(pod_spec.get("topologySpreadConstraints"))
            if each.get("whenUnsatisfiable", "DoNotSchedule") == "DoNotSchedule"
        ),
        labels=labels,
        problem=problem or _other_scheduling(pod_spec),
    )


def _other_scheduling(pod_spec: Json) -> str | None:
    """Return what decides where the pods run beside the fields of a placement; None for nothing."""
    scheduler = text(pod_spec.get("schedulerName")) or "default-scheduler"
    if scheduler != "default-scheduler":
        return f"the scheduler {scheduler} places its pods"
    return "its pods claim devices (resourceClaims)" if sequence(pod_spec.get("resourceClaims")) else None


def placement_problem(gang: Sequence[PlacementRequirements]) -> str | None:
    """Return why placeholders cannot reserve nodes for the pods of a gang, as half a sentence; None if they can."""
    for placement in gang:
        if placement.problem is not None:
            return placement.problem
        terms = [term for kind in _POD_TERMS for term in _terms(placement.affinity, kind)]
        for term in (*terms, *placement.spread):
            problem = _term_problem(term, gang)
            if problem is not None:
                return problem
    return None


def _term_problem(term: Json, gang: Sequence[PlacementRequirements]) -> str | None:
    where = text(term.get("topologyKey"))
    extra = next((field for field in _OTHER_SELECTIONS if term.get(field)), None)
    if extra is not None:
        return f"its pods depend on {extra} for {where}"
    if not _matching(term, gang):
        return f"its pods depend on pods of others for {where}"
    return None


def placeholder_scheduling(
    placement: PlacementRequirements, gang: Sequence[PlacementRequirements], uid: str
) -> Json:
    """Return the affinity and the spread of the placeholders of one template of a gang; `uid` is the job's."""
    affinity: dict[str, JsonValue] = dict(placement.affinity)
    for kind in _POD_TERMS:
        terms = _terms(placement.affinity, kind)
        if terms:
            affinity[kind] = {REQUIRED: [_translated(term, gang, uid) for term in terms]}
    spread = [_translated(each, gang, uid) for each in placement.spread]
    return {
        **({"affinity": affinity} if affinity else {}),
        **({"topologySpreadConstraints": [*spread]} if spread else {}),
    }


def _translated(term: Json, gang: Sequence[PlacementRequirements], uid: str) -> Json:
    numbers: list[JsonValue] = [str(number) for number in _matching(term, gang)]
    of_shapes: Json = {"key": SHAPE, "operator": "In", "values": numbers}
    selector: Json = {"matchLabels": {RESERVED_FOR: uid}, "matchExpressions": [of_shapes]}
    return {**term, "labelSelector": selector}


def _matching(term: Json, gang: Sequence[PlacementRequirements]) -> tuple[int, ...]:
    """Return the numbers of the templates whose pods a term selects."""
    selector = mapping(term.get("labelSelector"))
    return tuple(number for number, each in enumerate(gang) if selects(selector, each.labels))


def selects(selector: Json, labels: Mapping[str, str]) -> bool:
    """Whether a label selector selects pods with these labels, as Kubernetes evaluates it; an absent one selects none."""
    wanted, expressions = mapping(selector.get("matchLabels")), objects(selector.get("matchExpressions"))
    if not selector:
        return False
    return all(labels.get(key) == value for key, value in wanted.items()) and all(
        _holds(each, labels) for each in expressions
    )


def _holds(expression: Json, labels: Mapping[str, str]) -> bool:
    key, values = text(expression.get("key")), sequence(expression.get("values"))
    match expression.get("operator"):
        case "In":
            return key in labels and labels[key] in values
        case "NotIn":
            return key not in labels or labels[key] not in values
        case "Exists":
            return key in labels
        case "DoesNotExist":
            return key not in labels
        case _:
            return False


def _terms(affinity: Json, kind: str) -> Iterable[Json]:
    return objects(mapping(affinity.get(kind)).get(REQUIRED))


def with_pod_affinity(scheduling: Json, term: Json) -> Json:
    """Return the scheduling of a placeholder with one more required pod affinity."""
    affinity = mapping(scheduling.get("affinity"))
    own = [*_terms(affinity, "podAffinity"), term]
    return {**scheduling, "affinity": {**affinity, "podAffinity": {REQUIRED: own}}}


@dataclass(frozen=True, kw_only=True)
class PodShape:
    """A number of equal pods: `requests` are a pod's effective ones, by resource name, as Kubernetes quantities.

    Effective: the sum over its containers, or an init container's if that is more, plus the overhead. `tolerations` are
    those of the job's template; `placement` is where else its pods may run, besides the pool that the tier selects.
    """

    count: int
    requests: Mapping[str, str]
    tolerations: tuple[Json, ...] = ()
    placement: PlacementRequirements = NO_PLACEMENT


def gang_size(shapes: Sequence[PodShape]) -> int:
    """Return the number of pods of the gang."""
    return sum(shape.count for shape in shapes)


def machines_needed(shapes: Sequence[PodShape], machine: MachineResources | None) -> int:
    """Estimate how many of the pool's smallest machines the gang fills.

    Used to skip pools whose limits are too small. A wrong estimate only leads to a timeout, and the job keeps running, so
    without facts one machine is assumed.
    """
    if gang_size(shapes) == 0:
        return 0
    if machine is None:
        return 1
    return math.ceil(sum(Fraction(shape.count, _pods_per_machine(shape, machine)) for shape in shapes))


def _pods_per_machine(shape: PodShape, machine: MachineResources) -> int:
    """How many such pods fit a machine; a pod that is larger than the smallest machine needs a larger one for itself."""
    offered = {"cpu": Fraction(machine.cpu, 1000), "memory": machine.memory, GPU_RESOURCE: machine.gpus}
    asked = {resource: parse_quantity(shape.requests.get(resource, "0")) for resource in offered}
    fits = [
        math.floor(amount / asked[resource]) for resource, amount in offered.items() if asked[resource] > 0
    ]
    return max(1, min(fits, default=shape.count))
