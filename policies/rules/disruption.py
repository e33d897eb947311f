"""Nothing but a spot interruption evicts training pods.

When Karpenter consolidates, replaces drifted nodes or expires nodes, a job loses every step since its last checkpoint, on
all its nodes at once; on spot, these evictions add to those that are counted. A pod on spot that refuses disruption is left
out of the drain on the interruption notice: it receives neither SIGTERM nor `DisruptionTarget`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from pulumi_holdfast.ladder.json import UNKNOWN
from pulumi_holdfast.ladder.labels import CAPACITY_TYPE, SPOT
from pulumi_holdfast.program.pools.karpenter import name_of, node_pools, pool_labels
from pulumi_holdfast.program.resources import (
    StackResource,
    Value,
    at,
    is_list,
    is_object,
    items_at,
    pools_on_ladders,
    text_at,
)
from pulumi_holdfast.program.settings import Settings
from rule import Finding, Group, Level, Rule, RuleSeverity

_DO_NOT_DISRUPT: Final = "karpenter.sh/do-not-disrupt"

#: Karpenter's defaults.
_CONSOLIDATION: Final = "WhenEmptyOrUnderutilized"
_EXPIRY: Final = "720h"


def find(resources: Sequence[StackResource], _: Settings) -> tuple[Finding, ...]:
    """Return what may evict training pods: NodePools of ladders, and pods on spot that refuse disruption."""
    training = pools_on_ladders(resources)
    pools = [each for each in node_pools(resources) if {*pool_labels(each, resources)} & training]
    return tuple(
        Finding(urn=resource.urn, message=message)
        for resource, messages in (
            *((pool, _pool_problems(pool)) for pool in pools),
            *((each, _pod_problems(each)) for each in resources if each.type.startswith("kubernetes:")),
        )
        for message in messages
    )


def _pool_problems(node_pool: StackResource) -> Iterator[str]:
    """Yield the settings by which Karpenter may remove nodes of a NodePool while jobs train on them."""
    title = f"NodePool {name_of(node_pool)!r}"
    policy = at(node_pool.props, "spec", "disruption", "consolidationPolicy")
    if policy is not UNKNOWN and policy != "WhenEmpty":
        yield (
            f"{title} consolidates nodes that are in use ({policy or _CONSOLIDATION}): each time a job loses every step "
            "since its last checkpoint. Set `spec.disruption.consolidationPolicy: WhenEmpty`."
        )
    expiry = at(node_pool.props, "spec", "template", "spec", "expireAfter")
    if expiry is not UNKNOWN and expiry != "Never":
        yield (
            f"{title} expires its nodes after {expiry or _EXPIRY}, even while jobs train on them. Set "
            "`spec.template.spec.expireAfter: Never`."
        )
    if _replaces_drifted(node_pool):
        yield (
            f"{title} replaces drifted nodes, such as after an upgrade, while jobs train on them. Add a budget under "
            "`spec.disruption.budgets`: `{nodes: '0', reasons: [Drifted]}`."
        )


def _replaces_drifted(node_pool: StackResource) -> bool:
    """Return whether no budget without a schedule keeps drifted nodes at 0."""
    budgets = items_at(node_pool.props, "spec", "disruption", "budgets")
    return budgets is not UNKNOWN and not any(_keeps_drifted(budget) for budget in budgets)


def _keeps_drifted(budget: Value) -> bool:
    nodes, reasons = at(budget, "nodes"), at(budget, "reasons")
    if budget is UNKNOWN or UNKNOWN in (nodes, reasons):
        return True
    for_drift = not is_list(reasons) or "Drifted" in reasons or UNKNOWN in reasons
    return for_drift and nodes in ("0", "0%", 0) and at(budget, "schedule") is None


def _pod_problems(resource: StackResource) -> Iterator[str]:
    """Yield the pod templates of an object that select spot and refuse disruption."""
    for template in pod_templates(dict(resource.props)):
        annotation = text_at(template, "metadata", "annotations", _DO_NOT_DISRUPT)
        selected = at(template, "spec", "nodeSelector", CAPACITY_TYPE)
        if isinstance(annotation, str) and selected == SPOT:
            yield (
                f"{resource.logical_name!r} has pods on spot that refuse disruption ({_DO_NOT_DISRUPT}): on the "
                "interruption notice Karpenter leaves them out of its drain, and they receive neither SIGTERM nor time to "
                "checkpoint. Remove the annotation: the NodePool's settings prevent every other disruption."
            )


def pod_templates(value: Value) -> Iterator[Mapping[str, Value]]:
    """Yield every pod and pod template in a value: an object whose `spec` has containers."""
    if is_object(value):
        if is_object(spec := value.get("spec")) and is_list(spec.get("containers")):
            yield value
        for each in value.values():
            yield from pod_templates(each)
    elif is_list(value):
        for each in value:
            yield from pod_templates(each)


RULE: Final = Rule(
    name="no-voluntary-disruption",
    title="Karpenter does not disrupt training",
    description="Karpenter does not consolidate, replace for drift or expire nodes on which jobs train, and pods on spot do "
    "not refuse the drain.",
    fix="Set consolidationPolicy: WhenEmpty, expireAfter: Never and a Drifted budget of 0; remove do-not-disrupt.",
    group=Group.PLATFORM,
    level=Level.ADVISORY,
    strict=Level.MANDATORY,
    severity=RuleSeverity.HIGH,
    find=find,
)
