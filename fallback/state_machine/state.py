"""The state that is recorded for a job between two reconciliations: the annotation `fallback.holdfast.dev/state`."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Final, TypeAlias, cast

if TYPE_CHECKING:
    from holdfast.scheduling.json import Json, JsonValue


class Phase(StrEnum):
    """The phase of a job. The controller has suspended it in SUSPENDING, PAUSED and GIVEN_UP, and in no other phase."""

    WAITING = "Waiting"  #: for nodes: not every expected pod has one, and the tier's timeout runs
    RUNNING = "Running"  #: every expected pod has had a node
    SUSPENDING = "Suspending"  #: moving to another tier, or restarting on the same one; its pods terminate
    PAUSED = "Paused"  #: suspended until `resume_at`, since it yielded nodes to another gang
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
    `purpose`: why it is being suspended; `suspended_at`: since when, kept until its pods have nodes again. `resume_at`:
    when a pause ends. `moves`: tiers entered so far. `yields`: pauses in this wait. `resuspensions`: how many times another
    client resumed the job during the current move.
    `failback`: the failback under way. `last_failback_at`: when the last one ended without a move. `short_failbacks`: how
    many failbacks in a row did not last; each doubles the wait for the next. `entered_by_failback`: this visit began with
    a failback. `recreations`: how many times the job was recreated. `pace`: of a job with a deadline.
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

    @property
    def suspended_by_us(self) -> bool:
        """Whether the controller made the job's suspension and must end it."""
        return self.phase in {Phase.SUSPENDING, Phase.PAUSED, Phase.GIVEN_UP}


@dataclass(frozen=True, kw_only=True)
class UnreadableState:
    """An annotation that is not a state: `problem` says why.

    `resume_on`: the controller has suspended the job, and resumes it on this pool; empty for the pool that the job selects.
    None: the job's suspension counts as another client's.
    """

    problem: str
    resume_on: str | None = None


# A time outside of these is invalid, and sums with it would overflow.
_EARLIEST: Final = datetime(2000, 1, 1, tzinfo=UTC)
_LATEST: Final = datetime(2200, 1, 1, tzinfo=UTC)
_MOST: Final = 2**31
_LONGEST_TEXT: Final = 253

_Reader: TypeAlias = Callable[["JsonValue"], object]


# The first word of the marker is the version of its format.
_MARKER: Final = "v1"


def write_marker(state: JobState) -> str:
    """Return the text of the annotation SUSPENDED_FOR: empty while the controller does not suspend the job.

    The state's format may change with each version of the controller; this format never does. A version that cannot read
    the state, such as an older one after a rollback, still resumes what another version has suspended.
    """
    is_to_resume = state.suspended_by_us and state.phase is not Phase.GIVEN_UP
    return f"{_MARKER} {state.uid} {state.pool}" if is_to_resume else ""


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


def read_state(text: str | None) -> JobState | UnreadableState | None:
    """Read an annotation; None if there is none. Unknown fields are ignored. Every text has an answer."""
    if text is None:
        return None
    try:
        document = cast("JsonValue", json.loads(text))
        return _state(_object(document))
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
    if isinstance(value, FailbackAttempt | Pace | TimedFailure):
        return {each.name: _written(getattr(value, each.name)) for each in fields(value)}
    return cast("JsonValue", value)


def _object(value: JsonValue) -> Json:
    if not isinstance(value, Mapping):
        raise ValueError("it is not a JSON object")  # noqa: TRY004  # one kind of error for every invalid text
    return value


def _time(value: JsonValue) -> datetime:
    if not isinstance(value, str):
        raise ValueError("it is not a time")  # noqa: TRY004  # as above: one kind of error
    time = datetime.fromisoformat(value)
    if time.tzinfo is None or not _EARLIEST <= time <= _LATEST:
        raise ValueError(f"{value} is not a time between {_EARLIEST:%Y} and {_LATEST:%Y} with a time zone")
    return time


def _seconds(value: JsonValue) -> timedelta:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < _MOST:
        raise ValueError("it is not a number of seconds")
    return timedelta(seconds=value)


def _count(value: JsonValue) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < _MOST:
        raise ValueError("it is not a count")
    return value


def _flag(value: JsonValue) -> bool:
    if not isinstance(value, bool):
        raise ValueError("it is neither true nor false")  # noqa: TRY004  # as above: one kind of error
    return value


def _text(value: JsonValue) -> str:
    if not isinstance(value, str) or len(value) > _LONGEST_TEXT:
        raise ValueError(f"it is not a text of at most {_LONGEST_TEXT} characters")
    return value


def _absent_or(reader: _Reader) -> _Reader:
    return lambda value: None if value is None else reader(value)


def _attempt(value: JsonValue) -> FailbackAttempt:
    document = _object(value)
    return FailbackAttempt(
        pool=_text(document.get("pool")),
        stage=FailbackStage(_text(document.get("stage"))),
        since=_time(document.get("since")),
        requested_at=None if document.get("requested_at") is None else _time(document.get("requested_at")),
    )


def _failures(value: JsonValue) -> tuple[TimedFailure, ...]:
    if not isinstance(value, list):
        raise ValueError("it is not a list")  # noqa: TRY004  # as above: one kind of error
    found = [_object(each) for each in value]
    return tuple(
        TimedFailure(kind=OutageKind(_text(each.get("kind"))), at=_time(each.get("at"))) for each in found
    )


def _pace(value: JsonValue) -> Pace:
    document = _object(value)
    return Pace(
        work_done=_seconds(document.get("work_done")),
        counts_from=_absent_or(_time)(document.get("counts_from")),  # type: ignore[arg-type]  # as the reader returns it
        progress=_absent_or(_share)(document.get("progress")),  # type: ignore[arg-type]  # likewise
        interruptions=_count(document.get("interruptions")),
        is_late=_flag(document.get("is_late")),
    )


def _share(value: JsonValue) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise ValueError("it is not a share from 0 to 1")
    return float(value)


_READERS: Final[Mapping[str, _Reader]] = {
    "uid": _text,
    "phase": lambda value: Phase(_text(value)),
    "pool": _text,
    "rank": _count,
    "since": _time,
    "waiting_since": _absent_or(_time),
    "waited": _seconds,
    "evictions": _count,
    "application_failures": _count,
    "unexplained": _count,
    "failures": _failures,
    "outage_kind": _absent_or(lambda value: OutageKind(_text(value))),
    "outage_at": _absent_or(_time),
    "outage_counted_at": _absent_or(_time),
    "outage_pod_created_at": _absent_or(_time),
    "eviction_at": _absent_or(_time),
    "losses_counted_until": _absent_or(_time),
    "restarts": _count,
    "disrupted_restarts": _count,
    "restart_expected": _flag,
    "resumed_at": _absent_or(_time),
    "head_restarts": _count,
    "purpose": _absent_or(lambda value: Purpose(_text(value))),
    "suspended_at": _absent_or(_time),
    "resume_at": _absent_or(_time),
    "moves": _count,
    "yields": _count,
    "resuspensions": _count,
    "failback": _absent_or(_attempt),
    "last_failback_at": _absent_or(_time),
    "short_failbacks": _count,
    "entered_by_failback": _flag,
    "recreations": _count,
    "pace": _absent_or(_pace),
}
