"""AKS clusters and their maintenance configurations: computed outputs and refused changes."""

import re
from collections.abc import Mapping
from typing import Final

from pulumi_holdfast.config import versions
from pulumi_holdfast.ladder.json import Json, JsonValue, mapping, sequence
from pulumi_holdfast.rehearsal.clouds.azure.iam import IDENTITY, has_role
from pulumi_holdfast.rehearsal.clouds.azure.names import (
    TENANT,
    cluster_id,
    group_id,
    guid,
    identified,
    no_group,
    no_parent,
    said,
)
from pulumi_holdfast.rehearsal.clouds.azure.network import SUBNET
from pulumi_holdfast.rehearsal.clouds.catalogue import ResourceRequest, Rules
from pulumi_holdfast.rehearsal.clouds.relations import needs_at, same_id
from pulumi_holdfast.rehearsal.clouds.state import CloudObject, CloudState


def provisioned_cluster(cloud: CloudState) -> CloudObject | None:
    """Return the cluster of a cloud that has node auto-provisioning; None where there is none."""
    clusters = cloud.read().of_type(CLUSTER) if cloud.file.exists() else []
    return next((one for one in clusters if _provisions(one)), None)


def _provisions(cluster: CloudObject) -> bool:
    return mapping(cluster.outputs.get("nodeProvisioningProfile")).get("mode") == "Auto"


_NETWORK_CONTRIBUTOR: Final = "4d97b98b-1d4f-4787-a291-c67834d212e7"
_READER: Final = "acdd72a7-3385-48ef-bd42-f606fba81ae7"


def _may_not_join(request: ResourceRequest) -> str | None:
    """The cluster's identity needs the permission to join the subnet."""
    for principal in _principals(request):
        for profile in map(mapping, sequence(request.inputs.get("agentPoolProfiles"))):
            subnet = str(profile.get("vnetSubnetID") or "")
            if subnet and not has_role(
                request.inventory, principal_id=principal, role=_NETWORK_CONTRIBUTOR, scope=subnet
            ):
                return said(
                    "LinkedAuthorizationFailed",
                    f"The client '{principal}' with object id '{principal}' has permission to perform action "
                    f"'Microsoft.Compute/virtualMachineScaleSets/write' on scope '{_machines(request)}'; however, it does "
                    "not have permission to perform action(s) 'Microsoft.Network/virtualNetworks/subnets/join/action' on "
                    f"the linked scope(s) '{subnet}' (respectively) or the linked scope(s) are invalid.",
                )
    return None


def _may_not_encrypt(request: ResourceRequest) -> str | None:
    """The cluster's identity needs the permission to read the disk encryption set."""
    disks = request.inputs.get("diskEncryptionSetID")
    for principal in _principals(request):
        if disks and not has_role(request.inventory, principal_id=principal, role=_READER, scope=str(disks)):
            return said(
                "AuthorizationFailed",
                f"The client '{principal}' with object id '{principal}' does not have authorization to perform action "
                f"'Microsoft.Compute/diskEncryptionSets/read' over scope '{disks}' or the scope is invalid.",
            )
    return None


def _principals(request: ResourceRequest) -> list[str]:
    """The principals of the cluster's identities that are in the state."""
    given = sequence(mapping(request.inputs.get("identity")).get("userAssignedIdentities"))
    return [
        str(one.outputs.get("principalId"))
        for one in request.inventory.of_type(IDENTITY)
        if any(same_id(one.id, named) for named in given)
    ]


def _machines(request: ResourceRequest) -> str:
    group = group_id(request).rpartition("/")[0]
    return f"{group}/{request.inputs.get('nodeResourceGroup')}/providers/Microsoft.Compute/virtualMachineScaleSets"


MISSING_PERMISSIONS: Final = (_may_not_join, _may_not_encrypt)


_POOL: Final = "azure-native:containerservice:AgentPool"
#: The immutable fields of a pool.
_OF_A_POOL: Final = ("vmSize", "osDiskSizeGB", "vnetSubnetID", "availabilityZones")


def _new_pool(request: ResourceRequest) -> str | None:
    """The cluster's list may change existing pools; new ones are created as their own resources."""
    current = _current(request)
    there = {*_profiles(current.inputs), *_pools(request)}
    if set(_profiles(request.inputs)) <= there:
        return None
    return said(
        "BadRequest",
        "A new agent pool was introduced. Adding agent pools to an existing cluster is not allowed through managed "
        "cluster operations. For agent pool specific change, please use per agent pool operations: "
        "https://aka.ms/agent-pool-rest-api",
    )


def _fixed_of_a_pool(request: ResourceRequest) -> str | None:
    before = _profiles(_current(request).inputs)
    for name, profile in _profiles(request.inputs).items():
        for field in _OF_A_POOL:
            if name in before and before[name].get(field) != profile.get(field):
                return _fixed(f"properties.{field}")
    return None


def _public_or_private(request: ResourceRequest) -> str | None:
    """Only API server VNet integration, which our clusters do not use, allows this change."""
    asked, before = (
        mapping(inputs.get("apiServerAccessProfile")).get("enablePrivateCluster") is True
        for inputs in (request.inputs, _current(request).inputs)
    )
    if asked == before:
        return None
    return _fixed("properties.apiServerAccessProfile.enablePrivateCluster")


def _version(request: ResourceRequest) -> str | None:
    asked, before = (
        str(inputs.get("kubernetesVersion") or "") for inputs in (request.inputs, _current(request).inputs)
    )
    if asked == before or not asked or not before:
        return None
    (major, minor), (old_major, old_minor) = _minor(asked), _minor(before)
    if major == old_major and minor - old_minor in (0, 1):
        return None
    return said(
        "OperationNotAllowed",
        f"Upgrading Kubernetes version {before} to {asked} is not allowed. Available upgrades: "
        f"[{old_major}.{old_minor + 1}]. Please see https://aka.ms/aks-supported-k8s-ver for version details.",
    )


def _fixed(what: str) -> str:
    return said("PropertyChangeNotAllowed", f"Changing property '{what}' is not allowed.")


def _minor(version: str) -> tuple[int, int]:
    found = re.match(r"(\d+)\.(\d+)", version)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def _current(request: ResourceRequest) -> CloudObject:
    return next(one for one in request.inventory.of_type(request.type) if one.id == request.id)


def _profiles(inputs: Json) -> dict[str, Json]:
    profiles = map(mapping, sequence(inputs.get("agentPoolProfiles")))
    return {str(profile.get("name")): profile for profile in profiles}


def _pools(request: ResourceRequest) -> set[str]:
    """The names of the pools that are their own resources."""
    return {
        str(pool.inputs.get("agentPoolName"))
        for pool in request.inventory.of_type(_POOL)
        if pool.inputs.get("resourceName") == request.name
    }


CHANGES: Final = (_new_pool, _fixed_of_a_pool, _public_or_private, _version)


def _region(request: ResourceRequest) -> str:
    return str(request.inputs.get("location") or request.configuration.get("location") or "")


def _host(request: ResourceRequest) -> str:
    return f"{request.inputs.get('dnsPrefix')}-{request.digest[:8]}"


def _is_private(request: ResourceRequest) -> bool:
    return mapping(request.inputs.get("apiServerAccessProfile")).get("enablePrivateCluster") is True


def fqdn(request: ResourceRequest) -> JsonValue:
    """Return the API server's public host name; a private cluster has one only on request."""
    access = mapping(request.inputs.get("apiServerAccessProfile"))
    is_known = not _is_private(request) or access.get("enablePrivateClusterPublicFQDN") is not False
    return f"{_host(request)}.hcp.{_region(request)}.azmk8s.io" if is_known else ""


def private_fqdn(request: ResourceRequest) -> JsonValue:
    """Return the private host name of a private API server."""
    if not _is_private(request):
        return ""
    return f"{_host(request)}.{guid(request, 'zone')}.privatelink.{_region(request)}.azmk8s.io"


def issuer(request: ResourceRequest) -> JsonValue:
    """Return the OIDC issuer, where it is enabled."""
    given = mapping(request.inputs.get("oidcIssuerProfile"))
    tenant = str(request.configuration.get("tenantId") or TENANT)
    url = f"https://{_region(request)}.oic.prod-aks.azure.com/{tenant}/{guid(request, 'issuer')}/"
    return {**given, **({"issuerURL": url} if given.get("enabled") is True else {})}


def identities(request: ResourceRequest) -> JsonValue:
    """Return the kubelet identity, which AKS creates by default."""
    name = f"{request.name}-agentpool"
    group = request.inputs.get("nodeResourceGroup")
    subscription = group_id(request).split("/")[2]
    resource = (
        f"/subscriptions/{subscription}/resourcegroups/{group}/providers/Microsoft.ManagedIdentity/"
        f"userAssignedIdentities/{name}"
    )
    given = mapping(request.inputs.get("identityProfile"))
    made: Json = {
        "clientId": guid(request, "kubelet"),
        "objectId": guid(request, "kubelet's"),
        "resourceId": resource,
    }
    return {"kubeletidentity": made, **given}


def identity(request: ResourceRequest) -> JsonValue:
    """Return the control plane's identities: the input is a list of ids, the output a map by id."""
    given = mapping(request.inputs.get("identity"))
    ids = [str(each) for each in sequence(given.get("userAssignedIdentities"))]
    if not ids:
        return dict(given) or None
    known = {one.id.lower(): one.outputs for one in request.inventory.of_type(IDENTITY)}
    shown: Json = {
        one: {name: known.get(one.lower(), {}).get(name, "") for name in ("clientId", "principalId")}
        for one in ids
    }
    return {**given, "userAssignedIdentities": shown}


def running_version(request: ResourceRequest) -> JsonValue:
    """Return the running version: AKS chooses the patch."""
    asked = str(request.inputs.get("kubernetesVersion") or versions.KUBERNETES)
    return asked if asked.count(".") > 1 else f"{asked}.0"


CLUSTER: Final = "azure-native:containerservice:ManagedCluster"


def _no_way_out(request: ResourceRequest) -> str | None:
    """The NAT gateway must be on the subnet before; a subnet that is not in the state is skipped."""
    if mapping(request.inputs.get("networkProfile")).get("outboundType") != "userAssignedNATGateway":
        return None
    for profile in map(mapping, sequence(request.inputs.get("agentPoolProfiles"))):
        for subnet in request.inventory.of_type(SUBNET):
            if same_id(subnet.id, profile.get("vnetSubnetID")) and not subnet.inputs.get("natGateway"):
                return said(
                    "BadRequest",
                    f"outboundType userAssignedNATGateway needs a NAT gateway on the subnet {subnet.id}, which has none.",
                )
    return None


RESOURCES: Mapping[str, Rules] = {
    CLUSTER: Rules(
        name_property="resourceName",
        unique_within=("resourceGroupName",),
        longest_name=63,
        identify=identified("Microsoft.ContainerService/managedClusters"),
        # The fields that azure-native replaces a cluster for.
        immutable=frozenset(
            {
                "diskEncryptionSetID",
                "dnsPrefix",
                "fqdnSubdomain",
                "linuxProfile",
                "location",
                "networkProfile.dnsServiceIP",
                "networkProfile.networkDataplane",
                "networkProfile.networkMode",
                "networkProfile.networkPlugin",
                "networkProfile.networkPluginMode",
                "networkProfile.networkPolicy",
                "networkProfile.outboundType",
                "networkProfile.podCidr",
                "networkProfile.serviceCidr",
                "networkProfile.serviceCidrs",
                "nodeResourceGroup",
                "windowsProfile",
            }
        ),
        computed={
            "azurePortalFQDN": lambda request: private_fqdn(request) or fqdn(request),
            "currentKubernetesVersion": running_version,
            "eTag": lambda request: guid(request, "etag"),
            "fqdn": fqdn,
            "identity": identity,
            "identityProfile": identities,
            "maxAgentPools": lambda _: 100,
            "oidcIssuerProfile": issuer,
            "powerState": lambda _: {"code": "Running"},
            "privateFQDN": private_fqdn,
            "resourceUID": lambda request: request.digest[:24],
        },
        refuse_create=(no_group, _no_way_out, *MISSING_PERMISSIONS),
        refuse_update=(*MISSING_PERMISSIONS, *CHANGES),
    ),
    "azure-native:monitor:DiagnosticSetting": Rules(
        name_property="name",
        unique_within=("resourceUri",),
        identify=lambda request: (
            f"{request.inputs.get('resourceUri')}/providers/Microsoft.Insights/diagnosticSettings/{request.name}"
        ),
        immutable=frozenset({"resourceUri"}),
    ),
    "azure-native:containerservice:MaintenanceConfiguration": Rules(
        name_property="configName",
        unique_within=("resourceGroupName", "resourceName"),
        identify=lambda request: f"{cluster_id(request)}/maintenanceConfigurations/{request.name}",
        refuse_create=(
            needs_at(CLUSTER, cluster_id, no_parent("managedClusters/maintenanceConfigurations")),
        ),
    ),
}
