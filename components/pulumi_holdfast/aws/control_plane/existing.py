"""An EKS cluster that the program does not create, as the other components use it."""

from __future__ import annotations

from dataclasses import dataclass, field

from pulumi import ComponentResource, Input, Output, ResourceOptions
from pulumi_kubernetes import Provider

from pulumi_holdfast.aws.control_plane.access import ApiServer, Caller, kubeconfig


@dataclass(frozen=True, kw_only=True)
class ExistingEksClusterArgs:
    """Arguments of `ExistingEksCluster`: properties of the cluster, as EKS has them.

    `certificate_authority` is in base64. `security_group_id` is the group that EKS made for the cluster. `caller` gets
    the tokens.
    """

    cluster_name: str
    region: str
    endpoint: Input[str]
    certificate_authority: Input[str]
    issuer: Input[str]
    security_group_id: Input[str]
    caller: Caller = field(default_factory=Caller)


class ExistingEksCluster(ComponentResource):
    """A cluster of another owner (`holdfast:index:ExistingEksCluster`).

    Creates the Kubernetes provider and nothing in AWS. The cluster has the Pod Identity agent, the authentication mode
    `API` or `API_AND_CONFIG_MAP`, and nodes with the label `holdfast.dev/system=true`.
    """

    cluster_name: str
    kubernetes: Provider
    kubeconfig: Output[str]
    workload_identity_issuer: Output[str]
    cluster_security_group_id: Output[str]

    def __init__(self, name: str, args: ExistingEksClusterArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:ExistingEksCluster", name, None, opts)
        self.cluster_name = args.cluster_name
        self.workload_identity_issuer = Output.from_input(args.issuer)
        self.cluster_security_group_id = Output.from_input(args.security_group_id)
        self.kubeconfig = Output.all(args.endpoint, args.certificate_authority).apply(
            lambda known: _kubeconfig(args, *known)
        )
        self.kubernetes = Provider(
            f"{name}-kubernetes", kubeconfig=self.kubeconfig, opts=ResourceOptions(parent=self)
        )
        self.register_outputs(
            {"cluster_name": self.cluster_name, "workload_identity_issuer": self.workload_identity_issuer}
        )


def _kubeconfig(args: ExistingEksClusterArgs, endpoint: str, authority: str) -> str:
    server = ApiServer(
        cluster_name=args.cluster_name, region=args.region, endpoint=endpoint, certificate_authority=authority
    )
    return kubeconfig(server, args.caller)
