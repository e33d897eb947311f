"""Which pools a cluster has, by its NodePools or its AKS node pools."""

from pathlib import Path
from typing import cast

import pytest

from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.rehearsal.clouds.state import CloudObject, CloudState
from pulumi_holdfast.rehearsal.cluster_autoscaler.node_groups import ScaleSets
from pulumi_holdfast.rehearsal.kubernetes import KubeClient
from pulumi_holdfast.rehearsal.lifecycle.run import spot_example
from pulumi_holdfast.rehearsal.scenarios.aks import AksScaleSets, NodeAutoProvisioning
from pulumi_holdfast.rehearsal.scenarios.karpenter import Karpenter
from pulumi_holdfast.rehearsal.stacks.cluster_nodes import ClusterNodes
from tests.support.builders.aks_objects import agent_pool, aks_cluster

PLAIN: tuple[str, ...] = ()
GPU = ("nvidia.com/gpu",)
SPOT = ("karpenter.sh/capacity-type",)
GPU_SPOT = (*SPOT, *GPU)


class _Pools:
    """An API server that lists NodePools with these taints."""

    def __init__(self, *taints: tuple[str, ...]) -> None:
        self._pools: list[Json] = [
            {"spec": {"template": {"spec": {"taints": [{"key": key} for key in keys]}}}} for keys in taints
        ]

    def list(self, api_version: str, kind: str) -> list[Json]:
        assert (api_version, kind) == ("karpenter.sh/v1", "NodePool")
        return self._pools


def _karpenter(*taints: tuple[str, ...]) -> Karpenter:
    return Karpenter(cast("KubeClient", _Pools(*taints)))


@pytest.mark.parametrize(
    ("pools", "example"),
    [
        # The job needs no GPU node.
        ((PLAIN, SPOT, GPU_SPOT), "jobset-spot"),
        # The job would stay pending.
        ((PLAIN, GPU_SPOT), "jobset-spot-gpu"),
    ],
)
def test_the_example_uses_gpus_only_without_a_plain_spot_pool(
    pools: tuple[tuple[str, ...], ...], example: str
) -> None:
    assert spot_example(_karpenter(*pools)) == example


def test_karpenter_has_on_demand_gpus_only_with_an_on_demand_gpu_pool() -> None:
    assert _karpenter(PLAIN, GPU).has_gpus_on_demand()
    assert not _karpenter(PLAIN, SPOT, GPU_SPOT).has_gpus_on_demand()


AKS_GPU_SIZE = "Standard_ND96amsr_A100_v4"
AKS_CPU = agent_pool("cpu")
AKS_CPU_SPOT = agent_pool("cpuspot", spot=True, digest="s1")
AKS_GPU_SPOT = agent_pool("a100spot", spot=True, vmSize=AKS_GPU_SIZE, digest="s2")
AKS_GPUS = agent_pool("a100", vmSize=AKS_GPU_SIZE, digest="d2")
AKS_CLIENT = cast("KubeClient", object())


def aks(folder: Path, *pools: CloudObject) -> AksScaleSets:
    cloud = CloudState(folder / "azure-native.json")
    with cloud.changing() as console:
        for one in (aks_cluster(), *pools):
            console.put(one)
    nodes = ClusterNodes(folder / "kubeconfig", "azure-native")
    return AksScaleSets(client=AKS_CLIENT, groups=ScaleSets(cloud), nodes=nodes)


@pytest.mark.parametrize(
    ("pools", "example"),
    [((AKS_CPU, AKS_CPU_SPOT, AKS_GPU_SPOT), "jobset-spot"), ((AKS_CPU, AKS_GPU_SPOT), "jobset-spot-gpu")],
)
def test_the_example_on_aks_uses_gpus_only_without_a_plain_spot_pool(
    pools: tuple[CloudObject, ...], example: str, tmp_path: Path
) -> None:
    assert spot_example(aks(tmp_path, *pools)) == example


def test_aks_has_on_demand_gpus_only_with_an_on_demand_gpu_pool(tmp_path: Path) -> None:
    assert aks(tmp_path / "has", AKS_CPU, AKS_GPUS).has_gpus_on_demand()
    assert not aks(tmp_path / "has-not", AKS_CPU, AKS_GPU_SPOT).has_gpus_on_demand()


def test_both_provisioners_of_aks_use_the_same_labels_and_different_disruptions(tmp_path: Path) -> None:
    provisioned, scaled = NodeAutoProvisioning(AKS_CLIENT), aks(tmp_path, AKS_CPU)
    assert provisioned.on_spot() == scaled.on_spot()
    assert provisioned.on_demand() == scaled.on_demand()
    assert (provisioned.disruption, scaled.disruption) == ("DeletionByPodGC", "EvictionByEvictionAPI")
