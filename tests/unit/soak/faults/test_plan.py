"""The faults of a run follow from its seed alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.soak.fault_proxy import ApiRequest, Fault
from tests.soak.faults.injection import KillAtWrite
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
    assert len(plan.rounds) == rounds, "so many rounds were request for"


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


JOBSETS = "/apis/jobset.x-k8s.io/v1alpha2/namespaces/train/jobsets/one"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/holdfast-system/leases/one"


def request(method: str = "PATCH", path: str = JOBSETS) -> ApiRequest:
    """A write to a job."""
    return ApiRequest(method=method, path=path, watch=False)


def deaths(deadly: KillAtWrite, write: int, *, is_done: bool = True) -> list[str]:
    """The deaths there will have been, for the write at which one is wanted."""
    died: list[str] = []
    deadly.kill_at(write, lambda: died.append("it"), is_done=is_done)
    return died


def test_nobody_dies_who_was_not_to() -> None:
    assert KillAtWrite().decide(request()) is Fault.PASS, "every request goes on"


@pytest.mark.parametrize(("is_done", "decide"), [(True, Fault.LOSE_ANSWER), (False, Fault.LOSE)])
def test_it_dies_once_at_the_write_that_was_named(is_done: bool, decide: Fault) -> None:
    deadly = KillAtWrite()
    died = deaths(deadly, 2, is_done=is_done)
    assert [deadly.decide(request()) for _ in range(4)] == [Fault.PASS, decide, Fault.PASS, Fault.PASS], (
        "the second alone"
    )
    assert died == ["it"], "and once"
    assert not deadly.cancel(), "nobody is left to die"


@pytest.mark.parametrize(
    "harmless", [request(method="GET"), request(path=LEASES), request(path="/api/v1/namespaces/train/events")]
)
def test_reads_leases_and_events_do_not_count(harmless: ApiRequest) -> None:
    deadly = KillAtWrite()
    died = deaths(deadly, 1)
    assert deadly.decide(harmless) is Fault.PASS, "it goes on"
    assert not died, "and nobody dies at it"


def test_whoever_is_spared_dies_at_no_write() -> None:
    deadly = KillAtWrite()
    died = deaths(deadly, 1)
    assert deadly.cancel(), "somebody would have died"
    assert deadly.decide(request()) is Fault.PASS, "the write goes on"
    assert not died, "and nobody dies at it"
