"""The GKE cluster, put together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, cast

from pulumi import ComponentResource, Output, ResourceOptions
from pulumi_kubernetes import Provider

from holdfast.components.cluster.gke.access import ApiServer, DnsEndpoint, kubeconfig
from holdfast.components.cluster.gke.control_plane import (
    DatabaseKeyAccess,
    GkeControlPlane,
    GkeControlPlaneArgs,
)
from holdfast.components.cluster.gke.system_nodes import (
    NodeIdentity,
    NodeIdentityArgs,
    SystemPool,
    SystemPoolArgs,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulumi import Resource
    from pulumi_gcp.container import Cluster

    from holdfast.components.cluster.gke.access import ControlPlaneAccess
    from holdfast.components.cluster.gke.control_plane import DatabaseKey, Maintenance
    from holdfast.components.cluster.gke.system_nodes import SystemNodesArgs
    from holdfast.components.network.gcp import VpcNativeNetwork

Channel: TypeAlias = Literal["RAPID", "REGULAR", "STABLE", "EXTENDED"]


@dataclass(frozen=True, kw_only=True)
class GkeClusterArgs:
    """The cluster, where it is, who reaches it and when it is upgraded.

    `cluster_name` has up to 40 characters. `location` is a region (`europe-west4`), or a zone for a control plane in
    that zone alone; `zones` are those of the system nodes, the location among them where it is a zone. `version` is the
    least Kubernetes version, as GKE spells it (`1.36`): the channel goes on from there. `protected`: the cluster cannot
    be deleted.
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


class GkeCluster(ComponentResource):
    """A cluster with its operators' nodes, ready for operators and for pools.

    Creates the nodes' service account, the grant of the database's key, the control plane, the system pool, and the
    Kubernetes provider. The provider comes last and goes first: what is in the cluster finds nodes, and is gone before
    them. `system_pool` is what every other pool comes after. From the project's first cluster on there is the
    `workload_pool`: who grants something to a workload's identity comes after the cluster.
    """

    cluster_name: str
    kubernetes: Provider
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
            else [DatabaseKeyAccess(f"{name}-key", args.database_key, opts=ResourceOptions(parent=self))]
        )
        control_plane = GkeControlPlane(
            f"{name}-control-plane",
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
            ),
            opts=ResourceOptions(parent=self, depends_on=access),
        )
        cluster = control_plane.cluster
        system = SystemPool(
            f"{name}-system",
            SystemPoolArgs(
                nodes=args.system_nodes,
                project=args.project,
                location=args.location,
                zones=args.zones,
                cluster=cluster.name,
                service_account=nodes.email,
            ),
            opts=ResourceOptions(parent=self),
        )
        self.cluster_name = args.cluster_name
        self.system_pool = system.pool
        self.node_service_account_email = nodes.email
        self.workload_pool = f"{args.project}.svc.id.goog"
        self.workload_identity_issuer = cluster.name.apply(
            lambda cluster_name: (
                "https://container.googleapis.com/v1/"
                f"projects/{args.project}/locations/{args.location}/clusters/{cluster_name}"
            )
        )
        self.kubernetes = Provider(
            f"{name}-kubernetes",
            kubeconfig=_kubeconfig(cluster, args),
            # By the address alone another way in would look like another cluster, and everything in it be replaced.
            # This name is the cluster's own for as long as it lives, also where nobody is let in by it.
            cluster_identifier=_dns_name(cluster),
            opts=ResourceOptions(parent=self, depends_on=[system]),
        )
        self.register_outputs(
            {
                "cluster_name": self.cluster_name,
                "workload_identity_issuer": self.workload_identity_issuer,
            }
        )


def _kubeconfig(cluster: Cluster, args: GkeClusterArgs) -> Output[str]:
    if isinstance(args.access, DnsEndpoint):
        return _dns_name(cluster).apply(lambda known: _render(args.cluster_name, known, None))
    authority = cluster.master_auth.apply(lambda found: cast("str", found.cluster_ca_certificate))
    return Output.all(cluster.endpoint, authority).apply(
        lambda known: _render(args.cluster_name, *cast("tuple[str, str]", tuple(known)))
    )


def _dns_name(cluster: Cluster) -> Output[str]:
    # Optional in the SDK throughout, and there on every cluster.
    return cluster.control_plane_endpoints_config.apply(
        lambda found: cast("str", found.dns_endpoint_config.endpoint if found.dns_endpoint_config else None)
    )


def _render(cluster_name: str, host: str, authority: str | None) -> str:
    return kubeconfig(ApiServer(cluster_name=cluster_name, host=host, certificate_authority=authority))
