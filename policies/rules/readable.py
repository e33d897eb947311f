"""The rule that whatever the other rules go by can be read: pools, ladders, shapes, what admission tolerates.

The others are silent about what they cannot read, or take it for nothing. Whether the API server takes it is no policy's
to say: on a preview it has not been asked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.policies.declared.admission import is_admission, unreadable_tolerates
from holdfast.policies.declared.aks import is_agent_pool
from holdfast.policies.findings import Finding
from holdfast.policies.gke_pools import NODE_POOL
from holdfast.policies.karpenter_pools import is_node_pool
from holdfast.policies.rules.readable_ladders import ladder_problems
from holdfast.policies.rules.readable_pools import agent_pool_problems, gke_problems, node_pool_problems
from holdfast.policies.training_ladders import is_fallback_policy

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holdfast.policies.findings import StackResource
    from holdfast.policies.rule import Settings


def find(resources: Sequence[StackResource], _: Settings) -> tuple[Finding, ...]:
    """Return what the other rules could not read."""
    return tuple(
        Finding(urn=each.urn, message=f"{each.logical_name!r} {problem}", proven=False)
        for each in resources
        for problem in problems(each)
    )


def problems(resource: StackResource) -> Iterator[str]:
    """Yield what cannot be read of a resource that some rule goes by."""
    readers = {
        node_pool_problems: is_node_pool(resource.type),
        gke_problems: resource.type == NODE_POOL,
        agent_pool_problems: is_agent_pool(resource.type),
        ladder_problems: is_fallback_policy(resource.type),
        unreadable_tolerates: is_admission(resource.type),
    }
    for read, is_one in readers.items():
        if is_one and not resource.props:
            yield "has no properties, so that no rule can tell anything of it."
        elif is_one:
            yield from read(resource)
