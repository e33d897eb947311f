"""The faults of a run, and the kill at a write."""

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
    Partition,
    Plan,
    RunOut,
    Strike,
    TakeNode,
    draw_plan,
)

seeds = st.integers(0, 10**6)


def kinds(plan: Plan) -> set[type]:
    return {type(step.fault) for steps in plan.rounds for step in steps if isinstance(step, Strike)}


@given(seed=seeds, jobs=st.integers(2, 300), rounds=st.integers(1, 12))
def test_the_same_seed_draws_the_same_faults(seed: int, jobs: int, rounds: int) -> None:
    plan = draw_plan(seed, jobs=jobs, rounds=rounds)
    assert plan == draw_plan(seed, jobs=jobs, rounds=rounds)
    assert len(plan.rounds) == rounds


@given(seed=seeds, rounds=st.integers(3, 12))
def test_three_rounds_contain_every_kind_of_fault(seed: int, rounds: int) -> None:
    found = kinds(draw_plan(seed, jobs=20, rounds=rounds))
    assert {Evict, TakeNode, RunOut, KillController, KillServer, Complete, Partition} <= found


@given(seed=seeds)
def test_a_single_round_contains_the_quick_faults_and_moves_jobs(seed: int) -> None:
    plan = draw_plan(seed, jobs=8, rounds=1)
    assert {Evict, TakeNode, KillController, KillServer} == kinds(plan)
    assert plan.failures == (1, 1)


@given(seed=seeds, jobs=st.integers(2, 300))
def test_faults_hit_existing_jobs_and_tiers(seed: int, jobs: int) -> None:
    plan = draw_plan(seed, jobs=jobs, rounds=6)
    for steps in plan.rounds:
        for fault in [step.fault for step in steps if isinstance(step, Strike)]:
            if isinstance(fault, Evict | Complete):
                assert all(0 <= number < jobs for number in fault.jobs)
            if isinstance(fault, TakeNode | RunOut):
                assert 0 <= fault.tier < SPOT_TIERS
            if isinstance(fault, KillController):
                assert 1 <= fault.write <= jobs


JOBSETS = "/apis/jobset.x-k8s.io/v1alpha2/namespaces/train/jobsets/one"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/holdfast-system/leases/one"


def request(method: str = "PATCH", path: str = JOBSETS) -> ApiRequest:
    """A write to a job."""
    return ApiRequest(method=method, path=path, watch=False)


def deaths(deadly: KillAtWrite, write: int, *, is_done: bool = True) -> list[str]:
    """The kills that happen, with a kill planned at a write."""
    died: list[str] = []
    deadly.kill_at(write, lambda: died.append("it"), is_done=is_done)
    return died


@pytest.mark.parametrize(("is_done", "fault"), [(True, Fault.LOSE_ANSWER), (False, Fault.LOSE)])
def test_the_kill_happens_once_at_its_write(is_done: bool, fault: Fault) -> None:
    deadly = KillAtWrite()
    died = deaths(deadly, 2, is_done=is_done)
    assert [deadly.decide(request()) for _ in range(4)] == [Fault.PASS, fault, Fault.PASS, Fault.PASS]
    assert died == ["it"]
    assert not deadly.cancel()


@pytest.mark.parametrize(
    "harmless", [request(method="GET"), request(path=LEASES), request(path="/api/v1/namespaces/train/events")]
)
def test_reads_leases_and_events_do_not_count(harmless: ApiRequest) -> None:
    deadly = KillAtWrite()
    died = deaths(deadly, 1)
    assert deadly.decide(harmless) is Fault.PASS
    assert not died


def test_a_partition_loses_every_request_and_no_planned_kill() -> None:
    deadly = KillAtWrite()
    died = deaths(deadly, 1)
    deadly.is_partitioned = True
    lost = [deadly.decide(each) for each in (request(), request(method="GET"), request(path=LEASES))]
    assert lost == [Fault.LOSE] * 3, "the leader cannot renew its lease either"
    deadly.is_partitioned = False
    assert deadly.decide(request()) is Fault.LOSE_ANSWER
    assert died == ["it"], "at the first write that the API server could see"
