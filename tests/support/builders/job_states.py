"""Builders of policies, states and observations of jobs on a ladder; tests override the fields that matter."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final, TypedDict, TypeVar, Unpack

from pulumi_holdfast.controller.jobs.actions import Action
from pulumi_holdfast.controller.jobs.observation import Cause, Loss, Observation, Reservation
from pulumi_holdfast.controller.jobs.pod_shapes import PodShape
from pulumi_holdfast.controller.jobs.state import (
    FailbackAttempt,
    FailbackStage,
    JobState,
    Pace,
    Phase,
    Purpose,
)
from pulumi_holdfast.controller.state_machine.decision import Decision
from pulumi_holdfast.ladder.ladder import DeclaredFacts, Policy, Tier, cluster_of, pool_there

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


def tier(pool: str = "a-spot", **fields: Unpack[TierFields]) -> Tier:
    default = Tier(
        pool=pool_there(pool), cluster=cluster_of(pool), max_failures=3, procurement_timeout=15 * MINUTE
    )
    return replace(default, **fields)


LAST: Final = Tier(pool="on-demand")
SPOT: Final = tier()
LOWER: Final = tier("b-spot")


# Two spot pools and on-demand, without failback.
policy: Final = partial(Policy, tiers=(SPOT, LOWER, LAST), outage_window=WINDOW, return_after=None)

# A job that has run on the first tier for an hour.
running: Final = partial(JobState, uid=UID, phase=Phase.RUNNING, pool="a-spot", rank=0, since=T0 - HOUR)

# A job that has just started to wait for nodes on the first tier.
waiting: Final = partial(
    JobState, uid=UID, phase=Phase.WAITING, pool="a-spot", rank=0, since=T0, waiting_since=T0
)

# A job that moves from the first tier to the second.
suspending: Final = partial(
    running, phase=Phase.SUSPENDING, pool="b-spot", rank=1, suspended_at=T0, purpose=Purpose.FAILOVER
)

# A job of four pods that runs on the first tier without problems.
observed: Final = partial(
    Observation,
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

# The same job suspended, without pods, and its template on the second tier.
observed_suspended: Final = partial(
    observed,
    suspended=True,
    is_suspension_complete=True,
    pool="b-spot",
    pods_placed=0,
    pods_started=0,
    pods_remaining=0,
)


def failing_back(stage: FailbackStage = FailbackStage.RESERVING, pool: str = "a-spot") -> FailbackAttempt:
    """A failback to the first tier that has just begun its stage."""
    return FailbackAttempt(pool=pool, stage=stage, since=T0)


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
