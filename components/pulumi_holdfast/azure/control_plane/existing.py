"""An AKS cluster that the program does not create, as the other components use it."""

from __future__ import annotations

from dataclasses import dataclass

from pulumi import ComponentResource, Input, Output, ResourceOptions
from pulumi_kubernetes import Provider

from pulumi_holdfast.azure.control_plane.access import ApiServer, Login, kubeconfig


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
