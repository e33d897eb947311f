"""Which pods each kind of pool keeps away."""

from holdfast.scheduling.labels import CapacityType
from holdfast.scheduling.taints import (
    AKS_SPOT,
    GKE_SPOT_TAINT,
    GPU,
    SPOT,
    SYSTEM,
    Taint,
    aks_pool_taints,
    gke_pool_taints,
    pool_taints,
)


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


def test_scale_sets_of_aks_have_the_taints_of_karpenters_pools_and_aks_own_for_spot() -> None:
    for capacity in CapacityType:
        for has_gpus in (False, True):
            declared = aks_pool_taints(capacity=capacity, has_gpus=has_gpus)
            own = {AKS_SPOT} if capacity is CapacityType.SPOT else set[Taint]()
            shared = pool_taints(capacity=capacity, has_gpus=has_gpus)
            assert set(declared) == {*shared, *own}, (
                "a job that moves to the other way of scaling finds nothing new"
            )


def test_the_taint_of_aks_spot_nodes_is_the_one_aks_adds() -> None:
    assert AKS_SPOT.as_taint() == {
        "key": "kubernetes.azure.com/scalesetpriority",
        "value": "spot",
        "effect": "NoSchedule",
    }, "declared otherwise, a pool would have two"


def test_gke_is_never_told_of_the_taint_of_gpus() -> None:
    for capacity in CapacityType:
        for compute_class in (None, "a100"):
            declared = gke_pool_taints(capacity=capacity, compute_class=compute_class)
            assert GPU.key not in {taint.key for taint in declared}, "it adds one itself and takes no second"


def test_spot_nodes_of_gke_are_tainted_by_us() -> None:
    assert gke_pool_taints(capacity=CapacityType.SPOT, compute_class=None) == (GKE_SPOT_TAINT,), (
        "GKE does not taint a spot pool that was made by hand"
    )
    assert gke_pool_taints(capacity=CapacityType.ON_DEMAND, compute_class=None) == (), (
        "and these take every pod"
    )


def test_a_pool_of_a_compute_class_is_closed_by_its_class_alone() -> None:
    (taint,) = gke_pool_taints(capacity=CapacityType.SPOT, compute_class="a100")
    assert taint.as_taint() == {
        "key": "cloud.google.com/compute-class",
        "value": "a100",
        "effect": "NoSchedule",
    }, "GKE lets in whoever selects the class, and knows nothing of a second taint"


def test_the_taint_of_gkes_spot_nodes_is_the_one_manifests_tolerate() -> None:
    assert GKE_SPOT_TAINT.as_taint() == {
        "key": "cloud.google.com/gke-spot",
        "value": "true",
        "effect": "NoSchedule",
    }, "manifests that tolerate it are in the wild"
