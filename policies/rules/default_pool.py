"""Pods without a node selector have a pool: on-demand CPU machines without taints.

Ray heads, submitters and helpers select nothing. Without such a pool they stay pending, or buy a GPU machine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holdfast.policies.inputs import declared_pools
from holdfast.policies.inputs.ladders import training_namespaces
from holdfast.policies.rule import Finding, Level, Rule, RuleSeverity
from holdfast.scheduling.json import UNKNOWN
from holdfast.scheduling.taints import REPELLING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.policies.inputs import DeclaredPool
    from holdfast.policies.resources import StackResource
    from holdfast.policies.rule import Settings


def find(resources: Sequence[StackResource], _: Settings) -> tuple[Finding, ...]:
    """Return a finding if the program has training namespaces and pools, but no default pool."""
    pools = declared_pools(resources)
    proven = [namespace for namespace in training_namespaces(resources) if namespace.proven]
    if not pools or not proven or any(_may_be_default(pool) for pool in pools):
        return ()
    return (
        Finding(
            urn=pools[0].resource.urn,
            message="no pool of this program accepts pods without a node selector: each is spot, tainted, or has only GPU "
            "machines. Add an on-demand pool of CPU machines without taints, for Ray heads, submitters and helpers.",
        ),
    )


def _may_be_default(pool: DeclaredPool) -> bool:
    """Return whether it accepts pods without a node selector, or may turn out to."""
    facts = pool.facts
    if facts.is_on_demand is False:
        return False
    tainted = facts.taints is not UNKNOWN and any(each.effect in REPELLING for each in facts.taints)
    only_gpus = (
        facts.machines is not UNKNOWN
        and bool(facts.machines)
        and all(each.capacity.gpus for each in facts.machines)
    )
    return not tainted and not only_gpus


RULE: Final = Rule(
    name="default-pool-exists",
    title="Pods without a node selector have a pool",
    description="An on-demand pool of CPU machines without taints accepts Ray heads, submitters and helpers.",
    fix="Add an on-demand pool of CPU machines without taints.",
    level=Level.MANDATORY,
    severity=RuleSeverity.HIGH,
    find=find,
)
