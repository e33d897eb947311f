"""Quotas: what is derived, and what is refused because a job of a declared shape could never run."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.scheduling.labels import CapacityType
from holdfast.scheduling.machines import Machine
from holdfast.scheduling.pools import Pool, PoolSummary, summarize_pool
from holdfast.scheduling.quotas import BESIDE, AskedQuota, Quota, quota_of, quota_problems
from holdfast.scheduling.reachability.shape import Resources, Shape

AT = "holdfast:platform.namespaces[0].quota"


def facts(*machines: Machine, max_nodes: int = 8) -> PoolSummary:
    pool = Pool(name="a100", capacity=CapacityType.ON_DEMAND, has_gpus=True, max_nodes=max_nodes)
    return summarize_pool(pool, machines, ())


def machine(vcpus: int, gpus: int = 0) -> Machine:
    return Machine(name="some", vcpus=vcpus, memory_mib=65_536, gpus=gpus, hourly_price=1.0)


def shape(name: str = "finetune", *, pods: int = 4, gpus: int = 8) -> Shape:
    return Shape(name=name, pods=pods, requests=Resources(cpu_millis=1000, memory_mib=1024, gpus=gpus))


A100 = facts(machine(96, gpus=8))
CPU = facts(machine(4), machine(16), max_nodes=20)


def test_a_quota_is_what_the_ladders_pools_can_have_together() -> None:
    assert quota_of(AskedQuota(), [A100, facts(machine(192, gpus=8), max_nodes=4)], [shape()]) == Quota(
        gpus=(8 + 4) * 8, pods=8 * 96 + 4 * 110 + BESIDE
    ), "jobs may be on all tiers at once; on a node are as many pods as it has CPUs, or as a kubelet takes"


def test_the_largest_machine_of_a_pool_speaks_for_all() -> None:
    assert quota_of(AskedQuota(), [CPU], []) == Quota(gpus=0, pods=20 * 16 + BESIDE), (
        "whichever is bought, its pods are let in; and a ladder of CPUs has no GPUs"
    )


def test_what_is_asked_for_takes_the_place_of_what_is_derived() -> None:
    assert quota_of(AskedQuota(gpus=32), [A100], []) == Quota(gpus=32, pods=8 * 96 + BESIDE), "one of them"
    assert quota_of(AskedQuota(gpus=32, pods=64), [A100], []) == Quota(gpus=32, pods=64), "or both"


def test_a_namespace_can_be_left_without_quota() -> None:
    assert quota_of(AskedQuota(enforced=False), [A100], [shape()]) is None, "where it is said aloud"


@pytest.mark.parametrize(
    "asked", [AskedQuota(), AskedQuota(gpus=32), AskedQuota(gpus=33, pods=4), AskedQuota(enforced=False)]
)
def test_a_quota_that_holds_every_gang_is_taken(asked: AskedQuota) -> None:
    shapes = [shape(), shape("test", pods=1, gpus=1)]
    assert list(quota_problems(asked, shapes, AT, on_gpus=True)) == [], "nothing is wrong with it"


@pytest.mark.parametrize(
    ("asked", "field", "needed"),
    [(AskedQuota(gpus=31), "gpus", 32), (AskedQuota(gpus=0), "gpus", 32), (AskedQuota(pods=3), "pods", 4)],
)
def test_a_quota_that_keeps_a_gang_from_ever_running_is_refused_once(
    asked: AskedQuota, field: str, needed: int
) -> None:
    shapes = [shape("test", pods=4, gpus=2), shape(), shape("other", pods=2, gpus=8)]
    (problem,) = quota_problems(asked, shapes, AT, on_gpus=True)
    assert problem.field == f"{AT}.{field}", "the field is named"
    assert needed == 4 or "shape finetune (4 pods of 8 GPUs" in problem.value, "and the largest of the shapes"
    assert problem.fix.startswith(f"Write {needed} or more"), "and the fix"


def test_a_quota_without_gpus_is_refused_where_the_ladder_has_them() -> None:
    (problem,) = quota_problems(AskedQuota(gpus=0), [], AT, on_gpus=True)
    assert problem.value == "0 on a ladder of pools with GPUs", "no job could use them"
    assert list(quota_problems(AskedQuota(gpus=0), [], AT)) == [], "elsewhere it means something"


def test_a_number_beside_no_quota_is_refused() -> None:
    (problem,) = quota_problems(AskedQuota(enforced=False, pods=500), [shape()], AT)
    assert problem.field == f"{AT}.pods", "the field is named"
    assert "beside enforced: false" in problem.value, "one of the two is a mistake"


shapes = st.lists(st.builds(shape, pods=st.integers(1, 10_000), gpus=st.integers(0, 64)), max_size=4)
pools = st.lists(
    st.builds(
        facts,
        st.builds(machine, st.integers(1, 448), gpus=st.sampled_from((0, 1, 4, 8, 16))),
        st.builds(machine, st.integers(1, 448), gpus=st.sampled_from((0, 1, 4, 8, 16))),
        max_nodes=st.integers(1, 1000),
    ),
    max_size=4,
)
asked = st.builds(
    AskedQuota,
    enforced=st.booleans(),
    gpus=st.none() | st.integers(0, 5000),
    pods=st.none() | st.integers(1, 5000),
)


@given(asked=asked, pools=pools, shapes=shapes)
def test_a_quota_that_is_taken_lets_the_gang_of_every_shape_in(
    asked: AskedQuota, pools: list[PoolSummary], shapes: list[Shape]
) -> None:
    if list(quota_problems(asked, shapes, AT)):
        return
    quota = quota_of(asked, pools, shapes)
    for each in shapes if quota is not None else ():
        assert quota is not None, "there is one"
        assert each.pods <= quota.pods, f"{each.title} is let in"
        assert each.pods * each.requests.gpus <= quota.gpus, f"{each.title} gets its GPUs"


@given(pools=pools, shapes=shapes)
def test_a_derived_quota_never_keeps_the_ladders_pools_from_being_filled(
    pools: list[PoolSummary], shapes: list[Shape]
) -> None:
    quota = quota_of(AskedQuota(), pools, shapes)
    assert quota is not None, "there is one unless it is said otherwise"
    assert quota.gpus >= sum(pool.max_nodes * pool.largest.gpus for pool in pools), "every GPU can be used"
    assert quota.pods > sum(pool.max_nodes for pool in pools), "with a pod on every node, and some beside"
