"""A RayJob's status: its states, its failed attempts, and its head; and the successor of one that has failed.

A failed RayJob cannot be resumed, so it is created again under another name on request. See docs/adr/0017-rayjob-moves.md for
suspensions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pulumi_holdfast.controller.jobs.actions import EventReason, standing_event
from pulumi_holdfast.controller.jobs.observation import Cause, JobOutcome, Loss, Part
from pulumi_holdfast.controller.jobs.patches import LENGTH_OF_UID, fence
from pulumi_holdfast.controller.jobs.pod_history import RETENTION, FailedAttempt, part_of
from pulumi_holdfast.controller.jobs.pods_and_nodes import (
    NodeState,
    has_ended,
    is_ready,
    is_terminating,
    node_of,
    state_of_node,
)
from pulumi_holdfast.controller.kube.objects import (
    annotations_of,
    counter,
    metadata_of,
    moment,
    name_of,
    namespace_of,
    owner_of,
    stamp,
    text,
    uid_of,
)
from pulumi_holdfast.ladder.frozen import replace
from pulumi_holdfast.ladder.json import Json, mapping
from pulumi_holdfast.ladder.labels import (
    CHECKPOINT_REQUESTED,
    COPY_OF,
    FIRST_CREATED,
    LOST_COPY,
    RECREATE,
    STATE,
    STOP,
    SUCCESSOR,
    SUCCESSOR_OF,
    SUSPENDED_FOR,
    TRANSFER,
)

if TYPE_CHECKING:
    from datetime import datetime

    from pulumi_holdfast.controller.jobs.actions import JobEvent
    from pulumi_holdfast.controller.jobs.pod_history import RayHistory
    from pulumi_holdfast.controller.jobs.pods_and_nodes import Snapshot


RUNNING: Final = "Running"
SUSPENDED: Final = "Suspended"
# In every other state the operator reads `spec.suspend` later or never.
_HONORS_SUSPENSION: Final = frozenset({"Initializing", RUNNING})
_COMPLETE: Final = "Complete"
# KubeRay never reconciles a RayJob again that was invalid once, even after it is corrected.
INVALID: Final = "ValidationFailed"
_FAILED: Final = frozenset({"Failed", INVALID})


def deployment_status(job: Json) -> str:
    """Return the operator's state of a RayJob, empty before it has started."""
    return text(mapping(job.get("status")).get("jobDeploymentStatus"))


def honors_suspension(job: Json) -> bool:
    """Whether a suspension would be carried out now."""
    return deployment_status(job) in _HONORS_SUSPENSION


def outcome_of(job: Json) -> JobOutcome | None:
    """Return how a RayJob ended; None while it may continue or be retried."""
    status = deployment_status(job)
    if status == _COMPLETE:
        return JobOutcome.COMPLETED
    return JobOutcome.FAILED if status in _FAILED else None


def ended_status(outcome: JobOutcome, message: str, at: datetime) -> Json:
    """Return the part of the status with which a RayJob has ended, as KubeRay writes it.

    KubeRay reconciles a RayJob in these states only to delete its cluster, whatever state it had before.
    """
    is_complete = outcome is JobOutcome.COMPLETED
    return {
        "jobDeploymentStatus": _COMPLETE if is_complete else "Failed",
        "jobStatus": "SUCCEEDED" if is_complete else "FAILED",
        "endTime": stamp(at),
        "message": message,
    }


def ended_at(job: Json) -> datetime | None:
    """Return when a RayJob ended."""
    return moment(mapping(job.get("status")).get("endTime"))


def failed_attempts(job: Json) -> int:
    """Return the operator's counter of failed attempts."""
    return counter(mapping(job.get("status")).get("failed"))


def not_suspendable_reason(job: Json) -> str | None:
    """Return why a suspension would break a RayJob, and the fix; None if it would not.

    KubeRay treats these RayJobs as invalid when they are suspended, and never reconciles them again.
    """
    spec = mapping(job.get("spec"))
    if mapping(spec.get("clusterSelector")):
        return (
            "it runs on an existing RayCluster (clusterSelector), which the job's moves cannot move: "
            "create the RayJob again with its own rayClusterSpec"
        )
    if spec.get("shutdownAfterJobFinishes") is not True:
        return (
            "KubeRay suspends no RayJob whose shutdownAfterJobFinishes is not true: set it, which is possible at any "
            "time, and remove deletionStrategy.deletionRules"
        )
    if text(spec.get("submissionMode")) == "InteractiveMode":
        return (
            "it waits for a manual submission (InteractiveMode), which a move would lose: create the RayJob "
            "again with another submissionMode"
        )
    return None


# The attempt did not start in time: nodes or an image were missing, which other timeouts measure.
_NOT_STARTED: Final = "PreRunningDeadlineExceeded"
_LONGEST: Final = 300
# More failures than a watch can miss: a counter that rises further is not one.
_MOST_NEW: Final = 16


def with_new_failures(history: RayHistory, job: Json, now: datetime) -> RayHistory:
    """Return the history with the failures that were counted since the last version of a RayJob.

    Called for every watch event: KubeRay removes the reason within milliseconds, when it starts the next attempt. Failures from
    before the first version are not attributed: the job's state records what is accounted for.
    """
    failed = failed_attempts(job)
    if history.failed is None or failed < history.failed:
        # A counter that has gone back belongs to another job with the same name.
        return replace(history, failed=failed, attempts=())
    status = mapping(job.get("status"))
    new = tuple(
        FailedAttempt(
            number=number,
            at=now,
            reason=text(status.get("reason")) or "unknown",
            message=text(status.get("message"))[:_LONGEST],
        )
        for number in range(max(history.failed, failed - _MOST_NEW) + 1, failed + 1)
    )
    recent = tuple(each for each in history.attempts if now - each.at <= RETENTION)
    return replace(history, failed=failed, attempts=(*recent, *new))


def failed_attempts_as_losses(history: RayHistory, job: Json, pool: str | None) -> tuple[Loss, ...]:
    """Return the failures that lost no pod: those of the driver, which runs on the head."""
    return tuple(
        Loss(
            pod=f"{uid_of(job)}/{each.number}", at=each.at, cause=Cause.APPLICATION, part=Part.HEAD, pool=pool
        )
        for each in history.attempts
        if each.reason != _NOT_STARTED
    )


def attempt_failed_events(history: RayHistory) -> tuple[JobEvent, ...]:
    """Report why the last attempt failed."""
    if not history.attempts:
        return ()
    last = history.attempts[-1]
    said = f": {last.message}" if last.message else ""
    return (
        standing_event(
            EventReason.ATTEMPT_FAILED, f"Attempt {last.number} of the RayJob failed ({last.reason}){said}"
        ),
    )


def head_unready_since(history: RayHistory, snapshot: Snapshot) -> datetime | None:
    """Return since when a running job's head is missing, not ready, or on a lost node.

    Only while the job runs: before that its head is starting. A head that becomes ready again ends it: its operator then
    submits the job again by itself.
    """
    if deployment_status(snapshot.job) != RUNNING or any(
        _head_answers(pod, snapshot) for pod in snapshot.pods
    ):
        return None
    return history.head_unready_since or snapshot.now


def _head_answers(pod: Json, snapshot: Snapshot) -> bool:
    if part_of(pod) is not Part.HEAD or has_ended(pod) or is_terminating(pod) or not is_ready(pod):
        return False
    # The head of a lost node stays "ready" as long as the node controller waits.
    return state_of_node(node_of(pod), snapshot.nodes, snapshot.claims) in {
        NodeState.LIVE,
        NodeState.DRAINING,
    }


# The longest RayJob name that KubeRay accepts, and the part of a uid that distinguishes successors.
_LONGEST_NAME: Final = 47
_NOT_COPIED_ANNOTATIONS: Final = frozenset(
    {
        STATE,
        SUSPENDED_FOR,
        SUCCESSOR,
        CHECKPOINT_REQUESTED,
        TRANSFER,
        LOST_COPY,
        "kubectl.kubernetes.io/last-applied-configuration",
    }
)


def asks_for_successor(job: Json) -> bool:
    """Whether a RayJob asks to be recreated."""
    return annotations_of(job).get(RECREATE) == "true"


def can_have_successor(job: Json) -> bool:
    """Whether a RayJob asks to be recreated, has not been, and has no owner or home that decides instead."""
    annotations = annotations_of(job)
    return asks_for_successor(job) and not annotations.keys() & {SUCCESSOR, COPY_OF} and not owner_of(job)


def successor_name(job: Json) -> str:
    """Return the name of a RayJob's successor, always the same."""
    ending = f"-{uid_of(job)[:LENGTH_OF_UID]}"
    return f"{_first_name(job)[: _LONGEST_NAME - len(ending)]}{ending}"


def successor(job: Json, spec: Json, state: str) -> Json:
    """Return the successor's manifest. `spec`: the fields that differ; `state`: its annotation's text.

    The successor of a job that its user has stopped starts no pod.
    """
    metadata = metadata_of(job)
    annotations = {
        name: value
        for name, value in mapping(metadata.get("annotations")).items()
        if name not in _NOT_COPIED_ANNOTATIONS
    }
    cluster = {
        **mapping(mapping(job.get("spec")).get("rayClusterSpec")),
        **mapping(spec.get("rayClusterSpec")),
    }
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "metadata": {
            "name": successor_name(job),
            "namespace": namespace_of(job),
            "labels": mapping(metadata.get("labels")),
            "annotations": {
                **annotations,
                SUCCESSOR_OF: _first_name(job),
                FIRST_CREATED: text(annotations.get(FIRST_CREATED) or metadata.get("creationTimestamp")),
                STATE: state,
            },
        },
        "spec": {
            **mapping(job.get("spec")),
            "suspend": annotations.get(STOP) == "true",
            "rayClusterSpec": cluster,
        },
    }


def predecessor_patch(job: Json) -> Json:
    """Return the patch of the failed RayJob once its successor exists: the controller no longer manages it."""
    return {"metadata": {**fence(job), "annotations": {SUCCESSOR: successor_name(job), STATE: None}}}


def _first_name(job: Json) -> str:
    return text(annotations_of(job).get(SUCCESSOR_OF)) or name_of(job)
