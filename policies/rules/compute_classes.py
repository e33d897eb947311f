"""A GKE ComputeClass has one capacity type, and pods that select it use no spot label of GKE beside it.

GKE moves from one priority of a class to the next by itself, node by node: a class of spot and on-demand nodes puts one job
on both, without its ladder. GKE rejects pods that select a class and GKE's spot labels, and their controller retries forever.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from pulumi_holdfast.ladder.labels import COMPUTE_CLASS, GKE_PROVISIONING, GKE_SPOT, ON_DEMAND, SPOT
from pulumi_holdfast.program.pools.gke import gke_pools
from pulumi_holdfast.program.resources import StackResource, Value, at, is_list, is_object, items_at
from pulumi_holdfast.program.settings import Settings
from rule import Finding, Group, Level, Rule, RuleSeverity

_SPOT_LABELS: Final = (GKE_SPOT, GKE_PROVISIONING)


def find(resources: Sequence[StackResource], _: Settings) -> tuple[Finding, ...]:
    """Return what is wrong with the stack's ComputeClasses and with the pods that select one, as far as it is known."""
    capacities = {
        pool.node_pool: pool.facts.capacity_types for pool in gke_pools(resources) if pool.facts.is_decided
    }
    return tuple(
        Finding(urn=resource.urn, message=message)
        for resource in resources
        if resource.type.startswith("kubernetes:")
        for message in (*_mixed_capacity(resource, capacities), *_mixed_selectors(resource))
    )


def _mixed_capacity(resource: StackResource, capacities: Mapping[str, frozenset[str]]) -> Iterator[str]:
    """Yield what is wrong with a ComputeClass; `capacities` are the capacity types of the stack's node pools."""
    if not _is_compute_class(resource.type):
        return
    listed = items_at(resource.props, "spec", "priorities")
    priorities = listed if is_list(listed) else ()
    found = {capacity for priority in priorities for capacity in _capacity_types(priority, capacities)}
    if len(found) > 1:
        yield (
            f"ComputeClass {resource.logical_name!r} has priorities of {' and '.join(sorted(found))} nodes, so the pods of one "
            "job can be on both at once. Make a class for each, and a tier of each class."
        )


def _mixed_selectors(resource: StackResource) -> Iterator[str]:
    """Yield what is wrong with the node selectors of a Kubernetes object, at any depth."""
    for selector in _selectors(dict(resource.props)):
        beside = [label for label in _SPOT_LABELS if label in selector]
        if COMPUTE_CLASS in selector and beside:
            yield (
                f"{resource.logical_name!r} selects nodes by {COMPUTE_CLASS} and by {' and '.join(beside)}, which GKE "
                f"rejects. Keep only {COMPUTE_CLASS}: the class determines its nodes."
            )


def _is_compute_class(type_token: str) -> bool:
    return type_token.startswith("kubernetes:cloud.google.com/") and type_token.endswith(":ComputeClass")


def _capacity_types(priority: Value, capacities: Mapping[str, frozenset[str]]) -> frozenset[str]:
    """Return the capacity types of a priority's nodes: those of its pools, or its own."""
    pools = at(priority, "nodepools")
    if is_list(pools):
        named = [capacities.get(pool, frozenset[str]()) for pool in pools if isinstance(pool, str)]
        return frozenset[str]().union(*named)
    spot = at(priority, "spot")
    if spot is True:
        return frozenset({SPOT})
    return frozenset({ON_DEMAND}) if is_object(priority) and spot in (None, False) else frozenset()


def _selectors(value: Value) -> Iterator[Mapping[str, Value]]:
    """Yield every node selector in a value, at any depth."""
    if is_object(value):
        found = value.get("nodeSelector")
        if is_object(found):
            yield found
        for each in value.values():
            yield from _selectors(each)
    elif is_list(value):
        for each in value:
            yield from _selectors(each)


RULE: Final = Rule(
    name="compute-class-single-capacity-type",
    title="ComputeClasses of one capacity type",
    description="A GKE ComputeClass has nodes of one capacity type, and pods that select it use no spot label beside it.",
    fix="Make a ComputeClass for each capacity type, and select nodes only by the class.",
    group=Group.PLATFORM,
    level=Level.ADVISORY,
    strict=Level.MANDATORY,
    severity=RuleSeverity.HIGH,
    find=find,
)
