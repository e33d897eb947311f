"""Reads a job's deadline from its annotations: the time by which it must finish, its work, and its progress."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final

from pulumi_holdfast.controller.api.objects import EARLIEST, LATEST, annotations_of, metadata_of, moment, text
from pulumi_holdfast.controller.state_machine.events import EventReason, JobEvent, standing_event
from pulumi_holdfast.controller.state_machine.observation import Deadline
from pulumi_holdfast.controller.state_machine.state import Pace
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import FINISH_BY, PROGRESS, WORK, WORK_DONE
from pulumi_holdfast.ladder.quantities import (
    DURATION_ALLOWED,
    LONGEST_DURATION,
    DurationError,
    format_duration,
    parse_duration,
)

_TIME_ALLOWED: Final = (
    f"a time with its zone between {EARLIEST:%Y} and {LATEST:%Y}, such as 2030-05-03T18:00:00Z"
)
_QUOTED: Final = 60
_ANNOTATIONS: Final = frozenset({FINISH_BY, WORK})
_NOTHING: Final = timedelta(0)


def deadline_of(job: Json, pods: Iterable[Json]) -> Deadline | None:
    """Return a job's deadline; None for a job without one, or with annotations that cannot be read."""
    finish_by, work = finish_by_of(job), _work(job)
    if finish_by is None or work is None:
        return None
    return Deadline(
        finish_by=finish_by,
        work=work,
        progress=progress_of(job, pods),
        done_before=min(work, _done_before(job)),
    )


def finish_by_of(job: Json) -> datetime | None:
    """Return when a job must have finished; None for a job without such a time, and for a date or a time without its zone."""
    written = _annotation(job, FINISH_BY) or ""
    try:
        # Without a zone the time would be read as one of another place than its author's.
        has_zone = datetime.fromisoformat(written).tzinfo is not None
    except ValueError:
        return None
    return moment(written) if has_zone else None


def work_done_of(job: Json, pods: Iterable[Json]) -> timedelta | None:
    """Return the work that a job's program reports as done; None if the job does not say how much work it is.

    The program reports a share of the whole work, also in a copy: the part that its job had done before is subtracted.
    """
    work = _work(job)
    progress = None if work is None else progress_of(job, pods)
    return None if work is None or progress is None else max(_NOTHING, work * progress - _done_before(job))


def work_done_annotation(pace: Pace | None) -> Mapping[str, str]:
    """Return the annotation of a job's copy with the work done before the copy; none if there is none."""
    done = "" if pace is None else format_duration(min(pace.work_done, LONGEST_DURATION))
    return {WORK_DONE: done} if done else {}


def deadline_events(job: Json) -> tuple[JobEvent, ...]:
    """Warn about a deadline that cannot be read, or that lacks one of its two annotations."""
    problem = _problem(job)
    if problem is None:
        return ()
    return (
        standing_event(
            EventReason.DEADLINE_UNUSABLE, f"The job follows its ladder without a deadline: {problem}"
        ),
    )


def _problem(job: Json) -> str | None:
    if not annotations_of(job).keys() & _ANNOTATIONS:
        return None  # as most jobs, each time that they are reconciled
    for name, other in ((FINISH_BY, WORK), (WORK, FINISH_BY)):
        if _annotation(job, name) is None and _annotation(job, other) is not None:
            return f"its annotation {other} needs {name}. Add it, or remove {other}."
    for name, value, allowed in (
        (FINISH_BY, finish_by_of(job), _TIME_ALLOWED),
        (WORK, _work(job), DURATION_ALLOWED),
    ):
        written = _annotation(job, name)
        if written is not None and value is None:
            return f'its annotation {name} is "{written[:_QUOTED]}"; allowed: {allowed}. Correct it.'
    return None


def _work(job: Json) -> timedelta | None:
    return _duration(job, WORK)


def _done_before(job: Json) -> timedelta:
    return _duration(job, WORK_DONE) or _NOTHING


def _duration(job: Json, name: str) -> timedelta | None:
    written = _annotation(job, name)
    try:
        return None if written is None else parse_duration(written)
    except DurationError:
        return None


def progress_of(job: Json, pods: Iterable[Json]) -> float | None:
    """Return the largest share of the work that a pod reports, or the job itself; None if none does.

    Several pods of a gang may report, some of them later.
    """
    reports = [_share(pod) for pod in pods if not metadata_of(pod).get("deletionTimestamp")]
    return max((each for each in reports if each is not None), default=_share(job))


def _share(obj: Json) -> float | None:
    """The share in an annotation: `0.42`, or steps such as `4200/10000`; None for anything else."""
    done, slash, total = (_annotation(obj, PROGRESS) or "").partition("/")
    try:
        share = float(done) / (float(total) if slash else 1.0)
    except (ValueError, ZeroDivisionError):
        return None
    return share if 0 <= share <= 1 else None


def _annotation(obj: Json, name: str) -> str | None:
    annotations = annotations_of(obj)
    return text(annotations[name]).strip() if name in annotations else None
