"""A GKE cluster: the component that combines all others of this package, and one that the program does not create."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, cast

from pulumi import UNKNOWN, ComponentResource, Output, ResourceOptions
from pulumi_kubernetes import Provider

from pulumi_holdfast.gcp.control_plane.access import ApiServer, DnsEndpoint, kubeconfig
from pulumi_holdfast.gcp.control_plane.control_plane import (
    GkeControlPlaneArgs,
    database_key_grant,
    gke_control_plane,
)
from pulumi_holdfast.gcp.control_plane.system_nodes import (
    NodeIdentity,
    NodeIdentityArgs,
    SystemPoolArgs,
    system_pool,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulumi import Resource
    from pulumi_gcp.container import Cluster
    from pulumi_gcp.container.outputs import ClusterControlPlaneEndpointsConfig

    from pulumi_holdfast.gcp.control_plane.access import ControlPlaneAccess
    from pulumi_holdfast.gcp.control_plane.control_plane import DatabaseKey, Maintenance, StorageDriver
    from pulumi_holdfast.gcp.control_plane.system_nodes import SystemNodesArgs
    from pulumi_holdfast.gcp.network import VpcNativeNetwork

Channel: TypeAlias = Literal["RAPID", "REGULAR", "STABLE", "EXTENDED"]


@dataclass(frozen=True, kw_only=True)
class GkeClusterArgs:
    """Arguments of `GkeCluster`.

    `cluster_name` has up to 40 characters. `location` is a region (`europe-west4`), or a zone for a zonal
    control plane. `zones` are the zones of the system nodes, including the location if that is a zone.
    `version` is the minimum Kubernetes version (a minor version); the channel upgrades from there. If `protected`, the
    cluster cannot be deleted. With `managed_prometheus` Google's managed service collects from the pods that monitors name; without,
    GKE decides.
    `drivers` are those for volumes beside buckets and disks.
    """

    cluster_name: str
    project: str
    location: str
    zones: Sequence[str]
    network: VpcNativeNetwork
    version: str
    channel: Channel
    maintenance: Maintenance
    access: ControlPlaneAccess
    system_nodes: SystemNodesArgs
    protected: bool
    database_key: DatabaseKey | None = None
    managed_prometheus: bool = False
    drivers: Sequence[StorageDriver] = ()


class GkeCluster(ComponentResource):
    """A GKE cluster with its system nodes, ready for operators and pools (`holdfast:index:GkeCluster`).

    Creates the nodes' service account, the grant on the database key, the control plane, the system pool and
    the Kubernetes provider. The provider is created last and deleted first, so that the cluster's contents
    always find nodes. Create all other pools after `system_pool`. The `workload_pool` exists once the project
    has a cluster: create grants to workload identities after the cluster.
    """

    cluster_name: str
    kubernetes: Provider
    kubeconfig: Output[str]
    network_id: Output[str]
    workload_identity_issuer: Output[str]
    workload_pool: str
    node_service_account_email: Output[str]
    system_pool: Resource

    def __init__(self, name: str, args: GkeClusterArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:GkeCluster", name, None, opts)
        nodes = NodeIdentity(
            f"{name}-node",
            NodeIdentityArgs(cluster_name=args.cluster_name, project=args.project),
            opts=ResourceOptions(parent=self),
        )
        access = (
            []
            if args.database_key is None
            else [database_key_grant(f"{name}-key-grant", args.database_key, parent=self)]
        )
        cluster = gke_control_plane(
            f"{name}-control-plane-gke",
            GkeControlPlaneArgs(
                cluster_name=args.cluster_name,
                project=args.project,
                location=args.location,
                zones=args.zones,
                network=args.network,
                version=args.version,
                channel=args.channel,
                maintenance=args.maintenance,
                access=args.access,
                node_service_account=nodes.email,
                database_key=None if args.database_key is None else args.database_key.key,
                protected=args.protected,
                managed_prometheus=args.managed_prometheus,
                drivers=args.drivers,
            ),
            parent=self,
            depends_on=access,
        )
        self.system_pool = system_pool(
            f"{name}-system-nodes",
            SystemPoolArgs(
                nodes=args.system_nodes,
                project=args.project,
                location=args.location,
                zones=args.zones,
                cluster=cluster.name,
                service_account=nodes.email,
            ),
            parent=self,
        )
        self.cluster_name = args.cluster_name
        self.network_id = Output.from_input(args.network.network_id)
        self.node_service_account_email = nodes.email
        self.workload_pool = f"{args.project}.svc.id.goog"
        self.workload_identity_issuer = cluster.name.apply(
            lambda cluster_name: (
                "https://container.googleapis.com/v1/"
                f"projects/{args.project}/locations/{args.location}/clusters/{cluster_name}"
            )
        )
        self.kubeconfig = _kubeconfig(cluster, args)
        self.kubernetes = Provider(
            f"{name}-kubernetes",
            kubeconfig=self.kubeconfig,
            # Identified by its address, a cluster with another access would look like a different cluster,
            # and everything in it would be replaced. The DNS name is constant, also if no user may connect by
            # it.
            cluster_identifier=_dns_name(cluster),
            opts=ResourceOptions(parent=self, depends_on=[self.system_pool]),
        )
        self.register_outputs(
            {"cluster_name": self.cluster_name, "workload_identity_issuer": self.workload_identity_issuer}
        )


def _kubeconfig(cluster: Cluster, args: GkeClusterArgs) -> Output[str]:
    if isinstance(args.access, DnsEndpoint):
        return _dns_name(cluster).apply(lambda known: _render(args.cluster_name, known, None))
    authority = cluster.master_auth.apply(lambda found: cast("str", found.cluster_ca_certificate))
    return Output.all(cluster.endpoint, authority).apply(
        lambda known: _render(args.cluster_name, *cast("tuple[str, str]", tuple(known)))
    )


def _dns_name(cluster: Cluster) -> Output[str]:
    def name(found: ClusterControlPlaneEndpointsConfig) -> str | Output[str]:
        endpoint = found.dns_endpoint_config.endpoint if found.dns_endpoint_config else None
        # Every cluster has one. A preview may lack it: the name is then unknown, and not the text "None".
        return endpoint or Output.from_input(cast("str", UNKNOWN))

    return cluster.control_plane_endpoints_config.apply(name)


def _render(cluster_name: str, host: str, authority: str | None) -> str:
    return kubeconfig(ApiServer(cluster_name=cluster_name, host=host, certificate_authority=authority))


@dataclass(frozen=True, kw_only=True)
class ExistingGkeClusterArgs:
    """Arguments of `ExistingGkeCluster`: properties of the cluster, as GKE has them.

    `host` is the address or the DNS name of the API server, `certificate_authority` (in base64) None for the DNS name.
    `nodes_of` is a name, unique in the project, from which the ID of the pools' service account is made.
    """

    cluster_name: str
    project: str
    location: str
    host: str
    certificate_authority: str | None
    nodes_of: str


class ExistingGkeCluster(ComponentResource):
    """A cluster of another owner (`holdfast:index:ExistingGkeCluster`).

    Creates the service account of the pools' nodes and the Kubernetes provider. The cluster has a workload pool, and nodes
    without GPUs with the label `holdfast.dev/system=true`.
    """

    cluster_name: str
    kubernetes: Provider
    kubeconfig: Output[str]
    workload_identity_issuer: Output[str]
    node_service_account_email: Output[str]

    def __init__(self, name: str, args: ExistingGkeClusterArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:ExistingGkeCluster", name, None, opts)
        nodes = NodeIdentity(
            f"{name}-node",
            NodeIdentityArgs(cluster_name=args.nodes_of, project=args.project),
            opts=ResourceOptions(parent=self),
        )
        self.cluster_name = args.cluster_name
        self.node_service_account_email = nodes.email
        self.workload_identity_issuer = Output.from_input(
            "https://container.googleapis.com/v1/"
            f"projects/{args.project}/locations/{args.location}/clusters/{args.cluster_name}"
        )
        server = ApiServer(
            cluster_name=args.cluster_name, host=args.host, certificate_authority=args.certificate_authority
        )
        self.kubeconfig = Output.from_input(kubeconfig(server))
        self.kubernetes = Provider(
            f"{name}-kubernetes",
            kubeconfig=self.kubeconfig,
            # Identified by its address, a cluster with another access would look like a different cluster.
            cluster_identifier=f"{args.project}/{args.location}/{args.cluster_name}",
            opts=ResourceOptions(parent=self),
        )
        self.register_outputs(
            {"cluster_name": self.cluster_name, "workload_identity_issuer": self.workload_identity_issuer}
        )
