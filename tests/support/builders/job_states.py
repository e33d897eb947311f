"""Builders of policies, states and observations of jobs on a ladder; tests override the fields that matter."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final, TypedDict, TypeVar, Unpack

from holdfast.fallback.policy.policy import DeclaredFacts, Policy, PolicyTier
from holdfast.fallback.reservations.pod_shapes import PodShape
from holdfast.fallback.state_machine.actions import Action
from holdfast.fallback.state_machine.decision import Decision
from holdfast.fallback.state_machine.events import JobEvent
from holdfast.fallback.state_machine.observation import (
    Cause,
    ContendingGang,
    CopyStatus,
    Deadline,
    JobOutcome,
    Loss,
    MaxCost,
    NodeKind,
    Observation,
    PoolStatus,
    Reservation,
)
from holdfast.fallback.state_machine.state import (
    FailbackAttempt,
    FailbackStage,
    JobState,
    Ledger,
    OutageKind,
    Pace,
    Phase,
    Purpose,
    TimedFailure,
)
from holdfast.scheduling.ladder import Failures

T0: Final = datetime(2030, 5, 1, 12, 0, tzinfo=UTC)
SECOND: Final = timedelta(seconds=1)
MINUTE: Final = timedelta(minutes=1)
HOUR: Final = timedelta(hours=1)

UID: Final = "6f2c2f0e-0000-4000-8000-000000000001"
PODS: Final = 4
WINDOW: Final = 4 * MINUTE

A = TypeVar("A")


class TierFields(TypedDict, total=False):
    max_failures: int | None
    procurement_timeout: timedelta | None
    facts: DeclaredFacts
    price: float | None
    max_price: float | None
    is_open: bool


class PolicyFields(TypedDict, total=False):
    tiers: tuple[PolicyTier, ...]
    failures: Failures
    outage_window: timedelta
    give_up_after: timedelta | None
    application_failures: int
    failure_window: timedelta | None
    return_after: timedelta | None
    hold_timeout: timedelta
    start_timeout: timedelta
    deadline: timedelta | None
    restart_cost: timedelta


class StateFields(TypedDict, total=False):
    uid: str
    phase: Phase
    pool: str
    rank: int
    since: datetime
    waiting_since: datetime | None
    waited: timedelta
    evictions: int
    application_failures: int
    unexplained: int
    failures: tuple[TimedFailure, ...]
    outage_kind: OutageKind | None
    outage_at: datetime | None
    outage_counted_at: datetime | None
    outage_pod_created_at: datetime | None
    eviction_at: datetime | None
    losses_counted_until: datetime | None
    restarts: int
    disrupted_restarts: int
    restart_expected: bool
    resumed_at: datetime | None
    head_restarts: int
    purpose: Purpose | None
    suspended_at: datetime | None
    operator_status: str
    resume_at: datetime | None
    moves: int
    yields: int
    resuspensions: int
    failback: FailbackAttempt | None
    last_failback_at: datetime | None
    short_failbacks: int
    entered_by_failback: bool
    recreations: int
    pace: Pace | None
    ledger: Ledger | None


class ObservationFields(TypedDict, total=False):
    uid: str
    created: datetime
    now: datetime
    clock_jump: timedelta
    follows: bool
    stop_requested: bool
    awaits_permit: bool
    suspended: bool
    is_suspension_complete: bool
    children_create_no_pods: bool
    operator_status: str
    can_be_suspended: bool
    not_suspendable_reason: str | None
    outcome: JobOutcome | None
    failure_cause: Cause | None
    can_be_recreated: bool
    is_managed_by_kueue: bool
    pool: str | None
    restarts: int
    disrupted_restarts: int
    losses: tuple[Loss, ...]
    head_unready_since: datetime | None
    pods_expected: int
    pods_missing: int
    pods_placed: int
    pods_started: int
    is_elastic: bool
    starting_since: datetime | None
    pods_remaining: int
    dead_pods: tuple[str, ...]
    outdated_children: int
    shapes: tuple[PodShape, ...]
    unseen: timedelta
    contending_gang: ContendingGang | None
    last_yield_at: datetime | None
    pools: Mapping[str, PoolStatus]
    reservation: Reservation | None
    checkpoints_on_request: bool
    checkpoint_requested_at: datetime | None
    checkpointed_at: datetime | None
    deadline: Deadline | None
    notices: tuple[JobEvent, ...]
    node_time: Mapping[NodeKind, timedelta]
    nodes: Mapping[NodeKind, int]
    max_cost: MaxCost | None
    work_done: timedelta | None
    may_run_here: bool
    is_deleted: bool
    copy: CopyStatus | None


def tier(pool: str = "a-spot", **fields: Unpack[TierFields]) -> PolicyTier:
    default = PolicyTier(pool=pool, max_failures=3, procurement_timeout=15 * MINUTE)
    return replace(default, **fields)


LAST: Final = PolicyTier(pool="on-demand")
SPOT: Final = tier()
LOWER: Final = tier("b-spot")


def policy(**fields: Unpack[PolicyFields]) -> Policy:
    """Two spot pools and on-demand, without failback."""
    return replace(Policy(tiers=(SPOT, LOWER, LAST), outage_window=WINDOW, return_after=None), **fields)


def running(**fields: Unpack[StateFields]) -> JobState:
    """A job that has run on the first tier for an hour."""
    default = JobState(uid=UID, phase=Phase.RUNNING, pool="a-spot", rank=0, since=T0 - HOUR)
    return replace(default, **fields)


def waiting(**fields: Unpack[StateFields]) -> JobState:
    """A job that has just started to wait for nodes on the first tier."""
    default = JobState(uid=UID, phase=Phase.WAITING, pool="a-spot", rank=0, since=T0, waiting_since=T0)
    return replace(default, **fields)


def failing_back(stage: FailbackStage = FailbackStage.RESERVING, pool: str = "a-spot") -> FailbackAttempt:
    """A failback to the first tier that has just begun its stage."""
    return FailbackAttempt(pool=pool, stage=stage, since=T0)


def suspending(**fields: Unpack[StateFields]) -> JobState:
    """A job that moves from the first tier to the second."""
    default = JobState(
        uid=UID,
        phase=Phase.SUSPENDING,
        pool="b-spot",
        rank=1,
        since=T0 - HOUR,
        suspended_at=T0,
        purpose=Purpose.FAILOVER,
    )
    return replace(default, **fields)


def observed(**fields: Unpack[ObservationFields]) -> Observation:
    """A job of four pods that runs on the first tier without problems."""
    default = Observation(
        uid=UID,
        created=T0 - HOUR,
        now=T0,
        pool="a-spot",
        pods_expected=PODS,
        pods_placed=PODS,
        pods_started=PODS,
        pods_remaining=PODS,
        shapes=(PodShape(count=PODS, requests={"cpu": "4"}),),
    )
    return replace(default, **fields)


def observed_suspended(**fields: Unpack[ObservationFields]) -> Observation:
    """The same job suspended, without pods, and its template on the second tier."""
    default = observed(
        suspended=True,
        is_suspension_complete=True,
        pool="b-spot",
        pods_placed=0,
        pods_started=0,
        pods_remaining=0,
    )
    return replace(default, **fields)


def loss(
    at: datetime = T0,
    cause: Cause = Cause.EVICTION,
    *,
    pod: str = "p0",
    pool: str | None = "a-spot",
    pod_created_at: datetime | None = None,
) -> Loss:
    return Loss(pod=pod, at=at, cause=cause, pool=pool, pod_created_at=pod_created_at)


def reserved(
    pool: str = "a-spot", *, pods: int = PODS, placed: int = PODS, tainted: int = PODS
) -> Reservation:
    return Reservation(pool=pool, pods=pods, placed=placed, tainted=tainted)


def only(decision: Decision, kind: type[A]) -> A:
    """The one action of a kind in a decision."""
    found = [action for action in decision.actions if isinstance(action, kind)]
    assert len(found) == 1, f"one {kind.__name__} is wanted among {decision.actions}"
    return found[0]


def kinds(decision: Decision) -> list[type[Action]]:
    return [type(action) for action in decision.actions]


def reasons(decision: Decision) -> list[str]:
    return [report.reason for report in decision.events]


def state_of(decision: Decision) -> JobState:
    assert decision.state is not None, "a state was to be kept"
    return decision.state


def pace_of(state: JobState) -> Pace:
    assert state.pace is not None, "the job has a deadline"
    return state.pace
