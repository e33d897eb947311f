"""The shares of jobs in the nodes that they share."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from pulumi_holdfast.controller.api.cache import Change
from pulumi_holdfast.controller.jobs.kinds import job_of_pod
from pulumi_holdfast.controller.jobs.node_usage import SharedNode
from pulumi_holdfast.controller.jobs.pods_and_nodes import has_ended, node_of
from pulumi_holdfast.controller.jobs.snapshot import JobKey
from pulumi_holdfast.controller.reconciler.cached_objects import CachedJob
from pulumi_holdfast.controller.reconciler.caches import RESERVED_FOR_UID, Caches, reserved_for_uids
from pulumi_holdfast.ladder.json import Json, JsonValue, mapping


class NodeSharing:
    """The shares of each node. When a pod begins or ends there, only the requests of its job are added up again.

    `changed` is called with a node and the jobs there, after their parts have changed.
    """

    def __init__(self, caches: Caches, changed: Callable[[str, Iterable[JobKey]], None]) -> None:
        self._caches = caches
        self._changed = changed
        self._nodes: dict[str, SharedNode[JobKey]] = {}
        for pods in caches.pods.values():
            pods.add_handler(lambda change: self._pod_changed(change, _job_of))
        caches.placeholders.add_handler(lambda change: self._pod_changed(change, self._jobs_of_placeholder))
        for kind, jobs in caches.jobs.items():
            jobs.add_handler(lambda change, kind=kind: self._job_changed(JobKey(kind, *change.name), change))
        caches.nodes.add_handler(self._node_changed)

    def __len__(self) -> int:
        return len(self._nodes)

    def part(self, node: str, key: JobKey) -> float:
        """Return the part of a node that is a job's, 0 to 1. A node that is only reserved for the job has no pod of it."""
        shared = self._nodes.get(node)
        if shared is None:
            shared = self._nodes[node] = SharedNode[JobKey](self._caches.nodes.get("", node) or {})
            for job, pods in self._caches.pods_on(node).items():
                shared.put(job, [pod for pod in pods if not has_ended(pod)])
        return shared.part(key)

    def _pod_changed(self, change: Change[Json], jobs_of: Callable[[Json], Iterable[JobKey]]) -> None:
        before, after = _use(change.before), _use(change.after)
        if before == after:
            return
        keys = {key for pod in (change.before, change.after) if pod is not None for key in jobs_of(pod)}
        for node in {before[0], after[0]} - {""}:
            self._add_up(node, keys)

    def _job_changed(self, key: JobKey, change: Change[CachedJob]) -> None:
        """Add up the nodes of a new or deleted job's placeholders, which were or are those of no job."""
        job = change.after or change.before
        if job is not None and (change.before is None or change.after is None):
            for node in {node_of(pod) for pod in self._caches.placeholders.find(RESERVED_FOR_UID, job.uid)}:
                self._add_up(node, {key})

    def _node_changed(self, change: Change[Json]) -> None:
        if _allocatable(change.before) != _allocatable(change.after):
            shared = self._nodes.pop(change.name[1], None)
            if shared is not None:
                self._changed(change.name[1], shared.jobs)

    def _add_up(self, node: str, keys: set[JobKey]) -> None:
        shared = self._nodes.get(node)
        if shared is None:
            return
        for key in keys:
            shared.put(key, self._caches.pods_of_on(key, node))
        self._changed(node, keys.union(shared.jobs))
        if not shared.jobs:
            # Pods often outlive a node that is lost, so no change of the node comes that would remove its parts.
            self._nodes.pop(node, None)

    def _jobs_of_placeholder(self, pod: Json) -> Iterable[JobKey]:
        return [key for uid in reserved_for_uids(("", ""), pod) for key in self._caches.keys_with_uid(uid)]


def _job_of(pod: Json) -> Iterable[JobKey]:
    key = job_of_pod(pod)
    return () if key is None else (key,)


def _use(pod: Json | None) -> tuple[str, JsonValue]:
    """The node on which a pod counts, and what it requests there."""
    return ("", None) if pod is None or has_ended(pod) else (node_of(pod), pod.get("spec"))


def _allocatable(node: Json | None) -> Json | None:
    return None if node is None else mapping(mapping(node.get("status")).get("allocatable"))
