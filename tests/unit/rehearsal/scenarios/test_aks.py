"""What AKS's autoscaler can buy is read from its node pools, and pods say how they lost their node."""

from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

from holdfast.rehearsal.lifecycle.run import spot_example
from holdfast.rehearsal.scenarios.aks import AksScaleSets, NodeAutoProvisioning
from holdfast.simulator.clouds.state import CloudObject, CloudState
from holdfast.simulator.cluster_autoscaler.node_groups import ScaleSets
from holdfast.simulator.stacks.cluster_nodes import ClusterNodes
from tests.support.aks_objects import agent_pool, aks_cluster

if TYPE_CHECKING:
    from holdfast.simulator.kubernetes_client.client import KubeClient

GPU = "Standard_ND96amsr_A100_v4"
CPU = agent_pool("cpu")
CPU_SPOT = agent_pool("cpuspot", spot=True, digest="s1")
GPU_SPOT = agent_pool("a100spot", spot=True, vmSize=GPU, digest="s2")
GPUS = agent_pool("a100", vmSize=GPU, digest="d2")
CLIENT = cast("KubeClient", object())


def aks(folder: Path, *pools: CloudObject) -> AksScaleSets:
    cloud = CloudState(folder / "azure-native.json")
    with cloud.changing() as console:
        for one in (aks_cluster(), *pools):
            console.put(one)
    nodes = ClusterNodes(folder / "kubeconfig", "azure-native")
    return AksScaleSets(client=CLIENT, scale_sets=ScaleSets(cloud), nodes=nodes)


@pytest.mark.parametrize(
    ("pools", "example"),
    [((CPU, CPU_SPOT, GPU_SPOT), "jobset-spot"), ((CPU, GPU_SPOT), "jobset-spot-gpu")],
)
def test_a_job_on_spot_asks_for_gpus_only_where_there_is_no_other_spot(
    pools: tuple[CloudObject, ...], example: str, tmp_path: Path
) -> None:
    assert spot_example(aks(tmp_path, *pools)) == example, (
        "a GPU machine would be bought for nothing, or for ever"
    )


def test_gpus_are_to_be_had_on_demand_only_from_a_pool_that_is(tmp_path: Path) -> None:
    assert aks(tmp_path / "has", CPU, GPUS).has_gpus_on_demand(), "it has one"
    assert not aks(tmp_path / "has-not", CPU, GPU_SPOT).has_gpus_on_demand(), "all its GPUs are spot"


def test_both_ways_select_alike_and_lose_nodes_differently(tmp_path: Path) -> None:
    provisioned, scaled = NodeAutoProvisioning(CLIENT), aks(tmp_path, CPU)
    assert provisioned.on_spot() == scaled.on_spot(), "a manifest is the same in both"
    assert provisioned.on_demand() == scaled.on_demand(), "a manifest is the same in both"
    assert (provisioned.disruption, scaled.disruption) == ("DeletionByPodGC", "EvictionByEvictionAPI"), (
        "AKS drains a scale set's node on the notice, and nobody drains the other"
    )
