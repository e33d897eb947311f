"""Properties of `decide`, the jobs that it ignores, and jumps of the clock."""

from datetime import timedelta
from functools import partial
from typing import get_args

import hypothesis
import pytest
from hypothesis import find, given, settings

from pulumi_holdfast.controller.jobs.actions import (
    Action,
    CreatePlaceholders,
    DeleteChildren,
    EventReason,
    JobEvent,
    Recreate,
    ReleaseReservation,
    RequestCheckpoint,
    Resume,
    Suspend,
    TaintReservedNodes,
    WriteState,
)
from pulumi_holdfast.controller.jobs.observation import JobOutcome
from pulumi_holdfast.controller.jobs.patches import read_state, write_state
from pulumi_holdfast.controller.jobs.state import (
    FailbackAttempt,
    FailbackStage,
    JobState,
    Phase,
    UnreadableState,
)
from pulumi_holdfast.controller.state_machine.decision import (
    LONGEST_PAUSE,
    TOLERANCE,
    Decision,
    decide,
    shift_times,
)
from pulumi_holdfast.ladder.ladder import NoPolicy, cluster_of
from tests.support.builders.job_states import (
    HOUR,
    LAST,
    MINUTE,
    SECOND,
    T0,
    failing_back,
    kinds,
    loss,
    observed,
    observed_suspended,
    policy,
    reasons,
    reserved,
    running,
    state_of,
    suspending,
    tier,
    waiting,
)
from tests.support.soak import sized
from tests.support.strategies.job_situations import Situation, situations

STOPPED = observed_suspended(pool="a-spot")


def test_a_users_suspension_is_recorded_and_never_ended() -> None:
    decision = decide(running(), STOPPED, policy())
    assert kinds(decision) == [WriteState]
    assert state_of(decision).phase is Phase.STOPPED
    later = decide(decision.state, STOPPED, policy())
    assert (later.actions, later.requeue_at) == ((), None)
    decision = decide(None, STOPPED, policy())
    assert state_of(decision).phase is Phase.STOPPED


def test_a_users_suspension_keeps_counts_and_restarts_timeouts() -> None:
    stopped = decide(waiting(), STOPPED, policy()).state
    resumed = decide(stopped, observed(pods_placed=0, now=T0 + 9 * HOUR), policy())
    assert state_of(resumed).waiting_since == T0 + 9 * HOUR
    assert Suspend not in kinds(resumed)
    stopped = decide(running(), STOPPED, policy()).state
    lost = observed(losses=(loss(T0 + MINUTE),), restarts=2, now=T0 + HOUR)
    assert state_of(decide(stopped, lost, policy())).evictions == 0
    stopped = running(pool="on-demand", rank=2, phase=Phase.STOPPED)
    decision = decide(stopped, observed(pool="on-demand", now=T0 + HOUR), policy(return_after=HOUR))
    assert state_of(decision).since == T0 + HOUR
    assert state_of(decision).failback is None
    stopped = decide(running(evictions=2), STOPPED, policy()).state
    assert state_of(decide(stopped, observed(now=T0 + HOUR), policy())).evictions == 2


def test_the_tier_that_the_user_of_a_suspended_job_selects_is_adopted_if_it_is_on_the_ladder() -> None:
    stopped = running(phase=Phase.STOPPED, evictions=2)
    decision = decide(stopped, observed(pool="b-spot"), policy())
    assert (state_of(decision).pool, state_of(decision).rank) == ("b-spot", 1)
    assert state_of(decision).evictions == 0
    decision = decide(running(phase=Phase.STOPPED), observed(pool="elsewhere"), policy())
    assert reasons(decision) == ["NotOnLadder"]
    assert Suspend not in kinds(decision)


def test_a_state_that_is_unreadable_or_of_another_job_is_ignored() -> None:
    copied = suspending(uid="the-job-it-was-exported-from")
    decision = decide(copied, STOPPED, policy())
    assert state_of(decision).phase is Phase.STOPPED
    decision = decide(UnreadableState(problem="it is no JSON object"), observed(), policy())
    assert reasons(decision)[0] == "StateUnreadable"
    assert state_of(decision).phase is Phase.RUNNING
    decision = decide(UnreadableState(problem="phase: no"), STOPPED, policy())
    assert state_of(decision).phase is Phase.STOPPED
    assert "set `suspend: false` to resume it" in decision.events[0].message


@pytest.mark.parametrize("state", [None, running()])
def test_a_job_managed_by_kueue_is_ignored_with_an_event(state: JobState | None) -> None:
    decision = decide(state, observed(is_managed_by_kueue=True, losses=(loss(),)), policy())
    assert (decision.actions, reasons(decision)) == ((), ["CannotFollow"]), "Kueue would undo a suspension"
    assert decision.events[0].is_standing


@pytest.mark.parametrize("state", [None, running()])
def test_an_unsuspendable_job_is_ignored_with_an_event(state: JobState | None) -> None:
    decision = decide(state, observed(not_suspendable_reason="set shutdownAfterJobFinishes: true"), policy())
    assert (decision.actions, reasons(decision)) == ((), ["CannotFollow"]), "it would be lost in the move"
    assert "shutdownAfterJobFinishes" in decision.events[0].message


@pytest.mark.parametrize("state", [None, running(), waiting()])
def test_a_job_in_a_namespace_without_a_policy_stays_where_it_is(state: JobState | None) -> None:
    decision = decide(state, observed(pods_placed=0, now=T0 + 9 * HOUR), NoPolicy())
    assert (decision.actions, reasons(decision)) == ((), ["NotOnLadder"])


def test_an_invalid_policy_is_quoted_in_the_event() -> None:
    decision = decide(running(), observed(), NoPolicy(problems=("spec.tiers: got no tier",)))
    assert reasons(decision) == ["NotOnLadder"]
    assert "spec.tiers: got no tier" in decision.events[0].message


def test_a_job_that_does_not_follow_keeps_its_state_and_is_not_moved() -> None:
    decision = decide(None, observed(follows=False, losses=(loss(),)), policy())
    assert (decision.state, decision.actions, decision.events) == (None, (), ())
    decision = decide(running(evictions=9), observed(follows=False), policy())
    assert (decision.state, decision.actions) == (running(evictions=9), ())


def test_a_job_outside_its_ladder_is_ignored_with_an_event() -> None:
    for pool in (None, "elsewhere"):
        decision = decide(None, observed(pool=pool), policy())
        assert (decision.state, reasons(decision)) == (None, ["NotOnLadder"]), f"{pool} is on no ladder"
        assert "a-spot, b-spot, on-demand" in decision.events[0].message


def test_a_job_that_ended_before_its_first_reconciliation_is_ignored() -> None:
    for outcome in JobOutcome:
        assert not decide(None, observed(outcome=outcome), policy()).actions


def test_a_reservation_is_released_when_its_job_stops_following() -> None:
    climbing = running(pool="on-demand", rank=2, failback=failing_back())
    for left in (
        observed(follows=False, reservation=reserved()),
        observed(is_managed_by_kueue=True, reservation=reserved()),
    ):
        decision = decide(climbing, left, policy(return_after=HOUR))
        assert kinds(decision) == [WriteState, ReleaseReservation]
    gone = decide(None, observed(follows=False, reservation=reserved()), policy())
    assert kinds(gone) == [ReleaseReservation]


def test_earlier_losses_do_not_count_at_the_first_reconciliation() -> None:
    state = state_of(decide(None, observed(restarts=7, disrupted_restarts=3), policy()))
    assert (state.restarts, state.disrupted_restarts) == (7, 3)
    assert (state.evictions, state.unexplained) == (0, 0)


def test_a_removed_tier_moves_its_job_only_when_nodes_are_lost() -> None:
    decision = decide(running(evictions=99), observed(), policy(tiers=(tier("b-spot"), LAST)))
    assert not decision.actions
    decision = decide(
        running(), observed(pods_placed=0, losses=(loss(),)), policy(tiers=(tier("b-spot"), LAST))
    )
    assert [action.pool for action in decision.actions if isinstance(action, Suspend)] == ["b-spot"]
    on_last = running(pool="on-demand", rank=2)
    decision = decide(
        on_last, observed(pool="on-demand", pods_placed=0), policy(tiers=(tier(), tier("b-spot")))
    )
    assert [action.pool for action in decision.actions if isinstance(action, Suspend)] == ["b-spot"]
    reordered = policy(tiers=(tier("b-spot"), tier("a-spot"), LAST))
    decision = decide(running(evictions=3), observed(), reordered)
    assert [action.pool for action in decision.actions if isinstance(action, Suspend)] == ["on-demand"]


def test_events_of_the_job_kind_are_passed_on() -> None:
    notice = JobEvent(
        reason=EventReason.ENDS_AT_FIRST_LOSS,
        message="It ends 0 on SIGTERM.",
        is_warning=True,
        is_standing=True,
    )
    assert decide(running(), observed(notices=(notice,)), policy()).events == (notice,)


def test_waits_follow_the_clock_that_jumped() -> None:
    jumped = observed(pods_placed=0, now=T0 + HOUR + MINUTE, clock_jump=HOUR)
    decision = decide(waiting(), jumped, policy())
    assert Suspend not in kinds(decision)
    assert kinds(decision) == [WriteState], "the shifted times are recorded, since the jump is observed once"
    assert decision.requeue_at == T0 + HOUR + 15 * MINUTE
    jumped = observed(pods_placed=0, now=T0 - HOUR + MINUTE, clock_jump=-HOUR)
    assert decide(waiting(), jumped, policy()).requeue_at == T0 - HOUR + 15 * MINUTE
    decision = decide(
        waiting(waiting_since=T0 + 9 * HOUR, since=T0 + 9 * HOUR), observed(pods_placed=0), policy()
    )
    assert state_of(decision).waiting_since == T0
    assert decision.requeue_at == T0 + 15 * MINUTE
    steered = observed(now=T0 + SECOND, clock_jump=SECOND)
    assert not decide(running(), steered, policy()).actions


@pytest.mark.parametrize("jump", [HOUR, -HOUR])
def test_a_loss_is_not_counted_twice_because_the_clock_jumped(jump: timedelta) -> None:
    counted = state_of(decide(running(), observed(losses=(loss(),)), policy()))
    after = observed(losses=(loss(),), now=T0 + jump + MINUTE, clock_jump=jump)
    assert state_of(decide(counted, after, policy())).evictions == 1


def test_only_the_end_of_a_pause_may_be_in_the_future() -> None:
    paused = running(phase=Phase.PAUSED, resume_at=T0 + MINUTE)
    assert shift_times(paused, observed_suspended()) == paused
    ahead = running(phase=Phase.PAUSED, resume_at=T0 + 9 * HOUR)
    assert shift_times(ahead, observed_suspended()).resume_at == T0 + LONGEST_PAUSE


def test_every_time_of_the_controllers_clock_is_shifted() -> None:
    times = running(
        waiting_since=T0,
        outage_counted_at=T0,
        resumed_at=T0,
        suspended_at=T0,
        resume_at=T0,
        last_failback_at=T0,
        failback=FailbackAttempt(pool="a-spot", stage=FailbackStage.CHECKPOINTING, since=T0, requested_at=T0),
        outage_at=T0,
        losses_counted_until=T0,
    )
    jump = 2 * TOLERANCE
    moved = shift_times(times, observed(now=T0 + HOUR, clock_jump=jump))
    ours = (
        moved.waiting_since,
        moved.outage_counted_at,
        moved.resumed_at,
        moved.suspended_at,
        moved.resume_at,
        moved.last_failback_at,
    )
    assert set(ours) == {T0 + jump}
    assert moved.failback is not None
    assert (moved.failback.since, moved.failback.requested_at) == (T0 + jump, T0 + jump)
    assert (moved.outage_at, moved.losses_counted_until) == (T0, T0)


#: Enough situations that each action occurs among them.
SEARCH = settings(max_examples=sized(500, soak=30_000), database=None)
SEARCH_FOR_ONE = settings(max_examples=50_000, database=None, phases=[hypothesis.Phase.generate])

#: Actions that change a job or reserve capacity for it.
CHANGES = (
    Suspend | Resume | DeleteChildren | CreatePlaceholders | TaintReservedNodes | RequestCheckpoint | Recreate
)


def written_states(decision: Decision) -> list[JobState]:
    """The states that a decision's actions write."""
    return [
        action.state
        for action in decision.actions
        if isinstance(action, WriteState | Suspend | Resume | Recreate)
    ]


def test_decisions_for_drawn_situations_have_every_property_and_contain_every_action() -> None:
    found: set[type[Action]] = set()

    def check(situation: Situation) -> None:
        decision = decide(*situation)
        found.update(kinds(decision))
        check_states(situation, decision)
        check_resumptions(situation, decision)
        check_suspensions(situation, decision)
        check_restraint(situation, decision)

    SEARCH(given(situations)(check))()
    # What Hypothesis draws depends on which modules are imported: a few of 500 decisions delete children.
    for action in set(get_args(Action)) - found:
        check(find(situations, partial(_decides_on, action), settings=SEARCH_FOR_ONE))
    assert found == set(get_args(Action))


def _decides_on(action: type[Action], situation: Situation) -> bool:
    return action in kinds(decide(*situation))


def check_states(situation: Situation, decision: Decision) -> None:
    state, observation, _ = situation
    assert decision == decide(*situation)
    written = written_states(decision)
    assert len(written) <= 1, "a crash could separate two writes of one annotation"
    assert all(each == decision.state for each in written)
    if decision.state != state:
        assert written or decision.state is None
    for each in written:
        assert read_state(write_state(each)) == each
    assert decision.requeue_at is None or decision.requeue_at > observation.now


def check_resumptions(situation: Situation, decision: Decision) -> None:
    state, observation, _ = situation
    for action in decision.actions:
        if isinstance(action, Resume):
            assert not action.state.suspended_by_us
            assert isinstance(state, JobState)
            assert state.phase in {Phase.SUSPENDING, Phase.PAUSED}, f"{state.phase} does not end by itself"
            assert observation.suspended
            assert observation.may_run_here
            assert not cluster_of(action.pool)
            is_observed = state.operator_status not in {"", observation.operator_status}
            if action.recreates_children:
                assert is_observed
                assert observation.children_create_no_pods, "the old gang could get another pod"
            else:
                assert observation.is_suspension_complete or state.phase is Phase.PAUSED
            assert observation.pods_remaining == 0, "the old gang and the new one would write one checkpoint"
            is_deleted = isinstance(decision.actions[0], DeleteChildren) and action.recreates_children
            assert observation.outdated_children == 0 or is_deleted


def check_suspensions(situation: Situation, decision: Decision) -> None:
    state, observation, _ = situation
    for action in decision.actions:
        if isinstance(action, Suspend):
            is_stop = observation.stop_requested and action.state.phase is Phase.STOPPED
            assert "/" not in action.pool
            assert action.state.suspended_by_us or is_stop, "otherwise the job would never be resumed"
            was_ours = isinstance(state, JobState) and state.suspended_by_us
            assert not observation.suspended or was_ours
            assert observation.outcome is None


def check_restraint(situation: Situation, decision: Decision) -> None:
    state, observation, _ = situation
    must_end_suspension = (
        isinstance(state, JobState) and state.suspended_by_us and state.uid == observation.uid
    )
    # A stop is only read from a job that follows the ladder, so a drawn one stands for such a job.
    follows = observation.follows or observation.stop_requested
    if (not follows or observation.is_managed_by_kueue) and not must_end_suspension:
        assert not [action for action in decision.actions if isinstance(action, CHANGES)]
    if observation.reservation is not None and (decision.state is None or decision.state.failback is None):
        assert ReleaseReservation in kinds(decision)
