"""Measures the node time of each job since its ledger was last written.

A change of nodes alone is not written into a job: a gang of a hundred pods would be written a hundred times. A process that
has just started knows since when pods have been on the nodes that it sees. The jobs of one node divide its time among them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from math import fsum
from typing import Final, Generic, TypeVar

from pulumi_holdfast.controller.jobs.cached_objects import CachedJob
from pulumi_holdfast.controller.jobs.caches import RESERVED_FOR_UID, Caches, reserved_for_uids
from pulumi_holdfast.controller.jobs.kinds import job_of_pod
from pulumi_holdfast.controller.jobs.observation import NodeKind
from pulumi_holdfast.controller.jobs.pods_and_nodes import JobKey, bound_at, has_ended, node_of
from pulumi_holdfast.controller.kube.cache import Change
from pulumi_holdfast.controller.kube.objects import labels_of, text
from pulumi_holdfast.ladder.frozen import replace
from pulumi_holdfast.ladder.json import Json, JsonValue, mapping
from pulumi_holdfast.ladder.labels import (
    AKS_PRIORITY,
    AKS_SCALE_SET_PRIORITY,
    AKS_SPOT_VALUE,
    CAPACITY_TYPE,
    GKE_PROVISIONING,
    GKE_SPOT,
    GKE_SPOT_VALUE,
    POOL,
    SPOT,
    CapacityType,
)
from pulumi_holdfast.ladder.ladder import NoPolicy, Policy, capacity_of, tier_of
from pulumi_holdfast.ladder.quantities import parse_quantity, remembered_requests

K = TypeVar("K")

_NOTHING: Final = timedelta(0)
_SPOT_LABELS: Final = (
    (GKE_SPOT, GKE_SPOT_VALUE),
    (GKE_PROVISIONING, SPOT),
    (AKS_SCALE_SET_PRIORITY, AKS_SPOT_VALUE),
    (AKS_PRIORITY, AKS_SPOT_VALUE),
)


@dataclass(frozen=True, kw_only=True)
class UsedNode:
    """A node that a job uses now, since when if that is known, and the job's share of it, 0 to 1."""

    name: str = ""
    kind: NodeKind
    since: datetime | None = None
    share: float = 1.0


def capacity_of_node(node: Json) -> CapacityType:
    """Return the capacity type of a node; only spot nodes, and those of Karpenter, have a label for it."""
    labels = labels_of(node)
    if any(labels.get(key) == value for key, value in _SPOT_LABELS):
        return CapacityType.SPOT
    written = text(labels.get(CAPACITY_TYPE))
    return CapacityType(written) if written in set(CapacityType) else CapacityType.ON_DEMAND


class SharedNode(Generic[K]):
    """A node with the pods of each job on it, and each job's share of the node. The parts add up to 1.

    A job counts by the resource of which it requests the largest part of the machine: GPUs decide between jobs that train,
    and a job without GPUs beside them counts by its CPU or memory. What no job requests is divided likewise. Without any
    requests all jobs have equal parts.
    """

    def __init__(self, node: Json) -> None:
        allocatable = mapping(mapping(node.get("status")).get("allocatable"))
        self._capacity = {name: float(parse_quantity(amount)) for name, amount in allocatable.items()}
        self._largest: dict[K, float] = {}
        self._whole: float | None = None

    @property
    def jobs(self) -> Collection[K]:
        """The jobs with pods on the node."""
        return self._largest.keys()

    def put(self, job: K, pods: Collection[Json]) -> None:
        """Store the pods of a job; none for a job that has left the node."""
        self._whole = None
        if pods:
            self._largest[job] = _largest_part(pods, self._capacity)
        else:
            self._largest.pop(job, None)

    def part(self, job: K) -> float:
        """Return a job's share. A job without pods may have reserved the node: it has all of it until others run there."""
        if job not in self._largest:
            return 0.0 if self._largest else 1.0
        if self._whole is None:
            self._whole = fsum(self._largest.values())  # exact in any order
        return self._largest[job] / self._whole if self._whole else 1 / len(self._largest)


def _largest_part(pods: Iterable[Json], capacity: Mapping[str, float]) -> float:
    requests = Counter[str]()
    for pod in pods:
        requests.update(_requests(mapping(pod.get("spec"))))
    parts = (amount / capacity[name] for name, amount in requests.items() if capacity.get(name, 0.0) > 0)
    return max(parts, default=0.0)


def _requests(spec: Json) -> Mapping[str, float]:
    return {name: max(0.0, float(amount)) for name, amount in remembered_requests(spec).items()}


def used_nodes(
    pods: Iterable[Json],
    reserved: Iterable[str],
    nodes: Mapping[str, Json],
    policy: Policy | NoPolicy,
    *,
    price_of_node: Callable[[Json, str], float | None] = lambda _node, _pool: None,
    share_of: Callable[[str], float] = lambda _node: 1.0,
) -> tuple[UsedNode, ...]:
    """Return the nodes of a job's pods, terminating ones included, and those that are reserved for it.

    `price_of_node` returns what a node of a pool costs per hour, if that is observed; `share_of` which part of a node is the
    job's.
    """
    since: dict[str, datetime | None] = dict.fromkeys(reserved)
    for pod in pods:
        name, at = node_of(pod), bound_at(pod)
        if name and not has_ended(pod):
            known = since.get(name)
            since[name] = at if known is None or (at is not None and at < known) else known
    return tuple(
        UsedNode(name=name, kind=kind, since=at, share=share_of(name))
        for name, at in sorted(since.items(), key=lambda item: item[0])
        if (kind := _kind_of(nodes.get(name), policy, price_of_node)) is not None
    )


def _kind_of(
    node: Json | None, policy: Policy | NoPolicy, price_of_node: Callable[[Json, str], float | None]
) -> NodeKind | None:
    """The pool, the capacity type and the price of a node; None for one that is gone, not seen yet, or in no pool."""
    pool = text(labels_of(node or mapping(None)).get(POOL))
    if node is None or not pool:
        return None
    tier, price = tier_of(pool, policy), price_of_node(node, pool)
    declared = None if tier is None else tier.price
    return NodeKind(
        pool=pool,
        capacity=capacity_of(pool, policy) or capacity_of_node(node),
        price=declared if price is None else price,
    )


@dataclass(kw_only=True)
class _Usage:
    since: datetime
    counted_until: datetime
    nodes: tuple[UsedNode, ...]
    time: dict[NodeKind, timedelta] = field(default_factory=dict[NodeKind, timedelta])

    def add(self, now: datetime, began: datetime | None = None) -> None:
        """Count the time of the nodes until now; `began`: from when they count, None for since they were last counted."""
        for node in self.nodes:
            at = self.counted_until if began is None else max(began, node.since or now)
            more = max(_NOTHING, now - at) * node.share
            self.time[node.kind] = self.time.get(node.kind, _NOTHING) + more
        self.counted_until = now


class NodeUsage(Generic[K]):
    """The node time of each job since its ledger was last written."""

    def __init__(self) -> None:
        self._usages: dict[K, _Usage] = {}

    def update(
        self, key: K, since: datetime | None, now: datetime, nodes: tuple[UsedNode, ...]
    ) -> Mapping[NodeKind, timedelta]:
        """Store the nodes that a job uses from now on, and return its node time since a time; none without that time.

        Between two calls it has used the nodes of the first one.
        """
        usage = self._usages.get(key)
        if since is None:
            self.forget(key)
            return {}
        if usage is None:
            usage = _Usage(since=since, counted_until=now, nodes=nodes)
            usage.add(now, since)
        elif usage.since == since:
            usage.add(now)
        else:
            # The ledger was written with what had been counted until then.
            usage.since, usage.counted_until, usage.time = since, min(now, since), {}
            usage.add(now)
        usage.nodes = nodes
        self._usages[key] = usage
        return dict(usage.time)

    def share(self, key: K, node: str, now: datetime, share: float) -> None:
        """Store a job's share of a node from now on, if the job uses the node."""
        usage = self._usages.get(key)
        if usage is None:
            return
        for number, each in enumerate(usage.nodes):
            if each.name == node and each.share != share:
                usage.add(now)
                changed = replace(each, share=share)
                usage.nodes = (*usage.nodes[:number], changed, *usage.nodes[number + 1 :])

    def forget(self, key: K) -> None:
        """Remove a job that is deleted, or whose clock has jumped."""
        self._usages.pop(key, None)


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
