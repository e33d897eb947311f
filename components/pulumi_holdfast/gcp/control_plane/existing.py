"""A GKE cluster that the program does not create, as the other components use it."""

from __future__ import annotations

from dataclasses import dataclass

from pulumi import ComponentResource, Output, ResourceOptions
from pulumi_kubernetes import Provider

from pulumi_holdfast.gcp.control_plane.access import ApiServer, kubeconfig
from pulumi_holdfast.gcp.control_plane.system_nodes import NodeIdentity, NodeIdentityArgs


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
