"""Which part of each node is each job's, where jobs share nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from holdfast.fallback.api.cache import Change
from holdfast.fallback.jobs.node_usage import node_shares
from holdfast.fallback.jobs.pods_and_nodes import has_ended, node_of
from holdfast.fallback.jobs.snapshot import JobKey
from holdfast.fallback.reconciler.cached_objects import CachedJob
from holdfast.fallback.reconciler.caches import RESERVED_FOR_UID, Caches
from holdfast.scheduling.json import Json, JsonValue


class NodeSharing:
    """The parts of each node, computed once until a pod begins or ends there.

    Computing them for each reconciliation would take a tenth of the time of all. `changed` is called with a node after its parts
    have changed.
    """

    def __init__(self, caches: Caches, changed: Callable[[str], None]) -> None:
        self._caches = caches
        self._changed = changed
        self._parts: dict[str, Mapping[JobKey, float]] = {}
        for cache in (*caches.pods.values(), caches.placeholders):
            cache.add_handler(self._pod_changed)
        for jobs in caches.jobs.values():
            jobs.add_handler(self._job_changed)
        caches.nodes.add_handler(lambda change: self._forget(change.name[1]))

    def __len__(self) -> int:
        return len(self._parts)

    def part(self, node: str, key: JobKey) -> float:
        """Return the part of a node that is a job's, 0 to 1. A node that is only reserved for the job has no pod of it."""
        parts = self._parts.get(node)
        if parts is None:
            parts = self._parts[node] = self._computed(node)
        return parts.get(key, 0.0 if parts else 1.0)

    def _computed(self, node: str) -> Mapping[JobKey, float]:
        pods = {
            job: there
            for job, each in self._caches.pods_on(node).items()
            if (there := [pod for pod in each if not has_ended(pod)])
        }
        if len(pods) == 1:
            return dict.fromkeys(pods, 1.0)
        return node_shares(pods, self._caches.nodes.get("", node) or {})

    def _pod_changed(self, change: Change[Json]) -> None:
        before, after = _use(change.before), _use(change.after)
        if before != after:
            for node in {before[0], after[0]} - {""}:
                self._forget(node)

    def _job_changed(self, change: Change[CachedJob]) -> None:
        """Forget the nodes of a new or deleted job's placeholders, which were or are those of no job."""
        job = change.after or change.before
        if job is not None and (change.before is None or change.after is None):
            for pod in self._caches.placeholders.find(RESERVED_FOR_UID, job.uid):
                self._forget(node_of(pod))

    def _forget(self, node: str) -> None:
        if self._parts.pop(node, None) is not None:
            self._changed(node)


def _use(pod: Json | None) -> tuple[str, JsonValue]:
    """The node on which a pod counts, and what it requests there."""
    return ("", None) if pod is None or has_ended(pod) else (node_of(pod), pod.get("spec"))
