"""What a Lease says, and what a replica that wants to lead makes of it. Pure."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from holdfast.fallback.api.kinds import LEASE
from holdfast.fallback.api.reading import mapping, metadata_of, text
from holdfast.scheduling.json import Json, JsonValue

# As Kubernetes' own controllers have it. Whoever leads renews every RETRY, writes nothing once RENEW has passed since
# it last could, and is replaced at the earliest when DURATION has: what it had sent before has 5 s to arrive.
DURATION_SECONDS: Final = 15
RENEW_SECONDS: Final = 10.0
RETRY_SECONDS: Final = 2.0


@dataclass(frozen=True, kw_only=True)
class Term:
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
    def of(cls, lease: Json) -> "Term":
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
class Seen:
    """A term, and at which second of our own clock it was first seen to be so."""

    term: Term
    since: float

    def then(self, term: Term, now: float) -> "Seen":
        """Return what is known after one more look."""
        renewed = (term.holder, term.renewed) != (self.term.holder, self.term.renewed)
        return Seen(term=term, since=now if renewed else self.since)

    def may_take(self, identity: str, now: float) -> bool:
        """Whether this replica may lead: it does already, nobody does, or whoever did has not been heard of."""
        if self.term.holder in ("", identity):
            return True
        return now - self.since >= self.term.duration_seconds


def taken(namespace: str, name: str, identity: str, term: Term | None, at: datetime) -> Json:
    """Return the Lease with which `identity` begins to lead, or goes on; `term` None where there is none yet."""
    continues = term is not None and term.holder == identity
    changes = term is not None and bool(term.acquired) and not continues
    spec: Json = {
        "holderIdentity": identity,
        "leaseDurationSeconds": DURATION_SECONDS,
        "acquireTime": term.acquired if term is not None and continues else moment(at),
        "renewTime": moment(at),
        "leaseTransitions": (term.transitions if term is not None else 0) + changes,
    }
    return _lease(namespace, name, term, spec)


def released(namespace: str, name: str, term: Term, at: datetime) -> Json:
    """Return the Lease with which whoever leads makes room at once."""
    spec: Json = {
        "holderIdentity": "",
        "leaseDurationSeconds": 1,
        "acquireTime": term.acquired,
        "renewTime": moment(at),
        "leaseTransitions": term.transitions,
    }
    return _lease(namespace, name, term, spec)


def moment(at: datetime) -> str:
    """Return a time as a Lease has it, to the microsecond."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _lease(namespace: str, name: str, term: Term | None, spec: Json) -> Json:
    metadata = {"name": name, "namespace": namespace}
    if term is not None:
        metadata["resourceVersion"] = term.version
    return {"apiVersion": LEASE.api_version, "kind": LEASE.name, "metadata": metadata, "spec": spec}


def _number(value: JsonValue, default: int) -> int:
    return value if isinstance(value, int) else default
