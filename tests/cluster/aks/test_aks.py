"""Pools of a simulated AKS cluster: scale sets and node auto-provisioning."""

from collections.abc import Callable, Generator

import pytest

from pulumi_holdfast.controller.kube.objects import labels_of, name_of
from pulumi_holdfast.ladder.json import Json, mapping, sequence
from pulumi_holdfast.rehearsal.cluster_autoscaler.autoscaler import EMPTY_SECONDS
from pulumi_holdfast.rehearsal.control_plane.processes import processes_in
from pulumi_holdfast.rehearsal.errors import RehearsalError
from pulumi_holdfast.rehearsal.operator_runner.managed_karpenter import TOOL
from pulumi_holdfast.rehearsal.operator_runner.operator_runner import RunnerLayout
from pulumi_holdfast.rehearsal.scenarios.aks import NodeAutoProvisioning
from tests.support.aks_provisioning import AksProvisioning, aks_provisioning
from tests.support.builders.aks_objects import agent_pool, aks_cluster
from tests.support.clusters.autoscaled import AksInUse, a_pod, phase, taints_of
from tests.support.clusters.operators import STACK
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]


#: What admission makes of `nodeSelector: karpenter.sh/capacity-type: spot`.
ON_SPOT: Json = {
    "nodeSelector": {"karpenter.sh/capacity-type": "spot"},
    "tolerations": [
        {"key": "karpenter.sh/capacity-type", "operator": "Equal", "value": "spot", "effect": "NoSchedule"},
        {
            "key": "kubernetes.azure.com/scalesetpriority",
            "operator": "Equal",
            "value": "spot",
            "effect": "NoSchedule",
        },
    ],
}
POOLS = (aks_cluster(), agent_pool("cpu"), agent_pool("cpuspot", spot=True, digest="s1"))


def test_each_pod_gets_a_node_of_the_pool_it_asks_for(aks: AksInUse) -> None:
    aks.put(*POOLS)
    aks.apply(a_pod("on-spot", spec=ON_SPOT), a_pod("plain"))
    for name in ("on-spot", "plain"):
        aks.left_pending(name)
    aks.autoscaler.step()
    spot = aks.running_on("on-spot")
    assert taints_of(spot) == [
        "kubernetes.azure.com/scalesetpriority=spot:NoSchedule",
        "karpenter.sh/capacity-type=spot:NoSchedule",
    ]
    assert labels_of(aks.running_on("plain"))["holdfast.dev/pool"] == "cpu"
    ((reason, message),) = aks.events_about("on-spot")
    assert reason == "TriggeredScaleUp"
    assert message.startswith("pod triggered scale-up: [{aks-cpuspot-")
    assert message.endswith("-vmss 0->1 (max: 4)}]")
    aks.autoscaler.step()
    assert len(aks.nodes_of("cpuspot")) == 1


def test_without_the_toleration_of_aks_no_pod_runs_on_a_spot_scale_set(aks: AksInUse) -> None:
    aks.put(*POOLS)
    aks.apply(a_pod("half", spec={**ON_SPOT, "tolerations": list(sequence(ON_SPOT["tolerations"]))[:1]}))
    aks.left_pending("half")
    aks.autoscaler.step()
    ((reason, message),) = aks.events_about("half")
    assert reason == "NotTriggerScaleUp"
    assert "untolerated taint {kubernetes.azure.com/scalesetpriority: spot}" in message


def test_an_empty_node_is_removed_after_ten_minutes(aks: AksInUse) -> None:
    aks.put(*POOLS)
    aks.apply(a_pod("goes"))
    aks.left_pending("goes")
    aks.autoscaler.step()
    aks.running_on("goes")
    aks.client.delete("v1", "Pod", "goes", namespace="default", grace_seconds=0)
    aks.client.wait_for(
        "v1",
        "Pod",
        "goes",
        namespace="default",
        timeout_seconds=180,
        condition=lambda found: found is None,
        what="goes is gone",
    )
    aks.autoscaler.step()
    assert len(aks.nodes_of("cpu")) == 1
    aks.clock.now += EMPTY_SECONDS
    aks.autoscaler.step()
    assert aks.nodes_of("cpu") == []


def _on_spot(name: str, *, asks: int, cpu: str = "1", finalizer: bool = False) -> Json:
    pod = a_pod(name, cpu=cpu, spec={**ON_SPOT, "terminationGracePeriodSeconds": asks})
    held = {"finalizers": ["test.holdfast.dev/seen"]} if finalizer else {}
    return {**pod, "metadata": {**mapping(pod["metadata"]), **held}}


def _disruption(pod: Json) -> object:
    conditions = [mapping(each) for each in sequence(mapping(pod["status"]).get("conditions"))]
    return next((each["reason"] for each in conditions if each["type"] == "DisruptionTarget"), None)


def test_pods_of_an_evicted_machine_are_drained_within_the_notice(aks: AksInUse) -> None:
    aks.put(*POOLS)
    # Held, or they would be gone before anybody looks.
    aks.apply(_on_spot("modest", asks=5, finalizer=True), _on_spot("hopeful", asks=90, finalizer=True))
    for name in ("modest", "hopeful"):
        aks.left_pending(name)
    aks.autoscaler.step()
    node = str(labels_of(aks.running_on("modest"))["kubernetes.io/hostname"])
    aks.running_on("hopeful")
    told: list[str] = []
    try:
        aks.machines.interruption(node, told.append)()
        for name in ("modest", "hopeful"):
            pod = aks.wait_for_pod(name, lambda pod: phase(pod) == "Failed", f"{name} has failed")
            assert _disruption(pod) == "EvictionByEvictionAPI"
    finally:
        for name in ("modest", "hopeful"):
            aks.client.merge_patch("v1", "Pod", name, {"metadata": {"finalizers": None}}, namespace="default")
    assert f"eviction: node {node} is evicted with 8 s of notice" in told
    assert "hopeful gets 8 s of its grace period of 90 s" in told
    assert not any(line.startswith("modest") for line in told)
    assert aks.nodes_of("cpuspot") == []
    aks.apply(_on_spot("again", asks=5))
    aks.left_pending("again")
    aks.autoscaler.step()
    assert labels_of(aks.running_on("again"))["kubernetes.io/hostname"] != node


def test_a_pod_that_needs_longer_than_the_notice_is_killed_with_its_machine(aks: AksInUse) -> None:
    aks.put(*POOLS)
    pod = _on_spot("slow", asks=300)
    slow = {**mapping(pod["metadata"]), "annotations": {"holdfast.dev/terminates-in": "300s"}}
    aks.apply({**pod, "metadata": slow})
    aks.left_pending("slow")
    aks.autoscaler.step()
    node = str(labels_of(aks.running_on("slow"))["kubernetes.io/hostname"])
    told: list[str] = []
    aks.machines.interruption(node, told.append)()
    assert f"node {node} is gone with slow still on it" in told
    assert aks.nodes_of("cpuspot") == []


def test_an_on_demand_machine_cannot_be_evicted(aks: AksInUse) -> None:
    aks.put(*POOLS)
    with pytest.raises(RehearsalError, match="is not a spot node of a node pool"):
        aks.machines.interruption("aks-cpu-00000000-vmss000000", lambda _: None)


ON_KARPENTER_SPOT: Json = {
    "nodeSelector": {"karpenter.sh/capacity-type": "spot"},
    "terminationGracePeriodSeconds": 10,
}


@pytest.fixture(scope="module")
def provisioning(tmp_path_factory: pytest.TempPathFactory) -> Generator[AksProvisioning]:
    with aks_provisioning(tmp_path_factory.mktemp("nap")) as found:
        yield found


def running(provisioning: AksProvisioning) -> list[object]:
    """The processes of Karpenter."""
    layout = RunnerLayout.of(STACK, provisioning.charts.workspace)
    return list(processes_in(layout.folder, [TOOL]))


def test_a_pool_of_node_auto_provisioning_goes_through_its_lifecycle(provisioning: AksProvisioning) -> None:
    cluster = aks_cluster(provisions_nodes=True)
    provisioning.put(aks_cluster())
    assert running(provisioning) == []
    provisioning.put(cluster)
    for kind in ("aksnodeclasses.karpenter.azure.com", "nodepools.karpenter.sh", "nodeclaims.karpenter.sh"):
        provisioning.wait_for_definition(kind)
    provisioning.pool("cpu-spot", "Standard_D4ds_v5", "Standard_D4ads_v5", capacity="spot")
    provisioning.charts.apply(a_pod("trains", cpu="1", spec=ON_KARPENTER_SPOT))
    node = _node_of(provisioning, "trains")
    labels = labels_of(node)
    assert labels["karpenter.sh/capacity-type"] == "spot"
    assert str(labels["topology.kubernetes.io/zone"]).startswith("eastus2-")
    assert labels["karpenter.azure.com/sku-family"] == "D"

    told: list[str] = []
    name = name_of(node)
    machines = NodeAutoProvisioning(provisioning.charts.client)
    reasons = _reasons_after(provisioning, "trains", machines.interruption(name, told.append))
    wait_until(lambda: provisioning.charts.client.get("v1", "Node", name) is None, "the node is gone")
    assert machines.disruption in reasons
    assert told == [f"eviction: node {name} is gone at once, without notice to its pods"]

    provisioning.charts.client.delete("karpenter.sh/v1", "NodePool", "cpu-spot", propagation="Background")
    provisioning.remove(cluster)
    wait_until(lambda: running(provisioning) == [], "it goes with its cluster")


def _node_of(provisioning: AksProvisioning, pod: str) -> Json:
    found = provisioning.charts.client.wait_for(
        "v1",
        "Pod",
        pod,
        namespace="default",
        timeout_seconds=120,
        condition=lambda obj: obj is not None and phase(obj) == "Running",
        what=f"{pod} runs",
    )
    node = provisioning.charts.client.get("v1", "Node", str(mapping((found or {}).get("spec"))["nodeName"]))
    assert node is not None
    return node


def _reasons_after(provisioning: AksProvisioning, pod: str, interrupt: Callable[[], None]) -> set[str]:
    """The DisruptionTarget reasons of a pod, from just before the interrupt until it is gone."""
    found: set[str] = set()
    struck = False
    for what, seen in provisioning.charts.client.watch("v1", "Pod", namespace="default", timeout_seconds=180):
        if not struck:
            struck = True
            interrupt()
        conditions = [mapping(each) for each in sequence(mapping(seen.get("status")).get("conditions"))]
        found |= {str(each["reason"]) for each in conditions if each["type"] == "DisruptionTarget"}
        if what == "DELETED" and mapping(seen["metadata"])["name"] == pod:
            return found
    raise AssertionError(f"{pod} is still there")
