"""The rule that a ComputeClass of GKE is of one capacity type, and that pods select it by nothing else of GKE's.

GKE goes from one priority of a class to the next at once and for each node by itself: a class of spot and on-demand nodes
puts one job on both, and the job's ladder knows nothing of it. Pods that select a class and spot nodes by GKE's own labels
at the same time are refused by GKE when they are created, which a job's controller tries for ever.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.policies.findings import Finding
from holdfast.policies.gke_pools import gke_pools
from holdfast.policies.known_values import at, is_list, is_object, items_at
from holdfast.scheduling.labels import COMPUTE_CLASS, GKE_PROVISIONING, GKE_SPOT, ON_DEMAND, SPOT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from holdfast.policies.findings import StackResource
    from holdfast.policies.known_values import Value

SPOT_LABELS = (GKE_SPOT, GKE_PROVISIONING)


def compute_class_findings(resources: Sequence[StackResource]) -> tuple[Finding, ...]:
    """Return what is wrong with the stack's ComputeClasses and with the pods that select one.

    What only the update will know is looked at then.
    """
    capacities = {pool.node_pool: pool.capacity_types for pool in gke_pools(resources) if pool.decided}
    return tuple(
        Finding(urn=resource.urn, message=message)
        for resource in resources
        if resource.type.startswith("kubernetes:")
        for message in (*mixed_capacity(resource, capacities), *mixed_selectors(resource))
    )


def mixed_capacity(resource: StackResource, capacities: Mapping[str, frozenset[str]]) -> Iterator[str]:
    """Yield what is wrong with a ComputeClass; `capacities` are those of the stack's node pools, by name."""
    if not is_compute_class(resource.type):
        return
    found = {capacity for priority in items_of(resource) for capacity in capacity_types(priority, capacities)}
    if len(found) > 1:
        yield (
            f"ComputeClass {resource.logical_name!r} has priorities of {' and '.join(sorted(found))} nodes, so that one "
            "job's pods can be on both at once. Make a class for each, and a tier of each class."
        )


def mixed_selectors(resource: StackResource) -> Iterator[str]:
    """Yield what is wrong with the node selectors anywhere in an object of Kubernetes."""
    for selector in selectors(dict(resource.props)):
        beside = [label for label in SPOT_LABELS if label in selector]
        if COMPUTE_CLASS in selector and beside:
            yield (
                f"{resource.logical_name!r} selects nodes by {COMPUTE_CLASS} and by {' and '.join(beside)}, which GKE "
                f"refuses. Keep {COMPUTE_CLASS}: the class says what its nodes are."
            )


def is_compute_class(type_token: str) -> bool:
    """Whether the type is a ComputeClass of any API version."""
    return type_token.startswith("kubernetes:cloud.google.com/") and type_token.endswith(":ComputeClass")


def items_of(resource: StackResource) -> Sequence[Value]:
    """Return the priorities of a ComputeClass that are known."""
    listed = items_at(resource.props, "spec", "priorities")
    return listed if is_list(listed) else ()


def capacity_types(priority: Value, capacities: Mapping[str, frozenset[str]]) -> frozenset[str]:
    """Return the capacity types of a priority's nodes: its pools', or its own."""
    pools = at(priority, "nodepools")
    if is_list(pools):
        named = [capacities.get(pool, frozenset[str]()) for pool in pools if isinstance(pool, str)]
        return frozenset[str]().union(*named)
    spot = at(priority, "spot")
    if spot is True:
        return frozenset({SPOT})
    return frozenset({ON_DEMAND}) if is_object(priority) and spot in (None, False) else frozenset()


def selectors(value: Value) -> Iterator[Mapping[str, Value]]:
    """Yield every node selector in a value, at any depth."""
    if is_object(value):
        found = value.get("nodeSelector")
        if is_object(found):
            yield found
        for each in value.values():
            yield from selectors(each)
    elif is_list(value):
        for each in value:
            yield from selectors(each)
