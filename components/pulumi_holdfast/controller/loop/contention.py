"""Which gang yields where several wait half placed in one pool, and what each namespace has of a pool."""

from __future__ import annotations

from bisect import insort
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from pulumi_holdfast.controller.jobs.observation import ContendingGang, Observation
from pulumi_holdfast.controller.jobs.pods_and_nodes import JobKey
from pulumi_holdfast.ladder.frozen import replace


def last_in_turn(
    youngest: Mapping[str, ContendingGang], share_of: Callable[[str], int]
) -> ContendingGang | None:
    """Return the gang that gets nodes last, of the youngest gang of each namespace; None if there is none.

    The namespace with the largest share of the pool is last, and of equal ones the one with the younger gang.
    """
    return max((replace(gang, share=share_of(each)) for each, gang in youngest.items()), default=None)


class PoolShares:
    """How many nodes of each pool the jobs of each namespace have.

    Only those of whole gangs count: a gang that waits for its last node would otherwise yield to all that have fewer, and the
    largest gangs would never start. Reserved nodes do not count either, for the same reason.
    """

    def __init__(self) -> None:
        self._of_jobs: dict[JobKey, tuple[str, float]] = {}
        self._shares: defaultdict[tuple[str, str], float] = defaultdict(float)

    def of(self, pool: str, namespace: str) -> int:
        """Return the share of a namespace in a pool, in whole nodes."""
        return round(self._shares.get((pool, namespace), 0.0))

    def update(self, key: JobKey, observation: Observation) -> None:
        """Store what a job has of its pool."""
        self.forget(key)
        pool = observation.pool
        if pool is None or observation.is_half_placed or observation.suspended:
            return
        nodes = sum(count for kind, count in observation.nodes.items() if kind.pool == pool)
        if nodes:
            self._of_jobs[key] = (pool, nodes)
            self._shares[pool, key.namespace] += nodes

    def forget(self, key: JobKey) -> None:
        """Remove a deleted job."""
        pool, nodes = self._of_jobs.pop(key, ("", 0.0))
        if nodes:
            self._shares[pool, key.namespace] -= nodes


@dataclass(frozen=True, kw_only=True, order=True)
class _Gang:
    contending_gang: ContendingGang
    pool: str
    key: JobKey


class GangContention:
    """The half-placed gangs of each pool, by namespace and age. Two of them may wait for each other's nodes forever.

    `enqueue` is called with the gang that may have to yield next, which is only the last in turn: with a thousand waiting
    jobs, enqueuing all of them for each change caused a million reconciliations.
    """

    def __init__(self, enqueue: Callable[[JobKey], None]) -> None:
        self._enqueue = enqueue
        self._half_placed: dict[JobKey, _Gang] = {}
        self._by_age: defaultdict[str, dict[str, list[_Gang]]] = defaultdict(dict)
        self._last: dict[str, JobKey] = {}
        self._last_yields: dict[str, datetime] = {}
        self.shares = PoolShares()

    def update(self, key: JobKey, observation: Observation) -> ContendingGang | None:
        """Store how a job is placed, and return the last in turn of the other half-placed gangs in its pool."""
        before, gang = self._half_placed.get(key), _half_placed(key, observation)
        if before is not None and observation.suspended:
            self._last_yields[before.pool] = observation.now
        if before != gang:
            self._replace(key, before, gang)
        if gang is None:
            return None
        others = {
            namespace: other.contending_gang
            for namespace, gangs in self._by_age[gang.pool].items()
            if (other := next((each for each in reversed(gangs) if each.key != key), None)) is not None
        }
        return last_in_turn(others, lambda namespace: self.shares.of(gang.pool, namespace))

    def last_yield_at(self, pool: str | None) -> datetime | None:
        """When a gang last yielded its nodes in a pool; None if none did."""
        return None if pool is None else self._last_yields.get(pool)

    def forget(self, key: JobKey) -> None:
        """Remove a job that is deleted, or that is on no ladder."""
        self.shares.forget(key)
        before = self._half_placed.get(key)
        if before is not None:
            self._replace(key, before, None)

    def _replace(self, key: JobKey, before: _Gang | None, gang: _Gang | None) -> None:
        if before is not None:
            gangs = self._by_age[before.pool]
            gangs[key.namespace].remove(before)
            if not gangs[key.namespace]:
                del gangs[key.namespace]
            del self._half_placed[key]
        if gang is not None:
            insort(self._by_age[gang.pool].setdefault(key.namespace, []), gang)
            self._half_placed[key] = gang
        for pool in {each.pool for each in (before, gang) if each is not None}:
            self._enqueue_last(pool, key)

    def _enqueue_last(self, pool: str, changed: JobKey) -> None:
        """Enqueue the gang that is now last in turn, if it was not or had no rival; the changed one is reconciled anyway."""
        gangs = self._by_age[pool]
        youngest = {namespace: each[-1] for namespace, each in gangs.items()}
        last = last_in_turn(
            {namespace: each.contending_gang for namespace, each in youngest.items()},
            lambda namespace: self.shares.of(pool, namespace),
        )
        keys = [each.key for each in youngest.values() if last and each.contending_gang.uid == last.uid]
        count = _at_most(2, gangs.values())
        if keys and count > 1 and keys[0] != changed and (keys[0] != self._last.get(pool)):
            self._enqueue(keys[0])
        if keys and count > 1:
            self._last[pool] = keys[0]
        else:
            self._last.pop(pool, None)


def _at_most(most: int, gangs: Iterable[list[_Gang]]) -> int:
    """Return how many gangs there are, at most so many."""
    return min(most, sum(min(most, len(each)) for each in gangs))


def _half_placed(key: JobKey, observation: Observation) -> _Gang | None:
    """Return how a gang waits for the rest of its nodes; None if it does not, or not in a pool of its ladder."""
    waits = (
        observation.follows
        and not observation.suspended
        and observation.outcome is None
        and observation.is_half_placed
    )
    if not waits or observation.pool is None or observation.pool not in observation.pools:
        return None
    return _Gang(key=key, pool=observation.pool, contending_gang=observation.by_age)
