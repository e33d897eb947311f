"""The order in which jobs reserve capacity of a pool: one incomplete reservation at a time, the oldest job's first.

Two gangs that each reserve half of a pool's free nodes would both reach their timeouts, again and again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic, TypeVar

from pulumi_holdfast.controller.reservations.pod_shapes import gang_size
from pulumi_holdfast.controller.state_machine.observation import ContendingGang, Observation
from pulumi_holdfast.controller.state_machine.state import FailbackStage, JobState, UnreadableState

K = TypeVar("K")


def reserving_pool(state: JobState | UnreadableState | None, observation: Observation) -> str | None:
    """Return the pool in which a job reserves capacity and does not have all of it yet; None if there is none."""
    if not isinstance(state, JobState) or state.failback is None or not observation.follows:
        return None
    if state.failback.stage not in {FailbackStage.RESERVING, FailbackStage.TAINTING}:
        return None
    held = observation.reservation
    is_whole = held is not None and held.pool == state.failback.pool
    is_whole = is_whole and held is not None and held.placed >= gang_size(observation.shapes)
    return None if is_whole else state.failback.pool


class ReservationQueue(Generic[K]):
    """The incomplete reservations of all jobs, by pool."""

    def __init__(self) -> None:
        self._reserving: dict[K, str] = {}
        self._gangs: dict[str, dict[K, ContendingGang]] = {}

    def update(
        self, key: K, state: JobState | UnreadableState | None, observation: Observation
    ) -> Mapping[str, ContendingGang]:
        """Store a job's reservation, and return the oldest of the other jobs that reserve capacity, by pool."""
        self.forget(key)
        pool = reserving_pool(state, observation)
        if pool is not None:
            self._reserving[key] = pool
            gang = ContendingGang(uid=observation.uid, created=observation.created)
            self._gangs.setdefault(pool, {})[key] = gang
        found: dict[str, ContendingGang] = {}
        for each, gangs in self._gangs.items():
            others = [gang for other, gang in gangs.items() if other != key]
            if others:
                found[each] = min(others)
        return found

    def forget(self, key: K) -> None:
        """Remove a deleted job."""
        pool = self._reserving.pop(key, None)
        if pool is not None:
            self._gangs[pool].pop(key, None)
