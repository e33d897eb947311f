"""The rule that nothing but the spot notice can evict training pods.

Karpenter that consolidates, replaces what has drifted or expires nodes costs a job every step since its last checkpoint,
on all of its nodes at once; on spot it does so on top of the evictions that are counted. And a pod on spot that refuses
disruption is left out of the drain on the notice: it gets neither SIGTERM nor `DisruptionTarget`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holdfast.policies.findings import Finding
from holdfast.policies.karpenter_pools import pool_label
from holdfast.policies.known_values import UNKNOWN, at, is_list, is_object, items_at, text_at
from holdfast.policies.ladders import ladders_of
from holdfast.policies.node_pools import name_of, node_pools
from holdfast.scheduling.labels import CAPACITY_TYPE, SPOT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from holdfast.policies.findings import StackResource
    from holdfast.policies.known_values import Value
    from holdfast.policies.rule import Settings

DO_NOT_DISRUPT: Final = "karpenter.sh/do-not-disrupt"

#: Karpenter's own where nothing is said.
_CONSOLIDATES: Final = "WhenEmptyOrUnderutilized"
_EXPIRES: Final = "720h"


def find(resources: Sequence[StackResource], _: Settings) -> tuple[Finding, ...]:
    """Return what may evict training pods: NodePools of ladders, and pods on spot that refuse disruption."""
    training = {name for ladder in ladders_of(resources) for name in ladder.pools}
    pools = [each for each in node_pools(resources) if pool_label(each) in training]
    return tuple(
        Finding(urn=resource.urn, message=message)
        for resource, messages in (
            *((pool, pool_problems(pool)) for pool in pools),
            *((each, pod_problems(each)) for each in resources if each.type.startswith("kubernetes:")),
        )
        for message in messages
    )


def pool_problems(node_pool: StackResource) -> Iterator[str]:
    """Yield what lets Karpenter take away nodes of a NodePool on which jobs train."""
    title = f"NodePool {name_of(node_pool)!r}"
    policy = at(node_pool.props, "spec", "disruption", "consolidationPolicy")
    if policy is not UNKNOWN and policy != "WhenEmpty":
        yield (
            f"{title} consolidates nodes that are in use ({policy or _CONSOLIDATES}): each time it costs a job every step "
            "since its last checkpoint. Set `spec.disruption.consolidationPolicy: WhenEmpty`."
        )
    expiry = at(node_pool.props, "spec", "template", "spec", "expireAfter")
    if expiry is not UNKNOWN and expiry != "Never":
        yield (
            f"{title} ends its nodes when they are {expiry or _EXPIRES} old, training or not. Set "
            "`spec.template.spec.expireAfter: Never`."
        )
    if drifts(node_pool):
        yield (
            f"{title} replaces nodes that have drifted, as after an upgrade, while jobs train on them. Add a budget under "
            "`spec.disruption.budgets`: `{nodes: '0', reasons: [Drifted]}`."
        )


def drifts(node_pool: StackResource) -> bool:
    """Whether drifted nodes may be replaced: no budget without a schedule keeps them at 0."""
    budgets = items_at(node_pool.props, "spec", "disruption", "budgets")
    return budgets is not UNKNOWN and not any(_keeps_drifted(budget) for budget in budgets)


def _keeps_drifted(budget: Value) -> bool:
    nodes, reasons = at(budget, "nodes"), at(budget, "reasons")
    if budget is UNKNOWN or UNKNOWN in (nodes, reasons):
        return True
    named = not is_list(reasons) or "Drifted" in reasons or UNKNOWN in reasons
    return named and nodes in ("0", "0%", 0) and at(budget, "schedule") is None


def pod_problems(resource: StackResource) -> Iterator[str]:
    """Yield what is wrong with the pod templates in an object: those for spot that refuse disruption."""
    for template in templates(dict(resource.props)):
        refuses = text_at(template, "metadata", "annotations", DO_NOT_DISRUPT)
        selects = at(template, "spec", "nodeSelector", CAPACITY_TYPE)
        if isinstance(refuses, str) and selects == SPOT:
            yield (
                f"{resource.logical_name!r} has pods on spot that refuse disruption ({DO_NOT_DISRUPT}): on the notice "
                "Karpenter leaves them out of its drain, and they get neither SIGTERM nor time to checkpoint. Remove the "
                "annotation: the NodePool keeps everything else away from them."
            )


def templates(value: Value) -> Iterator[Mapping[str, Value]]:
    """Yield every pod, or template of one, in a value: what has a `spec` with containers."""
    if is_object(value):
        if is_list(at(value, "spec", "containers")):
            yield value
        for each in value.values():
            yield from templates(each)
    elif is_list(value):
        for each in value:
            yield from templates(each)
