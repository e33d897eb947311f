"""Which nodes of which pool have somebody's training pods or placeholders on them."""

from holdfast.fallback.api.cache import Change
from holdfast.fallback.api.objects import mapping, metadata_of, text
from holdfast.fallback.jobs.pods_and_nodes import node_of
from holdfast.fallback.reconciler.caches import Caches
from holdfast.scheduling.json import Json
from holdfast.scheduling.labels import POOL


class UsedNodes:
    """Kept up to date with each change: counting the nodes of a large pool anew for each look would take longest."""

    def __init__(self, caches: Caches) -> None:
        self._caches = caches
        self._pools: dict[str, str] = {}
        self._used: dict[str, set[str]] = {}
        for cache in (*caches.pods.values(), caches.placeholders):
            cache.listen(self._pod_changed)
        caches.nodes.listen(self._node_changed)

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
            self._pools[name] = text(mapping(metadata_of(change.after).get("labels")).get(POOL))
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
