"""One replica leads; the others stand by. A leader that cannot be sure of it writes nothing."""

import asyncio
import logging
import random
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from holdfast.fallback.api.client import LEASE, ApiError, Client, LeadershipLost, Unreachable
from holdfast.fallback.api.objects import mapping, metadata_of, text
from holdfast.scheduling.json import Json, JsonValue

# As Kubernetes' own controllers have it. Whoever leads renews every RETRY, writes nothing once RENEW has passed since
# it last could, and is replaced at the earliest when DURATION has: what it had sent before has 5 s to arrive.
DURATION_SECONDS: Final = 15
RENEW_SECONDS: Final = 10.0
RETRY_SECONDS: Final = 2.0


@dataclass(frozen=True, kw_only=True)
class LeaseRecord:
    """What a Lease says: who leads (empty: nobody), how long that holds unrenewed, and how often it changed hands.

    `version` is what a write must name to be the next one. `renewed` is only ever compared with itself: another
    machine's clock says nothing about ours.
    """

    holder: str
    renewed: str
    acquired: str
    transitions: int
    duration_seconds: int
    version: str

    @classmethod
    def of(cls, lease: Json) -> "LeaseRecord":
        """Read a Lease; what is missing in it is as in one that nobody holds."""
        spec = mapping(lease.get("spec"))
        return cls(
            holder=text(spec.get("holderIdentity")),
            renewed=text(spec.get("renewTime")),
            acquired=text(spec.get("acquireTime")),
            transitions=_number(spec.get("leaseTransitions"), 0),
            duration_seconds=max(1, _number(spec.get("leaseDurationSeconds"), DURATION_SECONDS)),
            version=text(metadata_of(lease).get("resourceVersion")),
        )


@dataclass(frozen=True, kw_only=True)
class ObservedLease:
    """A term, and at which second of our own clock it was first seen to be so."""

    term: LeaseRecord
    since: float

    def then(self, term: LeaseRecord, now: float) -> "ObservedLease":
        """Return what is known after one more look."""
        renewed = (term.holder, term.renewed) != (self.term.holder, self.term.renewed)
        return ObservedLease(term=term, since=now if renewed else self.since)

    def may_take(self, identity: str, now: float) -> bool:
        """Whether this replica may lead: it does already, nobody does, or whoever did has not been heard of."""
        if self.term.holder in ("", identity):
            return True
        return now - self.since >= self.term.duration_seconds


def acquired_lease(namespace: str, name: str, identity: str, term: LeaseRecord | None, at: datetime) -> Json:
    """Return the Lease with which `identity` begins to lead, or goes on; `term` None where there is none yet."""
    continues = term is not None and term.holder == identity
    changes = term is not None and bool(term.acquired) and not continues
    spec: Json = {
        "holderIdentity": identity,
        "leaseDurationSeconds": DURATION_SECONDS,
        "acquireTime": term.acquired if term is not None and continues else lease_time(at),
        "renewTime": lease_time(at),
        "leaseTransitions": (term.transitions if term is not None else 0) + changes,
    }
    return _lease(namespace, name, term, spec)


def released_lease(namespace: str, name: str, term: LeaseRecord, at: datetime) -> Json:
    """Return the Lease with which whoever leads makes room at once."""
    spec: Json = {
        "holderIdentity": "",
        "leaseDurationSeconds": 1,
        "acquireTime": term.acquired,
        "renewTime": lease_time(at),
        "leaseTransitions": term.transitions,
    }
    return _lease(namespace, name, term, spec)


def lease_time(at: datetime) -> str:
    """Return a time as a Lease has it, to the microsecond."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _lease(namespace: str, name: str, term: LeaseRecord | None, spec: Json) -> Json:
    metadata = {"name": name, "namespace": namespace}
    if term is not None:
        metadata["resourceVersion"] = term.version
    return {"apiVersion": LEASE.api_version, "kind": LEASE.name, "metadata": metadata, "spec": spec}


def _number(value: JsonValue, default: int) -> int:
    return value if isinstance(value, int) else default


# A renewal that takes longer is given up and tried again: several fit into the time a leader has.
_REQUEST_SECONDS: Final = 4.0

_log = logging.getLogger(__name__)


class Fence:
    """Until when this replica is sure to lead, by a clock of its own that goes on while process and machine sleep."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.now = clock
        self._until: float | None = None

    @property
    def is_open(self) -> bool:
        """Whether this replica is sure to lead now."""
        return self._until is not None and self.now() < self._until

    def seconds_left(self) -> float:
        """Return for how long it still is. Raises LeadershipLost where it is not."""
        left = 0.0 if self._until is None else self._until - self.now()
        if left <= 0:
            raise LeadershipLost
        return left

    def open_until(self, until: float) -> None:
        """Let writes through until then."""
        self._until = until

    def close(self) -> None:
        """Let none through."""
        self._until = None


@dataclass(frozen=True, kw_only=True)
class LeaderElectionConfig:
    """Which Lease decides, and under which name this replica stands: another one for each start of the process."""

    namespace: str
    name: str
    identity: str


class LeaderElector:
    """Stands for election until cancelled, and leads whenever it has won."""

    def __init__(self, client: Client, candidacy: LeaderElectionConfig, fence: Fence) -> None:
        self._client = client
        self._own = candidacy
        self._fence = fence
        self._held: LeaseRecord | None = None  # the lease as we wrote it, None while that is not known
        self._seen: ObservedLease | None = None

    async def run(self, lead: Callable[[], Coroutine[None, None, None]]) -> None:
        """Run `lead` for as long as this replica leads, again and again; cancelled, make room for another.

        What `lead` raises ends the election.
        """
        try:
            while True:
                while not await self._attempt():
                    await asyncio.sleep(RETRY_SECONDS * random.uniform(0.8, 1.2))  # noqa: S311 - out of step
                _log.info("this replica leads", extra={"identity": self._own.identity})
                await self._lead(lead)
                _log.warning("this replica no longer leads", extra={"identity": self._own.identity})
        finally:
            self._fence.close()
            await self._release()

    async def _lead(self, lead: Callable[[], Coroutine[None, None, None]]) -> None:
        leading = asyncio.create_task(lead(), name="lead")
        try:
            while self._fence.is_open and not leading.done():
                await asyncio.wait({leading}, timeout=RETRY_SECONDS)
                await self._attempt()
        finally:
            self._fence.close()
            leading.cancel()
            with suppress(asyncio.CancelledError):
                await leading

    async def _attempt(self) -> bool:
        """Take or renew the lease; returns whether that went well. One failure deposes nobody yet."""
        # What the lease says was so when the request was sent, not when its answer came.
        asked = self._fence.now()
        try:
            if not await self._take(asked):
                self._fence.close()
                return False
        except (ApiError, Unreachable) as error:
            _log.warning("the lease could not be taken: %s", error)
            return False
        self._fence.open_until(asked + RENEW_SECONDS)
        return True

    async def _take(self, now: float) -> bool:
        """Write the lease in our name; returns False where another holds it."""
        own, term = self._own, self._held
        if term is None:
            term = await self._look()
            if term is not None:
                self._seen = self._seen.then(term, now) if self._seen else ObservedLease(term=term, since=now)
                if not self._seen.may_take(own.identity, now):
                    return False
        lease = acquired_lease(own.namespace, own.name, own.identity, term, datetime.now(UTC))
        self._held = None
        self._held = LeaseRecord.of(await self._write(lease, is_new=term is None))
        return True

    async def _look(self) -> LeaseRecord | None:
        own = self._own
        try:
            lease = await self._client.get(
                LEASE, own.namespace, own.name, seconds=_REQUEST_SECONDS, urgent=True
            )
        except ApiError as error:
            if error.is_missing:
                return None
            raise
        return LeaseRecord.of(lease)

    async def _write(self, lease: Json, *, is_new: bool) -> Json:
        own = self._own
        if is_new:
            return await self._client.create(
                LEASE, own.namespace, lease, seconds=_REQUEST_SECONDS, urgent=True
            )
        return await self._client.replace(
            LEASE, own.namespace, own.name, lease, seconds=_REQUEST_SECONDS, urgent=True
        )

    async def _release(self) -> None:
        # Whoever waits finds out by itself in 15 s if this fails.
        with suppress(ApiError, Unreachable):
            # The last renewal may have come about with nobody told.
            term = self._held or await self._look()
            if term is not None and term.holder == self._own.identity:
                lease = released_lease(self._own.namespace, self._own.name, term, datetime.now(UTC))
                await self._write(lease, is_new=False)
