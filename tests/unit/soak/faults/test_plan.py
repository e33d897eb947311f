"""The faults of a run follow from its seed alone."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.soak.faults.plan import (
    SPOT_TIERS,
    Complete,
    Evict,
    KillController,
    KillServer,
    Plan,
    RunOut,
    TakeNode,
    draw_plan,
)

seeds = st.integers(0, 10**6)


def kinds(plan: Plan) -> set[type]:
    return {type(fault) for faults in plan.rounds for fault in faults}


@given(seed=seeds, jobs=st.integers(2, 300), rounds=st.integers(1, 12))
def test_the_same_seed_gives_the_same_faults(seed: int, jobs: int, rounds: int) -> None:
    plan = draw_plan(seed, jobs=jobs, rounds=rounds)
    assert plan == draw_plan(seed, jobs=jobs, rounds=rounds), "a run that failed can be given again"
    assert len(plan.rounds) == rounds, "so many rounds were asked for"


@given(seed=seeds, rounds=st.integers(3, 12))
def test_three_rounds_have_every_kind_of_fault(seed: int, rounds: int) -> None:
    found = kinds(draw_plan(seed, jobs=20, rounds=rounds))
    assert {Evict, TakeNode, RunOut, KillController, KillServer, Complete} <= found, "none is left to luck"


@given(seed=seeds)
def test_a_single_round_waits_for_no_stock_out_and_has_jobs_move(seed: int) -> None:
    plan = draw_plan(seed, jobs=8, rounds=1)
    assert {Evict, TakeNode, KillController, KillServer} == kinds(plan), "those that are quick"
    assert plan.failures == (1, 1), "one outage is enough for a move"


@given(seed=seeds, jobs=st.integers(2, 300))
def test_faults_are_given_to_what_there_is(seed: int, jobs: int) -> None:
    plan = draw_plan(seed, jobs=jobs, rounds=6)
    for faults in plan.rounds:
        for fault in faults:
            if isinstance(fault, Evict | Complete):
                assert all(0 <= number < jobs for number in fault.jobs), "no job but these"
            if isinstance(fault, TakeNode | RunOut):
                assert 0 <= fault.tier < SPOT_TIERS, "the market takes nothing on demand"
            if isinstance(fault, KillController):
                assert 1 <= fault.write <= jobs, "there are so many writes at least"
