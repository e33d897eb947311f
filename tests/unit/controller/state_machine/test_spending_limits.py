"""`maxPrice` of a tier and `max-cost` of a job: when they move a job, hold it or give it up, and what they never do."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pulumi_holdfast.analysis.simulation.job import JobPlan
from pulumi_holdfast.analysis.simulation.run import Steps, simulate
from pulumi_holdfast.controller.jobs.actions import EventReason, Suspend
from pulumi_holdfast.controller.jobs.observation import Deadline, MaxCost, NodeKind, Observation, PoolStatus
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
from pulumi_holdfast.controller.state_machine.ledger import with_ledger
from pulumi_holdfast.controller.state_machine.spending_limits import PRICE_INTERVAL, spent_on_demand
from pulumi_holdfast.ladder.labels import CapacityType
from pulumi_holdfast.ladder.ladder import DeclaredFacts, NoPolicy, Policy
from tests.support.builders.job_states import (
    HOUR,
    LAST,
    LOWER,
    MINUTE,
    SPOT,
    T0,
    UID,
    failing_back,
    observed,
    observed_suspended,
    only,
    policy,
    reasons,
    reserved,
    running,
    state_of,
    suspending,
    waiting,
)
from tests.support.soak import sized
from tests.support.spending_invariants import spending_faults
from tests.support.strategies.job_situations import ladders, observations, states

ON_SPOT, ON_DEMAND = DeclaredFacts(capacity=CapacityType.SPOT), DeclaredFacts(capacity=CapacityType.ON_DEMAND)
CAPPED = policy(
    tiers=(
        replace(SPOT, facts=ON_SPOT, price=1.0, max_price=1.5),
        replace(LOWER, facts=ON_SPOT, price=1.2, max_price=1.5),
        replace(LAST, facts=ON_DEMAND, price=4.0),
    ),
    return_after=HOUR,
    hold_timeout=10 * MINUTE,
)
EXPENSIVE = PoolStatus(price=2.0)
NODES = NodeKind(pool="on-demand", capacity=CapacityType.ON_DEMAND)
NO_TIME = timedelta(0)


def spent(amount: float) -> Ledger:
    use = PoolUse(pool="on-demand", capacity=CapacityType.ON_DEMAND, node_time=HOUR, ran=HOUR, cost=amount)
    return Ledger(counted_from=T0 - HOUR, counted_until=T0, uses=(use,))


def waits(**pools: PoolStatus) -> Observation:
    return observed(pods_placed=0, pools={name.replace("_", "-"): status for name, status in pools.items()})


def last(amount: float) -> JobState:
    """A job that runs on on-demand and has spent an amount there."""
    return running(pool="on-demand", rank=2, ledger=spent(amount))


def on_last(most: float, **changes: object) -> Observation:
    seen = observed(pool="on-demand", nodes={NODES: 4}, max_cost=MaxCost(amount=most))
    return replace(seen, **changes)


def test_a_job_that_waits_on_a_tier_that_is_too_expensive_moves_on_and_says_price_and_cap() -> None:
    decision = decide(waiting(), waits(a_spot=EXPENSIVE), CAPPED)
    suspend = only(decision, Suspend)
    assert (suspend.pool, suspend.only_without_nodes) == ("b-spot", True)
    assert decision.events[0].message == (
        "A node of a-spot costs 2 per hour, above maxPrice 1.5, so the job buys none there. The job moves on to b-spot."
    )
    both = decide(waiting(), waits(a_spot=EXPENSIVE, b_spot=EXPENSIVE), CAPPED)
    assert only(both, Suspend).pool == "on-demand"


@pytest.mark.parametrize(
    ("seen", "why"),
    [
        (observed(pools={"a-spot": EXPENSIVE}), "it has its nodes: a cap bounds what is bought"),
        (waits(a_spot=PoolStatus(price=1.5)), "the cap itself may be paid"),
        (waits(), "what is declared is not above it"),
    ],
)
def test_a_job_stays_that_buys_nothing_above_the_cap(seen: Observation, why: str) -> None:
    state = waiting() if not seen.is_placed else running()
    assert not [each for each in decide(state, seen, CAPPED).actions if isinstance(each, Suspend)], why


def test_a_price_that_is_not_known_moves_no_job_and_is_said() -> None:
    unknown = replace(CAPPED, tiers=tuple(replace(tier, price=None) for tier in CAPPED.tiers))
    decision = decide(waiting(), replace(waits(), max_cost=MaxCost(amount=1)), unknown)
    assert state_of(decision).pool == "a-spot"
    (said,) = [each for each in decision.events if each.reason is EventReason.PRICE_UNKNOWN]
    assert said.is_standing
    assert "maxPrice has no effect on a-spot, b-spot and max-cost has no effect on on-demand" in said.message


def test_a_gang_that_restarts_keeps_its_nodes_for_a_minute_however_dear_others_are() -> None:
    lost = running(since=T0 - HOUR, phase=Phase.WAITING, waiting_since=T0)
    decision = decide(lost, waits(a_spot=EXPENSIVE), CAPPED)
    assert (state_of(decision).pool, decision.requeue_at) == ("a-spot", T0 + MINUTE)
    later = replace(waits(a_spot=EXPENSIVE), now=T0 + MINUTE)
    assert only(decide(lost, later, CAPPED), Suspend).pool == "b-spot", "they are gone: it would buy another"


def test_no_job_returns_to_a_tier_that_is_too_expensive() -> None:
    state = running(pool="on-demand", rank=2, since=T0 - 2 * HOUR)
    expensive = observed(pool="on-demand", pools={"a-spot": EXPENSIVE, "b-spot": EXPENSIVE})
    assert state_of(decide(state, expensive, CAPPED)).failback is None
    cheap = decide(state, replace(expensive, pools={"a-spot": EXPENSIVE}), CAPPED)
    attempt = state_of(cheap).failback
    assert attempt is not None
    assert attempt.pool == "b-spot"
    holding = replace(state, failback=failing_back())
    assert "FailbackEnded" in reasons(
        decide(holding, replace(expensive, reservation=reserved(placed=1)), CAPPED)
    )


def test_a_job_that_moves_to_reserved_nodes_goes_there_whatever_they_cost_now() -> None:
    attempt = failing_back(FailbackStage.MOVING)
    moving = suspending(pool="a-spot", rank=0, purpose=Purpose.FAILBACK, failback=attempt)
    decision = decide(moving, observed_suspended(pool="a-spot", pools={"a-spot": EXPENSIVE}), CAPPED)
    assert (state_of(decision).phase, state_of(decision).pool) == (Phase.WAITING, "a-spot")


def test_a_job_leaves_on_demand_when_its_max_cost_is_spent() -> None:
    before = decide(last(9.0), on_last(10), CAPPED)
    assert state_of(before).pool == "on-demand"
    assert before.requeue_at is not None
    assert NO_TIME < before.requeue_at - (T0 + HOUR / 16) < MINUTE
    decision = decide(last(10.0), on_last(10), CAPPED)
    assert only(decision, Suspend).pool == "a-spot"
    assert decision.events[0].message == (
        "The job has spent 10.00 on on-demand nodes, of max-cost 10. The job moves on to a-spot."
    )


def test_a_job_is_given_up_at_its_max_cost_if_it_asks_or_nothing_else_is_left() -> None:
    asks = decide(last(10.0), on_last(10, max_cost=MaxCost(amount=10, gives_up=True)), CAPPED)
    assert (state_of(asks).phase, reasons(asks)[0]) == (Phase.GIVEN_UP, "GivenUp")
    assert "Raise fallback.holdfast.dev/max-cost" in asks.events[0].message
    alone = replace(CAPPED, tiers=CAPPED.tiers[-1:])
    assert state_of(decide(last(10.0), on_last(10), alone)).phase is Phase.GIVEN_UP, "it could wait nowhere"
    on_spot = replace(running(), ledger=spent(10.0))
    seen = observed(max_cost=MaxCost(amount=10, gives_up=True))
    assert state_of(decide(on_spot, seen, CAPPED)).phase is Phase.RUNNING


def test_a_job_whose_max_cost_is_spent_tries_the_other_tiers_in_turn() -> None:
    state = waiting(pool="b-spot", rank=1, ledger=spent(10.0))
    seen = observed(pool="b-spot", pods_placed=0, now=T0 + 15 * MINUTE, max_cost=MaxCost(amount=10))
    assert only(decide(state, seen, CAPPED), Suspend).pool == "a-spot"
    failing = replace(state, phase=Phase.RUNNING, waiting_since=None, application_failures=3)
    ran = replace(seen, pods_placed=4)
    stays = decide(failing, ran, CAPPED)
    assert state_of(stays).pool == "b-spot", "a program that fails would fail there too"
    assert "Cost limits exclude every lower tier" in stays.events[0].message
    ended = decide(replace(failing, application_failures=5), ran, CAPPED)
    assert state_of(ended).phase is Phase.GIVEN_UP


def test_on_demand_is_not_entered_for_less_than_a_restart_costs() -> None:
    seen = replace(waits(), now=T0 + 15 * MINUTE, max_cost=MaxCost(amount=10))
    ladder = replace(CAPPED, tiers=(CAPPED.tiers[0], CAPPED.tiers[2]))
    state = decide(waiting(ledger=spent(9.0)), seen, ladder).state
    assert state is not None
    assert state.pool == "a-spot"
    assert only(decide(waiting(ledger=spent(8.0)), seen, ladder), Suspend).pool == "on-demand"


def test_a_job_without_a_tier_that_it_may_buy_on_is_suspended_until_a_price_falls() -> None:
    seen = replace(waits(a_spot=EXPENSIVE, b_spot=EXPENSIVE), max_cost=MaxCost(amount=10))
    held = decide(waiting(ledger=spent(10.0)), seen, CAPPED)
    assert only(held, Suspend).pool == "a-spot"
    suspended = replace(
        observed_suspended(pool="a-spot", pools={"a-spot": EXPENSIVE, "b-spot": EXPENSIVE}),
        max_cost=MaxCost(amount=10),
    )
    paused = decide(state_of(held), suspended, CAPPED)
    assert (state_of(paused).phase, state_of(paused).resume_at) == (Phase.PAUSED, T0 + PRICE_INTERVAL)
    later = replace(suspended, now=T0 + PRICE_INTERVAL)
    again = state_of(decide(state_of(paused), later, CAPPED))
    assert again.resume_at == later.now + PRICE_INTERVAL
    cheap = decide(state_of(paused), replace(later, pools={}), CAPPED)
    assert (state_of(cheap).phase, reasons(cheap)) == (Phase.WAITING, ["Resumed"])
    other = decide(state_of(paused), replace(later, pools={"a-spot": EXPENSIVE}), CAPPED)
    assert (state_of(other).pool, state_of(other).phase) == ("b-spot", Phase.SUSPENDING)


def test_a_deadline_that_max_cost_does_not_pay_for_is_said_and_lateness_too() -> None:
    paced = replace(last(9.0), pace=Pace(work_done=HOUR, counts_from=T0))
    seen = on_last(10, deadline=Deadline(finish_by=T0 + 30 * HOUR, work=21 * HOUR))
    decision = decide(paced, seen, CAPPED)
    assert "DeadlineNotCovered" in reasons(decision)
    assert "DeadlineMissed" not in reasons(decision)
    enough = decide(paced, replace(seen, max_cost=MaxCost(amount=1000)), CAPPED)
    assert "DeadlineNotCovered" not in reasons(enough)
    over = replace(waiting(ledger=spent(10.0)), pace=Pace(work_done=HOUR))
    late = replace(
        waits(), max_cost=MaxCost(amount=10), deadline=Deadline(finish_by=T0 + HOUR, work=9 * HOUR)
    )
    assert "DeadlineMissed" in reasons(decide(over, late, CAPPED)), "not even on-demand would be in time"


@settings(max_examples=sized(100, soak=10_000))
@given(states, observations, ladders)
def test_no_decision_spends_more_than_is_allowed(
    state: JobState | UnreadableState | None, seen: Observation, ladder: Policy | NoPolicy
) -> None:
    assert spending_faults(seen, ladder, decide(state, seen, ladder)) == []


minutes = st.integers(1, 300).map(lambda number: number * MINUTE)
amounts = st.sampled_from((0.5, 1.0, 1.4, 1.6, 3.0, None))


def steps(drawn: list[tuple[timedelta, float | None]]) -> list[tuple[datetime, float | None]]:
    found, at = [(T0, 1.0 if not drawn else drawn[0][1])], T0
    for gap, value in drawn:
        at += gap
        found.append((at, value))
    return found


@settings(max_examples=sized(40, soak=2000))
@given(
    st.lists(st.tuples(minutes, amounts), max_size=12),
    st.lists(st.tuples(minutes, st.integers(0, 4)), max_size=12),
    st.integers(1, 4),
    st.sampled_from((None, 1.0, 7.5, 40.0)),
    st.booleans(),
    st.sampled_from((NO_TIME, 5 * MINUTE)),
)
def test_a_simulated_job_keeps_its_limits_and_its_ledger_to_the_unit(
    prices: list[tuple[timedelta, float | None]],
    capacity: list[tuple[timedelta, int]],
    pods: int,
    most: float | None,
    gives_up: bool,
    grace: timedelta,
) -> None:
    market = Steps(
        pools={
            "a-spot": [(at, int(number or 0)) for at, number in steps([(t, float(n)) for t, n in capacity])]
        },
        prices={"a-spot": steps(prices), "on-demand": [(T0, 4.0)]},
    )
    limit = None if most is None else MaxCost(amount=most, gives_up=gives_up)
    plan = JobPlan(uid=UID, created=T0, pool="a-spot", pods=pods, work=10 * HOUR, grace=grace, max_cost=limit)
    run = simulate([plan], CAPPED, market, start=T0, until=T0 + 40 * HOUR)
    (job,) = run.jobs
    assert isinstance(job.state, JobState)
    paid = sum(
        use.nodes
        * ((use.end - use.start) / HOUR)
        * (market.price(use.pool, use.start) or _declared(use.pool))
        for use in run.uses
    )
    final = decide(job.state, run.observed(job), CAPPED).state
    assert final is not None
    assert abs(_counted(job.state, run.observed(job)) - paid) < 1e-6
    if most is not None:
        over = pods * 4.0 * ((grace + timedelta(seconds=1)) / HOUR)
        assert spent_on_demand(job.state) <= most + over
    moves = sum(each.report.reason in {"Moved", "Resumed"} for each in run.events)
    assert moves <= 40 * HOUR / PRICE_INTERVAL


def _declared(pool: str) -> float:
    return next(tier.price or 0.0 for tier in CAPPED.tiers if tier.name == pool)


def _counted(state: JobState, seen: Observation) -> float:
    ledger = with_ledger(state, seen, CAPPED).ledger
    return (ledger.cost or 0.0) if ledger is not None else 0.0


def test_a_job_that_is_given_up_on_spot_is_not_said_to_be_on_the_last_tier() -> None:
    on_demand = replace(LAST, price=10.0, facts=DeclaredFacts(capacity=CapacityType.ON_DEMAND))
    spent = Ledger(
        counted_from=T0 - HOUR,
        counted_until=T0,
        uses=(PoolUse(pool="on-demand", capacity=CapacityType.ON_DEMAND, cost=250.0),),
    )
    for state, ladder, where in (
        (
            running(application_failures=3, ledger=spent),
            policy(tiers=(SPOT, on_demand), application_failures=1),
            "a-spot, whose lower tiers cost limits exclude",
        ),
        (
            running(application_failures=3, pool="on-demand", rank=1),
            policy(tiers=(SPOT, LAST), application_failures=1),
            "the last tier, on-demand",
        ),
    ):
        found = decide(state, observed(pool=state.pool, max_cost=MaxCost(amount=250)), ladder)
        (given_up,) = [each for each in found.events if each.reason is EventReason.GIVEN_UP]
        assert where in given_up.message
        assert ("the last tier" in given_up.message) is (state.pool == "on-demand")
