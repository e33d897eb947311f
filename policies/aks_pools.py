"""Pools as AKS's agent pools declare them: scale sets, by themselves or as part of their cluster."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from holdfast.policies.known_values import UNKNOWN, at, items_at, text_at
from holdfast.policies.pools import Pool
from holdfast.scheduling.labels import ON_DEMAND, POOL, SPOT

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holdfast.policies.findings import StackResource
    from holdfast.policies.known_values import Value

# With or without a version of the API between the module and the type.
_AGENT_POOL: Final = re.compile(r"azure-native:containerservice(/v\w+)?:AgentPool")
_CLUSTER: Final = re.compile(r"azure-native:containerservice(/v\w+)?:ManagedCluster")


def aks_pools(resources: Sequence[StackResource]) -> tuple[Pool, ...]:
    """Return the pools that the stack's agent pools of AKS make."""
    return tuple(found for resource in resources for found in pools(resource))


def pools(resource: StackResource) -> Iterator[Pool]:
    """Yield the pools that one resource makes; a cluster's own that are not known yet make none."""
    if is_agent_pool(resource.type):
        declared = text_at(resource.props, "agentPoolName")
        yield pool(resource.props, declared if isinstance(declared, str) else resource.logical_name)
    elif is_cluster(resource.type):
        profiles = items_at(resource.props, "agentPoolProfiles")
        for profile in profiles if profiles is not UNKNOWN else ():
            declared = text_at(profile, "name")
            yield pool(profile, declared if isinstance(declared, str) else resource.logical_name)


def pool(profile: Value, name: str) -> Pool:
    """Return the pool of one agent pool profile."""
    capacity_types, decided = capacity(profile)
    return Pool(
        name=text_at(profile, "nodeLabels", POOL),
        node_pool=name,
        labels_path="nodeLabels",
        capacity_types=capacity_types,
        decided=decided,
    )


def is_agent_pool(type_token: str) -> bool:
    """Whether the type is an agent pool of any API version."""
    return _AGENT_POOL.fullmatch(type_token) is not None


def is_cluster(type_token: str) -> bool:
    """Whether the type is a cluster of AKS of any API version."""
    return _CLUSTER.fullmatch(type_token) is not None


def capacity(profile: Value) -> tuple[frozenset[str], bool]:
    """Return the capacity types that the nodes may have, and whether it is known which of them they have."""
    priority = at(profile, "scaleSetPriority")
    if priority is UNKNOWN:
        return frozenset({ON_DEMAND, SPOT}), False
    # Azure reads its own words in any case.
    is_spot = isinstance(priority, str) and priority.lower() == "spot"
    return frozenset({SPOT if is_spot else ON_DEMAND}), True
