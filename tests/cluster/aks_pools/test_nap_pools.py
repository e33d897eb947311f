"""Pools of node auto-provisioning on a real API server with the CRDs of Azure's provider."""

from dataclasses import replace

import pytest

from pulumi_holdfast.azure.pools import AksNodeClassArgs, aks_node_class
from pulumi_holdfast.controller.kube.client import ApiError
from pulumi_holdfast.kubernetes.karpenter_pool import node_pool_spec
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import CapacityType
from pulumi_holdfast.ladder.machines import Machine, machine_catalogue, select_vm_sizes
from pulumi_holdfast.rehearsal.kubernetes import KubeClient
from tests.support.builders.configurations import pool
from tests.support.builders.karpenter_objects import (
    class_object,
    pool_object,
    stored_otherwise,
    stored_spec,
    written,
)
from tests.support.inputs import mapping

pytestmark = pytest.mark.cluster

AZURE = machine_catalogue("azure")
CPU = select_vm_sizes(["Dds_v5", "Dads_v5"], [4, 8], "westeurope")
GPU = (AZURE["Standard_ND96asr_v4"], AZURE["Standard_ND96amsr_A100_v4"])
ARGS = AksNodeClassArgs(disk_gib=128, tags={"holdfast-stack": "azure-dev", "team": "vision & audio"})


def pool_spec(
    capacity: CapacityType = CapacityType.SPOT, machines: tuple[Machine, ...] = GPU, *, roll_out: bool = False
) -> Json:
    facts = pool("pool", capacity=capacity, has_gpus=machines is GPU)
    zones = ("westeurope-1", "westeurope-3")
    return node_pool_spec(facts, machines, aks_node_class(ARGS), "pool", 50, zones=zones, roll_out=roll_out)


@pytest.mark.parametrize(
    "args",
    [replace(ARGS, tags={"holdfast-stack": "azure-dev"}), replace(ARGS, disk_gib=2048, tags={})],
    ids=["usual", "largest-disk"],
)
def test_a_node_class_is_stored_unchanged(cluster: KubeClient, args: AksNodeClassArgs) -> None:
    made = aks_node_class(args)
    assert stored_spec(cluster, class_object(made)) == written(made.spec)


@pytest.mark.parametrize(
    ("changes", "refusal"),
    [
        ({"imageFamily": "Windows2022"}, "Unsupported value"),
        ({"osDiskSizeGB": 29}, "greater than or equal to 30"),
        ({"osDiskSizeGB": 4096}, "less than or equal to 2048"),
        ({"tags": {"a<b": "c"}}, "must not contain"),
        ({"vnetSubnetID": "nodes"}, "vnetSubnetID"),
    ],
    ids=["family", "small-disk", "large-disk", "tag", "subnet"],
)
def test_a_node_class_that_azure_rejects_is_rejected(
    cluster: KubeClient, changes: dict[str, object], refusal: str
) -> None:
    with pytest.raises(ApiError, match=refusal):
        stored_spec(cluster, class_object(aks_node_class(replace(ARGS, tags={})), **changes))


@pytest.mark.parametrize("capacity", list(CapacityType))
@pytest.mark.parametrize("machines", [CPU, GPU], ids=["cpu", "gpu"])
@pytest.mark.parametrize("roll_out", [False, True], ids=["usual", "roll-out"])
def test_a_node_pool_is_stored_unchanged(
    cluster: KubeClient, capacity: CapacityType, machines: tuple[Machine, ...], roll_out: bool
) -> None:
    spec = pool_spec(capacity, machines, roll_out=roll_out)
    assert stored_otherwise(cluster, spec) == []


@pytest.mark.parametrize(
    "label", ["kubernetes.azure.com/agentpool", "karpenter.azure.com/pool", "agentpool", "accelerator"]
)
def test_labels_that_azure_reserves_are_rejected(cluster: KubeClient, label: str) -> None:
    spec = pool_spec()
    template = mapping(spec, "template")
    labels = {**mapping(template, "metadata", "labels"), label: "mine"}
    changed: Json = {**spec, "template": {**template, "metadata": {"labels": labels}}}
    with pytest.raises(ApiError, match="is restricted"):
        stored_spec(cluster, pool_object(changed))
