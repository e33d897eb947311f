"""Simulated AKS clusters are created, changed and read like real ones."""

import base64
import json
from pathlib import Path

import pytest
from pulumi.runtime.proto import provider_pb2

from holdfast.scheduling.json import Json
from holdfast.simulator.clouds.azure.nodes import system_machines_of
from holdfast.simulator.clouds.machines import Group
from holdfast.simulator.clouds.state import CloudState
from holdfast.simulator.pulumi.values import UNKNOWN, Value, from_struct, to_struct
from tests.support.clusters.azure_console import (
    CLUSTER,
    CLUSTER_TYPE,
    GROUP,
    LOCATION,
    PATH,
    READER,
    SYSTEM_POOL,
    AzureConsole,
)
from tests.support.clusters.provider_calls import Engine, Provider, refused
from tests.support.inputs import mapping, objects, text

_MAINTENANCE = "azure-native:containerservice:MaintenanceConfiguration"
_DISKS = "/subscriptions/s/resourceGroups/keys/providers/Microsoft.Compute/diskEncryptionSets/train"


@pytest.fixture
def console(azure: Provider) -> AzureConsole:
    return AzureConsole(azure=azure)


@pytest.fixture
def engine(console: AzureConsole) -> Engine:
    return console.engine(CLUSTER_TYPE)


def asked(azure: Provider, token: str, **arguments: Value) -> Json:
    """What AKS answers about the cluster `train`."""
    request = provider_pb2.InvokeRequest(
        tok=f"azure-native:containerservice:{token}",
        args=to_struct({"resourceGroupName": GROUP, "resourceName": "train", **arguments}),
    )
    return from_struct(getattr(azure.Invoke(request), "return"))  # pyright: ignore[reportReturnType] - nothing in it is unknown


def server_of(answer: Json) -> Json:
    (config,) = objects(answer, "kubeconfigs")
    document: Json = json.loads(base64.b64decode(text(config, "value")))
    (cluster,) = objects(document, "clusters")
    return mapping(cluster, "cluster")


# --- made -----------------------------------------------------------------------------------------


def test_a_cluster_has_a_name_an_issuer_and_identities(console: AzureConsole, engine: Engine) -> None:
    made, outputs = engine.create(console.ground())
    assert made == CLUSTER, "roles and pools name it so"
    shown: Json = outputs  # pyright: ignore[reportAssignmentType] - nothing in it is unknown
    assert text(shown, "fqdn").endswith(f".hcp.{LOCATION}.azmk8s.io"), "clients call it"
    assert text(shown, "oidcIssuerProfile", "issuerURL").startswith(
        f"https://{LOCATION}.oic.prod-aks.azure.com/"
    ), "pods' identities are federated with it"
    assert text(shown, "identityProfile", "kubeletidentity", "objectId"), "nodes pull images with it"
    assert text(shown, "currentKubernetesVersion") == "1.36.0", "AKS picks the patch"
    (identity,) = mapping(shown, "identity", "userAssignedIdentities").values()
    assert identity, "an identity is asked for in a list, and shown by its id"


def test_what_comes_again_under_a_name_is_another_cluster(console: AzureConsole, engine: Engine) -> None:
    ground = console.ground()
    first = engine.create(ground)[1]["resourceUID"]
    engine.delete(CLUSTER)
    assert engine.create(ground)[1]["resourceUID"] != first, "whatever was in the first is not in the second"


def test_a_cluster_needs_a_way_out_and_rights_to_its_subnet_and_key(
    console: AzureConsole, engine: Engine
) -> None:
    ground = console.ground()
    bare = console.subnet(name="bare", cidr="10.40.16.0/20")
    profile: Value = {"name": "system", "vnetSubnetID": bare}
    engine.refuses_create({**ground, "agentPoolProfiles": [profile]}, "needs a NAT gateway on the subnet")
    bare = console.subnet(f"{PATH}/Microsoft.Network/natGateways/nat", name="other", cidr="10.40.16.0/20")
    profile = {"name": "system", "vnetSubnetID": bare}
    engine.refuses_create(
        {**ground, "agentPoolProfiles": [profile]},
        'Code="LinkedAuthorizationFailed"',
        "'Microsoft.Network/virtualNetworks/subnets/join/action'",
    )
    engine.refuses_create(
        {**ground, "diskEncryptionSetID": _DISKS}, "'Microsoft.Compute/diskEncryptionSets/read'"
    )
    found = CLUSTER.partition("/providers/")[0]
    reader = console.engine("azure-native:managedidentity:UserAssignedIdentity").read(
        f"{found.replace('/resourceGroups/', '/resourcegroups/')}/providers/Microsoft.ManagedIdentity/"
        "userAssignedIdentities/train"
    )[1]
    console.grant(str(reader["principalId"]), READER, _DISKS)
    engine.create({**ground, "diskEncryptionSetID": _DISKS})


# --- changed --------------------------------------------------------------------------------------


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
            "Changing property 'properties.apiServerAccessProfile.enablePrivateCluster' is not allowed.",
        ),
        (
            {"kubernetesVersion": "1.38"},
            "Upgrading Kubernetes version 1.36 to 1.38 is not allowed. Available upgrades: [1.37]",
        ),
        ({"kubernetesVersion": "1.35"}, "Upgrading Kubernetes version 1.36 to 1.35 is not allowed"),
    ],
)
def test_what_is_fixed_of_a_cluster_is_not_changed(
    console: AzureConsole, engine: Engine, change: dict[str, Value], why: str
) -> None:
    ground = console.ground()
    made, _ = engine.create(ground)
    engine.refuses_update(made, {**ground, **change}, why)


def test_a_pool_of_its_own_may_be_listed(console: AzureConsole, engine: Engine) -> None:
    ground = console.ground()
    made, _ = engine.create(ground)
    console.engine("azure-native:containerservice:AgentPool", "spot").create(
        {
            "resourceGroupName": GROUP,
            "resourceName": "train",
            "agentPoolName": "spot",
            "mode": "User",
            "count": 1,
        }
    )
    engine.update(made, {**ground, "agentPoolProfiles": [dict(SYSTEM_POOL), {"name": "spot"}]})


def test_a_minor_version_further_and_another_count_are_taken(console: AzureConsole, engine: Engine) -> None:
    ground = console.ground()
    made, before = engine.create(ground)
    after = engine.update(made, {**ground, "kubernetesVersion": "1.37"})
    assert after["currentKubernetesVersion"] == "1.37.0", "it was upgraded"
    assert after["resourceUID"] == before["resourceUID"], "it is the same cluster"


def test_while_a_change_is_previewed_what_azure_computes_is_not_known(
    console: AzureConsole, engine: Engine
) -> None:
    ground = console.ground()
    made, _ = engine.create(ground)
    planned = engine.update(made, {**ground, "tags": {"a": "b"}}, preview=True)
    assert (planned["name"], planned["location"]) == ("train", LOCATION), "these never change"
    assert (planned["resourceUID"], planned["fqdn"]) == (UNKNOWN, UNKNOWN), "computed again by the update"


@pytest.mark.parametrize("immutable", ["dnsPrefix", "nodeResourceGroup", "location", "diskEncryptionSetID"])
def test_what_azure_native_replaces_a_cluster_for_is_announced(
    console: AzureConsole, engine: Engine, immutable: str
) -> None:
    ground = console.ground()
    answer = engine.diff(ground, {**ground, immutable: "another"})
    assert list(answer.replaces) == [immutable], "everything in the cluster would be lost"
    assert answer.deleteBeforeReplace, "two clusters cannot have one name"


# --- maintenance ----------------------------------------------------------------------------------


def _window(**overrides: Value) -> dict[str, Value]:
    return {
        "maintenanceWindow": {
            "schedule": {"weekly": {"dayOfWeek": "Saturday", "intervalWeeks": 1}},
            "startTime": "02:00",
            "durationHours": 8,
            **overrides,
        }
    }


def test_maintenance_is_a_clusters(console: AzureConsole) -> None:
    engine = console.engine(_MAINTENANCE)
    inputs: dict[str, Value] = {"resourceGroupName": GROUP, "resourceName": "train", "configName": "default"}
    engine.refuses_create({**inputs, **_window()}, 'Code="ParentResourceNotFound"')
    console.cluster()
    assert engine.create({**inputs, **_window()})[0] == f"{CLUSTER}/maintenanceConfigurations/default", (
        "its id"
    )


# --- asked for ------------------------------------------------------------------------------------


def test_credentials_lead_to_an_existing_cluster_and_hold_none(
    azure: Provider, console: AzureConsole
) -> None:
    for token in ("getManagedCluster", "listManagedClusterUserCredentials"):
        refused(lambda token=token: asked(azure, token), 'Code="ResourceNotFound"')
    shown = console.cluster()
    server = server_of(asked(azure, "listManagedClusterUserCredentials"))
    assert server["server"] == f"https://{shown['fqdn']}:443", "the public name"
    assert server["certificate-authority-data"], "nothing else says which authority it has"
    assert asked(azure, "getManagedCluster")["resourceUID"] == shown["resourceUID"], "it is that cluster"


@pytest.mark.parametrize("public_name", [True, False])
def test_a_private_clusters_credentials_lead_to_its_private_name(
    console: AzureConsole, azure: Provider, *, public_name: bool
) -> None:
    shown = console.cluster(
        apiServerAccessProfile={"enablePrivateCluster": True, "enablePrivateClusterPublicFQDN": public_name}
    )
    server = server_of(asked(azure, "listManagedClusterUserCredentials"))
    assert server["server"] == f"https://{shown['privateFQDN']}:443", "unless the other is asked for"
    if public_name:
        named = server_of(asked(azure, "listManagedClusterUserCredentials", serverFqdn="public"))
        assert named["server"] == f"https://{shown['fqdn']}:443", "whose address is the private one"
    else:
        refused(
            lambda: asked(azure, "listManagedClusterUserCredentials", serverFqdn="public"), "no public FQDN"
        )


# --- its nodes ------------------------------------------------------------------------------------


def test_system_nodes_join_with_their_labels_and_their_taint(console: AzureConsole, state_file: Path) -> None:
    ground = console.ground()
    system: Value = {
        **SYSTEM_POOL,
        "count": 3,
        "availabilityZones": ["1", "2"],
        "nodeLabels": {"holdfast.dev/system": "true"},
        "nodeTaints": ["CriticalAddonsOnly=true:NoSchedule"],
    }
    console.engine(CLUSTER_TYPE).create({**ground, "agentPoolProfiles": [system]})
    inventory = CloudState(state_file).read()
    (cluster,) = inventory.of_type(CLUSTER_TYPE)
    nodes = system_machines_of(Group(target=cluster, inventory=inventory))
    assert [node.labels["topology.kubernetes.io/zone"] for node in nodes] == [
        f"{LOCATION}-1",
        f"{LOCATION}-2",
        f"{LOCATION}-1",
    ], "over the zones in turn"
    assert len({node.name for node in nodes}) == 3, "each is a node"
    for node in nodes:
        assert node.labels["kubernetes.azure.com/mode"] == "system", "AKS prefers them for its own services"
        assert node.labels["holdfast.dev/system"] == "true", "operators select it"
        assert node.taints == ({"key": "CriticalAddonsOnly", "value": "true", "effect": "NoSchedule"},), (
            "and tolerate this"
        )
        assert node.capacity["cpu"] == "4", "what the machine holds"
