"""What the controller reports about a job: each `JobEvent` becomes a Kubernetes Event, a log line and a metric."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class EventReason(StrEnum):
    """Every `reason` of the controller's Events. docs/fallback.md explains each of them; a unit test compares the two."""

    APPLICATION_COUNTED = "ApplicationCounted"
    ATTEMPT_FAILED = "AttemptFailed"
    CANNOT_FOLLOW = "CannotFollow"
    CANNOT_REACH = "CannotReach"
    CAPACITY_ENDS = "CapacityEnds"
    CAPACITY_NOT_BEGUN = "CapacityNotBegun"
    COMPLETED = "Completed"
    COPY_GIVEN_UP = "CopyGivenUp"
    DEADLINE_MISSED = "DeadlineMissed"
    DEADLINE_NOT_COVERED = "DeadlineNotCovered"
    DEADLINE_UNUSABLE = "DeadlineUnusable"
    EVICTION_COUNTED = "EvictionCounted"
    EXITS_ZERO_ON_TERMINATION = "ExitsZeroOnTermination"
    FAILBACK_ENDED = "FailbackEnded"
    FAILBACK_MOVING = "FailbackMoving"
    FAILBACK_NO_CAPACITY = "FailbackNoCapacity"
    FAILBACK_STARTED = "FailbackStarted"
    FAILED = "Failed"
    GIVEN_UP = "GivenUp"
    HANDED_OVER = "HandedOver"
    HEAD_LOST = "HeadLost"
    HEAD_SELECTS_CAPACITY = "HeadSelectsCapacity"
    MANAGED_BY_KUEUE = "ManagedByKueue"
    MAX_COST_REACHED = "MaxCostReached"
    MAX_COST_UNUSABLE = "MaxCostUnusable"
    MAX_FAILURES_REACHED = "MaxFailuresReached"
    MOVED = "Moved"
    MOVED_AWAY = "MovedAway"
    MOVE_BLOCKED = "MoveBlocked"
    NEVER_RESTARTS = "NeverRestarts"
    NOT_FOLLOWING = "NotFollowing"
    NOT_JUDGED = "NotJudged"
    NOT_ON_LADDER = "NotOnLadder"
    NO_CAPACITY = "NoCapacity"
    NO_POLICY = "NoPolicy"
    PLACED = "Placed"
    PLACEMENT_NOT_RESERVABLE = "PlacementNotReservable"
    PODS_NOT_CREATED = "PodsNotCreated"
    POLICY_UNUSABLE = "PolicyUnusable"
    POOL_MISSING = "PoolMissing"
    PRICE_ABOVE_MAX = "PriceAboveMax"
    PRICE_UNKNOWN = "PriceUnknown"
    RECREATED = "Recreated"
    REFUSED = "Refused"
    RESUMED = "Resumed"
    RESUMED_EXTERNALLY = "ResumedExternally"
    SLACK_SPENT = "SlackSpent"
    SLOW_RETURN = "SlowReturn"
    SLOW_START = "SlowStart"
    SLOW_SUSPENSION = "SlowSuspension"
    STATE_UNREADABLE = "StateUnreadable"
    STOPPED = "Stopped"
    SUSPENDED_AGAIN = "SuspendedAgain"
    SUSPENDED_EXTERNALLY = "SuspendedExternally"
    TIER_REMOVED = "TierRemoved"
    UNEXPLAINED_COUNTED = "UnexplainedCounted"
    WRITE_REJECTED = "WriteRejected"
    YIELDED = "Yielded"


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
