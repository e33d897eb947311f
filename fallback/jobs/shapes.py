"""What a gang asks of its nodes, read from the templates its pods are made from."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from holdfast.fallback.jobs.values import mapping, objects
from holdfast.fallback.reservations.shape import PodShape
from holdfast.scheduling.labels import HELD_FOR
from holdfast.scheduling.quantities import format_quantity, parse_quantity

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from holdfast.scheduling.json import Json

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
    running = _sum(_asked(each) for each in objects(pod_spec.get("containers")))
    begun: _Amounts = {}
    peak: _Amounts = {}
    for each in objects(pod_spec.get("initContainers")):
        alone = _sum([begun, _asked(each)])
        peak = _larger(peak, alone)
        if each.get("restartPolicy") == "Always":
            begun = alone
    needed = {**_larger(_sum([running, begun]), peak), **_asked(pod_spec)}
    total = _sum([needed, _amounts(mapping(pod_spec.get("overhead")))])
    return {name: format_quantity(amount) for name, amount in sorted(total.items()) if amount}


def _asked(container: Json) -> _Amounts:
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
