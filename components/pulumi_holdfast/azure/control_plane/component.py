"""An AKS cluster: the component that combines all others of this package, and one that the program does not create."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from pulumi import ComponentResource, Input, InvokeOutputOptions, Output, ResourceOptions
from pulumi_azure_native.containerservice import (
    get_managed_cluster_output,
    list_managed_cluster_user_credentials_output,
)
from pulumi_azure_native.monitor import DiagnosticSetting
from pulumi_kubernetes import Provider

from pulumi_holdfast.azure.config.sections import PODS_CIDR, SERVICES_CIDR
from pulumi_holdfast.azure.control_plane.access import ApiServer, Login, api_server, kubeconfig
from pulumi_holdfast.azure.control_plane.control_plane import (
    AksControlPlaneArgs,
    MaintenanceSchedule,
    MaintenanceScheduleArgs,
    aks_control_plane,
)
from pulumi_holdfast.azure.managed_prometheus import AzurePrometheus, AzurePrometheusArgs
from pulumi_holdfast.azure.role_assignments import (
    ACR_PULL,
    Administrators,
    AdministratorsArgs,
    Assignment,
    AssignmentArgs,
    ClusterIdentity,
    ClusterIdentityArgs,
    deployer_assignment,
)
from pulumi_holdfast.kubernetes.kubernetes_object import tied_to

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pulumi import Resource
    from pulumi_azure_native.containerservice import (
        GetManagedClusterResult,
        ListManagedClusterUserCredentialsResult,
    )

    from pulumi_holdfast.azure.control_plane.access import ApiServerAccess
    from pulumi_holdfast.azure.control_plane.control_plane import (
        Maintenance,
        Scaling,
        SystemNodesArgs,
        Upgrades,
    )
    from pulumi_holdfast.azure.network import NodeSubnet


#: The identity with which nodes pull images, in AKS's identity profile.
_KUBELET: Final = "kubeletidentity"


#: AKS's categories of the control plane's logs. The one of audited requests without reads is far smaller than the whole.
_LOGS: Final = ("kube-apiserver", "kube-audit-admin", "kube-controller-manager", "kube-scheduler", "guard")
#: The category of what creates nodes: AKS's Karpenter has no pods in the cluster, and so no other logs.
_SCALING_LOG: Final[Mapping[Scaling, str]] = {"nap": "karpenter-events", "fixed": "cluster-autoscaler"}


@dataclass(frozen=True, kw_only=True)
class ClusterProperties:
    """Properties of a cluster, as AKS returns them.

    `uid` identifies this cluster and no later one of the same name. `issuer` is the issuer URL of its service
    account tokens, `node_principal_id` the object ID of the identity with which nodes pull images.
    """

    uid: Output[str]
    issuer: Output[str]
    node_principal_id: Output[str]
    api_server: Output[ApiServer]


def look_up_cluster(
    resource_group: Input[str], name: Input[str], *, name_to_use: Literal["public"] | None, parent: Resource
) -> ClusterProperties:
    """Look a cluster up by its name, with its credentials.

    It is a lookup because the provider treats all outputs of a changing resource as unknown until the change
    is done: each preview of a change would show the replacement of everything in the cluster. The certificate
    authority is in no output at all. `name_to_use` selects the API server's name.
    """
    options = InvokeOutputOptions(parent=parent)
    found = get_managed_cluster_output(resource_group_name=resource_group, resource_name=name, opts=options)
    credentials = list_managed_cluster_user_credentials_output(
        resource_group_name=resource_group, resource_name=name, server_fqdn=name_to_use, opts=options
    )
    return ClusterProperties(
        uid=found.apply(lambda cluster: cluster.resource_uid),
        issuer=found.apply(_issuer),
        node_principal_id=found.apply(_node_principal_id),
        api_server=credentials.apply(_api_server),
    )


def _issuer(cluster: GetManagedClusterResult) -> str:
    profile = cluster.oidc_issuer_profile
    if profile is None:
        raise ValueError(f"AKS returned no OpenID Connect issuer for {cluster.name}")
    return profile.issuer_url


def _node_principal_id(cluster: GetManagedClusterResult) -> str:
    identity = (cluster.identity_profile or {}).get(_KUBELET)
    if identity is None or identity.object_id is None:
        raise ValueError(f"AKS returned no node identity for {cluster.name}")
    return identity.object_id


def _api_server(found: ListManagedClusterUserCredentialsResult) -> ApiServer:
    if not found.kubeconfigs:
        raise ValueError("AKS returned no credentials: check that your role may list them")
    return api_server(found.kubeconfigs[0].value)


@dataclass(frozen=True, kw_only=True)
class AksClusterArgs:
    """Arguments of `AksCluster`.

    `cluster_name` has up to 63 characters. `resource_group` is the group of the cluster,
    `node_resource_group` (up to 80 characters) the group that AKS creates for its machines. `version` is the
    Kubernetes version (a minor version). `pods_cidr` has a /24 for each node; neither it nor `services_cidr` may
    overlap the network or a network connected to it. `deployer` is the object ID of the principal that runs
    `pulumi`; `admins` are the object IDs of further administrators. `login` is kubelogin's login method.
    `disk_encryption_set_id` is a disk encryption set for the nodes' disks in the same region,
    `reservation_group_ids` are the capacity reservation groups of its pools. The workspace `log_workspace_id` gets the logs of
    the control plane. The nodes may pull images from the container registry `registry_id`. With `managed_prometheus` a workspace of
    Azure Monitor gets the metrics of the cluster. If `protected`, the cluster cannot be deleted.
    `mounts_blobs`: it has the driver of volumes in blob containers.
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
    admins: Sequence[Input[str]]
    login: Login
    maintenance: Maintenance
    upgrades: Upgrades
    system_nodes: SystemNodesArgs
    protected: bool
    pods_cidr: str = PODS_CIDR
    services_cidr: str = SERVICES_CIDR
    disk_encryption_set_id: Input[str] | None = None
    reservation_group_ids: Sequence[str] = ()
    log_workspace_id: str | None = None
    registry_id: str | None = None
    managed_prometheus: bool = False
    mounts_blobs: bool = False


class AksCluster(ComponentResource):
    """An AKS cluster with its system nodes, ready for operators and pools (`holdfast:index:AksCluster`).

    Creates the deployer's role assignment, the cluster's identity with its role assignments, the control
    plane with the system pool, the maintenance schedule, the administrators' role assignments and the
    Kubernetes provider. The deployer's role is created before the control plane and deleted after it: Azure
    needs minutes to apply a new assignment. The provider is created last and deleted first, so that the
    cluster's contents always find nodes and access.

    `cluster_reference` is the cluster's name as an output, `subnet_id` the nodes' subnet, `node_principal_id`
    the object ID of the identity with which nodes pull images.
    """

    cluster_name: str
    kubernetes: Provider
    kubeconfig: Output[str]
    workload_identity_issuer: Output[str]
    cluster: Resource
    cluster_reference: Output[str]
    resource_group: Output[str]
    subnet_id: Output[str]
    node_principal_id: Output[str]

    def __init__(self, name: str, args: AksClusterArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:AksCluster", name, None, opts)
        deployer = deployer_assignment(
            f"{name}-deployer-role",
            subscription_id=args.subscription_id,
            resource_group=args.resource_group,
            principal_id=args.deployer,
            parent=self,
        )
        identity = ClusterIdentity(
            f"{name}-identity",
            ClusterIdentityArgs(
                cluster_name=args.cluster_name,
                location=args.location,
                subscription_id=args.subscription_id,
                resource_group=args.resource_group,
                joined_id=args.network.joined_id,
                disk_encryption_set_id=args.disk_encryption_set_id,
                reservation_group_ids=args.reservation_group_ids,
            ),
            opts=ResourceOptions(parent=self),
        )
        cluster = aks_control_plane(
            f"{name}-control-plane-aks",
            _control_plane(args, identity.identity_id),
            parent=self,
            depends_on=[deployer],
        )
        MaintenanceSchedule(
            f"{name}-maintenance",
            MaintenanceScheduleArgs(
                maintenance=args.maintenance, resource_group=args.resource_group, cluster=cluster.name
            ),
            opts=ResourceOptions(parent=self),
        )
        if args.log_workspace_id is not None:
            DiagnosticSetting(
                f"{name}-logs",
                name=args.cluster_name,
                resource_uri=cluster.id,
                workspace_id=args.log_workspace_id,
                # Tables with columns instead of one for all services.
                log_analytics_destination_type="Dedicated",
                logs=[{"category": each, "enabled": True} for each in (*_LOGS, _SCALING_LOG[args.scaling])],
                opts=ResourceOptions(parent=self),
            )
        if args.managed_prometheus:
            prometheus = AzurePrometheusArgs(
                cluster_name=args.cluster_name,
                location=args.location,
                resource_group=args.resource_group,
                cluster_id=cluster.id,
            )
            AzurePrometheus(f"{name}-prometheus", prometheus, opts=ResourceOptions(parent=self))
        administrators = Administrators(
            f"{name}-administrators",
            AdministratorsArgs(
                subscription_id=args.subscription_id, cluster_id=cluster.id, principal_ids=args.admins
            ),
            opts=ResourceOptions(parent=self),
        )
        seen = look_up_cluster(
            args.resource_group, cluster.name, name_to_use=args.access.name_to_use, parent=self
        )
        self.cluster_name = args.cluster_name
        self.cluster = cluster
        self.cluster_reference = cluster.name
        self.resource_group = Output.from_input(args.resource_group)
        self.subnet_id = Output.from_input(args.network.subnet_id)
        self.workload_identity_issuer = tied_to(seen.issuer, [cluster])
        self.node_principal_id = tied_to(seen.node_principal_id, [cluster])
        # Before everything in the cluster: the first operator is pulled from there.
        before_contents: list[Resource] = [cluster, administrators]
        if args.registry_id is not None:
            images = AssignmentArgs(
                # The registry may be in another subscription, whose role Azure then shows.
                subscription_id=args.registry_id.split("/")[2],
                scope=args.registry_id,
                role=ACR_PULL,
                principal_id=self.node_principal_id,
                principal_type="ServicePrincipal",
            )
            before_contents.append(Assignment(f"{name}-images", images, opts=ResourceOptions(parent=self)))
        self.kubeconfig = seen.api_server.apply(lambda server: _kubeconfig(args, server))
        self.kubernetes = Provider(
            f"{name}-kubernetes",
            kubeconfig=self.kubeconfig,
            # Identified by its address, a cluster with another access would look like a different cluster,
            # and everything in it would be replaced.
            cluster_identifier=seen.uid,
            opts=ResourceOptions(parent=self, depends_on=before_contents),
        )
        self.register_outputs(
            {"cluster_name": self.cluster_name, "workload_identity_issuer": self.workload_identity_issuer}
        )


def _kubeconfig(args: AksClusterArgs, server: ApiServer) -> str:
    return kubeconfig(server, cluster_name=args.cluster_name, tenant_id=args.tenant_id, login=args.login)


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
        managed_prometheus=args.managed_prometheus,
        mounts_blobs=args.mounts_blobs,
    )


@dataclass(frozen=True, kw_only=True)
class ExistingAksClusterArgs:
    """Arguments of `ExistingAksCluster`: properties of the cluster, as AKS has them.

    `uid` identifies this cluster and no later one of the same name. `subnet_id` is the subnet of the pools' nodes. `login` is
    kubelogin's login method.
    """

    cluster_name: str
    resource_group: str
    tenant_id: str
    uid: str
    issuer: str
    api_server: ApiServer
    subnet_id: Input[str]
    login: Login


class ExistingAksCluster(ComponentResource):
    """A cluster of another owner (`holdfast:index:ExistingAksCluster`).

    Creates the Kubernetes provider and nothing in Azure. The cluster has an OpenID Connect issuer, workload identity, Entra ID
    authentication, and nodes with the label `holdfast.dev/system=true`; its owner makes the principal that runs `pulumi` an
    administrator.
    """

    cluster_name: str
    kubernetes: Provider
    kubeconfig: Output[str]
    workload_identity_issuer: Output[str]
    cluster_reference: Output[str]
    resource_group: Output[str]
    subnet_id: Output[str]

    def __init__(self, name: str, args: ExistingAksClusterArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:ExistingAksCluster", name, None, opts)
        self.cluster_name = args.cluster_name
        self.cluster_reference = Output.from_input(args.cluster_name)
        self.resource_group = Output.from_input(args.resource_group)
        self.subnet_id = Output.from_input(args.subnet_id)
        self.workload_identity_issuer = Output.from_input(args.issuer)
        self.kubeconfig = Output.from_input(
            kubeconfig(
                args.api_server, cluster_name=args.cluster_name, tenant_id=args.tenant_id, login=args.login
            )
        )
        self.kubernetes = Provider(
            f"{name}-kubernetes",
            kubeconfig=self.kubeconfig,
            cluster_identifier=args.uid,
            opts=ResourceOptions(parent=self),
        )
        self.register_outputs(
            {"cluster_name": self.cluster_name, "workload_identity_issuer": self.workload_identity_issuer}
        )
