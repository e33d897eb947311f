"""Which pods of a job follow its ladder, what they select, and what they are made to select."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from holdfast.fallback.api.objects import mapping, metadata_of, objects, text
from holdfast.fallback.reservations.placeholders import reservation_toleration
from holdfast.fallback.reservations.pod_shapes import PodShape
from holdfast.scheduling.labels import CAPACITY_KEYS, FOLLOWS, FOLLOWS_VALUE, HELD_FOR, POOL
from holdfast.scheduling.quantities import format_quantity, parse_quantity

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from holdfast.scheduling.json import Json, JsonValue


def followers(templates: Sequence[Json]) -> tuple[bool, ...]:
    """Return which pod templates of a job follow its ladder: those that admission has marked.

    Of a job that admission has not seen, those that select a pool or a kind of capacity: what selects nothing (a
    coordinator on the default pool) stays where it is; when that is all of them, all follow.
    """
    marked = tuple(_is_marked(template) for template in templates)
    if any(marked):
        return marked
    selecting = tuple(_selects(mapping(template.get("spec"))) for template in templates)
    return selecting if any(selecting) else tuple(True for _ in templates)


def pool_of(pod_specs: Iterable[Json]) -> str | None:
    """Return the one pool that templates select; None for none, for several, or for some that select none."""
    pools = {text(selector_of(spec).get(POOL)) or None for spec in pod_specs}
    return pools.pop() if len(pools) == 1 else None


def selector_of(pod_spec: Json) -> Json:
    """Return a template's node selector."""
    return mapping(pod_spec.get("nodeSelector"))


def with_pool(pod_spec: Json, pool: str, *, held_for: str | None) -> Json:
    """Return a template that selects `pool` and no other capacity.

    `held_for`: the uid of the job whose held capacity its pods may use; None for none. Selectors of other kinds (a
    zone, a machine type) are its author's and stay.
    """
    kept = {key: value for key, value in selector_of(pod_spec).items() if key not in CAPACITY_KEYS}
    tolerations: list[JsonValue] = [
        each for each in objects(pod_spec.get("tolerations")) if each.get("key") != HELD_FOR
    ]
    if held_for is not None:
        tolerations.append(reservation_toleration(held_for))
    changed: dict[str, JsonValue] = {**pod_spec, "nodeSelector": {**kept, POOL: pool}}
    changed.pop("tolerations", None)
    return {**changed, "tolerations": tolerations} if tolerations else changed


def capacity_selection(pod_spec: Json) -> JsonValue:
    """Return the part of a template that a move changes, to compare two by.

    And nothing else: what others add to a Job's template would make it look outdated whenever it is made anew.
    """
    selector = {
        key: value for key, value in selector_of(pod_spec).items() if key == POOL or key in CAPACITY_KEYS
    }
    held = sorted(
        text(each.get("value"))
        for each in objects(pod_spec.get("tolerations"))
        if each.get("key") == HELD_FOR
    )
    return {"selector": selector, "held": held}


def _is_marked(template: Json) -> bool:
    return mapping(metadata_of(template).get("labels")).get(FOLLOWS) == FOLLOWS_VALUE


def _selects(pod_spec: Json) -> bool:
    return bool(selector_of(pod_spec).keys() & {POOL, *CAPACITY_KEYS})


_Amounts = dict[str, Fraction]


def shape_of(pod_spec: Json, count: int) -> PodShape:
    """Return what `count` pods of a template ask for."""
    tolerations = tuple(each for each in objects(pod_spec.get("tolerations")) if each.get("key") != HELD_FOR)
    return PodShape(count=count, requests=requests_of(pod_spec), tolerations=tolerations)


def requests_of(pod_spec: Json) -> Mapping[str, str]:
    """Return a pod's effective requests: what the scheduler looks for on a node.

    Sidecars (init containers that are restarted always) run beside the others; each other init container runs alone,
    with the sidecars begun before it. Where the pod itself asks for a resource, that stands for its containers.
    """
    running = _sum(_requests(each) for each in objects(pod_spec.get("containers")))
    begun: _Amounts = {}
    peak: _Amounts = {}
    for each in objects(pod_spec.get("initContainers")):
        alone = _sum([begun, _requests(each)])
        peak = _larger(peak, alone)
        if each.get("restartPolicy") == "Always":
            begun = alone
    needed = {**_larger(_sum([running, begun]), peak), **_requests(pod_spec)}
    total = _sum([needed, _amounts(mapping(pod_spec.get("overhead")))])
    return {name: format_quantity(amount) for name, amount in sorted(total.items()) if amount}


def _requests(container: Json) -> _Amounts:
    resources = mapping(container.get("resources"))
    # A limit without a request is one.
    return {**_amounts(mapping(resources.get("limits"))), **_amounts(mapping(resources.get("requests")))}


def _amounts(resources: Json) -> _Amounts:
    return {name: parse_quantity(value) for name, value in resources.items()}


def _sum(parts: Iterable[_Amounts]) -> _Amounts:
    total: _Amounts = {}
    for part in parts:
        for name, amount in part.items():
            total[name] = total.get(name, Fraction(0)) + amount
    return total


def _larger(one: _Amounts, other: _Amounts) -> _Amounts:
    zero = Fraction(0)
    return {name: max(one.get(name, zero), other.get(name, zero)) for name in {**one, **other}}


def affinity_problem(pod_specs: Iterable[Json], kind: str) -> str | None:
    """Return why templates cannot be moved to another tier, and the fix; None where they can.

    JobSet lets no affinity be changed, and a pool that a selector adds beside one may have no node in common with it.
    """
    keys = sorted({key for spec in pod_specs for key in _required_keys(spec)} & {POOL, *CAPACITY_KEYS})
    if not keys:
        return None
    return (
        f"its node affinity requires {', '.join(keys)}, which ties it to one kind of capacity: create the {kind} anew "
        "with a nodeSelector in its place"
    )


def _required_keys(pod_spec: Json) -> Iterator[str]:
    affinity = mapping(mapping(pod_spec.get("affinity")).get("nodeAffinity"))
    required = mapping(affinity.get("requiredDuringSchedulingIgnoredDuringExecution"))
    for term in objects(required.get("nodeSelectorTerms")):
        yield from (text(each.get("key")) for each in objects(term.get("matchExpressions")))
