"""The status of FallbackPolicies: an index of all jobs' positions, its summary, and the tasks that write it.

The status is a summary for users; the controller never reads it back.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from pulumi_holdfast.controller.jobs.state import JobState, Phase
from pulumi_holdfast.controller.kube.client import (
    FALLBACK_POLICY,
    ApiError,
    Backoff,
    Client,
    LeadershipLost,
    Unreachable,
)
from pulumi_holdfast.controller.kube.objects import objects, text
from pulumi_holdfast.ladder.json import mapping
from pulumi_holdfast.ladder.labels import LADDER
from pulumi_holdfast.ladder.ladder import NoPolicy, Policy

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator
    from datetime import datetime

    from pulumi_holdfast.controller.jobs.caches import Caches
    from pulumi_holdfast.controller.jobs.pods_and_nodes import JobKey
    from pulumi_holdfast.controller.jobs.state import PoolUse
    from pulumi_holdfast.ladder.json import Json

# The limits of the CRD's schema.
_MOST_PROBLEMS: Final = 16
_LONGEST_PROBLEM: Final = 1024
_LONGEST_SUMMARY: Final = 512

_READY: Final = "Ready"
_HOUR: Final = timedelta(hours=1)
_NOTHING: Final = timedelta(0)

_BETWEEN_TIERS: Final = frozenset({Phase.SUSPENDING, Phase.PAUSED})


def policy_status(
    policy: Policy | NoPolicy, generation: int, places: Iterable[JobPosition], *, before: Json, now: datetime
) -> Json:
    """Return the status of a FallbackPolicy with all of its fields, so that a patch leaves no old value.

    `before`: the status that it replaces, for the time of the last change of its condition.
    """
    all_places = list(places)
    pools = [tier.name for tier in policy.tiers] if isinstance(policy, Policy) else []
    moving = sum(place.phase in _BETWEEN_TIERS for place in all_places)
    problems = policy.problems if isinstance(policy, NoPolicy) else ()
    return {
        "observedGeneration": generation,
        "summary": _summary(all_places, moving, problems)[:_LONGEST_SUMMARY],
        "jobs": len(all_places),
        "moving": moving,
        "tiers": [_tier(pool, all_places) for pool in pools],
        "problems": [problem[:_LONGEST_PROBLEM] for problem in problems[:_MOST_PROBLEMS]],
        "conditions": [_ready(policy, generation, before, now)],
    }


def _tier(pool: str, places: list[JobPosition]) -> Json:
    there = [place for place in places if place.pool == pool and place.phase not in _BETWEEN_TIERS]
    uses = [use for place in places for use in place.uses if use.pool == pool]
    costs = [use.cost for use in uses if use.cost is not None]
    return {
        "pool": pool,
        "jobs": len(there),
        "waiting": sum(each.phase is Phase.WAITING for each in there),
        "nodeHours": sum((use.node_time for use in uses), _NOTHING) // _HOUR,
        "cost": f"{sum(costs):.2f}" if costs else "",
    }


def _ready(policy: Policy | NoPolicy, generation: int, before: Json, now: datetime) -> Json:
    """Return the condition Ready: whether the controller follows the ladder."""
    is_ready = isinstance(policy, Policy)
    status = "True" if is_ready else "False"
    known = next(
        (each for each in objects(before.get("conditions")) if each.get("type") == _READY), mapping(None)
    )
    since = text(known.get("lastTransitionTime")) if known.get("status") == status else ""
    return {
        "type": _READY,
        "status": status,
        "reason": "Followed" if is_ready else "Invalid",
        "message": "" if is_ready else " ".join(policy.problems)[:_LONGEST_PROBLEM],
        "observedGeneration": generation,
        "lastTransitionTime": since or now.strftime("%Y-%m-%dT%H:%M:%SZ"),
    }


def _summary(places: list[JobPosition], moving: int, problems: tuple[str, ...]) -> str:
    if problems:
        return f"Invalid: {problems[0]}"
    if not places:
        return "No jobs"
    waiting = sum(place.phase is Phase.WAITING for place in places)
    running = sum(place.phase is Phase.RUNNING for place in places)
    away = sum(place.phase is Phase.AWAY for place in places)
    others = ((waiting, "waiting"), (moving, "moving"), (away, "away"))
    parts = [f"{running} running", *(f"{count} {word}" for count, word in others if count)]
    stopped = len(places) - running - waiting - moving - away
    return ", ".join([*parts, *([f"{stopped} stopped"] if stopped else [])])


@dataclass(frozen=True, kw_only=True)
class JobPosition:
    """A job's position: the pool it is on or moving to, its phase, whether it will miss its deadline, and what it has used."""

    pool: str
    phase: Phase
    is_late: bool = False
    uses: tuple[PoolUse, ...] = ()


class JobIndex:
    """The positions of all unfinished jobs. `changed` is called with each namespace in which one has changed."""

    def __init__(self, changed: Callable[[str], None]) -> None:
        self._changed = changed
        self._places: dict[str, dict[JobKey, JobPosition]] = {}

    def set(self, key: JobKey, state: JobState | None, *, pool: str | None = None) -> None:
        """Store a job's position; None for one that follows no ladder, or is deleted.

        `pool`: its name in metrics, if that is not the state's.
        """
        place = None
        if state is not None and state.phase is not Phase.FINISHED:
            is_late = state.pace is not None and state.pace.is_late
            uses = () if state.ledger is None else state.ledger.uses
            place = JobPosition(pool=pool or state.pool, phase=state.phase, is_late=is_late, uses=uses)
        places = self._places.get(key.namespace, {})
        if places.get(key) == place:
            return
        if place is None:
            places.pop(key, None)
        else:
            places[key] = place
        self._places[key.namespace] = places
        self._changed(key.namespace)

    def in_namespace(self, namespace: str) -> list[JobPosition]:
        """Return the positions of a namespace's jobs."""
        return list(self._places.get(namespace, {}).values())

    def counts(self) -> Iterator[tuple[tuple[str, str, str], int]]:
        """Yield how many jobs there are of each namespace, pool and phase."""
        for namespace, places in self._places.items():
            for (pool, phase), count in Counter((each.pool, each.phase) for each in places.values()).items():
                yield (namespace, pool, phase.value), count

    def late(self) -> Iterator[tuple[tuple[str, str], int]]:
        """Yield how many jobs of each namespace and pool will miss their deadline."""
        for namespace, places in self._places.items():
            for pool, count in Counter(each.pool for each in places.values() if each.is_late).items():
                yield (namespace, pool), count

    def clear(self) -> None:
        """Remove all jobs: the new leader counts them."""
        self._places.clear()


# Changes come in waves, and users do not need a status more often.
STATUS_DELAY_SECONDS: Final = 3.0
# A new job may be observed after its placeholders; and orphans cost little in this time.
ORPHAN_DELAY_SECONDS: Final = 10.0

_log = logging.getLogger(__name__)


class DebouncedTask:
    """Runs a function some time after it was requested, once for all requests in between; retries it when it fails."""

    def __init__(self, name: str, do: Callable[[], Awaitable[None]], *, seconds: float) -> None:
        self._name = name
        self._do = do
        self._seconds = seconds
        self._wanted = asyncio.Event()
        self._backoff = Backoff(first=seconds)

    def request(self) -> None:
        """Request a run."""
        self._wanted.set()

    async def run(self) -> None:
        """Run the function whenever it is requested, until canceled."""
        while True:
            await self._wanted.wait()
            await asyncio.sleep(self._seconds)
            self._wanted.clear()
            try:
                await self._do()
            except (ApiError, Unreachable, LeadershipLost) as error:
                _log.warning("%s failed and is retried: %s", self._name, error)
                await self._retry()
            except Exception:  # noqa: BLE001  # one object must not stop the controller
                _log.exception("%s failed and is retried", self._name)
                await self._retry()
            else:
                self._backoff.succeed()

    async def _retry(self) -> None:
        self._wanted.set()
        await asyncio.sleep(self._backoff.seconds())


class PolicyStatusWriter:
    """Writes the status of each FallbackPolicy that has changed."""

    def __init__(
        self, client: Client, caches: Caches, job_index: JobIndex, *, now: Callable[[], datetime]
    ) -> None:
        self._now = now
        self._client = client
        self._caches = caches
        self._job_index = job_index
        self._dirty: set[str] = set()

    def changed(self, namespace: str) -> None:
        """Mark a namespace whose jobs or policy have changed."""
        self._dirty.add(namespace)

    async def write(self) -> None:
        """Write every changed status. A failure does not prevent the other writes; the first error is raised at the end."""
        errors: list[Exception] = []
        for namespace in sorted(self._dirty):
            try:
                await self._write(namespace)
            except (LeadershipLost, Unreachable):
                raise
            except Exception as error:  # noqa: BLE001  # as the text above says
                errors.append(error)
            else:
                self._dirty.discard(namespace)
        if errors:
            raise errors[0]

    async def _write(self, namespace: str) -> None:
        cached = self._caches.policies.get(namespace, LADDER)
        if cached is None:
            return
        status = policy_status(
            cached.policy,
            cached.generation,
            self._job_index.in_namespace(namespace),
            before=cached.status,
            now=self._now(),
        )
        if status == cached.status:
            return
        try:
            await self._client.patch(
                FALLBACK_POLICY, namespace, LADDER, {"status": status}, subresource="status"
            )
        except ApiError as error:
            if not error.is_missing:  # the policy was deleted
                raise
