"""The AKS cluster, put together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from pulumi import ComponentResource, InvokeOutputOptions, Output, ResourceOptions
from pulumi_azure_native.containerservice import (
    get_managed_cluster_output,
    list_managed_cluster_user_credentials_output,
)
from pulumi_kubernetes import Provider

from holdfast.components.cluster.aks.access import PODS_CIDR, SERVICES_CIDR, api_server, kubeconfig
from holdfast.components.cluster.aks.control_plane import (
    AksControlPlane,
    AksControlPlaneArgs,
    MaintenanceSchedule,
    MaintenanceScheduleArgs,
)
from holdfast.components.cluster.aks.role_assignments import (
    Administrators,
    AdministratorsArgs,
    ClusterIdentity,
    ClusterIdentityArgs,
    Deployer,
    DeployerArgs,
)
from holdfast.components.ordering import tied_to

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulumi import Input, Resource
    from pulumi_azure_native.containerservice import (
        GetManagedClusterResult,
        ListManagedClusterUserCredentialsResult,
    )

    from holdfast.components.cluster.aks.access import ApiServer, ApiServerAccess, Login
    from holdfast.components.cluster.aks.control_plane import Maintenance, Scaling, SystemNodesArgs, Upgrades
    from holdfast.components.network.azure import NodeSubnet


#: Whom nodes pull images as, among the identities that AKS gives a cluster.
_KUBELET: Final = "kubeletidentity"


@dataclass(frozen=True, kw_only=True)
class SeenCluster:
    """A cluster as AKS shows it.

    `uid` is its own for as long as it lives, and no other's of the same name. `issuer` is the URL that its service
    accounts' tokens are issued under, `node_principal_id` the object id of whom its nodes pull images as.
    """

    uid: Output[str]
    issuer: Output[str]
    node_principal_id: Output[str]
    api_server: Output[ApiServer]


def see_cluster(
    resource_group: Input[str], name: Input[str], *, name_to_use: Literal["public"] | None, parent: Resource
) -> SeenCluster:
    """Ask AKS for a cluster by its name, and for the way in.

    Asked for, and not taken from what made it: the provider knows the outputs of a resource that changes no longer until
    it has changed, so that each preview of a change of the cluster would announce the replacement of everything in it.
    And the certificate authority is in no output. `name_to_use` is which of its names the API server is to be called by.
    """
    options = InvokeOutputOptions(parent=parent)
    found = get_managed_cluster_output(resource_group_name=resource_group, resource_name=name, opts=options)
    credentials = list_managed_cluster_user_credentials_output(
        resource_group_name=resource_group, resource_name=name, server_fqdn=name_to_use, opts=options
    )
    return SeenCluster(
        uid=found.apply(lambda cluster: cluster.resource_uid),
        issuer=found.apply(_issuer),
        node_principal_id=found.apply(_node_principal_id),
        api_server=credentials.apply(_api_server),
    )


def _issuer(cluster: GetManagedClusterResult) -> str:
    profile = cluster.oidc_issuer_profile
    if profile is None:
        raise ValueError(f"AKS shows no OpenID Connect issuer of {cluster.name}")
    return profile.issuer_url


def _node_principal_id(cluster: GetManagedClusterResult) -> str:
    identity = (cluster.identity_profile or {}).get(_KUBELET)
    if identity is None or identity.object_id is None:
        raise ValueError(f"AKS shows no identity of the nodes of {cluster.name}")
    return identity.object_id


def _api_server(found: ListManagedClusterUserCredentialsResult) -> ApiServer:
    if not found.kubeconfigs:
        raise ValueError("AKS hands out no credentials: the role to list them may be missing")
    return api_server(found.kubeconfigs[0].value)


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
