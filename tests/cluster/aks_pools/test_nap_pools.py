"""Pools of node auto-provisioning on a real API server with the CRDs of Azure's provider."""

import json
from dataclasses import replace
from typing import cast

import pytest

from holdfast.components.pools.aks import AksNodeClassArgs, aks_node_class
from holdfast.components.pools.karpenter import node_pool_spec
from holdfast.scheduling.json import Json
from holdfast.scheduling.labels import CapacityType
from holdfast.scheduling.machines import Machine, machine_catalogue, select_vm_sizes
from holdfast.simulator.kubernetes_client.client import KubeClient
from holdfast.simulator.kubernetes_client.errors import KubeError
from tests.support.builders.configurations import pool
from tests.support.inputs import mapping, value

pytestmark = pytest.mark.cluster

AZURE = machine_catalogue("azure")
CPU = select_vm_sizes(["Dds_v5", "Dads_v5"], [4, 8], "westeurope")
GPU = (AZURE["Standard_ND96asr_v4"], AZURE["Standard_ND96amsr_A100_v4"])
ARGS = AksNodeClassArgs(disk_gib=128, tags={"holdfast-stack": "azure-dev", "team": "vision & audio"})


def node_class(args: AksNodeClassArgs = ARGS, **changes: object) -> Json:
    made = aks_node_class(args)
    spec = {**cast("Json", made.spec), **changes}
    return cast(
        "Json",
        {"apiVersion": made.api_version, "kind": made.kind, "metadata": {"name": "pool"}, "spec": spec},
    )


def node_pool(spec: Json) -> Json:
    return {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "pool"}, "spec": spec}


def pool_spec(
    capacity: CapacityType = CapacityType.SPOT, machines: tuple[Machine, ...] = GPU, *, roll_out: bool = False
) -> Json:
    facts = pool("pool", capacity=capacity, has_gpus=machines is GPU)
    zones = ("westeurope-1", "westeurope-3")
    return node_pool_spec(facts, machines, aks_node_class(ARGS), "pool", 50, zones=zones, roll_out=roll_out)


def admitted(cluster: KubeClient, document: Json) -> Json:
    return cluster.apply(document, field_manager="tests", dry_run=True)


@pytest.mark.parametrize(
    "args",
    [replace(ARGS, tags={"holdfast-stack": "azure-dev"}), replace(ARGS, disk_gib=2048, tags={})],
    ids=["usual", "largest-disk"],
)
def test_a_node_class_is_stored_unchanged(cluster: KubeClient, args: AksNodeClassArgs) -> None:
    written = mapping(node_class(args), "spec")
    kept = mapping(admitted(cluster, node_class(args)), "spec")
    assert dict(kept) == json.loads(json.dumps(written)), (
        "no field is dropped or added; either would be a permanent diff"
    )


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
    with pytest.raises(KubeError, match=refusal):
        admitted(cluster, node_class(replace(ARGS, tags={}), **changes))


@pytest.mark.parametrize("capacity", list(CapacityType))
@pytest.mark.parametrize("machines", [CPU, GPU], ids=["cpu", "gpu"])
@pytest.mark.parametrize("roll_out", [False, True], ids=["usual", "roll-out"])
def test_a_node_pool_is_stored_unchanged(
    cluster: KubeClient, capacity: CapacityType, machines: tuple[Machine, ...], roll_out: bool
) -> None:
    written = pool_spec(capacity, machines, roll_out=roll_out)
    kept = mapping(admitted(cluster, node_pool(written)), "spec")
    for path in (("disruption",), ("limits",), ("template", "spec"), ("template", "metadata", "labels")):
        assert value(kept, *path) == json.loads(json.dumps(value(written, *path))), (
            f"{path} is not kept as it is written"
        )


@pytest.mark.parametrize(
    "label", ["kubernetes.azure.com/agentpool", "karpenter.azure.com/pool", "agentpool", "accelerator"]
)
def test_labels_that_azure_reserves_are_rejected(cluster: KubeClient, label: str) -> None:
    spec = pool_spec()
    template = mapping(spec, "template")
    labels = {**mapping(template, "metadata", "labels"), label: "mine"}
    with pytest.raises(KubeError, match="is restricted"):
        admitted(cluster, node_pool({**spec, "template": {**template, "metadata": {"labels": labels}}}))
