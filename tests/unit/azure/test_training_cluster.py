"""The resources of Azure stacks: pools, access, checkpoints, protection, tags."""

import json
from typing import cast

import pytest

from pulumi_holdfast.azure.identities import CLIENT_ID
from pulumi_holdfast.azure.role_assignments import AKS_RBAC_CLUSTER_ADMIN, STORAGE_BLOB_DATA_CONTRIBUTOR
from pulumi_holdfast.config import naming
from pulumi_holdfast.kubernetes.outputs import CHECKPOINT_ACCOUNT
from pulumi_holdfast.ladder.json import JsonValue
from pulumi_holdfast.rehearsal.clouds.schema import Schema, violations
from pulumi_holdfast.rehearsal.engine.values import Properties
from tests.support.builders.aks_components import DEPLOYER, TENANT
from tests.support.builders.azure_stacks import PLATFORMS, composed, stack
from tests.support.builders.configurations import (
    AZURE_LOCATION,
    HOMES,
    Document,
    list_of,
    nap_platform,
    new_cluster,
    section,
)
from tests.support.fakes.cloud_outputs import CLIENT, PRINCIPAL
from tests.support.fakes.other_stack import OtherStack
from tests.support.fakes.pulumi_engine import Recorded, Recording
from tests.support.inputs import mapping, objects, text, value
from tests.support.json_objects import obj
from tests.support.published import Published

every_stack = pytest.mark.parametrize("name", PLATFORMS)
NAP = [name for name, read in PLATFORMS.items() if not read().has_scale_sets]
FIXED = [name for name in PLATFORMS if name not in NAP]


@pytest.mark.parametrize("name", NAP)
def test_with_node_auto_provisioning_each_pool_is_a_node_pool(name: str) -> None:
    recording, platform = stack(name), PLATFORMS[name]()
    assert value(recording.one(":ManagedCluster"), "nodeProvisioningProfile") == {
        "mode": "Auto",
        "defaultNodePools": "None",
    }
    assert not recording.of(":AgentPool")
    pools = {text(found, "metadata", "name"): found for found in recording.of(":NodePool")}
    assert pools.keys() == {pool.name for pool in platform.pools}
    assert {text(found, "metadata", "name") for found in recording.of(":AKSNodeClass")} == pools.keys()
    for pool in platform.pools:
        asked = {
            text(found, "key"): value(found, "values")
            for found in objects(pools[pool.name], "spec", "template", "spec", "requirements")
        }
        assert asked["karpenter.sh/capacity-type"] == [pool.capacity.value]
        sizes = asked["node.kubernetes.io/instance-type"]
        assert isinstance(sizes, list)
        assert set(map(str, sizes)) == {machine.name for machine in pool.machines(platform.location)}


@pytest.mark.parametrize("name", FIXED)
def test_with_fixed_scaling_each_pool_is_a_scale_set(name: str) -> None:
    recording, platform = stack(name), PLATFORMS[name]()
    assert not recording.of(":NodePool")
    assert value(recording.one(":ManagedCluster"), "nodeProvisioningProfile") == {"mode": "Manual"}, (
        "nor AKS's"
    )
    for pool in platform.pools:
        found = recording.one(":AgentPool", f"main-pool-{pool.name}-agent-pool")
        assert text(found, "agentPoolName") == pool.name.replace("-", ""), "AKS takes no hyphens"
        assert text(found, "vmSize") == pool.vm_size, "one VM size"
        is_spot = pool.capacity.value == "spot"
        assert value(found, "spotMaxPrice") == (pool.price_cap if is_spot else None)
        assert (value(found, "minCount"), value(found, "maxCount")) == (0, pool.max_nodes)


@pytest.mark.parametrize("name", ["azure-dev", "azure-prod"])
def test_jobs_are_the_same_with_both_kinds_of_scaling(name: str) -> None:
    rules = {found.name for found in stack(name).of(":MutatingAdmissionPolicy")}
    assert rules == {found.name for found in stack("azure-dev").of(":MutatingAdmissionPolicy")}


def let_in(recording: Recording) -> set[tuple[str, str]]:
    """Who is given which role."""
    return {
        (text(found, "principalId"), text(found, "roleDefinitionId").rpartition("/")[2])
        for found in recording.of(":RoleAssignment")
    }


@every_stack
def test_only_the_deployer_and_administrators_have_access(name: str) -> None:
    admins = {who for who, role in let_in(stack(name)) if role == AKS_RBAC_CLUSTER_ADMIN}
    assert admins == {DEPLOYER, *new_cluster(PLATFORMS[name]().cluster).admins}


@pytest.mark.parametrize("name", ["azure-dev", "azure-prod"])
def test_jobs_have_the_checkpoint_address_and_write_access(name: str) -> None:
    recording = stack(name)
    for asked in PLATFORMS[name]().namespaces:
        namespace = asked.name
        config = recording.one(":ConfigMap", f"main-namespace-{namespace}-checkpoints")
        assert text(config, "data", "CHECKPOINT_URI").startswith(f"abfss://{namespace}@"), "its own container"
        account = recording.one(":ServiceAccount", f"main-namespace-{namespace}-trainer")
        assert text(account, "metadata", "annotations", CLIENT_ID) == CLIENT, "its pods have an identity"
        credential = recording.one(
            ":FederatedIdentityCredential", f"main-checkpoint-access-of-{namespace}-credential"
        )
        assert text(credential, "subject") == f"system:serviceaccount:{namespace}:trainer", "the trainer only"
        grant = recording.one(
            ":RoleAssignment", f"main-checkpoint-access-of-{namespace}-checkpoints-assignment"
        )
        assert text(grant, "roleDefinitionId").endswith(STORAGE_BLOB_DATA_CONTRIBUTOR), "to write blobs"
        assert text(grant, "scope") == f"main-checkpoints-{namespace}-id", "in this container and in no other"


@every_stack
def test_the_kubeconfig_has_the_login_of_the_stack_file_and_the_tenant(name: str) -> None:
    provider = stack(name).one("providers:kubernetes")
    (user,) = objects(json.loads(text(provider, "kubeconfig")), "users")
    arguments = objects(user, "user", "exec", "args")
    assert PLATFORMS[name]().cluster.login.value in arguments
    assert TENANT in arguments


def test_two_stacks_in_a_subscription_share_no_name() -> None:
    first, second = stack("mirrored"), stack("accepting")
    for kind, field in (
        (":ManagedCluster", "resourceName"),
        (":ManagedCluster", "nodeResourceGroup"),
        (":VirtualNetwork", "virtualNetworkName"),
    ):
        assert value(first.one(kind), field) != value(second.one(kind), field), f"{kind}: a name twice"


def zones_of(pool: Recorded) -> JsonValue:
    """The zones that a NodePool keeps to."""
    found = objects(pool, "spec", "template", "spec", "requirements")
    return next((value(one, "values") for one in found if text(one, "key").endswith("/zone")), None)


def test_zones_are_spelled_as_in_node_labels() -> None:
    def change(document: Document) -> None:
        first = list_of(document, "pools")[0]
        assert isinstance(first, dict)
        first.update(zones=[2, 1])

    pools = {
        text(found, "metadata", "name"): found for found in composed(nap_platform(change)).of(":NodePool")
    }
    zones = zones_of(pools["cpu"])
    assert isinstance(zones, list)
    assert set(map(str, zones)) == {f"{AZURE_LOCATION}-1", f"{AZURE_LOCATION}-2"}
    assert zones_of(pools["a100"]) is None


def test_production_spans_zones() -> None:
    recording = stack("azure-prod")
    (system,) = objects(recording.one(":ManagedCluster"), "agentPoolProfiles")
    assert value(system, "availabilityZones") == ["1", "2", "3"]
    assert value(system, "count") == 3
    assert text(recording.one(":StorageAccount"), "sku", "name") == "Standard_ZRS"


def test_production_is_upgraded_in_its_window_and_not_in_its_exclusions() -> None:
    windows = stack("azure-prod").of(":MaintenanceConfiguration")
    assert {text(found, "configName") for found in windows} == {
        "default",
        "aksManagedAutoUpgradeSchedule",
        "aksManagedNodeOSUpgradeSchedule",
    }
    for found in windows:
        window = value(found, "maintenanceWindow")
        assert isinstance(window, dict)
        assert text(window, "schedule", "weekly", "dayOfWeek") == "Saturday"
        assert value(window, "startDate") == "2026-01-03"
        assert value(window, "notAllowedDates") == [{"start": "2026-12-20", "end": "2027-01-06"}]


def test_only_production_has_a_price_cap() -> None:
    caps = {
        text(found, "agentPoolName"): value(found, "spotMaxPrice")
        for found in stack("azure-prod").of(":AgentPool")
    }
    assert caps == {"cpu": None, "cpuspot": 1.2, "a100spot": -1, "h100spot": -1, "a100": None}


@every_stack
def test_the_machines_of_pools_have_the_tags_of_the_stack(name: str) -> None:
    marks = {"managed-by": "holdfast", "holdfast-stack": name}
    for found in stack(name).of(":AKSNodeClass"):
        assert mapping(found, "spec", "tags").items() >= marks.items()
    for found in stack(name).of(":AgentPool"):
        assert mapping(found, "tags").items() >= marks.items()


def complaints_of(recording: Recording) -> list[str]:
    """What the SDK does not declare and the cloud does not publish."""
    sdk = Schema.for_package("azure-native")
    wrong = [
        f"{one.name}: {violation.reason}"
        for one in recording
        if one.type.startswith("azure-native:")
        for violation in violations(cast("Properties", one.inputs), sdk.resource(one.type), judge_open=True)
    ]
    return wrong + Published.of("azure-native").complaints_of("azure-native", recording)


@every_stack
def test_every_resource_is_what_the_sdk_declares_and_the_cloud_publishes(name: str) -> None:
    assert complaints_of(stack(name)) == [], "Azure would reject the request, or drop the field"


def test_a_stack_accepts_the_jobs_of_the_clusters_that_it_names_and_no_other_identity() -> None:
    recording = stack("accepting")
    for home in HOMES:
        name = f"main-issuer-of-{home['name']}"
        credential = recording.one(":FederatedIdentityCredential", f"{name}-credential")
        assert text(credential, "issuer") == home["issuer"]
        assert text(credential, "subject") == "system:serviceaccount:holdfast-system:fallback-controller"
        assert value(credential, "audiences") == ["api://AzureADTokenExchange"]
        identity = recording.one(":UserAssignedIdentity", f"{name}-identity")
        assigned = [each for each in recording.of(":RoleAssignment") if name in each.name]
        assert not assigned, f"{identity.name}: Azure allows it nothing"
    exchanges = obj(recording.outputs["tokenExchanges"])
    assert exchanges.keys() == {str(home["issuer"]) for home in HOMES}
    exchange = obj(exchanges[str(HOMES[0]["issuer"])])
    assert exchange["tokenAudience"] == "api://AzureADTokenExchange"
    assert exchange["entra"] == {
        "authority": "https://login.microsoftonline.com",
        "tenantId": TENANT,
        "clientId": CLIENT,
        "scope": "6dae42f8-4368-4678-94ff-3960e28e3630/.default",
    }
    for namespace in ("vision", "tabular"):
        bound = recording.one(":RoleBinding", f"main-namespace-{namespace}-fallback-copies")
        assert [each["name"] for each in objects(bound, "subjects")] == [PRINCIPAL], "by its object ID"
    policy = recording.one(":ValidatingAdmissionPolicy", "main-fallback-controller-transfers-fallback-copies")
    assert PRINCIPAL in str(policy.inputs), "what it writes is judged"


ELSEWHERE = "22222222-2222-2222-2222-222222222222"
DNS_ZONE: Document = {
    "dnsZone": f"/subscriptions/{ELSEWHERE}/resourceGroups/dns/providers/Microsoft.Network/privateDnsZones/privatelink.blob.core.windows.net"
}
ACCOUNT = f"/subscriptions/{ELSEWHERE}/resourceGroups/kept/providers/Microsoft.Storage/storageAccounts/ofhome"


BLOB_ZONES = ["privatelink.blob.core.windows.net"]


@pytest.mark.parametrize(
    ("own", "zones", "namespaces"),
    [(None, BLOB_ZONES, ["vision"]), ({}, BLOB_ZONES, ["vision"]), (DNS_ZONE, [], ["vision", "tabular"])],
    ids=["service endpoint", "private endpoint", "the user's zone"],
)
def test_accepted_jobs_use_the_container_of_their_home_and_no_other(
    own: Document | None, zones: list[str], namespaces: list[str]
) -> None:
    uris = {name: f"abfss://{name}@ofhome.blob.core.windows.net" for name in ("vision", "tabular")}
    home = OtherStack({"checkpointUris": uris, CHECKPOINT_ACCOUNT: {"id": ACCOUNT, "tenantId": TENANT}})

    def change(document: Document) -> None:
        accepted: list[JsonValue] = [
            {**entry, "checkpoints": "acme/holdfast/home", "namespaces": [namespace]}
            for entry, namespace in zip(HOMES, namespaces, strict=False)
        ]
        document.update(acceptsFrom=accepted)
        if own is not None:
            section(document, "checkpoints").update(privateEndpoint=own)

    recording = composed(nap_platform(change), other=home)
    assert complaints_of(recording) == [], "Azure would reject the request, or drop the field"
    address = recording.one(":ConfigMap", "main-namespace-vision-checkpoints")
    assert text(address, "data", "CHECKPOINT_URI") == uris["vision"], "the address that home has"
    grants = {
        name: recording.one(":RoleAssignment", f"main-checkpoint-access-of-{name}-checkpoints-assignment")
        for name in uris
    }
    assert {name: text(grant, "scope") for name, grant in grants.items()} == {
        name: f"{ACCOUNT}/blobServices/default/containers/{name}"
        if name in namespaces
        else f"main-checkpoints-{name}-id"
        for name in uris
    }
    role = f"/subscriptions/{ELSEWHERE}/providers/Microsoft.Authorization/roleDefinitions/{STORAGE_BLOB_DATA_CONTRIBUTOR}"
    assert text(grants["vision"], "roleDefinitionId") == role, (
        "what home's own jobs have, as Azure returns it for a scope in another subscription"
    )
    endpoint_name = naming.home_endpoint("main", "acme/holdfast/home")
    endpoint = recording.one(":PrivateEndpoint", f"{endpoint_name}-endpoint")
    (connection,) = objects(endpoint, "privateLinkServiceConnections")
    assert text(connection, "privateLinkServiceId") == ACCOUNT
    assert f"{endpoint_name}-names" in recording.everything_before(address)
    assert [text(one, "privateZoneName") for one in recording.of(":PrivateZone")] == zones
    for names in recording.of(":PrivateDnsZoneGroup"):
        (record_of,) = objects(names, "privateDnsZoneConfigs")
        zone = "main-blob-zone-zone-id" if zones else DNS_ZONE["dnsZone"]
        assert text(record_of, "privateDnsZoneId") == zone, f"{names.name}: the record is in it"
    private = value(recording.one(":StorageAccount"), "publicNetworkAccess") == "Disabled"
    assert private is (own is not None)


@pytest.mark.parametrize("name", ["azure-prod", "azure-dev"])
def test_the_cluster_may_link_its_dns_zone_to_the_network_of_the_stack(name: str) -> None:
    recording = stack(name)
    scope = text(recording.one(":RoleAssignment", "main-cluster-identity-subnet-assignment"), "scope")
    assert scope == f"{recording.one(':VirtualNetwork').name}-id"
