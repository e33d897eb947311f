"""What Karpenter's NodePools say, read value by value."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.policies.karpenter_pools import capacity, is_node_pool, requirements
from holdfast.policies.known_values import UNKNOWN, at, items_at, text_at
from holdfast.policies.stack import once
from holdfast.scheduling.labels import ON_DEMAND, SPOT
from holdfast.scheduling.taints import Taint

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.policies.findings import StackResource
    from holdfast.policies.known_values import Value
    from holdfast.scheduling.json import Unknown


@once
def node_pools(resources: Sequence[StackResource]) -> tuple[StackResource, ...]:
    """The stack's NodePools of Karpenter."""
    return tuple(resource for resource in resources if is_node_pool(resource.type))


def name_of(node_pool: StackResource) -> str:
    """Its name in the cluster, or its resource's where that is not known."""
    declared = text_at(node_pool.props, "metadata", "name")
    return declared if isinstance(declared, str) else node_pool.logical_name


def may_buy_spot(node_pool: StackResource) -> bool:
    """Whether its requirements leave spot among the capacity types, for certain."""
    kinds, decided = capacity(node_pool)
    return decided and SPOT in kinds


def is_on_demand_alone(node_pool: StackResource) -> bool:
    """Whether it buys on-demand machines and no others, for certain."""
    kinds, decided = capacity(node_pool)
    return decided and kinds == frozenset({ON_DEMAND})


def taints_of(node_pool: StackResource) -> tuple[Taint, ...] | Unknown:
    """The taints of its nodes; those that only start with them are gone before pods come."""
    listed = items_at(node_pool.props, "spec", "template", "spec", "taints")
    if listed is UNKNOWN:
        return UNKNOWN
    found = [taint_of(each) for each in listed]
    known = tuple(taint for taint in found if isinstance(taint, Taint))
    return UNKNOWN if UNKNOWN in found else known


def taint_of(value: Value) -> Taint | Unknown | None:
    """A taint as Kubernetes spells it; None for what is none."""
    key, given, effect = (at(value, part) for part in ("key", "value", "effect"))
    if value is UNKNOWN or UNKNOWN in (key, given, effect):
        return UNKNOWN
    if not isinstance(key, str) or not isinstance(effect, str):
        return None
    return Taint(key=key, value=given if isinstance(given, str) else "", effect=effect)


def required(node_pool: StackResource, key: str) -> frozenset[str] | Unknown | None:
    """The values that its requirements allow of a label (`In`), None where any will do."""
    allowed: frozenset[str] | None = None
    for requirement in requirements(node_pool):
        name = at(requirement, "key")
        if name is UNKNOWN:
            return UNKNOWN
        if name == key and at(requirement, "operator") == "In":
            values = items_at(requirement, "values")
            if values is UNKNOWN or UNKNOWN in values:
                return UNKNOWN
            these = frozenset(value for value in values if isinstance(value, str))
            allowed = these if allowed is None else allowed & these
    return allowed
