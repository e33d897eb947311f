"""A RayJob's status: its states, its failed attempts, and its head. See docs/adr/0017-rayjob-moves.md for suspensions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pulumi_holdfast.controller.api.objects import counter, moment, stamp, text, uid_of
from pulumi_holdfast.controller.jobs.pod_history import RETENTION, FailedAttempt, part_of
from pulumi_holdfast.controller.jobs.pods_and_nodes import (
    NodeState,
    has_ended,
    is_ready,
    is_terminating,
    node_of,
    state_of_node,
)
from pulumi_holdfast.controller.state_machine.events import EventReason, standing_event
from pulumi_holdfast.controller.state_machine.observation import Cause, JobOutcome, Loss, Part
from pulumi_holdfast.ladder.frozen import replace
from pulumi_holdfast.ladder.json import Json, mapping

if TYPE_CHECKING:
    from datetime import datetime

    from pulumi_holdfast.controller.jobs.pod_history import RayHistory
    from pulumi_holdfast.controller.jobs.snapshot import Snapshot
    from pulumi_holdfast.controller.state_machine.events import JobEvent


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
