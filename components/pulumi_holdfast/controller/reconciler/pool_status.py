"""The status of a ladder's pools: whether they exist, how many of their nodes are in use, and their prices."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from typing import Final

from pulumi_holdfast.controller.api.cache import Change
from pulumi_holdfast.controller.api.objects import labels_of, text
from pulumi_holdfast.controller.jobs.pods_and_nodes import node_of
from pulumi_holdfast.controller.policy.policy import Policy
from pulumi_holdfast.controller.reconciler.caches import IN_POOL, Caches, pool_made_by
from pulumi_holdfast.controller.state_machine.observation import PoolStatus
from pulumi_holdfast.ladder.frozen import replace
from pulumi_holdfast.ladder.json import Json, mapping
from pulumi_holdfast.ladder.labels import POOL

# Python parses no number of thousands of digits.
_NODES: Final = re.compile(r"[0-9]{1,18}", re.ASCII)


def pool_statuses(
    policy: Policy,
    caches: Caches,
    used: UsedNodes,
    *,
    clusters: Collection[str] = (),
    price_of: Callable[[str], float | None] = lambda _: None,
) -> Mapping[str, PoolStatus]:
    """Return the status of each tier's pool.

    `clusters`: the others in which a copy of the job may run. `price_of` returns what the cheapest node of a pool costs.
    Only Karpenter's NodePools show whether a pool without nodes exists: pools of GKE and AKS leave no object in the cluster.
    """
    karpenter_makes = any(pool_made_by(node_pool) for node_pool in caches.node_pools)
    return {
        tier.pool: PoolStatus(exists=tier.cluster in clusters)
        if tier.cluster
        else _pool_status(tier.pool, caches, used, price_of(tier.pool), is_listed=karpenter_makes)
        for tier in policy.tiers
    }


def _pool_status(
    pool: str, caches: Caches, used: UsedNodes, price: float | None, *, is_listed: bool
) -> PoolStatus:
    node_pool = next(iter(caches.node_pools.find(IN_POOL, pool)), None)
    # A quantity, which may be a string or a number.
    limit = str(mapping(mapping((node_pool or {}).get("spec")).get("limits")).get("nodes"))
    return PoolStatus(
        exists=caches.nodes.has(IN_POOL, pool) or node_pool is not None or not is_listed,
        nodes_in_use=used.count(pool),
        max_nodes=int(limit) if _NODES.fullmatch(limit) else None,
        price=price,
    )


class MissingPools:
    """Since when each pool of a ladder is missing.

    A process that has just started does not know which pools existed before: jobs on a missing pool wait for a moment, as if
    it had just disappeared. Other jobs skip a pool that the process has never seen.
    """

    def __init__(self, began: datetime) -> None:
        self._began = began
        self._seen: set[str] = set()
        self._since: dict[str, datetime] = {}

    def marked(self, pools: Mapping[str, PoolStatus], now: datetime) -> Mapping[str, PoolStatus]:
        """Return the status of each pool, with the time since when it is missing."""
        return {pool: self._marked(pool, status, now) for pool, status in pools.items()}

    def _marked(self, pool: str, status: PoolStatus, now: datetime) -> PoolStatus:
        if status.exists:
            self._seen.add(pool)
            self._since.pop(pool, None)
        if status.exists:
            return status
        was_seen = pool in self._seen
        since = self._since.setdefault(pool, now if was_seen else self._began)
        return replace(status, missing_since=since, was_seen=was_seen)


class UsedNodes:
    """Which nodes of each pool have training pods or placeholders.

    Updated with each change: counting a large pool's nodes for each reconciliation would take the most time of all.
    """

    def __init__(self, caches: Caches) -> None:
        self._caches = caches
        self._pools: dict[str, str] = {}
        self._used: dict[str, set[str]] = {}
        for cache in (*caches.pods.values(), caches.placeholders):
            cache.add_handler(self._pod_changed)
        caches.nodes.add_handler(self._node_changed)

    def count(self, pool: str) -> int:
        """Return how many nodes of a pool are in use."""
        return len(self._used.get(pool, ()))

    def _pod_changed(self, change: Change[Json]) -> None:
        for pod in (change.before, change.after):
            if pod is not None and (node := node_of(pod)):
                self._look_at(node)

    def _node_changed(self, change: Change[Json]) -> None:
        _, name = change.name
        before = self._pools.pop(name, "")
        self._used.get(before, set()).discard(name)
        if change.after is not None:
            self._pools[name] = text(labels_of(change.after).get(POOL))
            self._look_at(name)

    def _look_at(self, node: str) -> None:
        pool = self._pools.get(node)
        if not pool:
            return
        used = self._used.setdefault(pool, set())
        if self._caches.is_used(node):
            used.add(node)
        else:
            used.discard(node)
