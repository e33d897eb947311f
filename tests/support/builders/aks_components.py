"""A valid AKS cluster and valid agent pools; tests override single arguments."""

import base64
import json
from collections.abc import Callable

from pulumi_holdfast.azure.control_plane.access import PublicAccess
from pulumi_holdfast.azure.control_plane.component import AksCluster, AksClusterArgs
from pulumi_holdfast.azure.control_plane.control_plane import Maintenance, SystemNodesArgs, Upgrades
from pulumi_holdfast.azure.network import ExistingAzureNetwork
from pulumi_holdfast.azure.pools import AksPoolArgs
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import CapacityType
from pulumi_holdfast.ladder.machines import machine_catalogue
from pulumi_holdfast.ladder.pools import Pool
from tests.support.fakes.pulumi_engine import Recording, record, recorded_once

SUBSCRIPTION = "11111111-1111-1111-1111-111111111111"
TENANT = "22222222-2222-2222-2222-222222222222"
DEPLOYER = "33333333-3333-3333-3333-333333333333"
ADMINS = ("44444444-4444-4444-4444-444444444444", "55555555-5555-5555-5555-555555555555")
LOCATION = "westeurope"
#: The provider's configuration.
CONFIG: Json = {
    "azure-native:location": LOCATION,
    "azure-native:subscriptionId": SUBSCRIPTION,
    "azure-native:tenantId": TENANT,
}
GROUP = "holdfast-dev"
SUBNET = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/net/providers/Microsoft.Network/virtualNetworks/ml/subnets/nodes"
DISKS = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/keys/providers/Microsoft.Compute/diskEncryptionSets/holdfast"
MAINTENANCE = Maintenance(day="Saturday", start="02:00", hours=8, start_date="2026-01-03")

SERVER = "https://holdfast-dev-0a1b2c3d.hcp.westeurope.azmk8s.io:443"
AUTHORITY = "Q0E="
UID = "650b1d3c8f0e4a0001a2b3c4"
ISSUER = "https://westeurope.oic.prod-aks.azure.com/tenant/issuer/"


def cluster_args() -> AksClusterArgs:
    """A deletable cluster with node auto-provisioning in an existing network."""
    return AksClusterArgs(
        cluster_name="holdfast-dev",
        location=LOCATION,
        subscription_id=SUBSCRIPTION,
        tenant_id=TENANT,
        resource_group=GROUP,
        node_resource_group="holdfast-dev-nodes",
        version="1.36",
        scaling="nap",
        network=ExistingAzureNetwork(subnet_id=SUBNET, egress_cidrs=("198.51.100.7/32",)),
        access=PublicAccess(cidrs=["203.0.113.0/24"]),
        deployer=DEPLOYER,
        admins=(),
        login="azurecli",
        maintenance=MAINTENANCE,
        upgrades=Upgrades(),
        system_nodes=SystemNodesArgs(vm_size="Standard_D4s_v5"),
        protected=False,
    )


def credentials(server: str = SERVER, authority: str = AUTHORITY) -> str:
    """AKS's user credentials: a kubeconfig with an interactive login."""
    document: Json = {
        "clusters": [{"name": "c", "cluster": {"server": server, "certificate-authority-data": authority}}],
        "users": [{"name": "u", "user": {"exec": {"command": "kubelogin"}}}],
    }
    return base64.b64encode(json.dumps(document).encode()).decode()


def seen(token: str, _: Json) -> Json:
    """What Azure returns for the created cluster."""
    if token.endswith(":listManagedClusterUserCredentials"):
        return {"kubeconfigs": [{"name": "clusterUser", "value": credentials()}]}
    if token.endswith(":getManagedCluster"):
        return {
            "name": "holdfast-dev",
            "resourceUID": UID,
            "oidcIssuerProfile": {"enabled": True, "issuerURL": ISSUER},
            "identityProfile": {"kubeletidentity": {"objectId": "nodes-principal"}},
        }
    return {}


def recorded_cluster(
    change: Callable[[AksClusterArgs], AksClusterArgs] = lambda args: args, *, preview: bool = False
) -> Recording:
    """What a cluster registers; `change` replaces its valid arguments."""
    args = change(cluster_args())
    return recorded_once(
        (repr(args), preview),
        lambda: record(lambda: AksCluster("cluster", args), preview=preview, answer=seen),
    )


MACHINES = machine_catalogue("azure")
POOL_SUBNET = (
    "/subscriptions/11111111-1111-1111-1111-111111111111/resourceGroups/net/providers/Microsoft.Network/"
    "virtualNetworks/ml/subnets/nodes"
)

A100_SPOT = AksPoolArgs(
    pool=Pool(name="a100-spot", capacity=CapacityType.SPOT, has_gpus=True, max_nodes=8),
    machine=MACHINES["Standard_ND96asr_v4"],
    zones=("1", "2"),
    cluster="holdfast-test",
    resource_group="holdfast-test",
    subnet_id=POOL_SUBNET,
    kubernetes_version="1.36",
    disk_gib=256,
    tags={"holdfast-stack": "test"},
)
CPU = AksPoolArgs(
    pool=Pool(name="cpu", capacity=CapacityType.ON_DEMAND, has_gpus=False, max_nodes=20, is_default=True),
    machine=MACHINES["Standard_D8ds_v5"],
    zones=("1", "2"),
    cluster="holdfast-test",
    resource_group="holdfast-test",
    subnet_id=POOL_SUBNET,
    kubernetes_version="1.36",
    disk_gib=128,
)
