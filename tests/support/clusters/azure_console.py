"""Creates a simulated AKS cluster with its dependencies, call by call."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from uuid import NAMESPACE_URL, uuid5

from pulumi_holdfast.rehearsal.engine.values import Value
from tests.support.clusters.provider_calls import Engine, Provider

GROUP_TYPE = "azure-native:resources:ResourceGroup"
NETWORK_TYPE = "azure-native:network:VirtualNetwork"
SUBNET_TYPE = "azure-native:network:Subnet"
NAT_TYPE = "azure-native:network:NatGateway"
ADDRESS_TYPE = "azure-native:network:PublicIPAddress"
IDENTITY_TYPE = "azure-native:managedidentity:UserAssignedIdentity"
GRANT_TYPE = "azure-native:authorization:RoleAssignment"
CLUSTER_TYPE = "azure-native:containerservice:ManagedCluster"

LOCATION = "westeurope"
GROUP = "train"
PATH = "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/train/providers"
CLUSTER = f"{PATH}/Microsoft.ContainerService/managedClusters/train"
ROLES = (
    "/subscriptions/00000000-0000-0000-0000-000000000000/providers/Microsoft.Authorization/roleDefinitions"
)
NETWORK_CONTRIBUTOR = "4d97b98b-1d4f-4787-a291-c67834d212e7"
READER = "acdd72a7-3385-48ef-bd42-f606fba81ae7"
CLUSTER_ADMIN = "b1ff04bb-8a4e-4dc4-8eb5-8693973ce19b"


#: The pool that is part of the cluster.
SYSTEM_POOL: Final[Mapping[str, Value]] = {
    "name": "system",
    "mode": "System",
    "count": 2,
    "vmSize": "Standard_D4s_v5",
    "vnetSubnetID": f"{PATH}/Microsoft.Network/virtualNetworks/train/subnets/nodes",
}


@dataclass(frozen=True, kw_only=True)
class AzureConsole:
    """Makes the parts of one cluster, `train`, in a resource group of that name."""

    azure: Provider

    def group(self) -> str:
        """Make the resource group; return its id."""
        made, _ = self.engine(GROUP_TYPE).create({"resourceGroupName": GROUP, "location": LOCATION})
        return made

    def way_out(self) -> str:
        """Make an address and a NAT gateway; return the gateway's id."""
        address, _ = self.engine(ADDRESS_TYPE).create(self.in_group(publicIpAddressName="nat"))
        made, _ = self.engine(NAT_TYPE).create(
            self.in_group(natGatewayName="nat", publicIpAddresses=[{"id": address}])
        )
        return made

    def network(self, cidr: str = "10.40.0.0/16") -> str:
        """Make a network without a subnet; return its id."""
        made, _ = self.engine(NETWORK_TYPE).create(
            self.in_group(virtualNetworkName="train", addressSpace={"addressPrefixes": [cidr]})
        )
        return made

    def subnet(self, gateway: str | None = None, *, name: str = "nodes", cidr: str = "10.40.0.0/20") -> str:
        """Make a subnet, with a NAT gateway or without; return its id."""
        nat: dict[str, Value] = {} if gateway is None else {"natGateway": {"id": gateway}}
        made, _ = self.engine(SUBNET_TYPE, name).create(
            {
                "resourceGroupName": GROUP,
                "virtualNetworkName": "train",
                "subnetName": name,
                "addressPrefix": cidr,
                **nat,
            }
        )
        return made

    def identity(self) -> tuple[str, str]:
        """Make an identity; return its id and its principal's."""
        made, outputs = self.engine(IDENTITY_TYPE).create(self.in_group(resourceName="train"))
        return made, str(outputs["principalId"])

    def grant(self, principal: str, role: str, scope: str, **overrides: Value) -> str:
        """Give a role; return the assignment's id."""
        inputs: dict[str, Value] = {
            "roleAssignmentName": str(uuid5(NAMESPACE_URL, f"{principal}|{role}|{scope}")),
            "principalId": principal,
            "principalType": "ServicePrincipal",
            "roleDefinitionId": f"{ROLES}/{role}",
            "scope": scope,
            **overrides,
        }
        return self.engine(GRANT_TYPE, f"{role}-on-{scope[-12:]}").create(inputs)[0]

    def prerequisites(self) -> dict[str, Value]:
        """Make everything that a cluster needs; return the inputs of one that can be made."""
        self.group()
        gateway = self.way_out()
        self.network()
        subnet = self.subnet(gateway)
        identity, principal = self.identity()
        self.grant(principal, NETWORK_CONTRIBUTOR, subnet)
        return {
            "resourceGroupName": GROUP,
            "resourceName": "train",
            "location": LOCATION,
            "dnsPrefix": "train",
            "nodeResourceGroup": "train-nodes",
            "kubernetesVersion": "1.36",
            "identity": {"type": "UserAssigned", "userAssignedIdentities": [identity]},
            "oidcIssuerProfile": {"enabled": True},
            "networkProfile": {
                "ipFamilies": ["IPv4"],
                "outboundType": "userAssignedNATGateway",
                "podCidr": "10.244.0.0/14",
                "serviceCidr": "172.20.0.0/16",
            },
            "nodeProvisioningProfile": {"mode": "Auto", "defaultNodePools": "None"},
            "agentPoolProfiles": [dict(SYSTEM_POOL)],
        }

    def cluster(self, **overrides: Value) -> dict[str, Value]:
        """Make a cluster with everything that it needs; return what Azure shows of it."""
        return self.engine(CLUSTER_TYPE).create({**self.prerequisites(), **overrides})[1]

    def in_group(self, **inputs: Value) -> dict[str, Value]:
        """Inputs of something in the resource group."""
        return {"resourceGroupName": GROUP, "location": LOCATION, **inputs}

    def engine(self, kind: str, name: str = "one") -> Engine:
        """The engine's side of a resource."""
        return Engine(provider=self.azure, type=kind, name=name)
