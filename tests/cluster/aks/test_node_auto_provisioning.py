"""AKS's own Karpenter comes with its cluster, kinds and all, buys what the location sells, and goes with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.rehearsal.scenarios.aks import NodeAutoProvisioning
from holdfast.simulator.control_plane.processes import processes_in
from holdfast.simulator.kubernetes_client.objects import mapping, sequence
from holdfast.simulator.operator_runner.managed_karpenter import TOOL
from holdfast.simulator.operator_runner.operator_runner import RunnerLayout
from tests.support.aks_objects import aks_cluster
from tests.support.aks_provisioning import AksProvisioning, aks_provisioning
from tests.support.clusters.autoscaled import a_pod, labels_of, phase
from tests.support.clusters.operators import STACK
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from holdfast.scheduling.json import Json

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(400)]

ON_SPOT: Json = {"nodeSelector": {"karpenter.sh/capacity-type": "spot"}, "terminationGracePeriodSeconds": 10}


@pytest.fixture(scope="module")
def aks(tmp_path_factory: pytest.TempPathFactory) -> Generator[AksProvisioning]:
    with aks_provisioning(tmp_path_factory.mktemp("nap")) as found:
        yield found


def running(aks: AksProvisioning) -> list[object]:
    """The processes of Karpenter."""
    layout = RunnerLayout.of(STACK, aks.charts.workspace)
    return list(processes_in(layout.folder, [TOOL]))


def test_its_whole_life(aks: AksProvisioning) -> None:
    cluster = aks_cluster(provisions_nodes=True)
    aks.put(aks_cluster())
    assert running(aks) == [], "a cluster with scale sets has none"
    aks.put(cluster)
    for kind in ("aksnodeclasses.karpenter.azure.com", "nodepools.karpenter.sh", "nodeclaims.karpenter.sh"):
        aks.wait_for_definition(kind)
    aks.pool("cpu-spot", "Standard_D4ds_v5", "Standard_D4ads_v5", capacity="spot")
    aks.charts.apply(a_pod("trains", cpu="1", spec=ON_SPOT))
    node = _node_of(aks, "trains")
    labels = labels_of(node)
    assert labels["karpenter.sh/capacity-type"] == "spot", "as the source's manifest selects"
    assert str(labels["topology.kubernetes.io/zone"]).startswith("eastus2-"), "in its cluster's location"
    assert labels["karpenter.azure.com/sku-family"] == "D", "with the labels of Azure's provider"

    told: list[str] = []
    name = str(mapping(node["metadata"])["name"])
    machines = NodeAutoProvisioning(aks.charts.client)
    interruption = machines.interruption(name, told.append)
    reasons = _reasons_after(aks, "trains", interruption.interrupt)
    interruption.wait_until_gone()
    assert machines.disruption in reasons, "nobody told the pod; it is found to be on no node"
    assert aks.charts.client.get("v1", "Node", name) is None, "the node is gone"
    assert told == [f"eviction: node {name} is gone at once, its pods are told nothing"], told

    aks.charts.client.delete("karpenter.sh/v1", "NodePool", "cpu-spot", propagation="Background")
    aks.remove(cluster)
    wait_until(lambda: running(aks) == [], "it goes with its cluster")


def _node_of(aks: AksProvisioning, pod: str) -> Json:
    found = aks.charts.client.wait_for(
        "v1",
        "Pod",
        pod,
        namespace="default",
        timeout_seconds=120,
        condition=lambda obj: obj is not None and phase(obj) == "Running",
        what=f"{pod} runs",
    )
    node = aks.charts.client.get("v1", "Node", str(mapping((found or {}).get("spec"))["nodeName"]))
    assert node is not None, "a pod runs on a node that is there"
    return node


def _reasons_after(aks: AksProvisioning, pod: str, interrupt: Callable[[], None]) -> set[str]:
    """The disruptions that a pod tells of, from just before the interrupt until it is gone."""
    found: set[str] = set()
    struck = False
    for what, seen in aks.charts.client.watch("v1", "Pod", namespace="default", timeout_seconds=180):
        if not struck:
            struck = True
            interrupt()
        conditions = [mapping(each) for each in sequence(mapping(seen.get("status")).get("conditions"))]
        found |= {str(each["reason"]) for each in conditions if each["type"] == "DisruptionTarget"}
        if what == "DELETED" and mapping(seen["metadata"])["name"] == pod:
            return found
    raise AssertionError(f"{pod} is still there")
