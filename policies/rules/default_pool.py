"""The rule that pods which ask for nothing have somewhere to be: an on-demand pool of CPU machines without taints.

Ray heads, submitters and helpers ask for nothing. Without such a pool they wait for ever, or buy a GPU machine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.policies.declared import declared_pools
from holdfast.policies.findings import Finding
from holdfast.policies.known_values import UNKNOWN
from holdfast.policies.training_ladders import training_namespaces
from holdfast.scheduling.taints import REPELLING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.policies.declared import DeclaredPool
    from holdfast.policies.findings import StackResource
    from holdfast.policies.rule import Settings


def find(resources: Sequence[StackResource], _: Settings) -> tuple[Finding, ...]:
    """Return a finding about a program that makes pools for its training namespaces, and none for everybody."""
    pools = declared_pools(resources)
    proven = [namespace for namespace in training_namespaces(resources) if namespace.proven]
    if not pools or not proven or any(may_be_default(pool) for pool in pools):
        return ()
    return (
        Finding(
            urn=pools[0].resource.urn,
            message="no pool of this program takes pods that ask for nothing: each is spot, tainted, or of GPU machines. "
            "Add an on-demand pool of CPU machines without taints, for Ray heads, submitters and helpers.",
        ),
    )


def may_be_default(pool: DeclaredPool) -> bool:
    """Whether it takes pods that ask for nothing, or may turn out to."""
    facts = pool.facts
    if facts.is_on_demand is False:
        return False
    tainted = facts.taints is not UNKNOWN and any(each.effect in REPELLING for each in facts.taints)
    dear = (
        facts.machines is not UNKNOWN
        and bool(facts.machines)
        and all(each.capacity.gpus for each in facts.machines)
    )
    return not tainted and not dear
