"""The part of an observation that is the same for JobSets and RayJobs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pulumi_holdfast.controller.api.objects import (
    annotations_of,
    labels_of,
    metadata_of,
    moment,
    objects,
    text,
    uid_of,
)
from pulumi_holdfast.controller.jobs import patches
from pulumi_holdfast.controller.jobs.deadline import deadline_of, work_done_of
from pulumi_holdfast.controller.jobs.max_cost import max_cost_of
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
from pulumi_holdfast.controller.state_machine.events import EventReason, JobEvent, standing_event
from pulumi_holdfast.controller.state_machine.observation import Observation
from pulumi_holdfast.controller.state_machine.transfer import may_run, read_permit
from pulumi_holdfast.ladder.json import Json, mapping
from pulumi_holdfast.ladder.labels import COPY_OF, FIRST_CREATED, FOLLOWS, FOLLOWS_VALUE, PERMIT, STOP

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from pulumi_holdfast.controller.jobs.pod_history import PodHistory
    from pulumi_holdfast.controller.jobs.snapshot import Snapshot


_NAMED: Final = 3


def exits_zero_events(history: PodHistory) -> tuple[JobEvent, ...]:
    """Warn about pods that exit 0 on termination, which their operator counts as success of the training."""
    names = sorted(record.name for _, record in pod_records(history) if record.end.exits_zero_when_ended)
    if not names:
        return ()
    return (
        standing_event(
            EventReason.EXITS_ZERO_ON_TERMINATION,
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
        now=snapshot.now,
        follows=_follows(job),
        is_deleted=bool(metadata_of(job).get("deletionTimestamp")),
        stop_requested=_follows(job) and (_annotation(job, STOP) == "true" or _awaits_permit(job)),
        awaits_permit=_awaits_permit(job),
        suspended=mapping(job.get("spec")).get("suspend") is True,
        is_managed_by_kueue=is_managed_by_kueue(job, snapshot.workloads),
        losses=losses_of(history),
        pods_remaining=remaining_pods(snapshot.pods),
        dead_pods=dead_pods_of(history),
        checkpoints_on_request=patches.checkpoints_on_request(job),
        checkpoint_requested_at=patches.checkpoint_requested_at(job),
        checkpointed_at=patches.checkpointed_at(snapshot.pods),
        deadline=deadline_of(job, snapshot.pods),
        max_cost=max_cost_of(job),
        work_done=work_done_of(job, snapshot.pods),
    )


def _awaits_permit(job: Json) -> bool:
    """Whether a job is a copy from another cluster, which may not run."""
    return bool(_annotation(job, COPY_OF)) and not may_run(read_permit(_annotation(job, PERMIT)))


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
