"""The control plane of an AKS cluster, with the nodes that it cannot be made without."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from pulumi import ComponentResource, ResourceOptions
from pulumi_azure_native.containerservice import ManagedCluster, ResourceIdentityType

from holdfast.components.cluster.aks.ranges import dns_service_ip

if TYPE_CHECKING:
    from pulumi import Input
    from pulumi_azure_native.containerservice import (
        ContainerServiceNetworkProfileArgsDict,
        ManagedClusterNodeProvisioningProfileArgsDict,
    )

    from holdfast.components.cluster.aks.access import ApiServerAccess
    from holdfast.components.cluster.aks.system_pool import SystemNodesArgs
    from holdfast.components.cluster.aks.upgrades import Upgrades
    from holdfast.components.network.azure import NodeSubnet, Outbound

#: `nap`: node auto-provisioning, AKS's own Karpenter. `fixed`: scale sets, one for each pool. AKS forbids pools that grow by
#: themselves beside node auto-provisioning.
Scaling: TypeAlias = Literal["nap", "fixed"]

#: What AKS takes at the beginning of the API server's name.
_LONGEST_PREFIX: Final = 54


@dataclass(frozen=True, kw_only=True)
class AksControlPlaneArgs:
    """As for the whole cluster; `identity_id` is that of an identity which may use the subnet and the disks' key."""

    cluster_name: str
    location: str
    tenant_id: str
    resource_group: Input[str]
    node_resource_group: str
    version: str
    scaling: Scaling
    network: NodeSubnet
    pods_cidr: str
    services_cidr: str
    access: ApiServerAccess
    identity_id: Input[str]
    upgrades: Upgrades
    system_nodes: SystemNodesArgs
    disk_encryption_set_id: str | None
    protected: bool


class AksControlPlane(ComponentResource):
    """The API server and all behind it, and the system nodes.

    Creates the ManagedCluster. The system pool is the only one that is part of it: AKS makes no cluster without, and takes
    no further one into it later. Nothing of it is ignored, or a change of something else would bring back pools that are
    gone.
    """

    cluster: ManagedCluster

    def __init__(self, name: str, args: AksControlPlaneArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:AksControlPlane", name, None, opts)
        self.cluster = ManagedCluster(
            f"{name}-aks",
            resource_name_=args.cluster_name,
            resource_group_name=args.resource_group,
            location=args.location,
            node_resource_group=args.node_resource_group,
            dns_prefix=args.cluster_name[:_LONGEST_PREFIX].rstrip("-"),
            kubernetes_version=args.version,
            # Without a service level the API server is smaller too, and its clients are held back before the nodes are many.
            sku={"name": "Base", "tier": "Standard"},
            identity={
                "type": ResourceIdentityType.USER_ASSIGNED,
                "user_assigned_identities": [args.identity_id],
            },
            # Whoever gets in is somebody in Entra ID, with a role of Azure's: there is no credential to lose.
            disable_local_accounts=True,
            enable_rbac=True,
            aad_profile={"managed": True, "enable_azure_rbac": True, "tenant_id": args.tenant_id},
            # Pods are somebody in Entra ID too.
            oidc_issuer_profile={"enabled": True},
            security_profile={"workload_identity": {"enabled": True}},
            api_server_access_profile=args.access.as_profile(args.network.egress_cidrs),
            network_profile=_network(args.network.outbound, args.pods_cidr, args.services_cidr),
            node_provisioning_profile=_node_provisioning(args.scaling),
            auto_upgrade_profile=args.upgrades.as_profile(),
            agent_pool_profiles=[
                args.system_nodes.as_profile(version=args.version, subnet_id=args.network.subnet_id)
            ],
            disk_encryption_set_id=args.disk_encryption_set_id,
            opts=ResourceOptions(parent=self, protect=True if args.protected else None),
        )
        self.register_outputs({"name": self.cluster.name})


def _network(outbound: Outbound, pods: str, services: str) -> ContainerServiceNetworkProfileArgsDict:
    return {
        "network_plugin": "azure",
        "network_plugin_mode": "overlay",
        "network_dataplane": "cilium",
        "network_policy": "cilium",
        # AKS's default, and yet unless it is written node auto-provisioning cannot be had (Azure/AKS #4759).
        "ip_families": ["IPv4"],
        "load_balancer_sku": "standard",
        "outbound_type": outbound,
        "pod_cidr": pods,
        "service_cidr": services,
        "dns_service_ip": dns_service_ip(services),
    }


def _node_provisioning(scaling: Scaling) -> ManagedClusterNodeProvisioningProfileArgsDict:
    # AKS's own NodePools would be a way to nodes beside the pools, without their limits and taints. To switch them off
    # later deletes them, and drains all their nodes.
    return {"mode": "Auto", "default_node_pools": "None"} if scaling == "nap" else {"mode": "Manual"}
