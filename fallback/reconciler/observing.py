"""One look at one job: all that is known of it and around it, as the ladder wants it."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime

from holdfast.fallback.api.objects import mapping, metadata_of, text
from holdfast.fallback.jobs.kinds import KINDS, JobKind
from holdfast.fallback.jobs.pods_and_nodes import node_of
from holdfast.fallback.jobs.snapshot import JobKey, Snapshot
from holdfast.fallback.policy.policy import NoPolicy, Policy
from holdfast.fallback.reconciler.caches import BY_UID, HELD, ON_NODE, Caches
from holdfast.fallback.reconciler.clocks import Clocks
from holdfast.fallback.reconciler.gangs import Gangs
from holdfast.fallback.reconciler.memories import Memories
from holdfast.fallback.reconciler.pools import pools_seen
from holdfast.fallback.reconciler.used_nodes import UsedNodes
from holdfast.fallback.reservations.reserved_capacity import held_capacity
from holdfast.fallback.state_machine.observation import HeldCapacity, Observation
from holdfast.fallback.state_machine.state import JobState, UnreadableState, read_state
from holdfast.scheduling.json import Json
from holdfast.scheduling.labels import LADDER, STATE


@dataclass(frozen=True, kw_only=True)
class Look:
    """What one look has shown: the job, what is kept of it, what is seen of it, and the ladder it follows."""

    key: JobKey
    kind: JobKind
    snapshot: Snapshot
    state: JobState | UnreadableState | None
    seen: Observation
    policy: Policy | NoPolicy

    @property
    def job(self) -> Json:
        """The job as it was when it was looked at."""
        return self.snapshot.job


class Observer:
    """Looks at jobs, in caches alone, and remembers what it saw of their pods."""

    def __init__(
        self,
        caches: Caches,
        memories: Memories,
        gangs: Gangs,
        *,
        claims_are_served: Callable[[], bool],
        now: Callable[[], datetime],
        going: Callable[[], float] = time.monotonic,
    ) -> None:
        self.clocks = Clocks[JobKey]()
        self._caches = caches
        self._memories = memories
        self._gangs = gangs
        self._used = UsedNodes(caches)
        self._claims_are_served = claims_are_served
        self._now = now
        self._going = going

    def look(self, key: JobKey) -> Look | None:
        """Look at a job now; None where there is none."""
        kept = self._caches.job(key)
        if kept is None:
            return None
        kind, snapshot = KINDS[key.kind], self._snapshot(key, kept.read(), kept.uid)
        seen, memory = kind.observe(snapshot, self._memories.of(key))
        self._memories.keep(key, memory)
        policy = self._policy(key.namespace)
        seen = replace(
            seen,
            clock_jump=self.clocks.jump(key, snapshot.now, self._going()),
            rival=self._gangs.see(key, seen),
            gave_way_at=self._gangs.gave_way_at(seen.pool),
            pools=pools_seen(policy, self._caches, self._used) if isinstance(policy, Policy) else {},
            held=self._held(seen.uid),
        )
        annotations = mapping(metadata_of(snapshot.job).get("annotations"))
        state = read_state(text(annotations[STATE]) if STATE in annotations else None)
        return Look(key=key, kind=kind, snapshot=snapshot, state=state, seen=seen, policy=policy)

    def settle(self, look: Look) -> None:
        """Take the look's clock for the one that the job's times are kept by."""
        if look.seen.clock_jump:
            self.clocks.settle(look.key, look.seen.now, self._going())

    def forget(self, key: JobKey) -> None:
        """Forget a job that is gone."""
        self._memories.forget(key)
        self._gangs.forget(key)
        self.clocks.forget(key)

    def _snapshot(self, key: JobKey, job: Json, uid: str) -> Snapshot:
        caches = self._caches
        pods = tuple(caches.pods_of(key))
        names = {name for pod in pods if (name := node_of(pod))} | {
            record.node for record in self._memories.of(key).pods.values() if record.node
        }
        return Snapshot(
            job=job,
            now=self._now(),
            pods=pods,
            children=tuple(caches.children_of(key)),
            nodes=self._nodes(names),
            claims=self._claims(names),
            workloads=tuple(caches.workloads.find(BY_UID, uid)),
        )

    def _nodes(self, names: set[str]) -> dict[str, Json]:
        return {name: node for name in names if (node := self._caches.nodes.get("", name)) is not None}

    def _claims(self, names: set[str]) -> dict[str, Json] | None:
        if not self._claims_are_served():
            return None
        return {name: claim for name in names for claim in self._caches.claims.find(ON_NODE, name)}

    def _held(self, uid: str) -> HeldCapacity | None:
        caches = self._caches
        placeholders = caches.placeholders.find(HELD, uid)
        names = {name for pod in placeholders if (name := node_of(pod))}
        names |= {name for _, name in caches.nodes.names(HELD, uid)}
        if not placeholders and not names:
            return None
        return held_capacity(uid, placeholders, self._nodes(names), self._claims(names))

    def _policy(self, namespace: str) -> Policy | NoPolicy:
        kept = self._caches.policies.get(namespace, LADDER)
        return NoPolicy() if kept is None else kept.policy
