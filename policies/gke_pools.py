"""Pools as GKE's node pools declare them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holdfast.policies.known_values import UNKNOWN, at, text_at
from holdfast.policies.pools import Pool
from holdfast.scheduling.labels import ON_DEMAND, POOL, SPOT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.policies.findings import StackResource

NODE_POOL: Final = "gcp:container/nodePool:NodePool"

#: Each ends a node without asking its pods: taken back at any time, after a day at the latest, or after a week.
ENDING: Final = {"spot": SPOT, "preemptible": SPOT, "flexStart": "flex-start"}


def gke_pools(resources: Sequence[StackResource]) -> tuple[Pool, ...]:
    """Return the pools that the stack's node pools of GKE make."""
    return tuple(pool(resource) for resource in resources if resource.type == NODE_POOL)


def pool(resource: StackResource) -> Pool:
    """Return the pool that one node pool makes."""
    declared = text_at(resource.props, "name")
    capacity_types, decided = capacity(resource)
    return Pool(
        name=text_at(resource.props, "nodeConfig", "labels", POOL),
        node_pool=declared if isinstance(declared, str) else resource.logical_name,
        labels_path="nodeConfig.labels",
        capacity_types=capacity_types,
        decided=decided,
    )


def capacity(resource: StackResource) -> tuple[frozenset[str], bool]:
    """Return the capacity types that the nodes may have, and whether it is known which of them they have."""
    given = {way: at(resource.props, "nodeConfig", way) for way in ENDING}
    ending = frozenset(ENDING[way] for way, value in given.items() if value is True)
    if ending:
        return ending, True
    unknown = frozenset(ENDING[way] for way, value in given.items() if value is UNKNOWN)
    return frozenset({ON_DEMAND}) | unknown, not unknown
