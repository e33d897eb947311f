"""A simulated job, its operator and its cluster, with an executor that may be killed between any two calls.

The truth is kept beside what the ladder sees of it, so that a test can say when the ladder broke a promise.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from holdfast.fallback.policy.policy import NoPolicy, Policy, PolicyTier
from holdfast.fallback.reservations.pod_shapes import PodShape
from holdfast.fallback.state_machine.actions import (
    Action,
    CreatePlaceholders,
    DeleteChildren,
    DeletePlaceholders,
    ForceDelete,
    Recreate,
    ReleaseReservation,
    RequestCheckpoint,
    Resume,
    Suspend,
    TaintReservedNodes,
    WriteState,
)
from holdfast.fallback.state_machine.decision import Decision, decide
from holdfast.fallback.state_machine.observation import (
    NO_JUMP,
    Cause,
    Loss,
    Observation,
    Outcome,
    PoolStatus,
    Reservation,
)
from holdfast.fallback.state_machine.state import (
    JobState,
    Phase,
    UnreadableState,
    read_record,
    write_marker,
    write_state,
)
from holdfast.scheduling.ladder import UNLIMITED
from holdfast.scheduling.reachability.walk import Outcome as WalkOutcome
from tests.support.builders.job_states import HOUR, MINUTE, PODS, T0, UID
from tests.support.builders.job_states import policy as usual_ladder

BY_US = "us"
BY_USER = "a user"


@dataclass(kw_only=True)
class Holding:
    """The existing placeholders and taints."""

    pool: str
    pods: int = 0
    placed: int = 0
    tainted: bool = False


@dataclass(kw_only=True)
class JobWorld:
    """The actual state. `running`: pods of the current gang by the pool they were created for; `leaving`: terminating pods."""

    policy: Policy | NoPolicy = field(default_factory=usual_ladder)
    now: datetime = T0
    clock_error: timedelta = NO_JUMP
    unseen_jump: timedelta = NO_JUMP
    created: datetime = T0
    annotation: str | None = None
    marker: str = ""
    version: int = 0
    pool: str = "a-spot"
    suspended_by: str | None = None
    is_suspension_complete: bool = False
    can_be_suspended: bool = True
    pods: int = PODS
    pods_pool: str = "a-spot"
    placed: int = 0
    leaving: int = 0
    outdated: bool = False
    outcome: Outcome | None = None
    follows: bool = True
    stop_requested: bool = False
    restarts: int = 0
    losses: list[Loss] = field(default_factory=list[Loss])
    reservation: Holding | None = None
    missing: set[str] = field(default_factory=set[str])
    checkpoints_on_request: bool = False
    requested_at: datetime | None = None
    checkpointed_at: datetime | None = None
    moves_by_count: int = 0
    violations: list[str] = field(default_factory=list[str])

    @property
    def is_suspended(self) -> bool:
        return self.suspended_by is not None

    def state(self) -> JobState | None:
        state = self.record()
        return state if isinstance(state, JobState) else None

    def record(self) -> JobState | UnreadableState | None:
        """What the controller reads of the job's annotations."""
        return read_record(self.annotation, self.marker, UID)

    def another_version_writes(self) -> None:
        """Another version of the controller records the same state in its own format."""
        if self.annotation is not None:
            self.annotation = '{"format": "of another version"}'
            self.version += 1

    def observe(self) -> Observation:
        runs = not self.is_suspended
        return Observation(
            uid=UID,
            created=self.created,
            now=self.now + self.clock_error,
            clock_jump=self.unseen_jump,
            follows=self.follows,
            stop_requested=self.stop_requested,
            suspended=self.is_suspended,
            is_suspension_complete=self.is_suspension_complete,
            can_be_suspended=self.can_be_suspended,
            outcome=self.outcome,
            pool=self.pool,
            restarts=self.restarts,
            losses=tuple(self.losses),
            pods_expected=PODS,
            pods_placed=self.placed if runs else 0,
            pods_started=self.placed if runs else 0,
            pods_remaining=self.pods + self.leaving,
            outdated_children=1 if self.outdated else 0,
            shapes=(PodShape(count=PODS, requests={}),),
            pools={name: PoolStatus(exists=False) for name in self.missing},
            reservation=self.held_capacity(),
            checkpoints_on_request=self.checkpoints_on_request,
            checkpoint_requested_at=self.requested_at,
            checkpointed_at=self.checkpointed_at,
        )

    def held_capacity(self) -> Reservation | None:
        if self.reservation is None:
            return None
        held = self.reservation
        return Reservation(
            pool=held.pool,
            pods=held.pods,
            placed=min(held.placed, held.pods),
            tainted=min(held.placed, held.pods) if held.tainted else 0,
        )

    # What the controller does.

    def reconcile(self, dies_after: int | None = None) -> Decision:
        """One reconciliation; with `dies_after` the controller is killed after that many actions."""
        version, decision = self.version, decide(self.record(), self.observe(), self.policy)
        self.carry_out(decision, version, dies_after)
        return decision

    def carry_out(self, decision: Decision, version: int, dies_after: int | None = None) -> None:
        """Carry out a decision that was based on `version`."""
        for action in decision.actions[:dies_after]:
            if isinstance(action, WriteState | Suspend | Resume | Recreate):
                if version != self.version:
                    return
                if isinstance(action, Resume) and self.pods + self.leaving:
                    # The executor asks the API server once more; see Resume.
                    return
            self._do(action)
            version = self.version
            if isinstance(action, Suspend) and "FailuresSpent" in [each.reason for each in decision.events]:
                self.moves_by_count += 1
        if dies_after is None:
            self.unseen_jump = NO_JUMP

    def _do(self, action: Action) -> None:
        if isinstance(action, WriteState | Suspend | Resume):
            self.annotation, self.marker = write_state(action.state), write_marker(action.state)
            self.version += 1
            if action.state.phase is Phase.STOPPED and self.is_suspended:
                self.suspended_by = BY_USER
        match action:
            case Suspend():
                self._suspend(action)
            case Resume():
                self._resume(action)
            case DeleteChildren():
                self.outdated = False
            case RequestCheckpoint():
                self.requested_at = action.at
            case ForceDelete():
                self.leaving = 0
            case Recreate():
                self.violations.append("no job here asks to be recreated")
            case _:
                self._do_with_held(action)

    def _do_with_held(self, action: Action) -> None:
        match action:
            case CreatePlaceholders():
                self.reservation = self.reservation or Holding(pool=action.pool)
                self.reservation.pods = PODS
                if self.reservation.pool != action.pool:
                    self.violations.append(
                        f"capacity is held in {action.pool} and {self.reservation.pool} at once"
                    )
            case ReleaseReservation():
                self.reservation = None
            case TaintReservedNodes() if self.reservation is not None:
                self.reservation.tainted = True
            case DeletePlaceholders() if self.reservation is not None:
                self.reservation.pods = 0
            case _:
                pass

    def _suspend(self, action: Suspend) -> None:
        if self.suspended_by == BY_USER:
            self.violations.append("a user's suspension was taken over")
        if self.outcome is not None:
            self.violations.append("a job that has ended was suspended")
        if not self.is_suspended:
            self.suspended_by = BY_USER if action.state.phase is Phase.STOPPED else BY_US
            self.is_suspension_complete = False
        if action.pool != self.pool:
            self.outdated = True
        self.pool = action.pool

    def _resume(self, action: Resume) -> None:
        if self.suspended_by == BY_USER:
            self.violations.append("a user's suspension was undone")
        if self.outdated:
            self.violations.append(
                "resumed with child Jobs of the old template, whose selectors would be merged"
            )
        if self.outcome is not None:
            self.violations.append("a job that has ended was resumed")
        self.suspended_by = None
        self.pool = action.pool
        self._make_pods()

    def _make_pods(self) -> None:
        if self.pods + self.leaving:
            self.violations.append("two gangs of one job are alive together")
        self.pods, self.pods_pool, self.placed, self.is_suspension_complete = PODS, self.pool, 0, False

    # What happens to the job.

    def operator_works(self) -> None:
        """The job's operator carries out its spec, without waiting for terminating pods."""
        if self.outcome is not None:
            return
        if self.is_suspended:
            self.leaving += self.pods
            self.pods = self.placed = 0
            self.is_suspension_complete = True
        elif not self.pods and not self.leaving:
            self._make_pods()

    def pods_terminate(self) -> None:
        self.leaving = 0

    def capacity_comes(self, pods: int) -> None:
        if not self.is_suspended and self.outcome is None:
            self.placed = min(PODS, pods, self.pods)

    def evict(self, cause: Cause, pods: int, *, is_seen: bool) -> None:
        """Lose pods: the operator restarts the gang, and the watch shows each lost pod or, if no replica watches, none."""
        if self.is_suspended or self.outcome is not None or not self.pods:
            return
        if is_seen:
            self.losses += [
                Loss(pod=f"{len(self.losses)}/{number}", at=self.now, cause=cause, pool=self.pods_pool)
                for number in range(pods)
            ]
        self.restarts += 1
        self.placed = 0

    def user_suspends(self) -> None:
        if self.outcome is None and not self.is_suspended:
            self.suspended_by, self.is_suspension_complete = BY_USER, False
            self.version += 1

    def user_resumes(self) -> None:
        """Resume a job by hand once its pods are gone; otherwise the operator itself would run two gangs."""
        if self.is_suspended and self.outcome is None and not self.pods + self.leaving:
            self.suspended_by = None
            self.version += 1
            self._make_pods()

    def user_stops(self) -> None:
        self.stop_requested = True
        self.version += 1

    def user_withdraws_the_stop(self) -> None:
        self.stop_requested = False
        self.version += 1

    def edit_policy(self, edited: Policy | NoPolicy) -> None:
        self.policy = edited

    def end(self, outcome: Outcome) -> None:
        if self.outcome is None:
            self.outcome = outcome
            self.version += 1
            self.leaving += self.pods
            self.pods = self.placed = 0

    def jump(self, by: timedelta, *, is_noticed: bool) -> None:
        """Set the controller's clock; a running process notices the jump, a new one does not."""
        self.clock_error += by
        if is_noticed:
            self.unseen_jump += by

    def placeholders_come(self, placed: int) -> None:
        if self.reservation is not None:
            self.reservation.placed = placed

    def come_to_rest(self) -> Decision:
        """Complete everything that is under way, and let time pass while something waits for it."""
        decision = self.reconcile()
        for _ in range(300):
            self.operator_works()
            self.pods_terminate()
            self.capacity_comes(PODS)
            if self.reservation is not None:
                self.reservation.placed = self.reservation.pods
            decision = self.reconcile()
            if decision.actions:
                continue
            if decision.requeue_at is None:
                return decision
            if not self.is_under_way():
                return decision
            self.now = max(self.now, decision.requeue_at - self.clock_error)
        self.violations.append(f"the job does not settle: {self.annotation}")
        return decision

    def is_under_way(self) -> bool:
        state = self.state()
        return self.reservation is not None or (
            state is not None and (state.suspended_by_us or state.failback is not None)
        )


#: More losses than any drawn tier allows; after this many, no capacity comes back.
_LOSSES: Final = 8
#: Reconciliations without a move after which no move follows.
_QUIET: Final = 25
_TIMEOUT: Final = 15 * MINUTE


@dataclass(frozen=True, kw_only=True)
class MarketTier:
    """A tier of the simulated market: `takes_the_job` says whether its pool can have the gang's nodes at all."""

    takes_the_job: bool
    is_on_demand: bool
    max_failures: int | None = None
    has_timeout: bool = False


def end_of(tiers: Sequence[MarketTier]) -> WalkOutcome:
    """Move a job along its ladder, and return where it stays."""
    pools = {f"tier-{number}": played for number, played in enumerate(tiers)}
    world = JobWorld(policy=Policy(tiers=tuple(_tier(*each) for each in pools.items())), pool="tier-0")
    world.pods_pool = world.pool
    losses, since = 0, 0
    while since < _QUIET:
        before = world.pool
        _run_controller(world)
        played = pools[world.pool]
        losses, since = (0, 0) if world.pool != before else (losses, since + 1)
        if played.takes_the_job and losses < _LOSSES:
            world.capacity_comes(PODS)
            world.reconcile()
            if played.is_on_demand:
                return WalkOutcome.ARRIVES
            losses += _takes_a_node(world)
        world.now += HOUR
    assert not world.violations, f"the invariants hold: {world.violations}"
    return _named(pools[world.pool], is_last=world.pool == f"tier-{len(tiers) - 1}")


def _run_controller(world: JobWorld) -> None:
    """Complete the current move, if there is one."""
    for _ in range(6):
        world.reconcile()
        world.operator_works()
        world.pods_terminate()
        world.now += timedelta(seconds=10)


def _takes_a_node(world: JobWorld) -> int:
    if not world.placed:
        return 0
    world.evict(Cause.EVICTION, 1, is_seen=True)
    return 1


def _named(played: MarketTier, *, is_last: bool) -> WalkOutcome:
    if played.takes_the_job and played.max_failures == UNLIMITED:
        return WalkOutcome.STAYS
    return WalkOutcome.FALLS_OFF if is_last else WalkOutcome.STUCK


def _tier(pool: str, played: MarketTier) -> PolicyTier:
    timeout = _TIMEOUT if played.has_timeout else None
    return PolicyTier(pool=pool, max_failures=played.max_failures, procurement_timeout=timeout)
