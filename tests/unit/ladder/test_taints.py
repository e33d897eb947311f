import pytest

from pulumi_holdfast.ladder.labels import CapacityType
from pulumi_holdfast.ladder.taints import (
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


@pytest.mark.parametrize(
    ("capacity", "has_gpus", "taints", "reason"),
    [
        (CapacityType.ON_DEMAND, False, (), "pods without tolerations need a pool"),
        (CapacityType.SPOT, False, (SPOT,), "spot is the cheapest, and would otherwise get every pod"),
        (CapacityType.ON_DEMAND, True, (GPU,), "a helper pod must not buy a GPU machine"),
        (CapacityType.SPOT, True, (SPOT, GPU), "tolerating GPUs is not tolerating spot"),
    ],
)
def test_pool_has_the_taints_of_its_capacity_type_and_its_gpus(
    capacity: CapacityType, *, has_gpus: bool, taints: tuple[Taint, ...], reason: str
) -> None:
    assert pool_taints(capacity=capacity, has_gpus=has_gpus) == taints, reason
    own = {AKS_SPOT} if capacity is CapacityType.SPOT else set[Taint]()
    on_aks = aks_pool_taints(capacity=capacity, has_gpus=has_gpus)
    assert set(on_aks) == {*taints, *own}


@pytest.mark.parametrize(
    ("taint", "key", "value"),
    [
        (SPOT, "karpenter.sh/capacity-type", "spot"),
        (GPU, "nvidia.com/gpu", "present"),
        (SYSTEM, "CriticalAddonsOnly", "true"),
        (AKS_SPOT, "kubernetes.azure.com/scalesetpriority", "spot"),
        (GKE_SPOT_TAINT, "cloud.google.com/gke-spot", "true"),
    ],
)
def test_taint_is_spelled_as_existing_manifests_and_clouds_do(taint: Taint, key: str, value: str) -> None:
    found = {"key": key, "value": value, "effect": "NoSchedule"}
    assert taint.as_taint() == found
    assert taint.as_toleration() == {**found, "operator": "Equal"}, "a key alone would tolerate other values"


def test_gke_pool_declares_the_spot_taint_or_that_of_its_class_and_never_that_of_gpus() -> None:
    spot = gke_pool_taints(capacity=CapacityType.SPOT, compute_class=None)
    assert spot == (GKE_SPOT_TAINT,)
    on_demand = gke_pool_taints(capacity=CapacityType.ON_DEMAND, compute_class=None)
    assert on_demand == ()
    for capacity in CapacityType:
        (taint,) = gke_pool_taints(capacity=capacity, compute_class="a100")
        declared = {"key": "cloud.google.com/compute-class", "value": "a100", "effect": "NoSchedule"}
        assert taint.as_taint() == declared
