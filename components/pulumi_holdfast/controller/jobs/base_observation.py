"""What JobSets and RayJobs have in common in an observation: identity, losses, pods, and what users ask by annotations."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import floor
from typing import TYPE_CHECKING, Final, cast

from pulumi_holdfast.controller.jobs import patches
from pulumi_holdfast.controller.jobs.actions import EventReason, JobEvent, standing_event
from pulumi_holdfast.controller.jobs.observation import GRANTED, Deadline, MaxCost, Observation
from pulumi_holdfast.controller.jobs.pod_history import dead_pods_of, losses_of, pod_records
from pulumi_holdfast.controller.jobs.pods_and_nodes import (
    NodeState,
    bound_at,
    has_ended,
    has_started,
    is_terminating,
    node_of,
    state_of_node,
)
from pulumi_holdfast.controller.jobs.state import Ledger, Pace
from pulumi_holdfast.controller.kube.objects import (
    EARLIEST,
    LATEST,
    annotations_of,
    labels_of,
    metadata_of,
    moment,
    objects,
    text,
    uid_of,
)
from pulumi_holdfast.ladder.json import Json, JsonValue, mapping
from pulumi_holdfast.ladder.labels import (
    AFTER_MAX_COST,
    COPY_OF,
    FINISH_BY,
    FIRST_CREATED,
    FOLLOWS,
    FOLLOWS_VALUE,
    MAX_COST,
    ORIGINAL,
    PERMIT,
    PROGRESS,
    STOP,
    WORK,
    WORK_DONE,
    CapacityType,
)
from pulumi_holdfast.ladder.ladder import AFTER_MAX_COST_VALUES, GIVE_UP_AFTER_MAX_COST, parse_max_cost
from pulumi_holdfast.ladder.quantities import (
    DURATION_ALLOWED,
    LONGEST_DURATION,
    DurationError,
    format_duration,
    parse_duration,
)

if TYPE_CHECKING:
    from pulumi_holdfast.controller.jobs.pod_history import PodHistory
    from pulumi_holdfast.controller.jobs.pods_and_nodes import Snapshot


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
    written = _written(job, FINISH_BY) or ""
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
    problem = _deadline_problem(job)
    if problem is None:
        return ()
    return (
        standing_event(
            EventReason.ANNOTATION_UNUSABLE, f"The job follows its ladder without a deadline: {problem}"
        ),
    )


def _deadline_problem(job: Json) -> str | None:
    if not annotations_of(job).keys() & _ANNOTATIONS:
        return None  # as most jobs, each time that they are reconciled
    for name, other in ((FINISH_BY, WORK), (WORK, FINISH_BY)):
        if _written(job, name) is None and _written(job, other) is not None:
            return f"its annotation {other} needs {name}. Add it, or remove {other}."
    for name, value, allowed in (
        (FINISH_BY, finish_by_of(job), _TIME_ALLOWED),
        (WORK, _work(job), DURATION_ALLOWED),
    ):
        written = _written(job, name)
        if written is not None and value is None:
            return f'its annotation {name} is "{written[:_QUOTED]}"; allowed: {allowed}. Correct it.'
    return None


def _work(job: Json) -> timedelta | None:
    return _duration(job, WORK)


def _done_before(job: Json) -> timedelta:
    return _duration(job, WORK_DONE) or _NOTHING


def _duration(job: Json, name: str) -> timedelta | None:
    written = _written(job, name)
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
    done, slash, total = (_written(obj, PROGRESS) or "").partition("/")
    try:
        share = float(done) / (float(total) if slash else 1.0)
    except (ValueError, ZeroDivisionError):
        return None
    return share if 0 <= share <= 1 else None


def _written(obj: Json, name: str) -> str | None:
    annotations = annotations_of(obj)
    return text(annotations[name]).strip() if name in annotations else None


# The least amount that can be written.
_LEAST: Final = 1e-6


def max_cost_of(job: Json) -> MaxCost | None:
    """Return how much a job may spend on on-demand nodes; None without a valid limit."""
    written = _cost_annotations(job)
    amount = parse_max_cost(written.get(MAX_COST, ""))
    return (
        None
        if amount is None
        else MaxCost(amount=amount, gives_up=written.get(AFTER_MAX_COST) == GIVE_UP_AFTER_MAX_COST)
    )


def max_cost_left(job: Json, ledger: Ledger | None) -> str:
    """Return the `max-cost` of a job's copy: the rest of the job's own, because the copy's ledger does not include the job's.

    Never 0, which would be no limit: the smallest amount pays for no on-demand node.
    """
    limit = max_cost_of(job)
    if limit is None:
        return _cost_annotations(job).get(MAX_COST, "")
    left = limit.amount - (0.0 if ledger is None else ledger.cost_of(CapacityType.ON_DEMAND))
    # Rounded down: both limits together are never more than what the user allows.
    return f"{max(floor(left / _LEAST), 1) * _LEAST:.6f}"


def max_cost_events(job: Json) -> tuple[JobEvent, ...]:
    """Warn about invalid annotations, which admission rejects if it is installed."""
    problem = _max_cost_problem(_cost_annotations(job))
    return () if problem is None else (standing_event(EventReason.ANNOTATION_UNUSABLE, problem),)


def _max_cost_problem(written: Mapping[str, str]) -> str | None:
    most, after = written.get(MAX_COST), written.get(AFTER_MAX_COST)
    if most is not None and parse_max_cost(most) is None:
        return (
            f'The job may spend any amount: its annotation {MAX_COST} is "{most[:_QUOTED]}"; allowed: a number above 0, such as '
            "250 or 99.50. Correct it."
        )
    if after is not None and most is None:
        return f"The job may spend any amount: its annotation {AFTER_MAX_COST} needs {MAX_COST}. Add it, or remove this one."
    if after not in {None, *AFTER_MAX_COST_VALUES}:
        return (
            f'The job waits when its max-cost is spent: its annotation {AFTER_MAX_COST} is "{(after or "")[:_QUOTED]}"; allowed: '
            f"{' or '.join(AFTER_MAX_COST_VALUES)}. Correct it."
        )
    return None


def _cost_annotations(job: Json) -> Mapping[str, str]:
    annotations = annotations_of(job)
    return {name: text(annotations[name]) for name in (MAX_COST, AFTER_MAX_COST) if name in annotations}


_NAMED: Final = 3


def exits_zero_events(history: PodHistory) -> tuple[JobEvent, ...]:
    """Warn about pods of the gang that exit 0 on termination, which their operator counts as success of the training."""
    names = sorted(
        record.name
        for _, record in pod_records(history)
        if record.is_of_gang and record.end.exits_zero_when_ended
    )
    if not names:
        return ()
    return (
        standing_event(
            EventReason.ENDS_AT_FIRST_LOSS,
            f"{joined_names(names)} exited 0 on SIGTERM, which completes the job although its training "
            "is not done: let the program exit with another code after its last checkpoint.",
        ),
    )


def joined_names(names: Iterable[str]) -> str:
    """Return the first names, and how many more there are."""
    shown = list(names)
    more = len(shown) - _NAMED
    return ", ".join(shown[:_NAMED]) + (f" and {more} more" if more > 0 else "")


@dataclass(frozen=True, kw_only=True)
class GangPlacement:
    """How many pods exist, how many of those have a live node, and how many have started; `starting_since`: see Observation."""

    created: int
    placed: int
    started: int
    starting_since: datetime | None


def gang_placement(pods: Iterable[Json], snapshot: Snapshot) -> GangPlacement:
    """Return how many of a gang's pods are created, placed and started, without those that terminate or have ended."""
    made = [pod for pod in pods if not is_terminating(pod) and not has_ended(pod)]
    placed = [pod for pod in made if _is_placed(pod, snapshot)]
    waiting = [pod for pod in placed if not has_started(pod)]
    return GangPlacement(
        created=len(made),
        placed=len(placed),
        started=len(placed) - len(waiting),
        starting_since=min((bound_at(pod) or snapshot.now for pod in waiting), default=None),
    )


def remaining_pods(pods: Iterable[Json]) -> int:
    """How many pods exist and have not ended, including those that terminate."""
    return sum(not has_ended(pod) for pod in pods)


def _is_placed(pod: Json, snapshot: Snapshot) -> bool:
    """Whether a pod has a live node. A draining node still runs it, and a node that is not known yet is new."""
    node = node_of(pod)
    if not node:
        return False
    return state_of_node(node, snapshot.nodes, snapshot.claims) in {NodeState.LIVE, NodeState.DRAINING}


QUEUE: Final = "kueue.x-k8s.io/queue-name"
# Kueue's value of `managedBy` for a job that it dispatches to another cluster.
_MULTIKUEUE: Final = "kueue.x-k8s.io/multikueue"


def is_managed_by_kueue(job: Json, workloads: Iterable[Json]) -> bool:
    """Whether Kueue manages a job: by its label, by a Workload it owns, or because it is dispatched to another cluster.

    Kueue may be configured to manage jobs without a queue name; those are recognized by their Workloads only.
    """
    labelled = bool(text(labels_of(job).get(QUEUE)))
    handed_on = mapping(job.get("spec")).get("managedBy") == _MULTIKUEUE
    return labelled or handed_on or any(_is_owned(workload, uid_of(job)) for workload in workloads)


def _is_owned(workload: Json, uid: str) -> bool:
    owners = objects(metadata_of(workload).get("ownerReferences"))
    return any(each.get("uid") == uid for each in owners)


def base_observation(snapshot: Snapshot, history: PodHistory) -> Observation:
    """Return the fields that all kinds of jobs have: identity, losses, remaining pods, checkpoints."""
    job = snapshot.job
    return Observation(
        uid=uid_of(job),
        created=_created(job) or snapshot.now,
        created_here=moment(metadata_of(job).get("creationTimestamp")),
        now=snapshot.now,
        follows=_follows(job),
        is_deleted=bool(metadata_of(job).get("deletionTimestamp")),
        stop_requested=_follows(job) and (_annotation(job, STOP) == "true" or _awaits_permit(job)),
        awaits_permit=_awaits_permit(job),
        suspended=mapping(job.get("spec")).get("suspend") is True,
        is_managed_by_kueue=is_managed_by_kueue(job, snapshot.workloads),
        losses=losses_of(history),
        own_limit=own_limit_of(job),
        pods_remaining=remaining_pods(snapshot.pods),
        dead_pods=dead_pods_of(history),
        checkpoints_on_request=patches.checkpoints_on_request(job),
        checkpoint_requested_at=patches.checkpoint_requested_at(job),
        checkpointed_at=patches.checkpointed_at(snapshot.pods),
        deadline=deadline_of(job, snapshot.pods),
        max_cost=max_cost_of(job),
        work_done=work_done_of(job, snapshot.pods),
    )


def own_limit_of(job: Json) -> int | None:
    """Return how many failures of a job its author allows, which admission has replaced; None where there is no such limit.

    A limit of 0 is the default of both kinds, and says nothing about the program.
    """
    try:
        original = mapping(cast("JsonValue", json.loads(_annotation(job, ORIGINAL) or "{}")))
    except (ValueError, RecursionError):
        return None
    limits = (original.get("maxRestarts"), original.get("backoffLimit"))
    return next((each for each in limits if type(each) is int and each > 0), None)


def _awaits_permit(job: Json) -> bool:
    """Whether a job is a copy from another cluster, which may not run."""
    return bool(_annotation(job, COPY_OF)) and _annotation(job, PERMIT) != GRANTED


def _annotation(job: Json, key: str) -> str:
    return text(annotations_of(job).get(key))


def first_created(job: Json) -> str:
    """Return when a job was created, or the first of the jobs that it succeeds, as it is written; empty if that is not known."""
    return text(annotations_of(job).get(FIRST_CREATED) or metadata_of(job).get("creationTimestamp"))


def _created(job: Json) -> datetime | None:
    """When a job was created, or the first of the jobs that it succeeds or is a copy of."""
    times = (moment(metadata_of(job).get("creationTimestamp")), moment(first_created(job)))
    return min((at for at in times if at is not None), default=None)


def _follows(job: Json) -> bool:
    """Whether a job asks to follow the ladder; a job that is being deleted does not."""
    metadata = metadata_of(job)
    labelled = mapping(metadata.get("labels")).get(FOLLOWS) == FOLLOWS_VALUE
    return labelled and not metadata.get("deletionTimestamp")
