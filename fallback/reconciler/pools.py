"""What is known of the pools of a ladder."""

from collections.abc import Mapping

from holdfast.fallback.api.objects import mapping
from holdfast.fallback.policy.policy import Policy
from holdfast.fallback.reconciler.caches import IN_POOL, Caches, pool_made_by
from holdfast.fallback.reconciler.used_nodes import UsedNodes
from holdfast.fallback.state_machine.observation import PoolSeen


def pools_seen(policy: Policy, caches: Caches, used: UsedNodes) -> Mapping[str, PoolSeen]:
    """Return what is known of each tier's pool.

    Whether a pool is there can be told where Karpenter makes the nodes, by its NodePools: a pool of a cloud's own
    kind that has no node leaves no trace in the cluster.
    """
    karpenter_makes = any(pool_made_by(node_pool) for node_pool in caches.node_pools)
    return {tier.pool: _seen(tier.pool, caches, used, is_told=karpenter_makes) for tier in policy.tiers}


def _seen(pool: str, caches: Caches, used: UsedNodes, *, is_told: bool) -> PoolSeen:
    node_pool = next(iter(caches.node_pools.find(IN_POOL, pool)), None)
    # A quantity, which is a text or a number as its author wrote it.
    limit = str(mapping(mapping((node_pool or {}).get("spec")).get("limits")).get("nodes"))
    return PoolSeen(
        is_there=caches.nodes.has(IN_POOL, pool) or node_pool is not None or not is_told,
        nodes_in_use=used.count(pool),
        max_nodes=int(limit) if limit.isdecimal() else None,
    )
