"""What is watched, in which order, and what has it listed anew."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Protocol

from holdfast.fallback.api.cache import Change
from holdfast.fallback.api.client import (
    FALLBACK_POLICY,
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
from holdfast.fallback.api.informer import Informer
from holdfast.fallback.reconciler.caches import Caches
from holdfast.fallback.reconciler.metrics import Sample
from holdfast.scheduling.labels import HELD_FOR, TRAINING, TRAINING_VALUE


class Followed(Protocol):
    """What is told of one informer, whatever it keeps."""

    kind: Kind
    lists: int
    watches: int

    @property
    def cached(self) -> int:
        """How many objects it keeps."""
        ...


class Informers:
    """Everything that is watched."""

    def __init__(self, client: Client, caches: Caches) -> None:
        self._namespaces = Informer(
            client, NAMESPACE, caches.namespaces, labels=f"{TRAINING}={TRAINING_VALUE}"
        )
        self.claims = Informer(client, NODECLAIM, caches.claims)
        self._in_namespaces = (
            Informer(client, FALLBACK_POLICY, caches.policies),
            Informer(client, JOBSET, caches.jobs[JOBSET.name]),
            Informer(client, RAYJOB, caches.jobs[RAYJOB.name]),
            *(Informer(client, kind, cache) for kind, cache in caches.children.items()),
            *(Informer(client, POD, cache, labels=labels) for labels, cache in caches.pods.items()),
            Informer(client, WORKLOAD, caches.workloads),
        )
        self._others = (
            Informer(client, NODE, caches.nodes),
            self.claims,
            Informer(client, NODEPOOL, caches.node_pools),
            Informer(client, POD, caches.placeholders, labels=HELD_FOR),
        )
        caches.namespaces.listen(self._namespace_changed)

    @property
    def is_synced(self) -> bool:
        """Whether everything has been listed once."""
        return self._namespaces.is_synced and all(
            each.is_synced for each in (*self._in_namespaces, *self._others)
        )

    async def wait_synced(self) -> None:
        """Return once everything has been listed."""
        for informer in (self._namespaces, *self._in_namespaces, *self._others):
            await informer.wait_synced()

    async def run(self) -> None:
        """Follow everything until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._namespaces.run())
            # What is in a namespace is dropped unread while the namespace is not known.
            await self._namespaces.wait_synced()
            for informer in (*self._in_namespaces, *self._others):
                group.create_task(informer.run())

    def cached(self) -> Iterator[Sample]:
        """Yield how many objects are kept of each kind."""
        return self._sum(lambda each: each.cached)

    def lists(self) -> Iterator[Sample]:
        """Yield how often each kind was listed."""
        return self._sum(lambda each: each.lists)

    def watches(self) -> Iterator[Sample]:
        """Yield how often each kind's watch was begun."""
        return self._sum(lambda each: each.watches)

    def _sum(self, count: Callable[[Followed], int]) -> Iterator[Sample]:
        counts = Counter[str]()
        every: tuple[Followed, ...] = (self._namespaces, *self._in_namespaces, *self._others)
        for informer in every:
            counts[informer.kind.plural] += count(informer)
        for plural, value in counts.items():
            yield (plural,), value

    def _namespace_changed(self, _: Change[str]) -> None:
        for informer in self._in_namespaces:
            informer.relist()
