"""Simulated AKS clusters are created, changed and read like real ones."""

import base64
import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.rehearsal.clouds.azure.instances import system_machines_of
from pulumi_holdfast.rehearsal.clouds.machines import MachineGroup
from pulumi_holdfast.rehearsal.clouds.state import CloudState
from pulumi_holdfast.rehearsal.engine.values import UNKNOWN, Properties, Value
from tests.support.clusters.azure_console import (
    CLUSTER,
    CLUSTER_TYPE,
    GROUP,
    IDENTITY_TYPE,
    LOCATION,
    PATH,
    READER,
    SYSTEM_POOL,
    AzureConsole,
)
from tests.support.clusters.provider_calls import Engine, Provider, invoke, refused
from tests.support.inputs import mapping, objects, text

_DISKS = "/subscriptions/s/resourceGroups/keys/providers/Microsoft.Compute/diskEncryptionSets/train"


@pytest.fixture
def console(azure: Provider) -> AzureConsole:
    return AzureConsole(azure=azure)


@pytest.fixture
def engine(console: AzureConsole) -> Engine:
    return console.engine(CLUSTER_TYPE)


def asked(azure: Provider, token: str, **arguments: Value) -> Json:
    given = {"resourceGroupName": GROUP, "resourceName": "train", **arguments}
    return invoke(azure, f"azure-native:containerservice:{token}", given)  # pyright: ignore[reportReturnType] - nothing in it is unknown


def server_of(answer: Json) -> Json:
    (config,) = objects(answer, "kubeconfigs")
    document: Json = json.loads(base64.b64decode(text(config, "value")))
    (cluster,) = objects(document, "clusters")
    return mapping(cluster, "cluster")


def test_a_cluster_has_a_name_an_issuer_and_identities(console: AzureConsole, engine: Engine) -> None:
    prerequisites = console.prerequisites()
    made, outputs = engine.create(prerequisites)
    assert made == CLUSTER
    shown: Json = outputs  # pyright: ignore[reportAssignmentType] - nothing in it is unknown
    assert text(shown, "fqdn").endswith(f".hcp.{LOCATION}.azmk8s.io")
    issuer = text(shown, "oidcIssuerProfile", "issuerURL")
    assert issuer.startswith(f"https://{LOCATION}.oic.prod-aks.azure.com/")
    assert text(shown, "identityProfile", "kubeletidentity", "objectId")
    assert text(shown, "currentKubernetesVersion") == "1.36.0"
    (identity,) = mapping(shown, "identity", "userAssignedIdentities").values()
    assert identity
    engine.delete(CLUSTER)
    assert engine.create(prerequisites)[1]["resourceUID"] != shown["resourceUID"]


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


def test_an_existing_pool_may_be_listed_and_a_minor_version_added(
    existing: Properties, console: AzureConsole, engine: Engine
) -> None:
    planned = engine.update(CLUSTER, {**existing, "tags": {"a": "b"}}, preview=True)
    assert (planned["name"], planned["location"]) == ("train", LOCATION)
    assert (planned["resourceUID"], planned["fqdn"]) == (UNKNOWN, UNKNOWN)
    pool = {"agentPoolName": "spot", "mode": "User", "count": 1}
    console.engine("azure-native:containerservice:AgentPool", "spot").create(
        {"resourceGroupName": GROUP, "resourceName": "train", **pool}
    )
    listed = {**existing, "agentPoolProfiles": [dict(SYSTEM_POOL), {"name": "spot"}]}
    before = engine.update(CLUSTER, listed)
    after = engine.update(CLUSTER, {**listed, "kubernetesVersion": "1.37"})
    assert after["currentKubernetesVersion"] == "1.37.0"
    assert after["resourceUID"] == before["resourceUID"]


def test_maintenance_is_a_clusters(console: AzureConsole) -> None:
    engine = console.engine("azure-native:containerservice:MaintenanceConfiguration")
    weekly = {"schedule": {"weekly": {"dayOfWeek": "Saturday", "intervalWeeks": 1}}}
    inputs: Properties = {
        "resourceGroupName": GROUP,
        "resourceName": "train",
        "configName": "default",
        "maintenanceWindow": {"startTime": "02:00", "durationHours": 8, **weekly},
    }
    engine.refuses_create(inputs, 'Code="ParentResourceNotFound"')
    console.cluster()
    assert engine.create(inputs)[0] == f"{CLUSTER}/maintenanceConfigurations/default"


def test_credentials_lead_to_an_existing_cluster(azure: Provider, console: AzureConsole) -> None:
    for token in ("getManagedCluster", "listManagedClusterUserCredentials"):
        refused(lambda token=token: asked(azure, token), 'Code="ResourceNotFound"')
    shown = console.cluster()
    server = server_of(asked(azure, "listManagedClusterUserCredentials"))
    assert server["server"] == f"https://{shown['fqdn']}:443"
    assert server["certificate-authority-data"]
    assert asked(azure, "getManagedCluster")["resourceUID"] == shown["resourceUID"]


@pytest.mark.parametrize("public_name", [True, False])
def test_a_private_clusters_credentials_lead_to_its_private_name(
    console: AzureConsole, azure: Provider, *, public_name: bool
) -> None:
    shown = console.cluster(
        apiServerAccessProfile={"enablePrivateCluster": True, "enablePrivateClusterPublicFQDN": public_name}
    )
    credentials = "listManagedClusterUserCredentials"
    server = server_of(asked(azure, credentials))
    assert server["server"] == f"https://{shown['privateFQDN']}:443"
    if public_name:
        named = server_of(asked(azure, credentials, serverFqdn="public"))
        assert named["server"] == f"https://{shown['fqdn']}:443"
    else:
        refused(lambda: asked(azure, credentials, serverFqdn="public"), "no public FQDN")


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
