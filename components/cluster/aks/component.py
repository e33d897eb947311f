"""The AKS cluster, put together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pulumi import ComponentResource, Output, ResourceOptions
from pulumi_kubernetes import Provider

from holdfast.components.cluster.aks.administrators import (
    Administrators,
    AdministratorsArgs,
    Deployer,
    DeployerArgs,
)
from holdfast.components.cluster.aks.control_plane import AksControlPlane, AksControlPlaneArgs
from holdfast.components.cluster.aks.identity import ClusterIdentity, ClusterIdentityArgs
from holdfast.components.cluster.aks.kubeconfig import kubeconfig
from holdfast.components.cluster.aks.maintenance import MaintenanceSchedule, MaintenanceScheduleArgs
from holdfast.components.cluster.aks.ranges import PODS_CIDR, SERVICES_CIDR
from holdfast.components.cluster.aks.seen import see_cluster
from holdfast.components.ordering import tied_to

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulumi import Input, Resource

    from holdfast.components.cluster.aks.access import ApiServerAccess
    from holdfast.components.cluster.aks.control_plane import Scaling
    from holdfast.components.cluster.aks.kubeconfig import ApiServer, Login
    from holdfast.components.cluster.aks.maintenance import Maintenance
    from holdfast.components.cluster.aks.system_pool import SystemNodesArgs
    from holdfast.components.cluster.aks.upgrades import Upgrades
    from holdfast.components.network.azure import NodeSubnet


@dataclass(frozen=True, kw_only=True)
class AksClusterArgs:
    """The cluster, where it is, who reaches it, who may do what in it, and when it is upgraded.

    `cluster_name` has up to 63 characters; `resource_group` is the name of the group it is made in, `node_resource_group`
    (up to 80) of the one that AKS makes for its machines. `version` is the Kubernetes version (`1.36`). `pods_cidr` has a
    /24 for each node; neither it nor `services_cidr` may be in the network, or in one that it is connected to. `deployer`
    is the object id of whoever makes the stack, `admins` are those of further users, groups and principals who may do
    everything in the cluster. `login` is how kubelogin comes to its token. `disk_encryption_set_id` is the user's own set
    of a key for the nodes' disks, in the same region. `protected`: the cluster cannot be deleted.
    """

    cluster_name: str
    location: str
    subscription_id: str
    tenant_id: str
    resource_group: Input[str]
    node_resource_group: str
    version: str
    scaling: Scaling
    network: NodeSubnet
    access: ApiServerAccess
    deployer: str
    admins: Sequence[str]
    login: Login
    maintenance: Maintenance
    upgrades: Upgrades
    system_nodes: SystemNodesArgs
    protected: bool
    pods_cidr: str = PODS_CIDR
    services_cidr: str = SERVICES_CIDR
    disk_encryption_set_id: str | None = None


class AksCluster(ComponentResource):
    """A cluster with its operators' nodes, ready for operators and for pools.

    Creates the deployer's role, the cluster's identity with what it may do, the control plane with the system pool, its
    maintenance, the administrators' roles, and the Kubernetes provider. The deployer's role comes before the control plane
    and goes after it: Azure takes minutes until it heeds a new one, which the control plane takes anyway. The provider
    comes last and goes first: what is in the cluster finds nodes and a way in, and is gone before both.

    `cluster_reference` is the cluster's name as whatever belongs to it names it, `subnet_id` where its machines are;
    `node_principal_id` the object id that its nodes pull images with.
    """

    cluster_name: str
    kubernetes: Provider
    workload_identity_issuer: Output[str]
    cluster: Resource
    cluster_reference: Output[str]
    resource_group: Output[str]
    subnet_id: Output[str]
    node_principal_id: Output[str]

    def __init__(self, name: str, args: AksClusterArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:AksCluster", name, None, opts)
        deployer = Deployer(
            f"{name}-deployer",
            DeployerArgs(
                subscription_id=args.subscription_id,
                resource_group=args.resource_group,
                principal_id=args.deployer,
            ),
            opts=ResourceOptions(parent=self),
        )
        identity = ClusterIdentity(
            f"{name}-identity",
            ClusterIdentityArgs(
                cluster_name=args.cluster_name,
                location=args.location,
                subscription_id=args.subscription_id,
                resource_group=args.resource_group,
                subnet_id=args.network.subnet_id,
                disk_encryption_set_id=args.disk_encryption_set_id,
            ),
            opts=ResourceOptions(parent=self),
        )
        control_plane = AksControlPlane(
            f"{name}-control-plane",
            _control_plane(args, identity.identity_id),
            opts=ResourceOptions(parent=self, depends_on=[deployer]),
        )
        cluster = control_plane.cluster
        MaintenanceSchedule(
            f"{name}-maintenance",
            MaintenanceScheduleArgs(
                maintenance=args.maintenance, resource_group=args.resource_group, cluster=cluster.name
            ),
            opts=ResourceOptions(parent=self),
        )
        administrators = Administrators(
            f"{name}-administrators",
            AdministratorsArgs(
                subscription_id=args.subscription_id, cluster_id=cluster.id, principal_ids=args.admins
            ),
            opts=ResourceOptions(parent=self),
        )
        seen = see_cluster(
            args.resource_group, cluster.name, name_to_use=args.access.name_to_use, parent=self
        )
        self.cluster_name = args.cluster_name
        self.cluster = cluster
        self.cluster_reference = cluster.name
        self.resource_group = Output.from_input(args.resource_group)
        self.subnet_id = Output.from_input(args.network.subnet_id)
        self.workload_identity_issuer = tied_to(seen.issuer, [cluster])
        self.node_principal_id = tied_to(seen.node_principal_id, [cluster])
        self.kubernetes = Provider(
            f"{name}-kubernetes",
            kubeconfig=seen.api_server.apply(lambda server: _kubeconfig(args, server)),
            # By the address alone another way in would look like another cluster, and everything in it be replaced.
            cluster_identifier=seen.uid,
            opts=ResourceOptions(parent=self, depends_on=[cluster, administrators]),
        )
        self.register_outputs(
            {
                "cluster_name": self.cluster_name,
                "workload_identity_issuer": self.workload_identity_issuer,
            }
        )


def _kubeconfig(args: AksClusterArgs, server: ApiServer) -> str:
    return kubeconfig(
        server,
        cluster_name=args.cluster_name,
        tenant_id=args.tenant_id,
        login=args.login,
    )


def _control_plane(args: AksClusterArgs, identity_id: Output[str]) -> AksControlPlaneArgs:
    return AksControlPlaneArgs(
        cluster_name=args.cluster_name,
        location=args.location,
        tenant_id=args.tenant_id,
        resource_group=args.resource_group,
        node_resource_group=args.node_resource_group,
        version=args.version,
        scaling=args.scaling,
        network=args.network,
        pods_cidr=args.pods_cidr,
        services_cidr=args.services_cidr,
        access=args.access,
        identity_id=identity_id,
        upgrades=args.upgrades,
        system_nodes=args.system_nodes,
        disk_encryption_set_id=args.disk_encryption_set_id,
        protected=args.protected,
    )
