"""What is kept of a job between two looks at it: the annotation `fallback.holdfast.dev/state`."""

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
    """Where a job stands. It is suspended by us in SUSPENDING, PAUSED and GIVEN_UP, and in no other phase."""

    WAITING = "Waiting"  #: for nodes: not every expected pod has one, and the tier's clock runs
    RUNNING = "Running"  #: every expected pod has had a node
    SUSPENDING = "Suspending"  #: on its way to another tier, or back to its own; its pods go
    PAUSED = "Paused"  #: suspended until `resume_at`, since it yielded nodes to another gang
    STOPPED = "Stopped"  #: suspended by somebody else, who alone resumes it
    GIVEN_UP = "GivenUp"  #: suspended for good because the policy's limit for the last tier is spent
    FINISHED = "Finished"  #: completed or failed


class Purpose(StrEnum):
    """Why a job is being suspended."""

    FAILOVER = "Failover"  #: the tier's limits are spent, or its capacity does not come
    FAILBACK = "Failback"  #: a better tier's capacity is reserved for the job
    YIELD = "Yield"  #: two half-placed gangs blocked each other
    RESTART = "Restart"  #: its head is lost, and its operator would wait for it for ever


class OutageKind(StrEnum):
    """What an outage counts as."""

    EVICTION = "Eviction"
    APPLICATION = "Application"
    UNEXPLAINED = "Unexplained"


class FailbackStage(StrEnum):
    """How far a way back up has come."""

    RESERVING = "Reserving"  #: placeholders are wanted on the better tier
    TAINTING = "Tainting"  #: they all have nodes, which are to be tainted
    CHECKPOINTING = "Checkpointing"  #: the job was asked to checkpoint
    MOVING = "Moving"  #: the job is being moved onto the held nodes


@dataclass(frozen=True, kw_only=True)
class FailbackAttempt:
    """A way back up under way: to which pool, how far it is, since when it is tried, when a checkpoint was asked for."""

    pool: str
    stage: FailbackStage
    since: datetime
    requested_at: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class JobState:
    """All that is kept for one job.

    `uid`: whose state this is: a manifest that was exported and applied again brings its old annotation along.
    `pool`, `rank`: the tier the job is on, or will be resumed on, by its pool; and the tier's place in the ladder
    when it was entered, to go on from if the tier has been taken out since.
    `since`: when this stay on the tier began. `waiting_since`: since when a pod lacks a node, None when none does;
    `waited`: how long before that, when the wait was broken by a pause.
    `evictions`, `application_failures`, `unexplained`: outages counted in this stay, by what they were; the last are
    restarts that nobody saw the reason of. `outage_kind`: which of the three the outage counted last is among;
    `outage_at`: its first loss, by the clock of what reported it, None where no loss was seen; `outage_counted_at`: when
    it was counted, by ours; `outage_pod_created_at`: when the pod of that loss was created. `eviction_at`: the first loss of the
    last wave of evictions, by the clock of losses. `losses_counted_until`: losses up to this time, by the same clock as theirs, belong to the past.
    `restarts`, `disrupted_restarts`: how far the operator's counters are accounted for; `restart_expected`: the last
    outage's own restart has not shown in them yet.
    `resumed_at`: when it was last resumed by us. `head_restarts`: how often in this stay that was for a lost head.
    `purpose`: why it is being suspended; `suspended_at`: since when, kept until its pods have nodes again. `resume_at`: when a pause ends. `moves`: tiers
    entered so far. `yields`: pauses in this wait. `resuspensions`: how often somebody resumed the job in the middle of
    the present move.
    `failback`: the way back up under way. `last_failback_at`: when the last one ended without a move. `short_failbacks`:
    returns that did not last, one after another; each doubles the wait for the next. `entered_by_failback`: this stay began with
    a return. `recreations`: times the job was made anew.
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

    @property
    def suspended_by_us(self) -> bool:
        """Whether the suspension that comes with this state is ours to end."""
        return self.phase in {Phase.SUSPENDING, Phase.PAUSED, Phase.GIVEN_UP}


@dataclass(frozen=True, kw_only=True)
class UnreadableState:
    """An annotation that is no state: `problem` says why. A suspension that comes with it is taken for not ours."""

    problem: str


# Outside of these a time is no time of ours, and sums with it would overflow.
_EARLIEST: Final = datetime(2000, 1, 1, tzinfo=UTC)
_LATEST: Final = datetime(2200, 1, 1, tzinfo=UTC)
_MOST: Final = 2**31
_LONGEST_TEXT: Final = 253

_Reader: TypeAlias = Callable[["JsonValue"], object]


def write_state(state: JobState) -> str:
    """Return the state as the annotation holds it: compact JSON, times in UTC, what is as it began left out."""
    written = {
        each.name: _written(getattr(state, each.name))
        for each in fields(state)
        if each.default is MISSING or getattr(state, each.name) != each.default
    }
    return json.dumps(written, separators=(",", ":"))


def read_state(text: str | None) -> JobState | UnreadableState | None:
    """Read an annotation; None where there is none. Fields that are not known are left out of account."""
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
            raise ValueError(f"{each.name} is not there")
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
    if isinstance(value, FailbackAttempt):
        return {each.name: _written(getattr(value, each.name)) for each in fields(value)}
    return cast("JsonValue", value)


def _object(value: JsonValue) -> Json:
    if not isinstance(value, Mapping):
        raise ValueError("it is no JSON object")  # noqa: TRY004  # one kind of error for a text that is no state
    return value


def _time(value: JsonValue) -> datetime:
    if not isinstance(value, str):
        raise ValueError("it is no time")  # noqa: TRY004  # as above: one kind of error
    time = datetime.fromisoformat(value)
    if time.tzinfo is None or not _EARLIEST <= time <= _LATEST:
        raise ValueError(f"{value} is no time between {_EARLIEST:%Y} and {_LATEST:%Y} with its zone")
    return time


def _seconds(value: JsonValue) -> timedelta:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < _MOST:
        raise ValueError("it is no number of seconds")
    return timedelta(seconds=value)


def _count(value: JsonValue) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < _MOST:
        raise ValueError("it is no count")
    return value


def _flag(value: JsonValue) -> bool:
    if not isinstance(value, bool):
        raise ValueError("it is neither true nor false")  # noqa: TRY004  # as above: one kind of error
    return value


def _text(value: JsonValue) -> str:
    if not isinstance(value, str) or len(value) > _LONGEST_TEXT:
        raise ValueError(f"it is no text of at most {_LONGEST_TEXT} characters")
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
}
