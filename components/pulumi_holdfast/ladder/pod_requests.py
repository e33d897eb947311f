"""The effective resource requests of a pod, from its specification.

The scheduler, Karpenter and the cluster autoscalers place a pod by these (k8s.io/component-helpers, resource.PodRequests).
The fallback controller, the policies and the simulated autoscalers count with this one function.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Final, TypeAlias

from pulumi_holdfast.ladder.json import Json, JsonValue, mapping, sequence
from pulumi_holdfast.ladder.quantities import parse_quantity

Amounts: TypeAlias = dict[str, Fraction]

_NOTHING: Final = Fraction(0)


def effective_requests(pod_spec: Json, defaults: Json | None = None) -> Mapping[str, Fraction]:
    """Return how much of each resource a pod requests, in base units, without resources of which it requests none.

    `defaults` are the requests that a LimitRange gives to containers without their own.

    Sidecars (init containers with restartPolicy Always) run beside the containers; each other init container runs alone,
    with the sidecars started before it. Requests of the pod itself replace those of its containers. A limit without a
    request counts as the request, as the API server fills it in.
    """
    filled = _amounts(defaults)
    running = _sum(_of_container(each, filled) for each in _objects(pod_spec.get("containers")))
    begun: Amounts = {}
    peak: Amounts = {}
    for each in _objects(pod_spec.get("initContainers")):
        # Only what this container requests can raise the peak: a walk over all resources begun would be quadratic.
        for name, amount in _of_container(each, filled).items():
            alone = begun.get(name, _NOTHING) + amount
            peak[name] = max(peak.get(name, _NOTHING), alone)
            if each.get("restartPolicy") == "Always":
                begun[name] = alone
    of_containers = _larger(_sum([running, begun]), peak)
    own = mapping(pod_spec.get("resources"))
    needed = {**_amounts(own.get("limits")), **of_containers, **_amounts(own.get("requests"))}
    total = _sum([needed, _amounts(pod_spec.get("overhead"))])
    return {name: amount for name, amount in sorted(total.items()) if amount}


# Each observation of a job reads the requests of its templates and pods, and the pods of a gang request the same. A longer text
# is computed each time: a user who writes many of them would fill the memory.
_MOST_REMEMBERED: Final = 1024
_LONGEST_REMEMBERED: Final = 4096
_READ: Final = ("containers", "initContainers", "resources", "overhead")


def remembered_requests(pod_spec: Json) -> Mapping[str, Fraction]:
    """Return the effective requests of a pod, which are computed once for all specifications that request the same."""
    read = json.dumps([pod_spec.get(name) for name in _READ])
    return _of_text(read) if len(read) <= _LONGEST_REMEMBERED else _of_text.__wrapped__(read)


@lru_cache(maxsize=_MOST_REMEMBERED)
def _of_text(read: str) -> Mapping[str, Fraction]:
    return effective_requests(dict(zip(_READ, json.loads(read), strict=True)))


def _objects(value: JsonValue) -> Iterable[Json]:
    return map(mapping, sequence(value))


def _of_container(container: Json, defaults: Amounts) -> Amounts:
    resources = mapping(container.get("resources"))
    return {**defaults, **_amounts(resources.get("limits")), **_amounts(resources.get("requests"))}


def _amounts(resources: JsonValue) -> Amounts:
    return {name: parse_quantity(value) for name, value in mapping(resources).items()}


def _sum(parts: Iterable[Amounts]) -> Amounts:
    total: Amounts = {}
    for part in parts:
        for name, amount in part.items():
            total[name] = total.get(name, _NOTHING) + amount
    return total


def _larger(one: Amounts, other: Amounts) -> Amounts:
    return {name: max(one.get(name, _NOTHING), other.get(name, _NOTHING)) for name in {**one, **other}}
