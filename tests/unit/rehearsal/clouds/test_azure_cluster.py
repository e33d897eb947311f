"""Simulated AKS clusters are created, changed and read like real ones."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from pulumi_holdfast.rehearsal.clouds.azure.instances import system_machines_of
from pulumi_holdfast.rehearsal.clouds.machines import MachineGroup
from pulumi_holdfast.rehearsal.clouds.state import CloudState
from pulumi_holdfast.rehearsal.engine.values import UNKNOWN, Properties, Value
from tests.support.clusters.azure_console import (
    CLUSTER,
    CLUSTER_TYPE,
    IDENTITY_TYPE,
    LOCATION,
    PATH,
    READER,
    SYSTEM_POOL,
    AzureConsole,
)
from tests.support.clusters.provider_calls import Engine, Provider

_DISKS = "/subscriptions/s/resourceGroups/keys/providers/Microsoft.Compute/diskEncryptionSets/train"


@pytest.fixture
def console(azure: Provider) -> AzureConsole:
    return AzureConsole(azure=azure)


@pytest.fixture
def engine(console: AzureConsole) -> Engine:
    return console.engine(CLUSTER_TYPE)


def test_a_preview_shows_no_ids_of_identities_in_the_form_of_a_program(
    console: AzureConsole, engine: Engine
) -> None:
    inputs = console.prerequisites()
    given, planned = inputs["identity"], engine.plan(inputs)["identity"]
    assert isinstance(given, Mapping)
    assert isinstance(planned, Mapping)
    assert planned["type"] == given["type"]
    assert planned["userAssignedIdentities"] is UNKNOWN


def test_a_cluster_needs_egress_and_access_to_subnet_and_key(console: AzureConsole, engine: Engine) -> None:
    prerequisites = console.prerequisites()
    gateway = f"{PATH}/Microsoft.Network/natGateways/nat"
    join = "'Microsoft.Network/virtualNetworks/subnets/join/action'"
    for subnet, reason in (
        (console.subnet(name="bare", cidr="10.40.16.0/20"), "needs a NAT gateway on the subnet"),
        (console.subnet(gateway, name="other", cidr="10.40.32.0/20"), join),
    ):
        profile: Value = {"name": "system", "vnetSubnetID": subnet}
        engine.refuses_create({**prerequisites, "agentPoolProfiles": [profile]}, reason)
    encrypted: Properties = {**prerequisites, "diskEncryptionSetID": _DISKS}
    engine.refuses_create(encrypted, "'Microsoft.Compute/diskEncryptionSets/read'")
    group = CLUSTER.partition("/providers/")[0].replace("/resourceGroups/", "/resourcegroups/")
    identity = f"{group}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/train"
    _, reader, _ = console.engine(IDENTITY_TYPE).read(identity)
    console.grant(str(reader["principalId"]), READER, _DISKS)
    engine.create(encrypted)


@pytest.fixture
def existing(console: AzureConsole, engine: Engine) -> dict[str, Value]:
    prerequisites = console.prerequisites()
    engine.create(prerequisites)
    return prerequisites


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (
            {"agentPoolProfiles": [dict(SYSTEM_POOL), {"name": "spot"}]},
            "A new agent pool was introduced. Adding agent pools to an existing cluster is not allowed",
        ),
        (
            {"agentPoolProfiles": [{**SYSTEM_POOL, "vmSize": "Standard_D8s_v5"}]},
            "Changing property 'properties.vmSize' is not allowed.",
        ),
        (
            {"apiServerAccessProfile": {"enablePrivateCluster": True}},
            "'properties.apiServerAccessProfile.enablePrivateCluster' is not allowed.",
        ),
        ({"kubernetesVersion": "1.38"}, "1.36 to 1.38 is not allowed. Available upgrades: [1.37]"),
        ({"kubernetesVersion": "1.35"}, "Upgrading Kubernetes version 1.36 to 1.35 is not allowed"),
    ],
)
def test_what_is_fixed_of_a_cluster_is_not_changed(
    existing: Properties, engine: Engine, change: dict[str, Value], why: str
) -> None:
    engine.refuses_update(CLUSTER, {**existing, **change}, why)


def test_system_nodes_join_with_their_labels_and_their_taint(console: AzureConsole, state_file: Path) -> None:
    prerequisites = console.prerequisites()
    system: Value = {
        **SYSTEM_POOL,
        "count": 3,
        "availabilityZones": ["1", "2"],
        "nodeLabels": {"holdfast.dev/system": "true"},
        "nodeTaints": ["CriticalAddonsOnly=true:NoSchedule"],
    }
    console.engine(CLUSTER_TYPE).create({**prerequisites, "agentPoolProfiles": [system]})
    inventory = CloudState(state_file).read()
    (cluster,) = inventory.of_type(CLUSTER_TYPE)
    nodes = system_machines_of(MachineGroup(target=cluster, inventory=inventory))
    zones = [node.labels["topology.kubernetes.io/zone"].removeprefix(f"{LOCATION}-") for node in nodes]
    assert zones == ["1", "2", "1"]
    assert len({node.name for node in nodes}) == 3
    taint = {"key": "CriticalAddonsOnly", "value": "true", "effect": "NoSchedule"}
    for node in nodes:
        assert node.labels["kubernetes.azure.com/mode"] == "system"
        assert node.labels["holdfast.dev/system"] == "true"
        assert node.taints == (taint,)
        assert node.capacity["cpu"] == "4"
