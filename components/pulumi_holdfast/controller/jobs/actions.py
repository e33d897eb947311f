"""What a decision says: actions that the reconciler carries out, and events that it reports.

Each action names a target state, so repeating one is harmless. A decision's actions are carried out in order. Actions with a
`state` write it into the job's annotation in the same update as their other changes, under the resource version that was
observed; when one action fails, the rest are not tried, and the job is observed and decided again. Each `JobEvent` becomes a
Kubernetes Event, a log line and a metric.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from datetime import datetime

    from pulumi_holdfast.controller.jobs.pod_shapes import PodShape
    from pulumi_holdfast.controller.jobs.state import JobState


class EventReason(StrEnum):
    """Every `reason` of the controller's Events. docs/fallback.md explains each of them; a unit test compares the two."""

    ANNOTATION_UNUSABLE = "AnnotationUnusable"
    ATTEMPT_FAILED = "AttemptFailed"
    CANNOT_FAIL_BACK = "CannotFailBack"
    CANNOT_FOLLOW = "CannotFollow"
    CAPACITY_ENDS = "CapacityEnds"
    COMPLETED = "Completed"
    DEADLINE_MISSED = "DeadlineMissed"
    DEADLINE_NOT_COVERED = "DeadlineNotCovered"
    ENDS_AT_FIRST_LOSS = "EndsAtFirstLoss"
    FAILBACK_ENDED = "FailbackEnded"
    FAILBACK_MOVING = "FailbackMoving"
    FAILBACK_STARTED = "FailbackStarted"
    FAILED = "Failed"
    GIVEN_UP = "GivenUp"
    HANDED_OVER = "HandedOver"
    HEAD_LOST = "HeadLost"
    MAX_COST_REACHED = "MaxCostReached"
    MAX_FAILURES_REACHED = "MaxFailuresReached"
    MOVED = "Moved"
    MOVE_BLOCKED = "MoveBlocked"
    NOT_JUDGED = "NotJudged"
    NOT_ON_LADDER = "NotOnLadder"
    NO_CAPACITY = "NoCapacity"
    OUTAGE_COUNTED = "OutageCounted"
    PLACED = "Placed"
    PODS_NOT_CREATED = "PodsNotCreated"
    PRICE_ABOVE_MAX = "PriceAboveMax"
    PRICE_UNKNOWN = "PriceUnknown"
    RECREATED = "Recreated"
    REFUSED = "Refused"
    RESUMED = "Resumed"
    RESUMED_EXTERNALLY = "ResumedExternally"
    SLACK_SPENT = "SlackSpent"
    SLOW_START = "SlowStart"
    SLOW_SUSPENSION = "SlowSuspension"
    STATE_UNREADABLE = "StateUnreadable"
    STOPPED = "Stopped"
    TIER_UNAVAILABLE = "TierUnavailable"
    WRITE_REJECTED = "WriteRejected"
    YIELDED = "Yielded"


#: The reasons of Events that people are notified about.
NOTIFIED: Final = frozenset({EventReason.MOVED, EventReason.DEADLINE_MISSED, EventReason.GIVEN_UP})


@dataclass(frozen=True, kw_only=True)
class JobEvent:
    """One Event of a job; `message` states the fact and the fix.

    An event that is not standing belongs to the decision's actions and is recorded once they are carried out. A
    standing event describes a condition and comes with every decision while the condition holds: it is recorded when
    it is new for the job or its message changes, and again only after it has been absent. `compared` is compared instead of
    a message that names what changes with the clock.
    """

    reason: EventReason
    message: str
    is_warning: bool = False
    is_standing: bool = False
    compared: str = ""


def standing_event(reason: EventReason, message: str, *, compared: str = "") -> JobEvent:
    """Return a warning that comes with every decision while its condition holds."""
    return JobEvent(reason=reason, message=message, is_warning=True, is_standing=True, compared=compared)


@dataclass(frozen=True, kw_only=True)
class WriteState:
    """Write the annotation and nothing else."""

    state: JobState


@dataclass(frozen=True, kw_only=True)
class Suspend:
    """One update: the template selects `pool` (by the pool key only; empty: what it does), `suspend: true`, the state.

    Also given for a job that is already suspended when its template has to select another pool. The template is set here,
    not on resumption: an operator that recreates a suspended child Job then creates it from the new template.
    `tolerate_reservation`: the pods also tolerate the taint of the capacity that is reserved for this job.
    `only_without_nodes`: the executor first reads from the API server, not from a cache, whether a pod has no node. If all
    have one, nothing is written and the job is observed again.
    """

    state: JobState
    pool: str
    tolerate_reservation: bool = False
    only_without_nodes: bool = False


@dataclass(frozen=True, kw_only=True)
class DeleteChildren:
    """Delete the suspended child Jobs whose pod template differs from the job's current one."""


@dataclass(frozen=True, kw_only=True)
class Resume:
    """One update: the template selects `pool` as under Suspend (it does already), `suspend: false`, the state.

    The executor first reads from the API server, not from a cache, whether a pod of the job is left: with a lagging watch
    two gangs could write one checkpoint. If a pod is left, nothing is written and the job is observed again.
    `recreates_children`: the operator has observed the suspension, so it creates missing child Jobs from the new template; the
    executor does not wait for them.
    """

    state: JobState
    pool: str
    tolerate_reservation: bool = False
    recreates_children: bool = False


@dataclass(frozen=True, kw_only=True)
class CreatePlaceholders:
    """Create the missing placeholder pods of the gang's shape in `pool`."""

    pool: str
    shapes: tuple[PodShape, ...]


@dataclass(frozen=True, kw_only=True)
class TaintReservedNodes:
    """Taint the nodes of this job's placeholders, so that only this job's pods are scheduled there."""


@dataclass(frozen=True, kw_only=True)
class DeletePlaceholders:
    """Delete this job's placeholders; their nodes stay tainted, so that the job's own pods get them."""


@dataclass(frozen=True, kw_only=True)
class ReleaseReservation:
    """Delete this job's placeholders, then remove its taint from every node."""


@dataclass(frozen=True, kw_only=True)
class RequestCheckpoint:
    """Ask the job to write a checkpoint now; `at` identifies the request and is the same when it is repeated."""

    at: datetime


@dataclass(frozen=True, kw_only=True)
class ForceDelete:
    """Delete these pods without waiting for a kubelet: their machines are gone permanently."""

    pods: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Recreate:
    """Create the failed job again from its own manifest, on `pool`, with the state (whose `uid` is empty until it is known).

    A crash between two writes must not lose the job, so nothing is deleted.
    """

    state: JobState
    pool: str


Action: TypeAlias = (
    WriteState
    | Suspend
    | DeleteChildren
    | Resume
    | CreatePlaceholders
    | TaintReservedNodes
    | DeletePlaceholders
    | ReleaseReservation
    | RequestCheckpoint
    | ForceDelete
    | Recreate
)


@dataclass(frozen=True, kw_only=True)
class JobStep:
    """What one part of the state machine returns: the next state, the actions, and the events.

    A state that no action carries is written by `decide`.
    """

    state: JobState | None
    actions: tuple[Action, ...] = ()
    events: tuple[JobEvent, ...] = ()
