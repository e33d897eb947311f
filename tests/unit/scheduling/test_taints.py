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


def test_on_demand_cpu_pool_has_no_taints() -> None:
    taints = pool_taints(capacity=CapacityType.ON_DEMAND, has_gpus=False)
    assert taints == (), "pods without tolerations need a pool"


def test_spot_pool_has_the_spot_taint() -> None:
    taints = pool_taints(capacity=CapacityType.SPOT, has_gpus=False)
    assert taints == (SPOT,), "spot is the cheapest, and would otherwise get every pod"


def test_gpu_pool_of_any_capacity_type_has_the_gpu_taint() -> None:
    for capacity in CapacityType:
        taints = pool_taints(capacity=capacity, has_gpus=True)
        assert GPU in taints, f"a helper pod must not buy a GPU machine, {capacity} or not"


def test_spot_pool_with_gpus_has_both_taints() -> None:
    taints = pool_taints(capacity=CapacityType.SPOT, has_gpus=True)
    assert taints == (SPOT, GPU), "tolerating GPUs is not tolerating spot"


def test_taints_are_spelled_as_existing_manifests_tolerate_them() -> None:
    spelled = [SPOT.as_taint(), GPU.as_taint(), SYSTEM.as_taint()]
    assert spelled == [
        {"key": "karpenter.sh/capacity-type", "value": "spot", "effect": "NoSchedule"},
        {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"},
        {"key": "CriticalAddonsOnly", "value": "true", "effect": "NoSchedule"},
    ], "existing manifests tolerate these"


def test_toleration_matches_only_its_taint() -> None:
    assert SPOT.as_toleration() == {
        "key": "karpenter.sh/capacity-type",
        "operator": "Equal",
        "value": "spot",
        "effect": "NoSchedule",
    }, "a toleration of only the key would tolerate other capacity types"


def test_aks_scale_sets_have_the_taints_of_karpenter_pools_and_those_of_aks() -> None:
    for capacity in CapacityType:
        for has_gpus in (False, True):
            declared = aks_pool_taints(capacity=capacity, has_gpus=has_gpus)
            own = {AKS_SPOT} if capacity is CapacityType.SPOT else set[Taint]()
            shared = pool_taints(capacity=capacity, has_gpus=has_gpus)
            assert set(declared) == {*shared, *own}, "jobs run on both without a change"


def test_aks_spot_taint_is_the_one_that_aks_adds() -> None:
    assert AKS_SPOT.as_taint() == {
        "key": "kubernetes.azure.com/scalesetpriority",
        "value": "spot",
        "effect": "NoSchedule",
    }, "otherwise a pool would have two"


def test_gke_pool_never_declares_the_gpu_taint() -> None:
    for capacity in CapacityType:
        for compute_class in (None, "a100"):
            declared = gke_pool_taints(capacity=capacity, compute_class=compute_class)
            assert GPU.key not in {taint.key for taint in declared}, "GKE adds it, and rejects a second one"


def test_gke_spot_pool_declares_the_spot_taint() -> None:
    assert gke_pool_taints(capacity=CapacityType.SPOT, compute_class=None) == (GKE_SPOT_TAINT,), (
        "GKE does not taint spot node pools that users create"
    )
    assert gke_pool_taints(capacity=CapacityType.ON_DEMAND, compute_class=None) == (), (
        "on-demand pools accept every pod"
    )


def test_gke_pool_of_a_compute_class_has_only_the_class_taint() -> None:
    (taint,) = gke_pool_taints(capacity=CapacityType.SPOT, compute_class="a100")
    assert taint.as_taint() == {
        "key": "cloud.google.com/compute-class",
        "value": "a100",
        "effect": "NoSchedule",
    }, "GKE adds only this toleration to pods that select the class"


def test_gke_spot_taint_is_the_one_that_manifests_tolerate() -> None:
    assert GKE_SPOT_TAINT.as_taint() == {
        "key": "cloud.google.com/gke-spot",
        "value": "true",
        "effect": "NoSchedule",
    }, "existing manifests tolerate it"
