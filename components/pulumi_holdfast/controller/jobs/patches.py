"""What the controller records in a job: its state, the marker of a suspension, checkpoint requests.

Each patch is one update under the resource version that was observed. Every text of an annotation has an answer: a user may
edit it, and another version of the controller may have written it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, fields
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final, TypeAlias, TypeVar, cast

from pulumi_holdfast.controller.jobs.state import (
    LONGEST_REFUSAL,
    FailbackAttempt,
    FailbackStage,
    JobState,
    Ledger,
    OutageKind,
    Pace,
    Phase,
    PoolUse,
    Purpose,
    TimedFailure,
    UnreadableState,
)
from pulumi_holdfast.controller.kube.objects import (
    annotations_of,
    labels_of,
    metadata_of,
    moment,
    name_of,
    objects,
    stamp,
    text,
    uid_of,
)
from pulumi_holdfast.ladder.frozen import replace
from pulumi_holdfast.ladder.json import Json, JsonValue, mapping
from pulumi_holdfast.ladder.labels import (
    CHECKPOINT_REQUESTED,
    CHECKPOINTED,
    CHECKPOINTS_ON_REQUEST,
    STATE,
    SUCCESSOR_OF,
    SUSPENDED_FOR,
    TIER,
    CapacityType,
)
from pulumi_holdfast.ladder.ladder import MOST_TIERS, MOST_TIMED_FAILURES

_Reader: TypeAlias = Callable[[JsonValue], object]
_Recorded: TypeAlias = JobState | FailbackAttempt | Ledger | Pace | PoolUse | TimedFailure
T = TypeVar("T", bound=_Recorded)
# Sixteen tiers, and in each of their clusters as many again.
_MOST_USES: Final = MOST_TIERS * (MOST_TIERS + 1)
# Of each kind, and one more of each, which moves the job on.
_MOST_FAILURES: Final = len(OutageKind) * (MOST_TIMED_FAILURES + 1)

# The first word of the marker is the version of its format.
_MARKER: Final = "v1"


def write_marker(state: JobState) -> str:
    """Return the text of the annotation SUSPENDED_FOR: empty while the controller does not suspend the job.

    The state's format may change with each version of the controller; this format never does. A version that cannot read
    the state, such as an older one after a rollback, still resumes what another version has suspended.
    """
    is_to_resume = state.suspended_by_us and state.phase not in {Phase.GIVEN_UP, Phase.REFUSED}
    # The template of a job that is in another cluster, or on its way there, selects the pool that it comes back to.
    return f"{_MARKER} {state.uid} {state.template_pool}" if is_to_resume else ""


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
    return json.dumps(_written_fields(state), separators=(",", ":"))


def _written_fields(value: _Recorded) -> Json:
    return {
        each.name: _written(getattr(value, each.name))
        for each in fields(value)
        if each.default is MISSING or getattr(value, each.name) != each.default
    }


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
        return _record(JobState, _STATE, cast("JsonValue", json.loads(text)))
    except (ValueError, RecursionError) as error:
        return UnreadableState(problem=str(error) or "nested too deeply")


def _record(kind: type[T], readers: Mapping[str, _Reader], value: JsonValue) -> T:
    """Return a record of which each field has a reader. A field that is absent has its default."""
    document = _read_object(value)
    read: dict[str, object] = {}
    for each in fields(kind):
        if each.name in document:
            read[each.name] = _field(each.name, readers[each.name], document[each.name])
        elif each.default is MISSING:
            raise ValueError(f"{each.name} is missing")
    # Every value came from the reader of its own field.
    return cast("Callable[..., T]", kind)(**read)


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
    if isinstance(value, _Recorded):
        return _written_fields(value)
    return cast("JsonValue", value)


# A time outside of these is invalid, and sums with it would overflow.
_EARLIEST: Final = datetime(2000, 1, 1, tzinfo=UTC)
_LATEST: Final = datetime(2200, 1, 1, tzinfo=UTC)
_MOST: Final = 2**31
_MOST_NODE_SECONDS: Final = 2.0**40
_MOST_COST: Final = 1e15
_LONGEST_TEXT: Final = 253


def _read_object(value: JsonValue) -> Json:
    """Return a JSON object."""
    if not isinstance(value, Mapping):
        raise ValueError("it is not a JSON object")  # noqa: TRY004  # one kind of error for every invalid text
    return value


def _read_time(value: JsonValue) -> datetime:
    """Return a time with its zone."""
    if not isinstance(value, str):
        raise ValueError("it is not a time")  # noqa: TRY004  # as above: one kind of error
    time = datetime.fromisoformat(value)
    if time.tzinfo is None or not _EARLIEST <= time <= _LATEST:
        raise ValueError(f"{value} is not a time between {_EARLIEST:%Y} and {_LATEST:%Y} with a time zone")
    return time


def _number(value: JsonValue, most: float, what: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < most:
        raise ValueError(f"it is not {what}")
    return value


def _read_seconds(value: JsonValue) -> timedelta:
    """Return a duration, which is written in seconds."""
    return timedelta(seconds=_number(value, _MOST, "a number of seconds"))


def _read_node_seconds(value: JsonValue) -> timedelta:
    """Return a duration that is added up over nodes, so that it may be longer."""
    return timedelta(seconds=_number(value, _MOST_NODE_SECONDS, "a number of seconds"))


def _read_cost(value: JsonValue) -> float | None:
    """Return an amount of money; None if it is not known."""
    return None if value is None else float(_number(value, _MOST_COST, "an amount of money"))


def _read_count(value: JsonValue) -> int:
    """Return a count."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < _MOST:
        raise ValueError("it is not a count")
    return value


def _read_rank(value: JsonValue) -> int:
    """Return the rank of a tier."""
    rank = _read_count(value)
    if rank >= MOST_TIERS:
        raise ValueError(f"no ladder has more than {MOST_TIERS} tiers")
    return rank


def _read_flag(value: JsonValue) -> bool:
    """Return true or false."""
    if not isinstance(value, bool):
        raise ValueError("it is neither true nor false")  # noqa: TRY004  # as above: one kind of error
    return value


def _read_text(value: JsonValue) -> str:
    """Return a short text."""
    if not isinstance(value, str) or len(value) > _LONGEST_TEXT:
        raise ValueError(f"it is not a text of at most {_LONGEST_TEXT} characters")
    return value


def _read_refusal(value: JsonValue) -> str:
    """Return the text of a refusal."""
    if not isinstance(value, str) or len(value) > LONGEST_REFUSAL:
        raise ValueError(f"it is not a text of at most {LONGEST_REFUSAL} characters")
    return value


def _read_list(value: JsonValue, *, most: int | None = None) -> list[JsonValue]:
    """Return a list, of at most so many values."""
    if not isinstance(value, list):
        raise ValueError("it is not a list")  # noqa: TRY004  # as above: one kind of error
    if most is not None and len(value) > most:
        raise ValueError(f"it has more than {most} values")
    return value


def _read_share(value: JsonValue) -> float:
    """Return a share from 0 to 1."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise ValueError("it is not a share from 0 to 1")
    return float(value)


def _absent_or(reader: _Reader) -> _Reader:
    return lambda value: None if value is None else reader(value)


def _read_capacity(value: JsonValue) -> CapacityType | None:
    return None if value is None else CapacityType(_read_text(value))


_ATTEMPT: Final[Mapping[str, _Reader]] = {
    "pool": _read_text,
    "stage": lambda value: FailbackStage(_read_text(value)),
    "since": _read_time,
    "requested_at": _absent_or(_read_time),
}
_FAILURE: Final[Mapping[str, _Reader]] = {
    "kind": lambda value: OutageKind(_read_text(value)),
    "at": _read_time,
}
_PACE: Final[Mapping[str, _Reader]] = {
    "work_done": _read_seconds,
    "counts_from": _absent_or(_read_time),
    "progress": _absent_or(_read_share),
    "interruptions": _read_count,
    "is_late": _read_flag,
}
_USE: Final[Mapping[str, _Reader]] = {
    "pool": _read_text,
    "capacity": _read_capacity,
    "node_time": _read_node_seconds,
    "ran": _read_seconds,
    "cost": _read_cost,
}


def _read_failures(value: JsonValue) -> tuple[TimedFailure, ...]:
    return tuple(_record(TimedFailure, _FAILURE, each) for each in _read_list(value, most=_MOST_FAILURES))


def _read_uses(value: JsonValue) -> tuple[PoolUse, ...]:
    return tuple(_record(PoolUse, _USE, each) for each in _read_list(value, most=_MOST_USES))


def _read_ledger(value: JsonValue) -> Ledger | None:
    # A ledger that cannot be read costs the job its past figures, not its position.
    try:
        return None if value is None else _record(Ledger, _LEDGER, value)
    except ValueError:
        return None


_LEDGER: Final[Mapping[str, _Reader]] = {
    "counted_from": _read_time,
    "counted_until": _read_time,
    "uses": _read_uses,
    "worked": _read_seconds,
    "lost": _read_seconds,
    "waited": _read_seconds,
    "starting": _read_seconds,
    "gang_time": _read_node_seconds,
    "copy": _read_text,
    "copied": _read_ledger,
}
_STATE: Final[Mapping[str, _Reader]] = {
    "uid": _read_text,
    "phase": lambda value: Phase(_read_text(value)),
    "pool": _read_text,
    "rank": _read_rank,
    "since": _read_time,
    "waiting_since": _absent_or(_read_time),
    "waited": _read_seconds,
    "evictions": _read_count,
    "application_failures": _read_count,
    "unexplained": _read_count,
    "failures": _read_failures,
    "outage_kind": _absent_or(lambda value: OutageKind(_read_text(value))),
    "outage_at": _absent_or(_read_time),
    "outage_counted_at": _absent_or(_read_time),
    "outage_pod_created_at": _absent_or(_read_time),
    "eviction_at": _absent_or(_read_time),
    "losses_counted_until": _absent_or(_read_time),
    "restarts": _read_count,
    "disrupted_restarts": _read_count,
    "restart_expected": _read_flag,
    "resumed_at": _absent_or(_read_time),
    "head_restarts": _read_count,
    "purpose": _absent_or(lambda value: Purpose(_read_text(value))),
    "suspended_at": _absent_or(_read_time),
    "operator_status": _read_text,
    "resume_at": _absent_or(_read_time),
    "moves": _read_count,
    "yields": _read_count,
    "resuspensions": _read_count,
    "failback": _absent_or(lambda value: _record(FailbackAttempt, _ATTEMPT, value)),
    "last_failback_at": _absent_or(_read_time),
    "short_failbacks": _read_count,
    "entered_by_failback": _read_flag,
    "recreations": _read_count,
    "refusal": _read_refusal,
    "pace": _absent_or(lambda value: _record(Pace, _PACE, value)),
    "ledger": _read_ledger,
}


_DISRUPTED: Final = "DisruptionTarget"


def state_patch(job: Json, state: str) -> Json:
    """Return the patch that writes the state and nothing else; `state` is the annotation's text."""
    return {"metadata": {**fence(job), "annotations": {STATE: state}}}


def spec_patch(job: Json, state: str, spec: Json) -> Json:
    """Return the patch that writes the state together with part of the job's spec."""
    return {**state_patch(job, state), "spec": spec}


def with_marks(patch: Json, job: Json, state: JobState) -> Json:
    """Return a patch that writes a state, with the marker of the job's suspension and the label of its tier beside it."""
    metadata = mapping(patch.get("metadata"))
    marker = write_marker(state)
    if marker or SUSPENDED_FOR in annotations_of(job):
        # Empty, not removed: admission restores annotations that an applied manifest lacks.
        metadata = {
            **metadata,
            "annotations": {**mapping(metadata.get("annotations")), SUSPENDED_FOR: marker},
        }
    tier = tier_label(state.pool)
    if labels_of(job).get(TIER) != tier:
        metadata = {**metadata, "labels": {TIER: tier}}
    return {**patch, "metadata": metadata}


_LONGEST_LABEL: Final = 63


def tier_label(pool: str) -> str:
    """Return the label of a job on a pool's tier: `us-east-2.a100-spot` for a pool in another cluster."""
    return pool.replace("/", ".")[:_LONGEST_LABEL].rstrip("-.")


def checkpoint_request(obj: Json, at: datetime) -> Json:
    """Return the patch that asks a job, or one of its pods, to write a checkpoint.

    It has only the uid as a precondition: other changes of the object do not matter.
    """
    return {
        "metadata": {"uid": metadata_of(obj).get("uid"), "annotations": {CHECKPOINT_REQUESTED: stamp(at)}}
    }


def terminated_pod_status(pod: Json, at: datetime) -> Json:
    """Return the status patch that ends a pod whose machine is gone, as the pod garbage collector writes it.

    Deleting the pod is not enough: a Job with a pod failure policy keeps its finalizer until the pod has ended, and reads
    from it whether it was disrupted.
    """
    status = mapping(pod.get("status"))
    others = [each for each in objects(status.get("conditions")) if each.get("type") != _DISRUPTED]
    target: Json = {
        "type": _DISRUPTED,
        "status": "True",
        "reason": "DeletionByPodGC",
        "message": "Its machine is gone permanently.",
        "lastTransitionTime": at.strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    return {
        "metadata": {"uid": metadata_of(pod).get("uid")},
        "status": {"phase": "Failed", "conditions": [*others, target]},
    }


# The name of a RayJob's successor ends with so much of the uid of the one that failed.
LENGTH_OF_UID: Final = 8


def recorded_state(job: Json) -> JobState | UnreadableState | None:
    """Return the state that a controller has recorded in a job; None if it has recorded none in this one.

    A manifest that was exported and applied again has the record of another job, which is none of this one. Only a successor
    takes over the record of the job that failed, from whose uid it has its name.
    """
    annotations, uid = annotations_of(job), uid_of(job)
    state = text(annotations[STATE]) if STATE in annotations else None
    read = read_record(state, text(annotations.get(SUSPENDED_FOR)), uid)
    if not isinstance(read, JobState) or read.uid == uid:
        return read
    start = read.uid[:LENGTH_OF_UID]
    is_successor = len(start) == LENGTH_OF_UID and name_of(job).endswith(f"-{start}")
    return replace(read, uid=uid) if is_successor and SUCCESSOR_OF in annotations else None


def checkpoint_requested_at(job: Json) -> datetime | None:
    """Return the last checkpoint request that a job was sent."""
    return moment(annotations_of(job).get(CHECKPOINT_REQUESTED))


def checkpoints_on_request(job: Json) -> bool:
    """Whether a job declares that its program answers checkpoint requests."""
    return annotations_of(job).get(CHECKPOINTS_ON_REQUEST) == "true"


def checkpointed_at(pods: Iterable[Json]) -> datetime | None:
    """Return the last answer of a job's pods."""
    answers = [moment(annotations_of(pod).get(CHECKPOINTED)) for pod in pods]
    return max((each for each in answers if each is not None), default=None)


def fence(obj: Json) -> Json:
    """Return metadata that makes the API server reject the patch of an object that has changed or been replaced."""
    known = metadata_of(obj)
    return {"resourceVersion": known.get("resourceVersion"), "uid": known.get("uid")}
