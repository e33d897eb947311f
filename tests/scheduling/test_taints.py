"""Which pods each kind of pool keeps away."""

from scheduling.labels import CapacityType
from scheduling.taints import GPU, SPOT, SYSTEM, pool_taints


def test_a_cpu_pool_on_demand_takes_every_pod() -> None:
    taints = pool_taints(capacity=CapacityType.ON_DEMAND, has_gpus=False)
    assert taints == (), "a pod that asks for nothing tolerates nothing and must have somewhere to run"


def test_spot_nodes_keep_away_pods_that_do_not_ask_for_spot() -> None:
    taints = pool_taints(capacity=CapacityType.SPOT, has_gpus=False)
    assert taints == (SPOT,), "spot is the cheapest and would otherwise get every pod"


def test_gpu_nodes_keep_away_pods_that_need_none_whatever_they_are_bought_as() -> None:
    for capacity in CapacityType:
        taints = pool_taints(capacity=capacity, has_gpus=True)
        assert GPU in taints, f"a helper pod must not buy a GPU machine, {capacity} or other"


def test_a_spot_pool_with_gpus_has_both_taints() -> None:
    taints = pool_taints(capacity=CapacityType.SPOT, has_gpus=True)
    assert taints == (SPOT, GPU), "asking for GPUs is not asking for spot, nor the other way round"


def test_taints_are_spelled_as_job_authors_rely_on() -> None:
    spelled = [SPOT.as_taint(), GPU.as_taint(), SYSTEM.as_taint()]
    assert spelled == [
        {"key": "karpenter.sh/capacity-type", "value": "spot", "effect": "NoSchedule"},
        {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"},
        {"key": "CriticalAddonsOnly", "value": "true", "effect": "NoSchedule"},
    ], "manifests that tolerate these are in the wild"


def test_a_toleration_names_its_taint_and_no_other() -> None:
    assert SPOT.as_toleration() == {
        "key": "karpenter.sh/capacity-type",
        "operator": "Equal",
        "value": "spot",
        "effect": "NoSchedule",
    }, "a toleration by key alone would let a pod onto nodes of a capacity type it did not ask for"
