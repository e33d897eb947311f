import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulumi_holdfast.ladder.labels import CapacityType
from pulumi_holdfast.ladder.machines import Machine
from pulumi_holdfast.ladder.pools import Pool
from pulumi_holdfast.ladder.quotas import (
    BESIDE,
    OBJECTS,
    OBJECTS_PER_NODE,
    STORAGE_MIB,
    Quota,
    QuotaSettings,
    quota_of,
    quota_problems,
)
from pulumi_holdfast.ladder.reachability.pool_summary import PoolSummary, summarize_pool
from pulumi_holdfast.ladder.reachability.shape import Resources, Shape

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


def quota(gpus: int, pods: int, *, cpus: int, nodes: int) -> Quota:
    """The quota of pools with so many nodes of 64 GiB, with what their helpers get beside them."""
    return Quota(
        cpu_millis=(cpus + BESIDE) * 1000,
        memory_mib=nodes * 65_536 + BESIDE * 2048,
        gpus=gpus,
        pods=pods + BESIDE,
        storage_mib=(1 + nodes) * STORAGE_MIB,
        objects=OBJECTS + nodes * OBJECTS_PER_NODE,
    )


@pytest.mark.parametrize(
    ("settings", "pools", "shapes", "expected", "reason"),
    [
        (QuotaSettings(), [A100, facts(machine(192, gpus=8), max_nodes=4)], [shape()], quota((8 + 4) * 8, 8 * 96 + 4 * 110, cpus=8 * 96 + 4 * 192, nodes=12), "jobs may be on all tiers; a pod for each CPU, up to the kubelet's limit"),
        (QuotaSettings(), [CPU], [], quota(0, 20 * 16, cpus=20 * 16, nodes=20), "the largest machine of a pool; a ladder of CPUs has no GPUs"),
        (QuotaSettings(), [CPU], [shape(pods=1000, gpus=1)], quota(1000, 1000, cpus=1000, nodes=20), "a gang wider than the pools is admitted; reachability reports it"),
        (QuotaSettings(gpus=32), [A100], [], quota(32, 8 * 96, cpus=8 * 96, nodes=8), "one configured number"),
        (QuotaSettings(cpu_millis=1, memory_mib=2, gpus=32, pods=64, storage_mib=0, objects=1), [A100], [], Quota(cpu_millis=1, memory_mib=2, gpus=32, pods=64, storage_mib=0, objects=1), "or all"),
        (QuotaSettings(enforced=False), [A100], [shape()], None, "with enforced: false"),
    ],
)  # fmt: skip
def test_quota_is_the_capacity_of_the_pools_or_as_configured(
    settings: QuotaSettings,
    pools: list[PoolSummary],
    shapes: list[Shape],
    expected: Quota | None,
    reason: str,
) -> None:
    assert quota_of(settings, pools, shapes) == expected, reason


@pytest.mark.parametrize(
    "settings",
    [QuotaSettings(), QuotaSettings(gpus=32), QuotaSettings(gpus=33, pods=4), QuotaSettings(enforced=False)],
)
def test_quota_for_every_gang_is_valid(settings: QuotaSettings) -> None:
    shapes = [shape(), shape("test", pods=1, gpus=1)]
    assert list(quota_problems(settings, shapes, AT, on_gpus=True)) == []


@pytest.mark.parametrize(
    ("settings", "field", "needed"),
    [
        (QuotaSettings(gpus=31), "gpus", 32),
        (QuotaSettings(gpus=0), "gpus", 32),
        (QuotaSettings(pods=3), "pods", 4),
        (QuotaSettings(cpu_millis=3999), "cpu", 4),
        (QuotaSettings(memory_mib=4095), "memory", "4Gi"),
    ],
)
def test_quota_below_a_gang_is_reported_once(settings: QuotaSettings, field: str, needed: int | str) -> None:
    shapes = [shape("test", pods=4, gpus=2), shape(), shape("other", pods=2, gpus=8)]
    (problem,) = quota_problems(settings, shapes, AT, on_gpus=True)
    assert problem.field == f"{AT}.{field}", "the field is named"
    assert needed != 32 or "shape finetune (4 pods of 8 GPUs" in problem.value, "the largest shape"
    assert problem.fix.startswith(f"Write {needed} or more"), "and the fix"


def test_quota_without_gpus_is_reported_if_the_ladder_has_gpus() -> None:
    (problem,) = quota_problems(QuotaSettings(gpus=0), [], AT, on_gpus=True)
    assert problem.value == "0 on a ladder of pools with GPUs", "no job could use its GPUs"
    assert list(quota_problems(QuotaSettings(gpus=0), [], AT)) == []


def test_number_beside_a_disabled_quota_is_reported() -> None:
    (problem,) = quota_problems(QuotaSettings(enforced=False, pods=500), [shape()], AT)
    assert problem.field == f"{AT}.pods"
    assert "beside enforced: false" in problem.value


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
any_settings = st.builds(
    QuotaSettings,
    enforced=st.booleans(),
    cpu_millis=st.none() | st.integers(1, 500_000),
    memory_mib=st.none() | st.integers(1, 500_000),
    gpus=st.none() | st.integers(0, 5000),
    pods=st.none() | st.integers(1, 5000),
)


@given(settings=any_settings, pools=pools, shapes=shapes)
def test_valid_quota_admits_the_gang_of_every_shape(
    settings: QuotaSettings, pools: list[PoolSummary], shapes: list[Shape]
) -> None:
    if list(quota_problems(settings, shapes, AT)):
        return
    quota = quota_of(settings, pools, shapes)
    for each in shapes if quota is not None else ():
        assert quota is not None
        assert each.pods <= quota.pods, f"{each.title} is admitted"
        assert each.pods * each.requests.gpus <= quota.gpus, f"{each.title} gets its GPUs"
        assert each.pods * each.requests.cpu_millis <= quota.cpu_millis
        assert each.pods * each.requests.memory_mib <= quota.memory_mib


@given(pools=pools, shapes=shapes)
def test_default_quota_never_limits_the_ladders_pools(pools: list[PoolSummary], shapes: list[Shape]) -> None:
    quota = quota_of(QuotaSettings(), pools, shapes)
    assert quota is not None
    assert quota.gpus >= sum(pool.max_nodes * pool.largest.gpus for pool in pools)
    assert quota.pods > sum(pool.max_nodes for pool in pools)


@pytest.mark.parametrize(("vcpus", "pods"), [(1, 1), (109, 109), (110, 110), (111, 110), (448, 110)])
def test_default_quota_counts_a_pod_for_each_cpu_up_to_the_kubelet_limit(vcpus: int, pods: int) -> None:
    found = quota_of(QuotaSettings(), [facts(machine(vcpus), max_nodes=1)], [])
    assert found == quota(0, pods, cpus=vcpus, nodes=1)
