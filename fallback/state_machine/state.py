"""The state that is recorded for a job between two reconciliations: the annotation `fallback.holdfast.dev/state`."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from typing import Final, TypeAlias, cast

from holdfast.fallback.policy.policy import home_pool
from holdfast.fallback.state_machine.state_values import (
    read_cost,
    read_count,
    read_flag,
    read_list,
    read_node_seconds,
    read_object,
    read_seconds,
    read_share,
    read_text,
    read_time,
)
from holdfast.scheduling.json import Json, JsonValue
from holdfast.scheduling.labels import CapacityType


class Phase(StrEnum):
    """The phase of a job.

    The controller has suspended it in SUSPENDING, PAUSED, AWAY and GIVEN_UP, and in no other phase.
    """

    WAITING = "Waiting"  #: for nodes: not every expected pod has one, and the tier's timeout runs
    RUNNING = "Running"  #: every expected pod has had a node
    SUSPENDING = "Suspending"  #: moving to another tier, or restarting on the same one; its pods terminate
    PAUSED = "Paused"  #: suspended until `resume_at`, since it yielded nodes to another gang
    AWAY = "Away"  #: on a tier in another cluster, where a copy of it runs or waits for nodes
    STOPPED = "Stopped"  #: suspended by another client, which must resume it
    GIVEN_UP = "GivenUp"  #: suspended permanently because the policy's limit for the last tier is spent
    FINISHED = "Finished"  #: completed or failed


class Purpose(StrEnum):
    """Why a job is being suspended."""

    FAILOVER = "Failover"  #: the tier's limits are spent, or its capacity does not come
    FAILBACK = "Failback"  #: a better tier's capacity is reserved for the job
    YIELD = "Yield"  #: two half-placed gangs blocked each other
    RESTART = "Restart"  #: its head is lost, and its operator would wait for it forever


class OutageKind(StrEnum):
    """The cause that an outage is counted under."""

    EVICTION = "Eviction"
    APPLICATION = "Application"
    UNEXPLAINED = "Unexplained"


class FailbackStage(StrEnum):
    """The stage of a failback."""

    RESERVING = "Reserving"  #: placeholders are being created on the better tier
    TAINTING = "Tainting"  #: all placeholders have nodes, which are being tainted
    CHECKPOINTING = "Checkpointing"  #: the job was asked to checkpoint
    MOVING = "Moving"  #: the job is moving onto the reserved nodes


@dataclass(frozen=True, kw_only=True)
class FailbackAttempt:
    """A failback under way: its target pool, its stage, when it started, when a checkpoint was requested."""

    pool: str
    stage: FailbackStage
    since: datetime
    requested_at: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class TimedFailure:
    """A counted outage and when it was counted, by the controller's clock; recorded on a ladder with a `failureWindow`."""

    kind: OutageKind
    at: datetime


@dataclass(frozen=True, kw_only=True)
class Pace:
    """How far a job with a deadline has come.

    `work_done`: without the current run, or up to the last recorded report. `counts_from`: from this time the current run
    adds to it; None while no gang runs. `progress`: the last recorded report, a share of the work. `interruptions` of the
    job so far, on any tier. `is_late`: the deadline cannot be kept any more.
    """

    work_done: timedelta = timedelta(0)
    counts_from: datetime | None = None
    progress: float | None = None
    interruptions: int = 0
    is_late: bool = False


@dataclass(frozen=True, kw_only=True)
class PoolUse:
    """What a job has used of one pool.

    `node_time`: the time of its nodes, added up over the nodes, with those that were reserved or whose pods terminated.
    `ran`: for how long all of its pods had nodes there. `cost`: in the unit of the tiers' prices; None if no price is known.
    """

    pool: str
    capacity: CapacityType | None = None
    node_time: timedelta = timedelta(0)
    ran: timedelta = timedelta(0)
    cost: float | None = None


@dataclass(frozen=True, kw_only=True)
class Ledger:
    """What a job has used and spent so far, from `counted_from` until `counted_until`.

    `uses`: of each pool. `worked`: the work that is done. `lost`: the rest of the time in which all of its pods had nodes:
    restarts and repeated work. `waited`: without all of its nodes, including moves. Time in which its user or the controller
    has stopped the job is in none of them. `starting`: what remains of the cost of the current start. `gang_time`: the
    node time of whole gangs, without reservations and partly placed gangs. `copied`: what it includes of the ledger of `copy`.
    """

    counted_from: datetime
    counted_until: datetime
    uses: tuple[PoolUse, ...] = ()
    worked: timedelta = timedelta(0)
    lost: timedelta = timedelta(0)
    waited: timedelta = timedelta(0)
    starting: timedelta = timedelta(0)
    gang_time: timedelta = timedelta(0)
    copy: str = ""
    copied: Ledger | None = None

    @property
    def cost(self) -> float | None:
        """What the job has cost; None if no price is known."""
        costs = [use.cost for use in self.uses if use.cost is not None]
        return sum(costs) if costs else None

    def ran_on(self, capacity: CapacityType) -> timedelta:
        """For how long the whole job had nodes of a capacity type."""
        return sum((use.ran for use in self.uses if use.capacity is capacity), timedelta(0))

    def cost_of(self, capacity: CapacityType) -> float:
        """What nodes of a capacity type have cost, as far as their prices are known."""
        return sum(use.cost or 0.0 for use in self.uses if use.capacity is capacity)


@dataclass(frozen=True, kw_only=True)
class JobState:
    """Everything that is recorded for one job.

    `uid`: the job that the state belongs to: a manifest that was exported and applied again carries its old annotation.
    `pool`, `rank`: the tier the job is on, or will be resumed on, by its pool; and the tier's rank in the ladder when it
    was entered, to continue from if the tier is removed.
    `since`: when this tier visit began. `waiting_since`: since when a pod has no node, None if all have one; `waited`: the
    length of the wait before that, when a pause interrupted it.
    `evictions`, `application_failures`, `unexplained`: outages counted in this visit, by cause; unexplained ones are
    restarts whose cause no replica observed. `failures`: when each of them was counted, on a ladder with a `failureWindow`:
    older ones are removed and count no more. `outage_kind`: the cause of the last outage; `outage_at`: its first loss, by
    the clock that reported it, None if no loss was observed; `outage_counted_at`: when it was counted, by the controller's
    clock; `outage_pod_created_at`: when the pod of that loss was created. `eviction_at`: the first loss of the last wave
    of evictions, by the clock of losses. `losses_counted_until`: losses up to this time, by the same clock, are done.
    `restarts`, `disrupted_restarts`: the operator's counters as far as they are accounted for; `restart_expected`: the
    last outage's own restart is not in them yet.
    `resumed_at`: when the controller last resumed it. `head_restarts`: how many of this visit's resumptions were for a
    lost head.
    `purpose`: why it is being suspended; `suspended_at`: since when, kept until its pods have nodes again; `operator_status`:
    what its operator had reported when the update that suspends it was made, see Observation. `resume_at`: when a pause ends. `moves`: tiers entered so far. `yields`: pauses in this wait. `resuspensions`: how many times another
    client resumed the job during the current move. `failback`: the failback under way. `last_failback_at`: when the last one
    ended without a move. `short_failbacks`: how many failbacks in a row did not last; each doubles the wait for the next.
    `entered_by_failback`: this visit began with a failback. `recreations`: how many times the job was recreated. `pace`: of
    a job with a deadline. `ledger`: what the job has used. It grows with the clock, so it is written with other changes, and
    states that differ only in it are equal.
    """

    uid: str
    phase: Phase
    pool: str
    rank: int
    since: datetime
    waiting_since: datetime | None = None
    waited: timedelta = timedelta(0)
    evictions: int = 0
    application_failures: int = 0
    unexplained: int = 0
    failures: tuple[TimedFailure, ...] = ()
    outage_kind: OutageKind | None = None
    outage_at: datetime | None = None
    outage_counted_at: datetime | None = None
    outage_pod_created_at: datetime | None = None
    eviction_at: datetime | None = None
    losses_counted_until: datetime | None = None
    restarts: int = 0
    disrupted_restarts: int = 0
    restart_expected: bool = False
    resumed_at: datetime | None = None
    head_restarts: int = 0
    purpose: Purpose | None = None
    suspended_at: datetime | None = None
    operator_status: str | None = None
    resume_at: datetime | None = None
    moves: int = 0
    yields: int = 0
    resuspensions: int = 0
    failback: FailbackAttempt | None = None
    last_failback_at: datetime | None = None
    short_failbacks: int = 0
    entered_by_failback: bool = False
    recreations: int = 0
    pace: Pace | None = None
    ledger: Ledger | None = field(default=None, compare=False)

    @property
    def has_all_nodes(self) -> bool:
        """Whether every expected pod of the job, or of its copy, has had a node."""
        return self.phase is Phase.RUNNING or (self.phase is Phase.AWAY and self.waiting_since is None)

    @property
    def suspended_by_us(self) -> bool:
        """Whether the controller made the job's suspension and must end it."""
        return self.phase in {Phase.SUSPENDING, Phase.PAUSED, Phase.AWAY, Phase.GIVEN_UP}


@dataclass(frozen=True, kw_only=True)
class UnreadableState:
    """An annotation that is not a state: `problem` says why.

    `resume_on`: the controller has suspended the job, and resumes it on this pool; empty for the pool that the job selects.
    None: the job's suspension counts as another client's.
    """

    problem: str
    resume_on: str | None = None


_Reader: TypeAlias = Callable[["JsonValue"], object]
# Sixteen tiers, and in each of their clusters as many again.
_MOST_USES: Final = 16 * 17
_OF_COPIES: Final = frozenset({"copy", "copied"})  # a job that was never away has none of them


# The first word of the marker is the version of its format.
_MARKER: Final = "v1"


def write_marker(state: JobState) -> str:
    """Return the text of the annotation SUSPENDED_FOR: empty while the controller does not suspend the job.

    The state's format may change with each version of the controller; this format never does. A version that cannot read
    the state, such as an older one after a rollback, still resumes what another version has suspended.
    """
    is_to_resume = state.suspended_by_us and state.phase is not Phase.GIVEN_UP
    # The template of a job that is in another cluster, or on its way there, selects the pool that it comes back to.
    return f"{_MARKER} {state.uid} {home_pool(state.pool)}" if is_to_resume else ""


def read_record(state: str | None, marker: str, uid: str) -> JobState | UnreadableState | None:
    """Read the annotations of the job with this uid: its state, or what its marker says when the state cannot be read."""
    read = read_state(state)
    if isinstance(read, JobState) or not marker:
        return read
    problem = "it is missing" if read is None else read.problem
    return UnreadableState(problem=problem, resume_on=_marked_pool(marker, uid))


def _marked_pool(marker: str, uid: str) -> str | None:
    version, *rest = marker.split(" ")
    if version != _MARKER:
        return ""
    # A manifest that is exported and applied again includes the annotations of the job before it.
    return rest[1] if len(rest) == 2 and rest[0] == uid else None


def write_state(state: JobState) -> str:
    """Return the annotation's text: compact JSON, times in UTC, without fields that have their default."""
    written = {
        each.name: _written(getattr(state, each.name))
        for each in fields(state)
        if each.default is MISSING or getattr(state, each.name) != each.default
    }
    return json.dumps(written, separators=(",", ":"))


# A job is reconciled several times between two writes of its state. Longer texts are not the controller's own: a user who
# writes many of them would fill the memory.
_MOST_CACHED: Final = 1024
_LONGEST_CACHED: Final = 4096


def read_state(text: str | None) -> JobState | UnreadableState | None:
    """Read an annotation; None if there is none. Unknown fields are ignored. Every text has an answer."""
    if text is None:
        return None
    return _read_short(text) if len(text) <= _LONGEST_CACHED else _read(text)


@lru_cache(maxsize=_MOST_CACHED)
def _read_short(text: str) -> JobState | UnreadableState:
    return _read(text)


def _read(text: str) -> JobState | UnreadableState:
    try:
        document = cast("JsonValue", json.loads(text))
        return _state(read_object(document))
    except (ValueError, RecursionError) as error:
        return UnreadableState(problem=str(error) or "nested too deeply")


def _state(document: Json) -> JobState:
    read: dict[str, object] = {}
    for each in fields(JobState):
        if each.name in document:
            read[each.name] = _field(each.name, _READERS[each.name], document[each.name])
        elif each.default is MISSING:
            raise ValueError(f"{each.name} is missing")
    return JobState(**read)  # type: ignore[arg-type]  # every value came from the reader of its own field


def _field(name: str, reader: _Reader, value: JsonValue) -> object:
    try:
        return reader(value)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def _written(value: object) -> JsonValue:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, tuple):
        return [_written(each) for each in cast("tuple[object, ...]", value)]
    if isinstance(value, FailbackAttempt | Ledger | Pace | PoolUse | TimedFailure):
        named = {each.name: getattr(value, each.name) for each in fields(value)}
        return {name: _written(each) for name, each in named.items() if each or name not in _OF_COPIES}
    return cast("JsonValue", value)


def _absent_or(reader: _Reader) -> _Reader:
    return lambda value: None if value is None else reader(value)


def _attempt(value: JsonValue) -> FailbackAttempt:
    document = read_object(value)
    return FailbackAttempt(
        pool=read_text(document.get("pool")),
        stage=FailbackStage(read_text(document.get("stage"))),
        since=read_time(document.get("since")),
        requested_at=_absent_or(read_time)(document.get("requested_at")),  # type: ignore[arg-type]  # as the reader returns it
    )


def _failures(value: JsonValue) -> tuple[TimedFailure, ...]:
    found = [read_object(each) for each in read_list(value)]
    return tuple(
        TimedFailure(kind=OutageKind(read_text(each.get("kind"))), at=read_time(each.get("at")))
        for each in found
    )


def _pace(value: JsonValue) -> Pace:
    document = read_object(value)
    return Pace(
        work_done=read_seconds(document.get("work_done")),
        counts_from=_absent_or(read_time)(document.get("counts_from")),  # type: ignore[arg-type]  # as the reader returns it
        progress=_absent_or(read_share)(document.get("progress")),  # type: ignore[arg-type]  # likewise
        interruptions=read_count(document.get("interruptions")),
        is_late=read_flag(document.get("is_late")),
    )


def _ledger(value: JsonValue) -> Ledger | None:
    # A ledger of another format costs the job its past figures, not its position.
    try:
        return None if value is None else _read_ledger(read_object(value))
    except ValueError:
        return None


def _read_ledger(document: Json) -> Ledger:
    return Ledger(
        counted_from=read_time(document.get("counted_from")),
        counted_until=read_time(document.get("counted_until")),
        uses=tuple(_use(each) for each in read_list(document.get("uses"), most=_MOST_USES)),
        worked=read_seconds(document.get("worked")),
        lost=read_seconds(document.get("lost")),
        waited=read_seconds(document.get("waited")),
        starting=read_seconds(document.get("starting")),
        gang_time=read_node_seconds(document.get("gang_time")),
        copy=read_text(document.get("copy", "")),
        copied=_ledger(document.get("copied")),
    )


def _use(value: JsonValue) -> PoolUse:
    document = read_object(value)
    capacity = document.get("capacity")
    return PoolUse(
        pool=read_text(document.get("pool")),
        capacity=None if capacity is None else CapacityType(read_text(capacity)),
        node_time=read_node_seconds(document.get("node_time")),
        ran=read_seconds(document.get("ran")),
        cost=read_cost(document.get("cost")),
    )


_READERS: Final[Mapping[str, _Reader]] = {
    "uid": read_text,
    "phase": lambda value: Phase(read_text(value)),
    "pool": read_text,
    "rank": read_count,
    "since": read_time,
    "waiting_since": _absent_or(read_time),
    "waited": read_seconds,
    "evictions": read_count,
    "application_failures": read_count,
    "unexplained": read_count,
    "failures": _failures,
    "outage_kind": _absent_or(lambda value: OutageKind(read_text(value))),
    "outage_at": _absent_or(read_time),
    "outage_counted_at": _absent_or(read_time),
    "outage_pod_created_at": _absent_or(read_time),
    "eviction_at": _absent_or(read_time),
    "losses_counted_until": _absent_or(read_time),
    "restarts": read_count,
    "disrupted_restarts": read_count,
    "restart_expected": read_flag,
    "resumed_at": _absent_or(read_time),
    "head_restarts": read_count,
    "purpose": _absent_or(lambda value: Purpose(read_text(value))),
    "suspended_at": _absent_or(read_time),
    "operator_status": _absent_or(read_text),
    "resume_at": _absent_or(read_time),
    "moves": read_count,
    "yields": read_count,
    "resuspensions": read_count,
    "failback": _absent_or(_attempt),
    "last_failback_at": _absent_or(read_time),
    "short_failbacks": read_count,
    "entered_by_failback": read_flag,
    "recreations": read_count,
    "pace": _absent_or(_pace),
    "ledger": _ledger,
}
