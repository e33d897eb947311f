"""A tier in another cluster: the job stays suspended here, and its tier's limits apply to the copy there."""

from dataclasses import replace
from functools import partial

import pytest

from pulumi_holdfast.controller.jobs.actions import (
    CreatePlaceholders,
    EventReason,
    Resume,
    Suspend,
    WriteState,
)
from pulumi_holdfast.controller.jobs.observation import CopyStatus, Deadline, MaxCost, Observation, PoolStatus
from pulumi_holdfast.controller.jobs.patches import read_record, write_marker
from pulumi_holdfast.controller.jobs.state import (
    FailbackStage,
    JobState,
    Ledger,
    Pace,
    Phase,
    PoolUse,
    Purpose,
    UnreadableState,
)
from pulumi_holdfast.controller.state_machine.decision import decide
from pulumi_holdfast.controller.state_machine.failover import SLOW_SUSPENSION_AFTER
from pulumi_holdfast.ladder.labels import CapacityType
from pulumi_holdfast.ladder.ladder import DeclaredFacts, NoPolicy
from tests.support.builders.job_states import (
    HOUR,
    LAST,
    MINUTE,
    PODS,
    SECOND,
    SPOT,
    T0,
    UID,
    failing_back,
    kinds,
    loss,
    observed,
    observed_suspended,
    only,
    pace_of,
    policy,
    reasons,
    reserved,
    running,
    state_of,
    suspending,
    tier,
)

WEST = tier("west/a-spot", max_failures=2, procurement_timeout=20 * MINUTE)
LADDER = policy(tiers=(SPOT, WEST, LAST))
UP = replace(LADDER, return_after=HOUR, hold_timeout=10 * MINUTE)

#: The job at home, while its copy may run: its template selects the pool that it came from.
SUSPENDED = observed_suspended(pool="a-spot", may_run_here=False)
PLACED = CopyStatus(pods_expected=PODS, pods_placed=PODS, pool="a-spot")


#: A job whose copy has run for an hour.
away = partial(running, phase=Phase.AWAY, pool="west/a-spot", rank=1)


def test_a_job_goes_away_with_its_template_as_it_is_and_is_not_resumed_here() -> None:
    spent = running(evictions=2)
    moving = decide(spent, observed(losses=(loss(),)), LADDER)
    suspend = only(moving, Suspend)
    assert (suspend.pool, suspend.state.pool) == ("", "west/a-spot")

    pods_left = replace(SUSPENDED, may_run_here=True, pods_remaining=1)
    assert not decide(moving.state, pods_left, LADDER).actions

    gone = decide(moving.state, replace(SUSPENDED, may_run_here=True), LADDER)
    assert kinds(gone) == [WriteState]
    assert (state_of(gone).phase, state_of(gone).waiting_since) == (Phase.AWAY, T0)
    assert reasons(gone) == [EventReason.MOVED]
    assert gone.requeue_at == T0 + 20 * MINUTE


def test_a_tier_of_a_cluster_that_the_controller_cannot_reach_is_skipped() -> None:
    seen = observed(losses=(loss(),), pools={"west/a-spot": PoolStatus(exists=False)})
    assert only(decide(running(evictions=2), seen, LADDER), Suspend).pool == "on-demand"


def test_a_copy_that_gets_its_nodes_ends_the_wait_and_one_that_loses_them_waits_again() -> None:
    waits = away(waiting_since=T0 - MINUTE)
    placed = decide(waits, replace(SUSPENDED, copy=PLACED), LADDER)
    assert state_of(placed).waiting_since is None
    assert reasons(placed) == [EventReason.PLACED]
    again = decide(placed.state, replace(SUSPENDED, copy=replace(PLACED, pods_placed=3)), LADDER)
    assert state_of(again).waiting_since == T0


@pytest.mark.parametrize(
    ("seen", "state", "reason"),
    [
        (replace(SUSPENDED, copy=replace(PLACED, evictions=2)), away(), EventReason.MAX_FAILURES_REACHED),
        (
            replace(SUSPENDED, copy=CopyStatus(pods_expected=PODS, pods_placed=3)),
            away(waiting_since=T0 - 20 * MINUTE),
            EventReason.NO_CAPACITY,
        ),
        (SUSPENDED, away(waiting_since=T0 - 20 * MINUTE), EventReason.NO_CAPACITY),
        (replace(SUSPENDED, copy=replace(PLACED, is_given_up=True)), away(), EventReason.TIER_UNAVAILABLE),
    ],
    ids=["failures", "timeout", "timeout before a copy is seen", "given up there"],
)
def test_a_job_leaves_a_tier_elsewhere_when(seen: Observation, state: JobState, reason: EventReason) -> None:
    decision = decide(state, seen, LADDER)

    suspend = only(decision, Suspend)
    assert (suspend.pool, suspend.only_without_nodes) == ("on-demand", False)
    assert reason in reasons(decision)
    back = replace(SUSPENDED, pool="on-demand", copy=PLACED)
    waits = decide(decision.state, back, LADDER)
    assert Resume not in kinds(waits)
    home = decide(decision.state, replace(back, may_run_here=True, copy=None), LADDER)
    assert only(home, Resume).pool == "on-demand"


@pytest.mark.parametrize(
    ("seen", "state", "why"),
    [
        (replace(SUSPENDED, copy=replace(PLACED, evictions=1)), away(), "one more is allowed"),
        (
            replace(SUSPENDED, copy=replace(PLACED, pool="b-spot", evictions=9)),
            away(),
            "on another pool the ladder there counts",
        ),
        (SUSPENDED, away(), "while nothing is known the copy stays as it was"),
        (replace(SUSPENDED, suspended=False), away(), "the transfer suspends it again"),
    ],
)
def test_a_job_stays_away_while(seen: Observation, state: JobState, why: str) -> None:
    decision = decide(state, seen, LADDER)
    assert Suspend not in kinds(decision), why
    assert Resume not in kinds(decision), why
    assert state_of(decision).phase is Phase.AWAY, why


def test_a_job_without_a_ladder_stays_away() -> None:
    assert decide(away(), replace(SUSPENDED, copy=PLACED), NoPolicy()).state == away()


def test_a_failback_reserves_capacity_here_while_the_copy_runs_and_moves_after_it_is_gone() -> None:
    seen = replace(SUSPENDED, copy=PLACED, checkpoints_on_request=True)
    started = decide(away(), seen, UP)
    assert only(started, CreatePlaceholders).pool == "a-spot"

    attempt = failing_back(FailbackStage.TAINTING)
    held = replace(seen, reservation=reserved())
    moving = decide(away(failback=attempt), held, UP)
    suspend = only(moving, Suspend)
    assert (suspend.pool, suspend.tolerate_reservation) == ("a-spot", True)
    assert state_of(moving).purpose is Purpose.FAILBACK

    assert Resume not in kinds(decide(moving.state, held, UP))
    home = decide(moving.state, replace(held, may_run_here=True, copy=None), UP)
    assert only(home, Resume).tolerate_reservation


def test_a_tier_elsewhere_is_no_target_of_a_failback() -> None:
    low = running(pool="on-demand", rank=2)
    seen = observed(pool="on-demand", pools={"a-spot": PoolStatus(exists=False)})
    assert not decide(low, seen, UP).actions, "capacity there cannot be reserved from here"


def test_a_copy_that_does_not_go_is_reported() -> None:
    state = suspending(pool="on-demand", rank=2, suspended_at=T0 - SLOW_SUSPENSION_AFTER)
    decision = decide(state, replace(SUSPENDED, pool="on-demand"), LADDER)
    assert reasons(decision) == [EventReason.SLOW_SUSPENSION]
    early = decide(replace(state, suspended_at=T0 - SECOND), replace(SUSPENDED, pool="on-demand"), LADDER)
    assert not early.events


def test_a_user_who_resumes_a_job_before_it_is_away_keeps_it_here() -> None:
    decision = decide(away(waiting_since=T0), observed(), LADDER)
    assert (state_of(decision).pool, state_of(decision).phase) == ("a-spot", Phase.WAITING)


def test_a_version_without_tiers_elsewhere_resumes_the_job_on_the_pool_it_selects() -> None:
    read = read_record("{}", write_marker(away()), UID)
    assert isinstance(read, UnreadableState)
    assert read.resume_on == ""


ON_DEMAND = DeclaredFacts(capacity=CapacityType.ON_DEMAND)
PRICED = policy(
    tiers=(
        SPOT,
        replace(WEST, facts=DeclaredFacts(capacity=CapacityType.SPOT)),
        replace(LAST, price=10.0, facts=ON_DEMAND),
    )
)


def spent_there(amount: float) -> CopyStatus:
    """A copy that has gone on to on-demand, on the ladder of its cluster."""
    use = PoolUse(pool="on-demand", capacity=CapacityType.ON_DEMAND, node_time=50 * HOUR, cost=amount)
    ledger = Ledger(counted_from=T0 - HOUR, counted_until=T0, uses=(use,))
    return replace(
        PLACED, pool="on-demand", capacity=CapacityType.ON_DEMAND, uid="c", cluster="west", ledger=ledger
    )


def test_what_a_copy_spends_on_on_demand_counts_against_the_max_cost_of_its_job() -> None:
    began = away(ledger=Ledger(counted_from=T0 - 2 * HOUR, counted_until=T0))
    limited = replace(SUSPENDED, max_cost=MaxCost(amount=250))
    less = decide(began, replace(limited, copy=spent_there(249)), PRICED)
    assert not {EventReason.MAX_COST_REACHED} & set(reasons(less))

    spent = decide(began, replace(limited, copy=spent_there(250)), PRICED)
    assert reasons(spent) == [EventReason.MAX_COST_REACHED]
    assert only(spent, Suspend).pool == "a-spot"
    assert not only(spent, Suspend).only_without_nodes

    asked = replace(limited, max_cost=MaxCost(amount=250, gives_up=True), copy=spent_there(250))
    given_up = decide(began, asked, PRICED)
    assert reasons(given_up) == [EventReason.GIVEN_UP]
    assert state_of(given_up).phase is Phase.GIVEN_UP

    on_spot = replace(limited, copy=replace(spent_there(250), pool="a-spot", capacity=CapacityType.SPOT))
    assert state_of(decide(began, on_spot, PRICED)).phase is Phase.AWAY


def test_a_copy_that_is_given_up_for_its_max_cost_does_not_keep_its_job_away() -> None:
    began = away(ledger=Ledger(counted_from=T0 - 2 * HOUR, counted_until=T0))
    copy = replace(
        spent_there(250), is_given_up=True, pods_placed=0, pool="a-spot", capacity=CapacityType.SPOT
    )
    left = decide(began, replace(SUSPENDED, max_cost=MaxCost(amount=250), copy=copy), PRICED)
    assert EventReason.TIER_UNAVAILABLE in reasons(left)
    assert only(left, Suspend).pool == "a-spot"


PACED = replace(PRICED, restart_cost=12 * MINUTE, hold_timeout=MINUTE)


def test_the_work_that_a_copy_does_is_work_of_its_job() -> None:
    deadline = Deadline(finish_by=T0 + 14 * HOUR, work=48 * HOUR)
    there = replace(PLACED, pace=Pace(work_done=30 * HOUR, counts_from=T0 - HOUR))
    seen = replace(SUSPENDED, deadline=deadline, copy=there)
    state = state_of(decide(away(pace=Pace(work_done=20 * HOUR)), seen, PACED))
    assert (pace_of(state).work_done, pace_of(state).counts_from) == (30 * HOUR, T0 - HOUR)

    lost = replace(seen, copy=replace(there, pods_placed=0, pace=Pace(work_done=31 * HOUR)))
    waits = pace_of(state_of(decide(state, lost, PACED)))
    assert (waits.work_done, waits.interruptions) == (31 * HOUR, 1)

    older = replace(seen, copy=replace(there, pace=Pace(work_done=HOUR)))
    kept = pace_of(state_of(decide(state, older, PACED)))
    assert kept.work_done == 30 * HOUR

    reported = replace(seen, copy=replace(there, pace=Pace(work_done=24 * HOUR, progress=0.5), progress=0.5))
    taken_back = pace_of(state_of(decide(state, reported, PACED)))
    assert taken_back.work_done == 24 * HOUR


def test_a_copy_on_on_demand_is_not_recalled_for_its_slack() -> None:
    deadline = Deadline(finish_by=T0 + 10 * HOUR, work=10 * HOUR)
    there = replace(PLACED, pool="on-demand", pace=Pace(counts_from=T0))
    spot = replace(
        SUSPENDED,
        deadline=deadline,
        copy=replace(there, capacity=CapacityType.SPOT, pods_placed=0, pace=Pace()),
    )
    assert EventReason.SLACK_SPENT in reasons(decide(away(pace=Pace()), spot, PACED))
    safe = replace(spot, copy=replace(there, capacity=CapacityType.ON_DEMAND))
    assert state_of(decide(away(pace=Pace()), safe, PACED)).phase is Phase.AWAY


@pytest.mark.parametrize(
    ("state", "seen"),
    [
        pytest.param(away(), SUSPENDED, id="away"),
        pytest.param(
            running(phase=Phase.PAUSED, resume_at=T0 + HOUR, suspended_at=T0),
            observed_suspended(),
            id="paused",
        ),
        pytest.param(suspending(), observed_suspended(pods_remaining=1), id="suspending"),
    ],
)
def test_a_job_that_becomes_late_while_it_is_suspended_says_so(state: JobState, seen: Observation) -> None:
    late = replace(seen, deadline=Deadline(finish_by=T0 + HOUR, work=10 * HOUR))
    found = decide(replace(state, pace=Pace()), late, PACED)
    assert EventReason.DEADLINE_MISSED in reasons(found)


@pytest.mark.parametrize(
    "state",
    [
        pytest.param(away(), id="away"),
        pytest.param(suspending(pool="west/a-spot", rank=1), id="on its way there"),
    ],
)
def test_a_job_that_is_stopped_elsewhere_resumes_on_the_tier_that_its_template_selects(
    state: JobState,
) -> None:
    asked = replace(SUSPENDED, stop_requested=True)
    stopped = state_of(decide(state, asked, LADDER))
    assert (stopped.phase, stopped.pool) == (Phase.STOPPED, "a-spot")
    resumed = state_of(decide(stopped, observed(pool="a-spot"), LADDER))
    assert (resumed.phase, resumed.pool) == (Phase.RUNNING, "a-spot")
    assert resumed.moves == stopped.moves
