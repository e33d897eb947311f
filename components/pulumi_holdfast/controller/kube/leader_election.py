"""Leader election with a Lease: one replica leads, the others stand by.

A leader that is not sure of its lease writes nothing.
"""

import asyncio
import logging
import random
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from pulumi_holdfast.controller.kube.client import LEASE, ApiError, Client, LeadershipLost, Unreachable
from pulumi_holdfast.controller.kube.objects import metadata_of, moment, text
from pulumi_holdfast.ladder.json import Json, JsonValue, mapping

# The values of Kubernetes' own controllers. A leader renews every RETRY, writes nothing once RENEW has passed since
# its last renewal, and is replaced at the earliest after DURATION: its last requests have 5 s to arrive.
DURATION_SECONDS: Final = 15
RENEW_SECONDS: Final = 10.0
RETRY_SECONDS: Final = 2.0


@dataclass(frozen=True, kw_only=True)
class LeaseRecord:
    """The content of a Lease: the holder (empty for none), its duration, and its transitions.

    `version` is the resource version that the next write must have. `renewed` is only compared with itself: other
    machines' clocks differ.
    """

    holder: str
    renewed: str
    acquired: str
    transitions: int
    duration_seconds: int
    version: str

    @classmethod
    def of(cls, lease: Json) -> "LeaseRecord":
        """Read a Lease; missing fields are as in a Lease without a holder."""
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
    """A lease record, and since which second of this replica's clock it has been observed unchanged."""

    term: LeaseRecord
    since: float

    def then(self, term: LeaseRecord, now: float) -> "ObservedLease":
        """Return the observation after one more read."""
        renewed = (term.holder, term.renewed) != (self.term.holder, self.term.renewed)
        return ObservedLease(term=term, since=now if renewed else self.since)

    def may_take(self, identity: str, now: float) -> bool:
        """Whether this replica may lead: it does already, no replica does, or the holder has stopped renewing."""
        if self.term.holder in ("", identity):
            return True
        return now - self.since >= self.term.duration_seconds


def acquired_lease(namespace: str, name: str, identity: str, term: LeaseRecord | None, at: datetime) -> Json:
    """Return the Lease with which `identity` starts to lead, or continues; `term` None if there is no Lease yet."""
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
    """Return the Lease with which the leader steps down at once."""
    spec: Json = {
        "holderIdentity": "",
        "leaseDurationSeconds": 1,
        "acquireTime": term.acquired,
        "renewTime": lease_time(at),
        "leaseTransitions": term.transitions,
    }
    return _lease(namespace, name, term, spec)


def lease_time(at: datetime) -> str:
    """Return a time in the format of a Lease, with microseconds."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _lease(namespace: str, name: str, term: LeaseRecord | None, spec: Json) -> Json:
    metadata = {"name": name, "namespace": namespace}
    if term is not None:
        metadata["resourceVersion"] = term.version
    return {"apiVersion": LEASE.api_version, "kind": LEASE.name, "metadata": metadata, "spec": spec}


def _number(value: JsonValue, default: int) -> int:
    return value if isinstance(value, int) else default


# A renewal that takes longer is canceled and retried: several fit into the renew deadline.
_REQUEST_SECONDS: Final = 4.0

_log = logging.getLogger(__name__)


class Fence:
    """Until when this replica certainly leads, by a clock that continues while the process and the machine sleep."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.now = clock
        self._until: float | None = None

    @property
    def is_open(self) -> bool:
        """Whether this replica certainly leads now."""
        return self._until is not None and self.now() < self._until

    def seconds_left(self) -> float:
        """Return how long it still leads. Raises LeadershipLost if it does not."""
        left = 0.0 if self._until is None else self._until - self.now()
        if left <= 0:
            raise LeadershipLost
        return left

    def open_until(self, until: float) -> None:
        """Allow writes until then."""
        self._until = until

    def close(self) -> None:
        """Allow no writes."""
        self._until = None


@dataclass(frozen=True, kw_only=True)
class LeaderElectionConfig:
    """The Lease to use, and this replica's identity: a new one for each start of the process."""

    namespace: str
    name: str
    identity: str


class LeaderElector:
    """Competes for the Lease until canceled, and leads whenever it holds it."""

    def __init__(
        self,
        client: Client,
        candidacy: LeaderElectionConfig,
        fence: Fence,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._client = client
        self._now = now
        self._own = candidacy
        self._fence = fence
        self._held: LeaseRecord | None = None  # the lease as this replica wrote it, None if unknown
        self._seen: ObservedLease | None = None
        #: When the lease that this replica took over was renewed last, by its holder's clock; None before that.
        self.renewed_before: datetime | None = None

    async def run(self, lead: Callable[[], Coroutine[None, None, None]]) -> None:
        """Run `lead` while this replica leads, again and again; step down when canceled.

        An exception of `lead` ends the election.
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
        """Take or renew the lease; returns whether that succeeded. One failure does not end the leadership yet."""
        # The lease is valid from when the request was sent, not from when its response arrived.
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
        """Write the lease with this replica's identity; returns False if another replica holds it."""
        own, term = self._own, self._held
        if term is None:
            term = await self._look()
            if term is not None:
                self._seen = self._seen.then(term, now) if self._seen else ObservedLease(term=term, since=now)
                if not self._seen.may_take(own.identity, now):
                    return False
        lease = acquired_lease(own.namespace, own.name, own.identity, term, self._now())
        is_first, self._held = self._held is None, None
        self._held = LeaseRecord.of(await self._write(lease, is_new=term is None))
        if is_first and term is not None:
            self.renewed_before = moment(term.renewed)
        return True

    async def _look(self) -> LeaseRecord | None:
        own = self._own
        lease = await self._client.find(LEASE, own.namespace, own.name, seconds=_REQUEST_SECONDS, urgent=True)
        return None if lease is None else LeaseRecord.of(lease)

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
        # If this fails, the other replicas take over after 15 s.
        with suppress(ApiError, Unreachable):
            # The last renewal may have succeeded without a response.
            term = self._held or await self._look()
            if term is not None and term.holder == self._own.identity:
                lease = released_lease(self._own.namespace, self._own.name, term, self._now())
                await self._write(lease, is_new=False)
