"""A simulated job, its operator and its cluster, with an executor that may be killed between any two calls.

The truth is kept beside what the ladder sees of it, so that a test can say when the ladder broke a promise.
"""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from pulumi_holdfast.controller.jobs.actions import (
    Action,
    CreatePlaceholders,
    DeleteChildren,
    DeletePlaceholders,
    EventReason,
    ForceDelete,
    Recreate,
    ReleaseReservation,
    RequestCheckpoint,
    Resume,
    Suspend,
    TaintReservedNodes,
    WriteState,
)
from pulumi_holdfast.controller.jobs.observation import (
    NO_JUMP,
    Cause,
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
from pulumi_holdfast.controller.jobs.patches import read_record, write_marker, write_state
from pulumi_holdfast.controller.jobs.pod_shapes import PodShape
from pulumi_holdfast.controller.jobs.state import JobState, Phase, UnreadableState
from pulumi_holdfast.controller.state_machine.decision import Decision, decide
from pulumi_holdfast.controller.state_machine.spending_limits import spent_on_demand
from pulumi_holdfast.ladder.labels import CapacityType
from pulumi_holdfast.ladder.ladder import NoPolicy, Policy
from tests.support.builders.job_states import PODS, T0, UID
from tests.support.builders.job_states import policy as usual_ladder
from tests.support.spending_invariants import spending_faults

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
    deletes_children: bool = False
    has_observed: bool = False
    operator_status: int = 0
    can_be_suspended: bool = True
    pods: int = PODS
    pods_pool: str = "a-spot"
    placed: int = 0
    leaving: int = 0
    outdated: bool = False
    outcome: JobOutcome | None = None
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
    outages: int = 0
    can_be_recreated: bool = False
    deadline: Deadline | None = None
    max_cost: MaxCost | None = None
    prices: dict[str, float] = field(default_factory=dict[str, float])
    node_time: dict[NodeKind, timedelta] = field(default_factory=dict[NodeKind, timedelta])
    has_had_one_window: bool = True
    copy: CopyStatus | None = None
    may_run_here: bool = True
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
        """Another version of the controller records the same state in its own format.

        A job that is given up has no marker: its suspension counts as its user's from then on.
        """
        state = self.state()
        if state is not None and state.phase is Phase.GIVEN_UP and self.is_suspended:
            self.suspended_by = BY_USER
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
            children_create_no_pods=self.is_suspension_complete or self.deletes_children,
            operator_status=str(self.operator_status),
            can_be_suspended=self.can_be_suspended,
            outcome=self.outcome,
            failure_cause=Cause.EVICTION if self.outcome is JobOutcome.FAILED else None,
            can_be_recreated=self.can_be_recreated,
            pool=self.pool or None,
            restarts=self.restarts,
            losses=tuple(self.losses),
            pods_expected=PODS,
            pods_placed=self.placed if runs else 0,
            pods_started=self.placed if runs else 0,
            pods_remaining=self.pods + self.leaving,
            outdated_children=1 if self.outdated else 0,
            shapes=(PodShape(count=PODS, requests={}),),
            pools={
                name: PoolStatus(exists=name not in self.missing, price=self.prices.get(name))
                for name in self.missing | self.prices.keys()
            },
            reservation=self.held_capacity(),
            checkpoints_on_request=self.checkpoints_on_request,
            checkpoint_requested_at=self.requested_at,
            checkpointed_at=self.checkpointed_at,
            deadline=self.deadline,
            max_cost=self.max_cost,
            node_time=dict(self.node_time),
            nodes={self._node_kind(): self.placed} if runs and self.placed else {},
            copy=self.copy,
            may_run_here=self.may_run_here,
        )

    def _node_kind(self) -> NodeKind:
        capacity = CapacityType.ON_DEMAND if self.pods_pool == "on-demand" else CapacityType.SPOT
        return NodeKind(self.pods_pool, capacity, self.prices.get(self.pods_pool))

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
        seen = self.observe()
        version, decision = self.version, decide(self.record(), seen, self.policy)
        self._check(seen, decision)
        self.carry_out(decision, version, dies_after)
        return decision

    def _check(self, seen: Observation, decision: Decision) -> None:
        """Record what a decision does against limits of money, deadlines and the failure window."""
        self.violations += spending_faults(seen, self.policy, decision)
        state, policy = decision.state, self.policy
        if state is None or not isinstance(policy, Policy) or not self.follows or self.stop_requested:
            return
        is_over = state.phase in {Phase.FINISHED, Phase.STOPPED, Phase.GIVEN_UP}
        is_late = state.pace is not None and state.pace.is_late and not is_over
        said = {each.reason for each in decision.events}
        is_new = EventReason.RESUMED_EXTERNALLY in said or any(
            isinstance(each, Suspend | Resume | Recreate) for each in decision.actions
        )
        if is_late and not is_new and EventReason.DEADLINE_MISSED not in said:
            self.violations.append(f"a job in {state.phase} is late, and does not say so")
        copy, limit = self.copy, self.max_cost
        if copy is not None and copy.capacity is CapacityType.ON_DEMAND and limit is not None:
            is_spent = spent_on_demand(state) >= limit.amount
            if is_spent and state.phase is Phase.AWAY:
                self.violations.append("its copy stays on on-demand although max-cost is spent")
        window = policy.failure_window
        if state.phase in {Phase.WAITING, Phase.RUNNING} and window is not None and self.has_had_one_window:
            counted = state.evictions + state.application_failures + state.unexplained
            if counted != len(state.failures):
                self.violations.append(f"{counted} failures count, and {len(state.failures)} have a time")

    def pass_time(self, time: timedelta) -> None:
        """Let time pass, in which the pods that have nodes use them."""
        self.now += time
        if self.placed and not self.is_suspended:
            kind = self._node_kind()
            self.node_time[kind] = self.node_time.get(kind, timedelta(0)) + time * self.placed

    def carry_out(self, decision: Decision, version: int, dies_after: int | None = None) -> None:
        """Carry out a decision that was based on `version`."""
        for action in decision.actions[:dies_after]:
            # Only the answer to a write of the job has its new version: what is written to child Jobs refreshes none.
            is_write = isinstance(action, WriteState | Suspend | Resume | Recreate)
            if is_write:
                if version != self.version:
                    return
                if isinstance(action, Resume) and self.pods + self.leaving:
                    # The executor asks the API server once more; see Resume.
                    return
            self._do(action)
            if is_write:
                version = self.version
            if isinstance(action, Suspend) and "MaxFailuresReached" in [
                each.reason for each in decision.events
            ]:
                self.moves_by_count += 1
        if dies_after is None:
            self.unseen_jump = NO_JUMP

    def _do(self, action: Action) -> None:
        if isinstance(action, WriteState | Suspend | Resume):
            self.annotation, self.marker = write_state(action.state), write_marker(action.state)
            self.version += 1
            self.node_time = {}
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
                self._recreate(action)
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
        self.has_observed = False
        if action.pool and action.pool != self.pool:
            self.outdated = True
        self.pool = action.pool or self.pool

    def _recreate(self, action: Recreate) -> None:
        if not self.can_be_recreated:
            self.violations.append("a job is created again that does not ask for it")
        self.annotation, self.marker = write_state(action.state), ""
        self.version += 1
        self.node_time = {}
        self.outcome, self.suspended_by, self.outdated = None, None, False
        self.restarts, self.losses, self.leaving = 0, [], 0
        self.pool = action.pool
        self._make_pods()

    def _resume(self, action: Resume) -> None:
        if self.suspended_by == BY_USER:
            self.violations.append("a user's suspension was undone")
        if self.outdated:
            self.violations.append(
                "resumed with child Jobs of the old template, whose selectors would be merged"
            )
        if self.outcome is not None:
            self.violations.append("a job that has ended was resumed")
        if action.recreates_children and not self.has_observed:
            self.violations.append(
                "its operator may create child Jobs from the template before the suspension"
            )
        if not self.is_suspension_complete and not self.deletes_children:
            self.violations.append("its child Jobs may create pods of the old template")
        self.suspended_by = None
        self.pool = action.pool
        self._make_pods()

    def _make_pods(self) -> None:
        if self.pods + self.leaving:
            self.violations.append("two gangs of one job are alive together")
        self.pods, self.pods_pool, self.placed, self.is_suspension_complete = PODS, self.pool, 0, False
        self.deletes_children = False
        self.operator_status += 1

    # What happens to the job.

    def operator_works(self) -> None:
        """The job's operator carries out its spec, without waiting for terminating pods."""
        if self.outcome is not None:
            return
        if self.is_suspended:
            self.leaving += self.pods
            self.pods = self.placed = 0
            self.operator_status += not self.is_suspension_complete
            self.is_suspension_complete, self.deletes_children, self.has_observed = True, False, True
        elif not self.pods and not self.leaving:
            self._make_pods()

    def operator_restarts(self) -> None:
        """The operator counts a failure and deletes the child Jobs; it creates them again from the template that it has observed."""
        if self.outcome is None:
            self.leaving += self.pods
            self.pods = self.placed = 0
            self.operator_status += 1
            self.is_suspension_complete, self.deletes_children = False, True
            self.has_observed, self.outdated = self.is_suspended, False

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
        self.outages += 1
        self.placed = 0

    def user_suspends(self) -> None:
        """Suspend a job that runs. One that was resumed since the last reconciliation looks as it did then: see ADR 0015."""
        if self.outcome is None and not self.is_suspended:
            record = self.record()
            looks_ours = (
                record.suspended_by_us
                if isinstance(record, JobState)
                else record is not None and record.resume_on is not None
            )
            self.suspended_by = BY_US if looks_ours else BY_USER
            self.is_suspension_complete = self.has_observed = False
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
        before = self.policy
        windows = {each.failure_window for each in (before, edited) if isinstance(each, Policy)}
        self.has_had_one_window = self.has_had_one_window and len(windows) == 1 and isinstance(edited, Policy)
        self.policy = edited

    def end(self, outcome: JobOutcome) -> None:
        if self.outcome is None:
            self.outages += outcome is JobOutcome.FAILED
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
            self.pass_time(max(timedelta(0), decision.requeue_at - self.clock_error - self.now))
        self.violations.append(f"the job does not settle: {self.annotation}")
        return decision

    def is_under_way(self) -> bool:
        state = self.state()
        return self.reservation is not None or (
            state is not None
            and (
                state.failback is not None
                or (state.suspended_by_us and (state.phase is not Phase.AWAY or self.copy is None))
            )
        )
