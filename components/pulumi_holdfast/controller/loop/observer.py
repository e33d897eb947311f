"""Observes a job: reads the caches, and adds what spans several jobs or reconciliations.

Besides the job's own objects these are its pod history, contending gangs, the usage of pools and jumps of the clock.
"""

from __future__ import annotations

import dataclasses
import time
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Generic, Protocol, TypeVar

from pulumi_holdfast.controller.jobs.cached_objects import CachedJob
from pulumi_holdfast.controller.jobs.caches import BY_UID, MOST_PODS, ON_NODE, RESERVED_FOR_UID, Caches
from pulumi_holdfast.controller.jobs.kinds import KINDS, JobKind, job_of_pod
from pulumi_holdfast.controller.jobs.node_usage import NodeSharing, NodeUsage, used_nodes
from pulumi_holdfast.controller.jobs.observation import (
    CopyStatus,
    Judgement,
    NodeKind,
    Observation,
    PoolStatus,
    Reservation,
)
from pulumi_holdfast.controller.jobs.patches import recorded_state
from pulumi_holdfast.controller.jobs.pod_history import PodHistory, with_pod
from pulumi_holdfast.controller.jobs.pods_and_nodes import JobKey, Snapshot, node_of
from pulumi_holdfast.controller.jobs.rayjob_status import with_new_failures
from pulumi_holdfast.controller.jobs.reservations import reservation_of
from pulumi_holdfast.controller.jobs.state import JobState, UnreadableState
from pulumi_holdfast.controller.kube.cache import Change
from pulumi_holdfast.controller.kube.client import RAYJOB
from pulumi_holdfast.controller.kube.objects import namespace_of
from pulumi_holdfast.controller.loop.contention import GangContention
from pulumi_holdfast.controller.loop.judgements import Judgements
from pulumi_holdfast.controller.loop.pools import MissingPools, OfferedPrices, UsedNodes, pool_statuses
from pulumi_holdfast.controller.other_clusters.copies import may_run_here
from pulumi_holdfast.controller.state_machine.failback import ReservationQueue
from pulumi_holdfast.controller.state_machine.refusal import is_new
from pulumi_holdfast.ladder.frozen import replace
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import LADDER
from pulumi_holdfast.ladder.ladder import NoPolicy, Policy

K = TypeVar("K")

# Smaller differences are clock corrections by NTP; they are ignored until they add up.
_MIN_JUMP: Final = timedelta(seconds=5)
_NO_JUMP: Final = timedelta(0)


class ClockJumps(Generic[K]):
    """For each key, the time of day and the monotonic time when its recorded times were last shifted."""

    def __init__(self) -> None:
        self._settled: dict[K, tuple[datetime, float]] = {}

    def jump(self, key: K, now: datetime, going: float) -> timedelta:
        """Return how far the time of day has moved beyond the monotonic clock; zero at first."""
        settled = self._settled.setdefault(key, (now, going))
        jump = (now - settled[0]) - timedelta(seconds=going - settled[1])
        return jump if abs(jump) >= _MIN_JUMP else _NO_JUMP

    def settle(self, key: K, now: datetime, going: float) -> None:
        """Reset a key's jump: its recorded times have been shifted by it."""
        self._settled[key] = (now, going)

    def forget(self, key: K) -> None:
        """Remove a key."""
        self._settled.pop(key, None)


class PodHistories:
    """The history of every job, updated with each watch event of a pod or RayJob.

    Before the next reconciliation a lost pod may be deleted, and the reason of a failed attempt replaced.
    """

    def __init__(self, caches: Caches, *, now: Callable[[], datetime]) -> None:
        self._caches = caches
        self._now = now
        self._histories: dict[JobKey, PodHistory] = {}
        for cache in caches.pods.values():
            cache.add_handler(self._note)
        caches.jobs[RAYJOB.name].add_handler(self._note_attempts)

    def __len__(self) -> int:
        return len(self._histories)

    def of(self, key: JobKey) -> PodHistory:
        """Return a job's history."""
        return self._histories.get(key) or PodHistory()

    def keep(self, key: JobKey, history: PodHistory) -> None:
        """Store the history that a reconciliation has updated."""
        if history == PodHistory():
            self._histories.pop(key, None)
        else:
            self._histories[key] = history

    def forget(self, key: JobKey) -> None:
        """Remove a deleted job. Its remaining pods start a new history, which is removed with the last of them."""
        self._histories.pop(key, None)

    def _note(self, change: Change[Json]) -> None:
        pod = change.after if change.after is not None else change.before
        key = job_of_pod(pod) if pod is not None else None
        if pod is None or key is None or self._caches.has_too_many_pods(key):
            return
        self._histories[key] = with_pod(self.of(key), pod, self._now(), is_deleted=change.after is None)
        if change.after is None and self._caches.job(key) is None and not self._caches.pods_of(key):
            self.forget(key)

    def _note_attempts(self, change: Change[CachedJob]) -> None:
        if change.after is None or not change.after.follows or change.after.excess or change.is_own:
            return
        key = JobKey(RAYJOB.name, *change.name)
        history = self.of(key)
        ray = with_new_failures(history.ray, change.after.read(), self._now())
        self.keep(key, replace(history, ray=ray))


# Leaders and candidates send a request every two seconds; a lease that is not renewed for this long may be taken over.
_ABSENCE: Final = timedelta(seconds=15)
# More absences than any wait is long for.
_MOST_ABSENCES: Final = 64


class ApiAbsences:
    """When the API server was unavailable.

    No node could join and no pod was observed, which does not mean a lack of capacity.
    """

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self._answered_at: datetime | None = None
        self._found: deque[tuple[datetime, datetime]] = deque(maxlen=_MOST_ABSENCES)

    def answered(self) -> None:
        """Record that the API server answers now."""
        before, self._answered_at = self._answered_at, self._now()
        if before is not None:
            self.add_since(before)

    def add_since(self, before: datetime) -> None:
        """Record that the API server was unavailable from a time until now, unless that was short."""
        if self._now() - before >= _ABSENCE:
            self._found.append((before, self._now()))

    def within(self, since: datetime | None) -> timedelta:
        """Return for how long it was unavailable since then."""
        end, total = since, timedelta(0)
        for began, ended in sorted(self._found):
            if end is not None and ended > end:
                total += ended - max(began, end)
                end = ended
        return total


@dataclass(frozen=True, kw_only=True)
class JobContext:
    """One job at one moment: its objects, its recorded state, its observation, and its ladder."""

    key: JobKey
    kind: JobKind
    snapshot: Snapshot
    state: JobState | UnreadableState | None
    seen: Observation
    policy: Policy | NoPolicy

    @property
    def job(self) -> Json:
        """The job as it was observed."""
        return self.snapshot.job


class KnownCopies(Protocol):
    """The known state of other clusters: those that answer, and the copies of jobs there."""

    def clusters(self, key: JobKey) -> Collection[str]:
        """Return the clusters in which a copy of a job may run."""
        ...

    def copy_of(self, key: JobKey) -> CopyStatus | None:
        """Return the last known status of a job's copy."""
        ...


def _is_believed(state: JobState | UnreadableState | None, seen: Observation) -> bool:
    """Whether a record may make other jobs wait: its pools are of the job's ladder.

    A job that is not on its ladder is never moved, so it would reserve forever.
    """
    if not isinstance(state, JobState) or state.failback is None:
        return False
    return {seen.pool, state.failback.pool} <= seen.pools.keys()


class Observer:
    """Observes jobs from the caches, and stores their pod histories."""

    def __init__(
        self,
        caches: Caches,
        histories: PodHistories,
        gangs: GangContention,
        *,
        claims_are_served: Callable[[], bool],
        now: Callable[[], datetime],
        monotonic: Callable[[], float] = time.monotonic,
        absences: ApiAbsences | None = None,
        prices: OfferedPrices | None = None,
        away: KnownCopies | None = None,
        judgements: Judgements | None = None,
    ) -> None:
        self._away = away
        self._judgements = judgements
        self._prices = prices or OfferedPrices(None, now=now, node_pools=lambda: ())
        self._absences = absences or ApiAbsences(now)
        self.clocks = ClockJumps[JobKey]()
        self._caches = caches
        self._histories = histories
        self._contention = gangs
        self._used = UsedNodes(caches)
        self._reservations = ReservationQueue[JobKey]()
        self._began: datetime | None = None
        self._missing: dict[tuple[str, str], MissingPools] = {}
        self._usage = NodeUsage[JobKey]()
        self._sharing = NodeSharing(caches, self._sharing_changed)
        self._claims_are_served = claims_are_served
        self._now = now
        self._going = monotonic

    def too_large(self, key: JobKey) -> CachedJob | None:
        """Return a job that is too large to be followed; None if it is not, or does not exist."""
        cached = self._caches.job(key)
        if cached is None or cached.excess:
            return cached
        if self._caches.has_too_many_pods(key):
            return dataclasses.replace(
                cached,
                excess=f"It has more than {MOST_PODS} pods, or Jobs: delete those that are not its own.",
            )
        return None

    def observe(self, key: JobKey) -> JobContext | None:
        """Return a job's current context; None if it does not exist."""
        cached = self._caches.job(key)
        if cached is None:
            return None
        kind, snapshot = KINDS[key.kind], self._snapshot(key, cached.read(), cached.uid)
        seen, history = kind.observe(snapshot, self._histories.of(key))
        self._histories.keep(key, history)
        policy = self._policy(key.namespace)
        seen = replace(seen, pools=self._pools(key, policy, snapshot.now))
        seen = replace(
            seen,
            clock_jump=self.clocks.jump(key, snapshot.now, self._going()),
            contending_gang=self._contention.update(key, seen),
            last_yield_at=self._contention.last_yield_at(seen.pool),
            reservation=self._held(seen.uid),
            may_run_here=may_run_here(snapshot.job),
            copy=None if self._away is None else self._away.copy_of(key),
        )
        state = recorded_state(snapshot.job)
        since = state.waiting_since if isinstance(state, JobState) else None
        share_of = self._contention.shares.of
        reserving = self._reservations.update(
            key,
            state if _is_believed(state, seen) else None,
            seen,
            lambda other, pool: share_of(pool, other.namespace),
        )
        pools = {
            pool: replace(status, reserving=reserving.get(pool), share=share_of(pool, key.namespace))
            for pool, status in seen.pools.items()
        }
        node_time, nodes = self._usage_of(key, snapshot, seen, state, policy)
        seen = replace(
            seen,
            unseen=self._absences.within(since),
            pools=pools,
            node_time=node_time,
            nodes=nodes,
            judgement=self._judged(key, snapshot.job, state, seen),
        )
        self._contention.shares.update(key, seen)
        return JobContext(key=key, kind=kind, snapshot=snapshot, state=state, seen=seen, policy=policy)

    def _judged(
        self, key: JobKey, job: Json, state: JobState | UnreadableState | None, seen: Observation
    ) -> Judgement | None:
        if self._judgements is None or seen.outcome is not None or seen.is_managed_by_kueue:
            return None
        known = state if isinstance(state, JobState) else None
        policy = self._caches.policies.get(key.namespace, LADDER)
        return self._judgements.of(key, job, policy, is_new=is_new(known))

    def _usage_of(
        self,
        key: JobKey,
        snapshot: Snapshot,
        seen: Observation,
        state: JobState | UnreadableState | None,
        policy: Policy | NoPolicy,
    ) -> tuple[Mapping[NodeKind, timedelta], Mapping[NodeKind, float]]:
        """Return the job's node time since its ledger was written, and the parts of nodes that are the job's now."""
        ledger = state.ledger if isinstance(state, JobState) else None
        reserved = seen.reservation.nodes if seen.reservation is not None else ()
        nodes = {**snapshot.nodes, **self._nodes(set(reserved))}
        if seen.clock_jump:
            # What was counted by the other time is estimated from the nodes of now.
            self._usage.forget(key)
        used = used_nodes(
            snapshot.pods,
            reserved,
            nodes,
            policy,
            price_of_node=self._prices.of_node,
            share_of=lambda node: self._sharing.part(node, key),
        )
        since = None if ledger is None else ledger.counted_until + seen.clock_jump
        time = self._usage.update(key, since, seen.now, used)
        parts = defaultdict[NodeKind, float](float)
        for node in used:
            parts[node.kind] += node.share
        return time, parts

    def _sharing_changed(self, node: str, keys: Iterable[JobKey]) -> None:
        now = self._now()
        for key in keys:
            self._usage.share(key, node, now, self._sharing.part(node, key))

    def settle(self, context: JobContext) -> None:
        """Reset the job's clock jump: its recorded times have been shifted."""
        if context.seen.clock_jump:
            self.clocks.settle(context.key, context.seen.now, self._going())

    def forget(self, key: JobKey) -> None:
        """Remove a deleted job."""
        self._histories.forget(key)
        self._contention.forget(key)
        self._reservations.forget(key)
        self._usage.forget(key)
        self.clocks.forget(key)
        if self._judgements is not None:
            self._judgements.forget(key)

    def _snapshot(self, key: JobKey, job: Json, uid: str) -> Snapshot:
        caches = self._caches
        pods = tuple(caches.pods_of(key))
        names = {name for pod in pods if (name := node_of(pod))} | {
            record.node for record in self._histories.of(key).pods.values() if record.node
        }
        return Snapshot(
            job=job,
            now=self._now(),
            pods=pods,
            children=tuple(caches.children_of(key)),
            nodes=self._nodes(names),
            claims=self._claims(names),
            # A uid is no secret: a Workload elsewhere may name any job as its owner.
            workloads=tuple(
                each for each in caches.workloads.find(BY_UID, uid) if namespace_of(each) == key.namespace
            ),
        )

    def _nodes(self, names: set[str]) -> dict[str, Json]:
        return {name: node for name in names if (node := self._caches.nodes.get("", name)) is not None}

    def _claims(self, names: set[str]) -> dict[str, Json] | None:
        if not self._claims_are_served():
            return None
        return {name: claim for name in names for claim in self._caches.claims.find(ON_NODE, name)}

    def _held(self, uid: str) -> Reservation | None:
        caches = self._caches
        placeholders = caches.placeholders.find(RESERVED_FOR_UID, uid)
        names = {name for pod in placeholders if (name := node_of(pod))}
        names |= {name for _, name in caches.nodes.names(RESERVED_FOR_UID, uid)}
        if not placeholders and not names:
            return None
        return reservation_of(uid, placeholders, self._nodes(names), self._claims(names))

    def _pools(self, key: JobKey, policy: Policy | NoPolicy, now: datetime) -> Mapping[str, PoolStatus]:
        if not isinstance(policy, Policy):
            return {}
        clusters = () if self._away is None else self._away.clusters(key)
        found = pool_statuses(
            policy, self._caches, self._used, clusters=clusters, price_of=self._prices.of_pool
        )
        # The caches are complete before the first job is observed.
        self._began = self._began or now
        missing = self._missing.setdefault((key.kind, key.namespace), MissingPools(self._began))
        return missing.marked(found, now)

    def _policy(self, namespace: str) -> Policy | NoPolicy:
        cached = self._caches.policies.get(namespace, LADDER)
        return NoPolicy() if cached is None else cached.policy
