"""AKS's clusters: what AKS adds to them, and what it and its provider refuse. Node pools are apart."""

import re
from collections.abc import Mapping
from ipaddress import IPv4Network
from typing import Final

from holdfast.scheduling.json import JsonValue
from holdfast.simulator.clouds.azure.aks_changes import CHANGES
from holdfast.simulator.clouds.azure.aks_outputs import (
    fqdn,
    identities,
    identity,
    issuer,
    private_fqdn,
    running_version,
)
from holdfast.simulator.clouds.azure.aks_permissions import MISSING_PERMISSIONS
from holdfast.simulator.clouds.azure.cluster_views import INVOKES as CLUSTER_INVOKES
from holdfast.simulator.clouds.azure.errors import said
from holdfast.simulator.clouds.azure.names import guid, identified, no_group, same_id
from holdfast.simulator.clouds.azure.network import SUBNET
from holdfast.simulator.clouds.catalogue import Invoke, Making, Rules
from holdfast.simulator.kubernetes_client.objects import mapping, sequence

CLUSTER: Final = "azure-native:containerservice:ManagedCluster"

_NAME: Final = re.compile(r"[a-zA-Z0-9](?:[-_a-zA-Z0-9]{0,61}[a-zA-Z0-9])?")
#: AKS's own, in every cluster.
_RESERVED: Final = tuple(IPv4Network(cidr) for cidr in ("169.254.0.0/16", "172.30.0.0/16", "172.31.0.0/16"))


def _bad_name(making: Making) -> str | None:
    if _NAME.fullmatch(making.name):
        return None
    return said(
        "InvalidParameter",
        f"The value of parameter resourceName is invalid: {making.name}. It may contain letters, digits, hyphens and "
        "underscores, 1 to 63 of them, and has to begin and end with a letter or a digit.",
    )


def _nap_unsupported(making: Making) -> str | None:
    if mapping(making.inputs.get("nodeProvisioningProfile")).get("mode") != "Auto":
        return None
    families = sequence(mapping(making.inputs.get("networkProfile")).get("ipFamilies"))
    if list(families) != ["IPv4"]:
        return _nap_needs(".properties.networkProfile.ipFamilies is set to one of [IPv4]")
    if making.inputs.get("publicNetworkAccess") == "Disabled":
        return _nap_needs(".properties.publicNetworkAccess is set to one of [Enabled]")
    return None


def _nap_needs(what: str) -> str:
    return said(
        "OperationNotAllowed", f".properties.nodeProvisioningProfile.mode cannot be Auto unless {what}."
    )


def _no_way_out(making: Making) -> str | None:
    """A subnet of the user's own is not known here."""
    if mapping(making.inputs.get("networkProfile")).get("outboundType") != "userAssignedNATGateway":
        return None
    for profile in map(mapping, sequence(making.inputs.get("agentPoolProfiles"))):
        for subnet in making.inventory.of_type(SUBNET):
            if same_id(subnet.id, profile.get("vnetSubnetID")) and not subnet.inputs.get("natGateway"):
                return said(
                    "BadRequest",
                    f"outboundType userAssignedNATGateway needs a NAT gateway on the subnet {subnet.id}, which has none.",
                )
    return None


def _overlapping_ranges(making: Making) -> str | None:
    profile = mapping(making.inputs.get("networkProfile"))
    pods, services = (_range(profile.get(field)) for field in ("podCidr", "serviceCidr"))
    if pods is not None and any(pods.overlaps(reserved) for reserved in _RESERVED):
        return said("InvalidParameter", f"The pod CIDR {pods} overlaps with a range that AKS reserves.")
    for subnet in making.inventory.of_type(SUBNET):
        mine = _range(subnet.inputs.get("addressPrefix"))
        if mine is not None and services is not None and services.overlaps(mine):
            return said(
                "ServiceCidrOverlapExistingSubnetsCidr",
                f"The specified service CIDR {services} is conflicted with an existing subnet CIDR {mine}",
            )
    return None


def _range(value: JsonValue) -> IPv4Network | None:
    return IPv4Network(str(value)) if value else None


RESOURCES: Mapping[str, Rules] = {
    CLUSTER: Rules(
        name_property="resourceName",
        unique_within=("resourceGroupName",),
        longest_name=63,
        identify=identified("Microsoft.ContainerService/managedClusters"),
        # What azure-native replaces a cluster for.
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
                "nodeResourceGroup",
                "windowsProfile",
            }
        ),
        computed={
            "azurePortalFQDN": lambda making: private_fqdn(making) or fqdn(making),
            "currentKubernetesVersion": running_version,
            "eTag": lambda making: guid(making, "etag"),
            "fqdn": fqdn,
            "identity": identity,
            "identityProfile": identities,
            "maxAgentPools": lambda _: 100,
            "oidcIssuerProfile": issuer,
            "powerState": lambda _: {"code": "Running"},
            "privateFQDN": private_fqdn,
            "resourceUID": lambda making: making.digest[:24],
        },
        refuse_create=(
            _bad_name,
            no_group,
            _nap_unsupported,
            _no_way_out,
            _overlapping_ranges,
            *MISSING_PERMISSIONS,
        ),
        refuse_update=(_nap_unsupported, *MISSING_PERMISSIONS, *CHANGES),
    ),
}
INVOKES: Mapping[str, Invoke] = CLUSTER_INVOKES
