"""The wait for capacity, and half-placed gangs: one of them yields its nodes for a while."""

from dataclasses import replace
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from pulumi_holdfast.analysis.simulation.job import JobPlan, Nodes, SimulatedJob
from pulumi_holdfast.analysis.simulation.run import Simulation, Steps
from pulumi_holdfast.controller.jobs.actions import Resume, Suspend, WriteState
from pulumi_holdfast.controller.jobs.observation import ContendingGang
from pulumi_holdfast.controller.jobs.state import Phase, Purpose
from pulumi_holdfast.controller.state_machine.decision import LONGEST_PAUSE, decide
from pulumi_holdfast.controller.state_machine.tier_visit import (
    SHORTEST_PAUSE,
    YIELD_INTERVAL,
    YIELD_WITHOUT_LIMIT,
    pause_length,
)
from tests.support.builders.job_states import (
    HOUR,
    MINUTE,
    SECOND,
    T0,
    kinds,
    observed,
    observed_suspended,
    only,
    policy,
    reasons,
    running,
    state_of,
    suspending,
    waiting,
)

HALF_OF_THE_WAIT = T0 + timedelta(minutes=7, seconds=30)
ELDER = ContendingGang(uid="elder", created=T0 - 2 * HOUR)
YOUNGER = ContendingGang(uid="younger", created=T0)


def test_an_elastic_job_waits_for_its_pods_without_yielding_and_says_nothing_of_none() -> None:
    decision = decide(waiting(), observed(pods_expected=0, pods_placed=0), policy())
    assert (state_of(decision).phase, reasons(decision)) == (Phase.RUNNING, [])
    grown = observed(pods_placed=2, is_elastic=True, contending_gang=ELDER, now=HALF_OF_THE_WAIT)
    decision = decide(state_of(decision), grown, policy())
    assert state_of(decision).phase is Phase.WAITING
    assert Suspend not in kinds(decide(waiting(), grown, policy()))
    late = replace(grown, now=T0 + 15 * MINUTE)
    assert "NoCapacity" in reasons(decide(waiting(), late, policy()))


def test_only_the_younger_of_two_half_placed_gangs_yields() -> None:
    decision = decide(
        waiting(), observed(pods_placed=2, contending_gang=ELDER, now=HALF_OF_THE_WAIT), policy()
    )
    suspend = only(decision, Suspend)
    assert (suspend.pool, suspend.state.purpose) == ("a-spot", Purpose.YIELD)
    assert suspend.state.waited == HALF_OF_THE_WAIT - T0
    decision = decide(
        waiting(), observed(pods_placed=2, contending_gang=YOUNGER, now=HALF_OF_THE_WAIT), policy()
    )
    assert not decision.actions, "or both would let go, again and again"
    decision = decide(
        waiting(), observed(pods_placed=0, contending_gang=ELDER, now=HALF_OF_THE_WAIT), policy()
    )
    assert not decision.actions


def test_gangs_yield_one_after_the_other() -> None:
    yielded_at = HALF_OF_THE_WAIT - SECOND
    after = observed(pods_placed=2, contending_gang=ELDER, now=HALF_OF_THE_WAIT, last_yield_at=yielded_at)
    decision = decide(waiting(), after, policy())
    assert not decision.actions
    assert decision.requeue_at == yielded_at + YIELD_INTERVAL
    later = decide(waiting(), replace(after, now=yielded_at + YIELD_INTERVAL), policy())
    assert Suspend in kinds(later)
    strange = observed(
        pods_placed=2, contending_gang=ELDER, now=HALF_OF_THE_WAIT, last_yield_at=HALF_OF_THE_WAIT + HOUR
    )
    assert Suspend in kinds(decide(waiting(), strange, policy())), "the clock was set back since"


def test_a_gang_yields_after_half_of_the_timeout_or_five_minutes_without_one() -> None:
    early = observed(pods_placed=2, contending_gang=ELDER, now=HALF_OF_THE_WAIT - SECOND)
    decision = decide(waiting(), early, policy())
    assert Suspend not in kinds(decision)
    assert decision.requeue_at == HALF_OF_THE_WAIT
    state = waiting(pool="on-demand", rank=2)
    stuck = observed(pool="on-demand", pods_placed=2, contending_gang=ELDER, now=T0 + YIELD_WITHOUT_LIMIT)
    assert Suspend in kinds(decide(state, stuck, policy())), "nothing else would ever end it"


def test_a_gang_that_yields_pauses_once_its_pods_are_gone() -> None:
    yielding = suspending(pool="a-spot", rank=0, purpose=Purpose.YIELD)
    decision = decide(yielding, observed_suspended(pool="a-spot"), policy())
    state = state_of(decision)
    assert (kinds(decision), state.phase) == ([WriteState], Phase.PAUSED)
    assert decision.requeue_at == state.resume_at
    assert state.resume_at is not None
    assert SHORTEST_PAUSE <= state.resume_at - T0 <= 2 * SHORTEST_PAUSE


def test_after_a_pause_the_wait_continues() -> None:
    paused = running(phase=Phase.PAUSED, resume_at=T0, waited=7 * MINUTE, yields=1)
    state = only(decide(paused, observed_suspended(pool="a-spot"), policy()), Resume).state
    assert (state.waited, state.waiting_since) == (7 * MINUTE, T0)
    late = observed(pods_placed=2, now=T0 + 8 * MINUTE)
    assert only(decide(state, late, policy()), Suspend).pool == "b-spot"
    (placed,) = decide(state, observed(now=T0 + 6 * MINUTE), policy()).events
    assert placed.message.endswith("after 13m.")


def test_a_new_tier_gives_the_job_its_whole_timeout() -> None:
    moving = suspending(pool="b-spot", rank=1, waited=7 * MINUTE)
    state = only(decide(moving, observed_suspended(pool="b-spot"), policy()), Resume).state
    assert (state.waited, state.waiting_since) == (0 * MINUTE, T0)


@given(st.text(max_size=36), st.integers(0, 50))
def test_pauses_are_spread_by_uid_and_deterministic(uid: str, yields: int) -> None:
    state = waiting(uid=uid, yields=yields)
    assert pause_length(state) == pause_length(state)
    assert SHORTEST_PAUSE <= pause_length(state) <= LONGEST_PAUSE
    assert pause_length(state) != pause_length(waiting(uid=f"{uid}x", yields=yields))
    doubled = SHORTEST_PAUSE * 2 ** min(yields, 3)
    assert doubled <= pause_length(state) <= 2 * doubled


def test_two_gangs_that_block_each_other_both_run_eventually() -> None:
    plans = [
        JobPlan(uid=uid, created=T0 + number * SECOND, pool="a-spot", pods=3, work=HOUR)
        for number, uid in enumerate(("elder", "younger"))
    ]
    jobs = tuple(SimulatedJob(plan=plan, nodes=Nodes(pool="a-spot", there=2)) for plan in plans)
    room = Steps(pools={"a-spot": [(T0, 4)]})
    both = Simulation(policy=policy(), availability=room, now=T0, jobs=jobs)
    both.run(T0 + 24 * HOUR)
    assert [event.uid for event in both.events if event.report.reason == "Yielded"] == ["younger"]
    assert jobs[0].finished_at == HALF_OF_THE_WAIT + HOUR
    assert jobs[1].finished_at is not None, f"and the younger runs too: {both.events}"
