"""A stack that satisfies every policy, and the changes by which it stops doing so."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.policies.resources import StackResource
from holdfast.scheduling.labels import CAPACITY_TYPE, POOL, TRAINING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holdfast.policies.resources import Value

    Props = Mapping[str, Value]

NAMESPACE_TYPE = "kubernetes:core/v1:Namespace"
FALLBACK_POLICY_TYPE = "kubernetes:holdfast.dev/v1alpha1:FallbackPolicy"
NODE_POOL_TYPE = "kubernetes:karpenter.sh/v1:NodePool"

A100_SPOT: Props = {"pool": "a100-spot", "maxFailures": 5.0, "procurementTimeout": "15m"}
A100: Props = {"pool": "a100"}


def resource(type_token: str, name: str, props: Props) -> StackResource:
    """A resource of that type under that logical name."""
    urn = f"urn:pulumi:local::holdfast::holdfast:index:Component${type_token}::{name}"
    return StackResource(type=type_token, urn=urn, props=props)


def namespace(
    name: Value = "vision", *, labels: Value = None, type_token: str = NAMESPACE_TYPE
) -> StackResource:
    """A training namespace, unless other labels are given."""
    marked = {TRAINING: "true"} if labels is None else labels
    return resource(type_token, "vision-namespace", {"metadata": {"name": name, "labels": marked}})


def ladder(
    tiers: Value = (A100_SPOT, A100), *, name: Value = "ladder", namespace: Value = "vision"
) -> StackResource:
    """The namespace's ladder, from a spot pool down to an on-demand one."""
    metadata: Props = {"name": name, "namespace": namespace}
    return resource(FALLBACK_POLICY_TYPE, "vision-ladder", {"metadata": metadata, "spec": {"tiers": tiers}})


def capacity_requirement(*values: Value, operator: Value = "In") -> Props:
    """A NodePool's requirement on the capacity type."""
    return {"key": CAPACITY_TYPE, "operator": operator, "values": list(values)}


def node_pool(name: str, *requirements: Value, labels: Value = None) -> StackResource:
    """A NodePool whose nodes are labelled with its name as their pool, unless other labels are given."""
    marked = {POOL: name} if labels is None else labels
    template: Props = {"metadata": {"labels": marked}, "spec": {"requirements": list(requirements)}}
    return resource(NODE_POOL_TYPE, name, {"metadata": {"name": name}, "spec": {"template": template}})


def pools() -> list[StackResource]:
    """A spot pool and an on-demand one."""
    return [
        node_pool("a100-spot", capacity_requirement("spot")),
        node_pool("a100", capacity_requirement("on-demand")),
    ]


def compliant() -> list[StackResource]:
    """A training namespace with its ladder, and the pools that the ladder names."""
    return [namespace(), ladder(), *pools()]


def with_ladder(*tiers: Value) -> Sequence[StackResource]:
    """The compliant stack with a ladder of these tiers instead."""
    return [namespace(), ladder(list(tiers)), *pools()]


def with_pools(*node_pools: StackResource) -> Sequence[StackResource]:
    """The compliant stack with these pools instead."""
    return [namespace(), ladder(), *node_pools]
