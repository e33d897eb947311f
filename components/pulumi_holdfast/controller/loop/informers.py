"""The informers of all watched kinds, and the event handlers that map their changes to the jobs to reconcile.

Of some thirty changes in a move of a JobSet, three lead to a write. The others change at most a warning or a timer: they are
reconciled with the next urgent one, or within seconds. Any other change is urgent.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, Protocol, TypeVar

from pulumi_holdfast.controller.jobs.cached_objects import CachedJob
from pulumi_holdfast.controller.jobs.caches import JOBSET_PODS, Caches, reserved_for_uids
from pulumi_holdfast.controller.jobs.kinds import job_of_child, job_of_pod
from pulumi_holdfast.controller.jobs.pod_templates import is_complete
from pulumi_holdfast.controller.jobs.pods_and_nodes import (
    JobKey,
    has_ended,
    is_terminating,
    may_end,
    node_of,
    phase_of,
)
from pulumi_holdfast.controller.kube.cache import Cache, Change, Informer, Reconnection
from pulumi_holdfast.controller.kube.client import (
    FALLBACK_POLICY,
    JOB,
    JOBSET,
    NAMESPACE,
    NODE,
    NODECLAIM,
    NODEPOOL,
    POD,
    RAYJOB,
    WORKLOAD,
    Client,
    Kind,
)
from pulumi_holdfast.controller.kube.objects import annotations_of, metadata_of, text
from pulumi_holdfast.controller.loop.metrics import Sample
from pulumi_holdfast.ladder.json import Json, JsonValue, mapping, sequence
from pulumi_holdfast.ladder.labels import RESERVED_FOR, TRAINING, TRAINING_VALUE

# Written while a pod starts; whether it is ready is not read of a JobSet's pod.
_STARTING: Final = frozenset({"phase", "containerStatuses", "conditions"})


def is_urgent_pod(caches: Caches, change: Change[Json]) -> bool:
    """Whether a change of a JobSet's pod may lead to an action.

    The wait for a pod without a node is the same if the pod does not exist, and lasts until the last pod of the gang has one. A
    pod that starts already has its node, and one that has failed is counted at that time. A suspended job waits until none of its
    pods is left.
    """
    before, after = change.before, change.after
    pod = after if after is not None else before
    key = None if pod is None else job_of_pod(pod)
    if pod is None or key is None or key.kind != JOBSET.name:
        return True
    if _is_suspended(caches, key):
        # A pod that exits 0 on SIGTERM completes its job: the warning has to come while the pod is there.
        return phase_of(pod) == "Succeeded" or _has_no_pods(caches, key)
    if before is None:
        return bool(node_of(pod)) or may_end(pod)
    if after is None:
        return phase_of(before) != "Failed"
    if not node_of(before) and node_of(after) and not may_end(after):
        # A gang of which pods have succeeded needs fewer nodes than it has pods.
        has_succeeded = any(_has_ended_in_part(child) for child in caches.children_of(key))
        return has_succeeded or all(node_of(each) for each in caches.pods_of(key))
    return _without_start(before) != _without_start(after)


def is_urgent_child(caches: Caches, change: Change[Json]) -> bool:
    """Whether a change of a JobSet's child Job may lead to an action.

    For a running job only a change of the expected pods, because JobSet restarts it in any other case. For a suspended job
    without pods the conditions of its resumption: a new child Job is suspended some time later.
    """
    before, after = change.before, change.after
    child = after if after is not None else before
    key = None if child is None else job_of_child(child)
    if child is None or key is None or key.kind != JOBSET.name:
        return True
    is_suspended = _is_suspended(caches, key)
    if is_suspended and not _has_no_pods(caches, key):
        return False
    if before is None or after is None:
        return _has_ended_in_part(child) or (is_suspended and (after is None or bool(_conditions(child))))
    read = _of_suspended if is_suspended else _of_running
    return read(before) != read(after)


def _is_suspended(caches: Caches, key: JobKey) -> bool:
    job = caches.job(key)
    return job is not None and job.suspended


def _has_no_pods(caches: Caches, key: JobKey) -> bool:
    return all(has_ended(each) and not is_terminating(each) for each in caches.pods_of(key))


def _without_start(pod: Json) -> JsonValue:
    status = mapping(pod.get("status"))
    kept = {name: value for name, value in status.items() if name not in _STARTING}
    conditions = _without(sequence(status.get("conditions")), "Ready")
    metadata = annotations_of(pod) if has_ended(pod) else pod.get("metadata")
    return [metadata, pod.get("spec"), kept, conditions, phase_of(pod) if has_ended(pod) else None]


def _of_suspended(child: Json) -> JsonValue:
    spec = mapping(child.get("spec"))
    return [spec.get("suspend"), spec.get("template"), _conditions(child)]


def _conditions(child: Json) -> Sequence[JsonValue]:
    return sequence(mapping(child.get("status")).get("conditions"))


def _has_ended_in_part(child: Json) -> bool:
    return is_complete(child) or bool(mapping(child.get("status")).get("succeeded"))


def _of_running(child: Json) -> JsonValue:
    completions = mapping(child.get("spec")).get("completions")
    return [completions, mapping(child.get("status")).get("succeeded"), is_complete(child)]


def _without(conditions: Iterable[JsonValue], kind: str) -> list[JsonValue]:
    return [each for each in conditions if mapping(each).get("type") != kind]


T = TypeVar("T")


class InformerStats(Protocol):
    """The numbers of one informer, for any kind."""

    kind: Kind
    lists: int
    watches: int

    @property
    def cached(self) -> int:
        """How many objects its cache has."""
        ...

    @property
    def errors(self) -> int:
        """How many objects and changes could not be processed."""
        ...


class Informers:
    """All informers."""

    def __init__(self, client: Client, caches: Caches) -> None:
        reconnection = Reconnection()

        def following(kind: Kind, cache: Cache[T], *, labels: str | None = None) -> Informer[T]:
            return Informer(client, kind, cache, labels=labels, reconnection=reconnection)

        self._namespaces = following(NAMESPACE, caches.namespaces, labels=f"{TRAINING}={TRAINING_VALUE}")
        self.claims = following(NODECLAIM, caches.claims)
        self._in_namespaces = (
            following(FALLBACK_POLICY, caches.policies),
            following(JOBSET, caches.jobs[JOBSET.name]),
            following(RAYJOB, caches.jobs[RAYJOB.name]),
            *(following(kind, cache) for kind, cache in caches.children.items()),
            *(following(POD, cache, labels=labels) for labels, cache in caches.pods.items()),
            following(WORKLOAD, caches.workloads),
        )
        self._others = (
            following(NODE, caches.nodes),
            self.claims,
            following(NODEPOOL, caches.node_pools),
            following(POD, caches.placeholders, labels=RESERVED_FOR),
        )
        caches.namespaces.add_handler(self._namespace_changed)

    @property
    def is_synced(self) -> bool:
        """Whether every kind has been listed once."""
        return self._namespaces.is_synced and all(
            each.is_synced for each in (*self._in_namespaces, *self._others)
        )

    async def wait_synced(self) -> None:
        """Return once every kind has been listed."""
        for informer in (self._namespaces, *self._in_namespaces, *self._others):
            await informer.wait_synced()

    async def run(self) -> None:
        """Run all informers until canceled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._namespaces.run())
            # Objects are ignored until their namespace is known to be a training namespace.
            await self._namespaces.wait_synced()
            for informer in (*self._in_namespaces, *self._others):
                group.create_task(informer.run())

    def cached(self) -> Iterator[Sample]:
        """Yield how many objects of each kind are cached."""
        return self._sum(lambda each: each.cached)

    def lists(self) -> Iterator[Sample]:
        """Yield how many lists of each kind were started."""
        return self._sum(lambda each: each.lists)

    def watches(self) -> Iterator[Sample]:
        """Yield how many watches of each kind were started."""
        return self._sum(lambda each: each.watches)

    def errors(self) -> Iterator[Sample]:
        """Yield how many objects and changes of each kind could not be processed."""
        return self._sum(lambda each: each.errors)

    def _sum(self, count: Callable[[InformerStats], int]) -> Iterator[Sample]:
        counts = Counter[str]()
        every: tuple[InformerStats, ...] = (self._namespaces, *self._in_namespaces, *self._others)
        for informer in every:
            counts[informer.kind.plural] += count(informer)
        for plural, value in counts.items():
            yield (plural,), value

    def _namespace_changed(self, _: Change[str]) -> None:
        for informer in self._in_namespaces:
            informer.relist()


def enqueue_on_change(
    caches: Caches, enqueue: Callable[[JobKey], None], enqueue_soon: Callable[[JobKey], None]
) -> None:
    """Call `enqueue` with each job for which a change may lead to an action, after each change.

    `enqueue_soon` is called with the others that it affects (`urgency.py`), and for the controller's own writes to a job that runs:
    what follows from one is decided with it, or waits for an operator. No operator reports on a job that stays suspended.
    `enqueue_soon` is called with the jobs with a `max-cost` on a node on which a pod has begun or ended. Only their parts of the
    node differ: they are counted at once, and no decision depends on them but when `max-cost` is reached.
    """

    def on(
        cache: Cache[T],
        concerned: Callable[[Change[T]], Iterable[JobKey]],
        read: Callable[[T], object] | None = None,
        is_urgent: Callable[[Change[T]], bool] = lambda _: True,
    ) -> None:
        """Enqueue the jobs that a change affects; with `read`, only if its result differs between the two versions."""

        def enqueue_all(change: Change[T]) -> None:
            before, after = change.before, change.after
            if read is not None and before is not None and after is not None and read(before) == read(after):
                return
            put = enqueue if is_urgent(change) else enqueue_soon
            for key in concerned(change):
                put(key)

        cache.add_handler(enqueue_all)

    for kind, cache in caches.jobs.items():
        # A status that only counts pods differs by its version alone.
        on(
            cache,
            lambda change, kind=kind: (JobKey(kind, *change.name),),
            read=lambda job: (job.content, job.excess),
            is_urgent=lambda change: not change.is_own or _stays_suspended(change),
        )
    for kind, cache in caches.children.items():
        # A Job's status repeatedly counts its ready pods, which the controller does not read.
        on(
            cache,
            lambda change: _parents(job_of_child, change),
            read=_without_version,
            is_urgent=lambda change, kind=kind: kind != JOB or is_urgent_child(caches, change),
        )
    for labels, cache in caches.pods.items():
        on(
            cache,
            lambda change: _parents(job_of_pod, change),
            is_urgent=lambda change, labels=labels: labels != JOBSET_PODS or is_urgent_pod(caches, change),
        )
    on(caches.nodes, lambda change: caches.keys_on(change.name[1]))
    on(caches.claims, lambda change: _on_claimed_node(caches, change))
    on(caches.node_pools, lambda _: caches.all_keys())
    # The status contains the controller's own summary, which would enqueue all jobs every few seconds.
    on(caches.policies, lambda change: caches.keys_in(change.name[0]), read=lambda cached: cached.policy)
    on(caches.workloads, lambda change: _with_workload(caches, change))
    on(caches.placeholders, lambda change: _held_for(caches, change))
    for cache in (*caches.pods.values(), caches.placeholders):
        cache.add_handler(lambda change: _enqueue_sharing(caches, change, enqueue_soon))


def _stays_suspended(change: Change[CachedJob]) -> bool:
    before, after = change.before, change.after
    return before is not None and after is not None and before.suspended and after.suspended


def _parents(parent: Callable[[Json], JobKey | None], change: Change[Json]) -> set[JobKey]:
    return {key for each in _states(change) if (key := parent(each)) is not None}


def _enqueue_sharing(caches: Caches, change: Change[Json], enqueue: Callable[[JobKey], None]) -> None:
    """Enqueue the jobs that may reach their `max-cost` at another time, since a pod on their node has begun or ended."""
    before, after = (
        node_of(each) if each is not None and not has_ended(each) else ""
        for each in (change.before, change.after)
    )
    if before != after:
        for key in {key for node in {before, after} - {""} for key in caches.limited_keys_on(node)}:
            enqueue(key)


def _without_version(child: Json) -> Json:
    return {**child, "metadata": {**metadata_of(child), "resourceVersion": None}}


def _on_claimed_node(caches: Caches, change: Change[Json]) -> set[JobKey]:
    nodes = {text(mapping(each.get("status")).get("nodeName")) for each in _states(change)}
    return {key for node in nodes if node for key in caches.keys_on(node)}


def _with_workload(caches: Caches, change: Change[Json]) -> set[JobKey]:
    owners = [
        mapping(owner)
        for each in _states(change)
        for owner in sequence(metadata_of(each).get("ownerReferences"))
    ]
    return {key for owner in owners for key in caches.keys_with_uid(text(owner.get("uid")))}


def _held_for(caches: Caches, change: Change[Json]) -> set[JobKey]:
    return {
        key
        for each in _states(change)
        for uid in reserved_for_uids(change.name, each)
        for key in caches.keys_with_uid(uid)
    }


def _states(change: Change[Json]) -> Iterable[Json]:
    return [each for each in (change.before, change.after) if each is not None]
