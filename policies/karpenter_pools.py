"""Pools as Karpenter's NodePools declare them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.policies.known_values import UNKNOWN, Unknown, Value, at, items_at, text_at
from holdfast.policies.pools import Pool
from holdfast.scheduling.labels import CAPACITY_TYPE, ON_DEMAND, POOL, SPOT

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holdfast.policies.findings import StackResource

#: Karpenter launches any of these when a NodePool asks for none: a NodePool without a capacity type is no on-demand pool.
CAPACITY_TYPES = frozenset({ON_DEMAND, SPOT, "reserved"})


def karpenter_pools(resources: Sequence[StackResource]) -> tuple[Pool, ...]:
    """Return the pools that the stack's Karpenter NodePools make."""
    return tuple(pool(resource) for resource in resources if is_node_pool(resource.type))


def pool(resource: StackResource) -> Pool:
    """Return the pool that one NodePool makes."""
    declared = text_at(resource.props, "metadata", "name")
    capacity_types, decided = capacity(resource)
    return Pool(
        name=pool_label(resource),
        node_pool=declared if isinstance(declared, str) else resource.logical_name,
        labels_path="spec.template.metadata.labels",
        capacity_types=capacity_types,
        decided=decided,
    )


def is_node_pool(type_token: str) -> bool:
    """Whether the type is a NodePool of any API version."""
    return type_token.startswith("kubernetes:karpenter.sh/") and type_token.endswith(":NodePool")


def pool_label(resource: StackResource) -> str | Unknown | None:
    """Return the value of the pool label on the NodePool's nodes: set as a label, or as a requirement of one value."""
    label = text_at(resource.props, "spec", "template", "metadata", "labels", POOL)
    if label is not None:
        return label
    for requirement in requirements(resource):
        key = at(requirement, "key")
        values = items_at(requirement, "values")
        if requirement is UNKNOWN or key is UNKNOWN or (key == POOL and values is UNKNOWN):
            return UNKNOWN
        if key == POOL and at(requirement, "operator") == "In" and values is not UNKNOWN and len(values) == 1:
            only = values[0]
            return only if only is UNKNOWN or isinstance(only, str) else None
    return None


def capacity(resource: StackResource) -> tuple[frozenset[str], bool]:
    """Return what the NodePool's requirements leave of the capacity types, and whether all of them are known."""
    allowed = CAPACITY_TYPES
    decided = True
    for requirement in requirements(resource):
        if at(requirement, "key") == CAPACITY_TYPE:
            narrowed = narrow(allowed, requirement)
            decided = decided and narrowed is not UNKNOWN
            allowed = allowed if narrowed is UNKNOWN else narrowed
        elif at(requirement, "key") is UNKNOWN:
            decided = False
    return allowed, decided


def requirements(resource: StackResource) -> Iterator[Value]:
    """Yield the NodePool's requirements; labels of its nodes count as requirements, as they do for Karpenter."""
    label = at(resource.props, "spec", "template", "metadata", "labels", CAPACITY_TYPE)
    if label is UNKNOWN:
        yield UNKNOWN
    elif label is not None:
        yield {"key": CAPACITY_TYPE, "operator": "In", "values": [label]}
    listed = items_at(resource.props, "spec", "template", "spec", "requirements")
    if listed is UNKNOWN:
        yield UNKNOWN
    else:
        yield from listed


def narrow(allowed: frozenset[str], requirement: Value) -> frozenset[str] | Unknown:
    """Return what one requirement on the capacity type leaves of `allowed`."""
    operator = at(requirement, "operator")
    values = items_at(requirement, "values")
    if operator is UNKNOWN or values is UNKNOWN or UNKNOWN in values:
        return UNKNOWN
    named = frozenset(value for value in values if isinstance(value, str))
    match operator:
        case "In":
            return allowed & named
        case "NotIn":
            return allowed - named
        case "DoesNotExist":
            return frozenset()
        case _:
            return allowed
