"""Pools of node auto-provisioning at work: AKS's Karpenter is Karpenter's own core here, on machines that are simulated."""

from collections.abc import Callable

import pytest

from pulumi_holdfast.azure.pools import AksNodeClassArgs, aks_node_class
from pulumi_holdfast.controller.kube.objects import labels_of, name_of
from pulumi_holdfast.kubernetes.karpenter_pool import node_pool_spec
from pulumi_holdfast.ladder import taints
from pulumi_holdfast.ladder.json import Json, mapping, sequence
from pulumi_holdfast.ladder.labels import (
    AKS_DATAPLANE,
    AKS_PRIORITY,
    AKS_SCALE_SET_PRIORITY,
    CAPACITY_TYPE,
    POOL,
    CapacityType,
)
from pulumi_holdfast.ladder.machines import select_vm_sizes
from pulumi_holdfast.rehearsal.operator_runner.managed_karpenter import CILIUM_SECONDS
from tests.support.aks_provisioning import NODE_CLASS, AksProvisioning
from tests.support.builders.configurations import pool
from tests.support.builders.karpenter_objects import class_object, pool_object
from tests.support.clusters.operators import condition_of, is_ready

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(400)]

KIND = "AKSNodeClass"
SPOT = [taints.SPOT.as_toleration()]


def make(
    aks: AksProvisioning,
    name: str,
    capacity: CapacityType,
    *,
    disk_gib: int = 128,
    change: Callable[[Json], Json] = lambda template: template,
) -> None:
    """Make a pool as the component does, or change it, and wait until it can buy; `change` alters its template."""
    node_class = aks_node_class(AksNodeClassArgs(disk_gib=disk_gib, tags={"team": "vision"}))
    machines = select_vm_sizes(["Dds_v5", "Dads_v5"], [4, 8], "eastus2")
    spec = node_pool_spec(
        pool(name, capacity=capacity), machines, node_class, name, 50, zones=("eastus2-1", "eastus2-2")
    )
    spec = {**spec, "template": change(mapping(spec["template"]))}
    aks.charts.apply(class_object(node_class, name), pool_object(spec, name))
    aks.charts.client.wait_for(
        "karpenter.sh/v1", "NodePool", name, timeout_seconds=180, condition=is_ready, what=f"{name} is ready"
    )


def pod(name: str, selector: Json, tolerations: list[Json], *, cpu: str = "2") -> Json:
    container: Json = {"name": "train", "image": "train", "resources": {"requests": {"cpu": cpu}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "nodeSelector": selector,
            "tolerations": tolerations,
            "terminationGracePeriodSeconds": 1,
            "containers": [container],
        },
    }


def run(aks: AksProvisioning, name: str, selector: Json, tolerations: list[Json]) -> Json:
    """Run a pod; return its node."""
    aks.charts.apply(pod(name, selector, tolerations))
    return wait_for_node(aks, name)


def wait_for_node(aks: AksProvisioning, name: str) -> Json:
    """Wait until a pod runs; return its node."""
    placed = aks.charts.client.wait_for(
        "v1",
        "Pod",
        name,
        namespace="default",
        timeout_seconds=180,
        condition=lambda found: mapping((found or {}).get("status")).get("phase") == "Running",
        what=f"{name} runs",
    )
    node = aks.charts.client.get("v1", "Node", str(mapping((placed or {}).get("spec"))["nodeName"]))
    assert node is not None
    return node


def node_class(aks: AksProvisioning, name: str, condition: Callable[[Json | None], bool]) -> Json | None:
    return aks.charts.client.wait_for(
        NODE_CLASS, KIND, name, timeout_seconds=180, condition=condition, what=f"the class {name}"
    )


def machines(aks: AksProvisioning, name: str, condition: Callable[[list[Json]], bool]) -> list[Json]:
    return aks.charts.client.wait_list(
        "karpenter.sh/v1",
        "NodeClaim",
        label_selector=f"karpenter.sh/nodepool={name}",
        timeout_seconds=180,
        condition=condition,
        what=f"the machines of {name}",
    )


def finalizers(obj: Json | None) -> list[str]:
    return [str(each) for each in sequence(mapping((obj or {}).get("metadata")).get("finalizers"))]


def test_a_node_class_becomes_ready_as_in_aks(aks: AksProvisioning) -> None:
    make(aks, "made", CapacityType.ON_DEMAND)
    made = node_class(aks, "made", is_ready)
    assert finalizers(made) == ["karpenter.azure.com/termination"]
    status = mapping((made or {}).get("status"))
    assert str(status["kubernetesVersion"]).startswith("1.")
    types = {str(mapping(each)["type"]) for each in sequence(status["conditions"])}
    assert {"ImagesReady", "KubernetesVersionReady", "SubnetsReady", "ValidationSucceeded"} <= types


def test_a_pod_that_selects_spot_gets_a_spot_machine_as_aks_labels_and_we_taint_it(
    aks: AksProvisioning,
) -> None:
    make(aks, "cpu-spot", CapacityType.SPOT)
    node = run(aks, "on-spot", {CAPACITY_TYPE: "spot"}, SPOT)
    labels = labels_of(node)
    expected = {POOL: "cpu-spot", CAPACITY_TYPE: "spot", AKS_SCALE_SET_PRIORITY: "spot", AKS_PRIORITY: "spot"}
    assert {key: labels.get(key) for key in expected} == expected
    given = sequence(mapping(node["spec"]).get("taints"))
    assert [mapping(each)["key"] for each in given] == [CAPACITY_TYPE]


def test_spot_can_be_selected_in_aks_own_words_and_is_not_confused(aks: AksProvisioning) -> None:
    make(aks, "words-spot", CapacityType.SPOT)
    make(aks, "words", CapacityType.ON_DEMAND)
    node = run(aks, "in-aks-words", {AKS_SCALE_SET_PRIORITY: "spot"}, SPOT)
    assert labels_of(node)[CAPACITY_TYPE] == "spot"
    regular = run(aks, "regular", {AKS_PRIORITY: "regular"}, SPOT)
    assert labels_of(regular)[CAPACITY_TYPE] == "on-demand"


def test_another_disk_makes_machines_drift_and_leaves_them_alone(aks: AksProvisioning) -> None:
    make(aks, "ageing", CapacityType.ON_DEMAND)
    node = run(aks, "ages", {POOL: "ageing"}, [])
    make(aks, "ageing", CapacityType.ON_DEMAND, disk_gib=256)
    (machine,) = machines(
        aks,
        "ageing",
        lambda found: [condition_of(each, "Drifted").get("status") for each in found] == ["True"],
    )
    assert condition_of(machine, "Drifted")["reason"] == "NodeClassDrift"
    there = aks.charts.client.get("v1", "Node", name_of(node))
    assert there is not None


def test_a_node_class_waits_for_its_machines(aks: AksProvisioning) -> None:
    make(aks, "leaving", CapacityType.ON_DEMAND)
    run(aks, "stays", {POOL: "leaving"}, [])
    aks.charts.client.delete(NODE_CLASS, KIND, "leaving", propagation="Background")
    held = aks.charts.client.get(NODE_CLASS, KIND, "leaving")
    assert finalizers(held) == ["karpenter.azure.com/termination"]
    aks.charts.client.delete("karpenter.sh/v1", "NodePool", "leaving", propagation="Background")
    assert node_class(aks, "leaving", lambda found: found is None) is None
    assert machines(aks, "leaving", lambda found: found == []) == []


#: Longer than Karpenter takes until it looks at pending pods again.
SLOWLY = "25"


def starts_cilium_slowly(template: Json) -> Json:
    return {
        **template,
        "metadata": {**mapping(template["metadata"]), "annotations": {CILIUM_SECONDS: SLOWLY}},
    }


def without_startup_taints(template: Json) -> Json:
    spec = {key: value for key, value in mapping(template["spec"]).items() if key != "startupTaints"}
    return {**starts_cilium_slowly(template), "spec": spec}


def test_a_startup_taint_keeps_karpenter_from_buying_more_while_cilium_starts(aks: AksProvisioning) -> None:
    make(aks, "unaware", CapacityType.ON_DEMAND, change=without_startup_taints)
    make(aks, "aware", CapacityType.ON_DEMAND, change=starts_cilium_slowly)
    for name in ("unaware", "aware"):
        aks.charts.apply(pod(f"for-{name}", {POOL: name}, []))
    machines(aks, "unaware", lambda found: len(found) > 1)
    wait_for_node(aks, "for-aware")
    assert len(machines(aks, "aware", bool)) == 1


def without_label(template: Json) -> Json:
    metadata = mapping(template["metadata"])
    labels = {key: value for key, value in mapping(metadata["labels"]).items() if key != AKS_DATAPLANE}
    return {**template, "metadata": {**metadata, "labels": labels}}


def test_the_label_of_cilium_keeps_karpenter_from_buying_machines_that_its_agent_fills(
    aks: AksProvisioning,
) -> None:
    # Fits the smallest machine alone, and not beside the agent.
    cpu = "3850m"
    make(aks, "unlabeled", CapacityType.ON_DEMAND, change=without_label)
    aks.charts.apply(pod("for-unlabeled", {POOL: "unlabeled"}, [], cpu=cpu))
    machines(aks, "unlabeled", lambda found: len(found) > 1)
    make(aks, "labeled", CapacityType.ON_DEMAND)
    aks.charts.apply(pod("for-labeled", {POOL: "labeled"}, [], cpu=cpu))
    wait_for_node(aks, "for-labeled")
    assert len(machines(aks, "labeled", bool)) == 1
    aks.charts.client.delete("v1", "Pod", "for-unlabeled", namespace="default", propagation="Background")
