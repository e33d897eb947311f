"""Follows a job from the loss of a node until its progress passes the old value. Pure: one observation after the other.

A gang's new pods start from the latest checkpoint: the lost work is the difference between the last report of the old pods
and the first report of the new ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from pulumi_holdfast.controller.jobs.pods_and_nodes import has_ended, has_started, is_terminating, node_of
from pulumi_holdfast.controller.kube.objects import annotations_of, text, uid_of
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import PROGRESS


@dataclass(frozen=True, kw_only=True, order=True)
class Progress:
    """A report of a program: the share that is done; `done` and `total` in its own units (`0.42` has the total 1)."""

    share: float
    done: float
    total: float


class Stage(StrEnum):
    """The stages of a recovery, in this order."""

    LOST = "lost"  #: a pod of the job is terminating, has ended, or is gone
    REPLACED = "replaced"  #: a new pod exists
    PLACED = "placed"  #: every pod of the gang has a node again
    STARTED = "started"  #: every pod of the gang runs again
    REPORTED = "reported"  #: the program has reported from its checkpoint
    RECOVERED = "recovered"  #: the progress has passed the old value


@dataclass(frozen=True, kw_only=True)
class Sighting:
    """The job at one moment, `at` seconds after the node was taken. `own_progress`: what the job's own annotation says."""

    at: float
    pods: Sequence[Json]
    pool: str | None = None
    own_progress: Progress | None = None
    has_completed: bool = False


@dataclass(frozen=True, kw_only=True)
class Recovery:
    """What was seen so far.

    `old`: the pods of before the loss, by uid. `before`: the furthest report before the restart; `after`: the first one of a
    new pod. `stages`: seconds from the taking. `reports`: the last report of each pod. `node_seconds`: time of the job's nodes
    until it has its progress again.
    """

    old: frozenset[str]
    size: int
    before: Progress
    after: Progress | None = None
    latest: Progress | None = None
    stages: Mapping[Stage, float] = field(default_factory=dict[Stage, float])
    reports: Mapping[str, Progress] = field(default_factory=dict[str, Progress])
    node_seconds: float = 0.0
    at: float = 0.0
    nodes: int = 0
    pool: str | None = None

    @property
    def is_complete(self) -> bool:
        """Whether the progress has passed the old value."""
        return Stage.RECOVERED in self.stages

    @property
    def steps_lost(self) -> float | None:
        """How much work was repeated, in the program's own units; None until the program has reported again."""
        if self.after is None:
            return None
        return max(0.0, round((self.before.share - self.after.share) * self.before.total, 6))


def begin(pods: Sequence[Json], before: Progress, pool: str | None) -> Recovery:
    """Return the record of a job whose node is about to be interrupted."""
    alive = [pod for pod in pods if _is_alive(pod)]
    return Recovery(
        old=frozenset(map(uid_of, alive)),
        reports={uid_of(pod): found for pod in alive if (found := progress_of(pod)) is not None},
        size=len(alive),
        before=before,
        nodes=len({node_of(pod) for pod in alive}),
        pool=pool,
    )


def advance(record: Recovery, seen: Sighting) -> Recovery:
    """Return the record with one more sighting."""
    if record.is_complete:
        return record
    alive = [pod for pod in seen.pods if _is_alive(pod)]
    new = [pod for pod in alive if uid_of(pod) not in record.old]
    record = _with_reports(record, seen, new)
    reached = {
        Stage.LOST: bool(record.old - {uid_of(pod) for pod in alive}),
        Stage.REPLACED: bool(new),
        Stage.PLACED: bool(new) and _count(alive, record, lambda pod: bool(node_of(pod))),
        Stage.STARTED: bool(new) and _count(alive, record, has_started),
        Stage.REPORTED: record.after is not None,
        Stage.RECOVERED: seen.has_completed or _has_passed(record),
    }
    stages = dict(record.stages)
    for stage, is_reached in reached.items():
        # A stage is reached after those before it: a report of a new pod implies that it runs, whatever was seen of it.
        if is_reached and (stage is Stage.LOST or Stage.LOST in stages):
            for earlier in list(Stage)[: list(Stage).index(stage) + 1]:
                stages.setdefault(earlier, seen.at)
    return replace(
        record,
        stages=stages,
        node_seconds=record.node_seconds + record.nodes * max(0.0, seen.at - record.at),
        at=max(record.at, seen.at),
        nodes=len({node_of(pod) for pod in alive if node_of(pod)}),
        pool=seen.pool or record.pool,
    )


def parse_progress(written: str) -> Progress | None:
    """Return a report: a share (`0.42`) or steps (`4200/10000`); None for anything else."""
    done, slash, total = written.strip().partition("/")
    try:
        most = float(total) if slash else 1.0
        share = float(done) / most
    except (ValueError, ZeroDivisionError):
        return None
    return Progress(share=share, done=float(done), total=most) if 0 <= share <= 1 else None


def progress_of(obj: Json) -> Progress | None:
    """Return the report of a pod or a job; None without one."""
    return parse_progress(text(annotations_of(obj).get(PROGRESS)))


def furthest(objects: Sequence[Json]) -> Progress | None:
    """Return the furthest report of several objects; None if none reports."""
    return max(filter(None, map(progress_of, objects)), default=None)


def _with_reports(record: Recovery, seen: Sighting, new: Sequence[Json]) -> Recovery:
    """Take the reports of old pods as before the restart, those of new pods as after it.

    A pod that survives (a Ray driver) reports again from the checkpoint: its report falls. A program may annotate its job
    instead: what it says once no old pod runs, and differs, is a report of after the restart.
    """
    reports = {uid_of(pod): found for pod in seen.pods if (found := progress_of(pod)) is not None}
    fallen = [each for uid, each in reports.items() if uid in record.reports and each < record.reports[uid]]
    before = max([record.before, *(each for uid, each in reports.items() if uid in record.old)])
    later = max([*filter(None, map(progress_of, new)), *fallen], default=None)
    own = seen.own_progress
    if own is not None and not reports:
        are_gone = not any(uid_of(pod) in record.old and _is_alive(pod) for pod in seen.pods)
        if not are_gone:
            before = max(before, own)
        elif own != record.before:
            later = own
    if record.after is None:
        return replace(record, before=before, after=later, latest=later, reports=reports)
    current = max([*reports.values(), *([own] if own is not None else [])], default=record.latest)
    return replace(record, latest=current, reports=reports)


def _has_passed(record: Recovery) -> bool:
    return (
        record.after is not None and record.latest is not None and record.latest.share > record.before.share
    )


def _is_alive(pod: Json) -> bool:
    return not has_ended(pod) and not is_terminating(pod)


def _count(alive: Sequence[Json], record: Recovery, condition: Callable[[Json], bool]) -> bool:
    return len([pod for pod in alive if condition(pod)]) >= record.size
