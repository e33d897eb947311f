"""An EKS cluster: the component that combines all others of this package, and one that the program does not create."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, cast

from pulumi import ComponentResource, Input, Output, ResourceOptions
from pulumi_kubernetes import Provider

from pulumi_holdfast.aws.control_plane.access import (
    ApiServer,
    Caller,
    ClusterAdmins,
    ClusterAdminsArgs,
    kubeconfig,
)
from pulumi_holdfast.aws.control_plane.addons import (
    NodeAddons,
    NodeAddonsArgs,
    ServiceAddons,
    ServiceAddonsArgs,
)
from pulumi_holdfast.aws.control_plane.control_plane import (
    ControlPlane,
    ControlPlaneArgs,
    ControlPlaneLogs,
    EndpointAccess,
)
from pulumi_holdfast.aws.control_plane.system_nodes import SystemNodeGroup, SystemNodeGroupArgs
from pulumi_holdfast.aws.policy_documents import Place

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulumi import Resource
    from pulumi_aws.eks import Cluster
    from pulumi_aws.eks.outputs import ClusterIdentity, ClusterIdentityOidc
    from pulumi_eks import Cluster as PackageCluster

    from pulumi_holdfast.aws.control_plane.addon_versions import AddonVersions
    from pulumi_holdfast.aws.control_plane.system_nodes import SystemNodesArgs

#: One of the two ranges from which EKS chooses by default; the stack's VPC must not overlap it.
SERVICE_CIDR: Final = "172.20.0.0/16"


@dataclass(frozen=True, kw_only=True)
class EksClusterArgs:
    """Arguments of `EksCluster`.

    `version` is the Kubernetes version (a minor version), `addons` are the add-on versions for it.
    `private_subnet_ids` are in two or more zones. `public_access_cidrs` can reach the API server over the
    internet; without any there is no public endpoint. `private_access_cidrs` can reach it from the VPC or a
    connected network. `admins` are ARNs of IAM principals other than the cluster's creator. `caller` gets the
    tokens. `secrets_key` is the ARN of an existing key for the cluster's secrets, None for a key of its own. `logs`
    are those of the control plane. If `protected`, neither the cluster nor the key of its secrets can be
    deleted.
    """

    cluster_name: str
    version: str
    account: str
    region: str
    partition: str
    private_subnet_ids: Input[Sequence[Input[str]]]
    system_nodes: SystemNodesArgs
    addons: AddonVersions
    protected: bool
    public_access_cidrs: Sequence[str] = ()
    private_access_cidrs: Sequence[str] = ()
    admins: Sequence[Input[str]] = ()
    service_cidr: str = SERVICE_CIDR
    logs: ControlPlaneLogs = field(default_factory=ControlPlaneLogs)
    secrets_key: Input[str] | None = None
    upgrade_policy: str = "EXTENDED"
    caller: Caller = field(default_factory=Caller)


class EksCluster(ComponentResource):
    """An EKS cluster with its system nodes, ready for operators (`holdfast:index:EksCluster`).

    Creates the control plane, its administrators, the add-ons that nodes need, the system nodes, the add-ons
    that need nodes, and the Kubernetes provider. The provider is created last and deleted first, so that the
    cluster's contents always find nodes, DNS and access. `pod_identity` is the Pod Identity agent: create
    associations of roles with service accounts after it.
    """

    cluster_name: str
    kubernetes: Provider
    kubeconfig: Output[str]
    workload_identity_issuer: Output[str]
    cluster_security_group_id: Output[str]
    pod_identity: Resource

    def __init__(self, name: str, args: EksClusterArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:EksCluster", name, None, opts)
        place = Place(account=args.account, region=args.region, partition=args.partition)
        control_plane = ControlPlane(
            f"{name}-control-plane",
            ControlPlaneArgs(
                cluster_name=args.cluster_name,
                version=args.version,
                place=place,
                subnet_ids=args.private_subnet_ids,
                service_cidr=args.service_cidr,
                endpoint=EndpointAccess(
                    public_cidrs=args.public_access_cidrs, private_cidrs=args.private_access_cidrs
                ),
                logs=args.logs,
                secrets_key=args.secrets_key,
                upgrade_policy=args.upgrade_policy,
                protected=args.protected,
            ),
            opts=ResourceOptions(parent=self),
        )
        cluster = control_plane.cluster
        admins = ClusterAdmins(
            f"{name}-admins",
            ClusterAdminsArgs(cluster_name=cluster.name, partition=args.partition, principals=args.admins),
            opts=ResourceOptions(parent=self),
        )
        node_addons = NodeAddons(
            f"{name}-addons",
            NodeAddonsArgs(cluster_name=cluster.name, versions=args.addons),
            opts=ResourceOptions(parent=self),
        )
        nodes = SystemNodeGroup(
            f"{name}-system",
            SystemNodeGroupArgs(
                nodes=args.system_nodes,
                cluster_name=args.cluster_name,
                cluster=cluster.name,
                version=args.version,
                subnet_ids=args.private_subnet_ids,
                place=place,
            ),
            opts=ResourceOptions(parent=self, depends_on=[node_addons]),
        )
        services = ServiceAddons(
            f"{name}-services",
            ServiceAddonsArgs(
                cluster_name=args.cluster_name,
                cluster=cluster.name,
                versions=args.addons,
                place=place,
                tags=args.system_nodes.tags,
            ),
            opts=ResourceOptions(parent=self, depends_on=[nodes]),
        )
        self.cluster_name = args.cluster_name
        self.pod_identity = node_addons.pod_identity
        self.kubeconfig = _kubeconfig(cluster, args)
        self.kubernetes = Provider(
            f"{name}-kubernetes",
            kubeconfig=self.kubeconfig,
            opts=ResourceOptions(parent=self, depends_on=[admins, services, *control_plane.private_access]),
        )
        self.workload_identity_issuer = cluster.identities.apply(_issuer)
        self.cluster_security_group_id = control_plane.security_group_id
        self.register_outputs(
            {"cluster_name": self.cluster_name, "workload_identity_issuer": self.workload_identity_issuer}
        )


def _kubeconfig(cluster: Cluster, args: EksClusterArgs) -> Output[str]:
    authority = cluster.certificate_authority.apply(lambda found: found.data)

    def render(known: Sequence[str]) -> str:
        endpoint, data = known
        server = ApiServer(
            cluster_name=args.cluster_name, region=args.region, endpoint=endpoint, certificate_authority=data
        )
        return kubeconfig(server, args.caller)

    return Output.all(cluster.endpoint, authority).apply(render)


def _issuer(identities: Sequence[ClusterIdentity]) -> str:
    # Optional in the SDK, but present on every cluster.
    return cast("str", cast("Sequence[ClusterIdentityOidc]", identities[0].oidcs)[0].issuer)


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
            lambda known: _kubeconfig_of_existing(args, *known)
        )
        self.kubernetes = Provider(
            f"{name}-kubernetes", kubeconfig=self.kubeconfig, opts=ResourceOptions(parent=self)
        )
        self.register_outputs(
            {"cluster_name": self.cluster_name, "workload_identity_issuer": self.workload_identity_issuer}
        )


def _kubeconfig_of_existing(args: ExistingEksClusterArgs, endpoint: str, authority: str) -> str:
    server = ApiServer(
        cluster_name=args.cluster_name, region=args.region, endpoint=endpoint, certificate_authority=authority
    )
    return kubeconfig(server, args.caller)


def cluster_of_pulumi_eks(
    name: str,
    cluster: PackageCluster,
    *,
    cluster_name: str,
    region: str,
    caller: Caller | None = None,
    opts: ResourceOptions | None = None,
) -> ExistingEksCluster:
    """Return a cluster of the package pulumi-eks with a Kubernetes provider of its own. Needs the extra `holdfast[pulumi-eks]`.

    `cluster_name` is the argument `name` of the cluster: components need it before the cluster exists. `caller` gets
    the tokens. The security group is the one that EKS made for the cluster and gives to managed node groups; the
    package's own group (`node_security_group_id`), which its self-managed groups have, admits no other nodes. What depends
    on the result is created after the cluster and its add-ons, and deleted before them.
    """
    inside = cluster.eks_cluster
    return ExistingEksCluster(
        name,
        ExistingEksClusterArgs(
            cluster_name=cluster_name,
            region=region,
            endpoint=inside.apply(lambda found: found.endpoint),
            certificate_authority=inside.apply(_certificate_authority),
            issuer=cluster.oidc_provider_url,
            security_group_id=inside.apply(_security_group),
            caller=caller or Caller(),
        ),
        opts=ResourceOptions.merge(ResourceOptions(depends_on=[cluster]), opts),
    )


def _certificate_authority(cluster: Cluster) -> Output[str]:
    return cluster.certificate_authority.apply(lambda authority: cast("str", authority.data))


def _security_group(cluster: Cluster) -> Output[str]:
    return cluster.vpc_config.apply(lambda network: cast("str", network.cluster_security_group_id))
