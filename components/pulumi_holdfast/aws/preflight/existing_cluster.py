"""Queries the existing EKS cluster that a stack uses, and checks what the stack needs of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from pulumi_aws.ec2 import get_subnet
from pulumi_aws.eks import get_addon, get_cluster, get_node_group, get_node_groups

from pulumi_holdfast.aws.config.sections import AwsExistingNetwork
from pulumi_holdfast.config.errors import format_value
from pulumi_holdfast.config.fields import known, known_items
from pulumi_holdfast.config.loader import PLATFORM
from pulumi_holdfast.config.preflight import (
    EXISTING,
    NodeGroup,
    missing_cluster,
    system_node_problems,
    unmet,
    version_problems,
)
from pulumi_holdfast.ladder.errors import Problem
from pulumi_holdfast.ladder.labels import SYSTEM, SYSTEM_VALUE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pulumi

    from pulumi_holdfast.aws.config.sections import AwsPlatform
    from pulumi_holdfast.config.fields import TextsOrOutput
    from pulumi_holdfast.config.preflight import CloudQueries


@dataclass(frozen=True, kw_only=True)
class ExistingEks:
    """A cluster as EKS has it. The results of optional queries that failed are None.

    `authentication_mode` is EKS's own value. `auto_mode`: EKS runs a Karpenter of its own in it. `public_subnets` are
    those of the stack's subnets that give their machines public addresses.
    """

    name: str
    exists: bool = True
    version: str = ""
    endpoint: str = ""
    certificate_authority: str = ""
    issuer: str = ""
    vpc_id: str = ""
    subnet_ids: tuple[str, ...] = ()
    security_group_id: str = ""
    authentication_mode: str = ""
    auto_mode: bool = False
    has_pod_identity: bool | None = None
    groups: tuple[NodeGroup, ...] | None = None
    public_subnets: tuple[str, ...] | None = None


#: What EKS says of something that does not exist.
_UNKNOWN: Final = ("ResourceNotFoundException", "couldn't find resource", "empty result")

_POD_IDENTITY: Final = "eks-pod-identity-agent"


def existing_eks(platform: AwsPlatform, queries: CloudQueries) -> ExistingEks | None:
    """The existing cluster of a stack; None for a stack that creates one. Raises ConfigError if it cannot be read."""
    name = platform.existing_cluster
    if name is None:
        return None
    found = queries.required("eks:DescribeCluster", lambda: _cluster(name, queries.options))
    if not found.exists:
        return found
    subnets = subnets_of(platform, found)
    return replace(
        found,
        has_pod_identity=queries.optional(
            "eks:DescribeAddon", lambda: _has_pod_identity(name, queries.options)
        ),
        groups=queries.optional(
            "eks:ListNodegroups and eks:DescribeNodegroup", lambda: _groups(name, queries.options)
        ),
        public_subnets=queries.optional(
            "ec2:DescribeSubnets", lambda: _public(known_items(subnets), queries.options)
        ),
    )


def subnets_of(platform: AwsPlatform, cluster: ExistingEks) -> TextsOrOutput:
    """The subnets of a stack's nodes: those of its configuration, otherwise the cluster's."""
    network = platform.network
    return network.private_subnet_ids if isinstance(network, AwsExistingNetwork) else cluster.subnet_ids


def _cluster(name: str, options: pulumi.InvokeOptions) -> ExistingEks:
    try:
        found = get_cluster(name=name, opts=options)
    except Exception as error:
        if any(text in str(error) for text in _UNKNOWN):
            return ExistingEks(name=name, exists=False)
        raise
    network = found.vpc_config
    return ExistingEks(
        name=name,
        version=found.version,
        endpoint=found.endpoint,
        certificate_authority=found.certificate_authorities[0].data,
        issuer=found.identities[0].oidcs[0].issuer,
        vpc_id=network.vpc_id,
        subnet_ids=tuple(sorted(network.subnet_ids)),
        security_group_id=network.cluster_security_group_id,
        authentication_mode=found.access_configs[0].authentication_mode if found.access_configs else "",
        auto_mode=any(each.enabled for each in found.compute_configs or ()),
    )


def _has_pod_identity(name: str, options: pulumi.InvokeOptions) -> bool:
    try:
        get_addon(addon_name=_POD_IDENTITY, cluster_name=name, opts=options)
    except Exception as error:
        if any(text in str(error) for text in _UNKNOWN):
            return False
        raise
    return True


def _groups(name: str, options: pulumi.InvokeOptions) -> tuple[NodeGroup, ...]:
    found = (
        get_node_group(cluster_name=name, node_group_name=group, opts=options)
        for group in sorted(get_node_groups(cluster_name=name, opts=options).names)
    )
    return tuple(
        NodeGroup(
            name=group.node_group_name,
            labels=group.labels or {},
            taints=[taint.key for taint in group.taints or () if taint.effect != "PREFER_NO_SCHEDULE"],
            count=group.scaling_configs[0].desired_size if group.scaling_configs else None,
        )
        for group in found
    )


def _public(subnets: Sequence[str], options: pulumi.InvokeOptions) -> tuple[str, ...]:
    return tuple(id_ for id_ in subnets if get_subnet(id=id_, opts=options).map_public_ip_on_launch)


#: The two replicas of Karpenter need two nodes.
_FEWEST_NODES: Final = 2


def existing_eks_problems(platform: AwsPlatform, cluster: ExistingEks) -> Iterator[Problem]:
    """The requirements of the stack that the cluster does not meet."""
    name, region = cluster.name, platform.region
    if not cluster.exists:
        yield missing_cluster(name, region, f"aws eks list-clusters --region {region}")
        return
    yield from version_problems(name, cluster.version)
    if cluster.auto_mode:
        yield unmet(
            f"{format_value(name)}, a cluster in Auto Mode",
            "a cluster without Auto Mode: EKS runs a Karpenter of its own in it, and two of them fight over nodes",
            "Write another cluster, or disable Auto Mode.",
        )
    if "API" not in cluster.authentication_mode.split("_AND_"):
        yield unmet(
            f"{format_value(name)}, a cluster with the authentication mode {cluster.authentication_mode or 'CONFIG_MAP'}",
            "API or API_AND_CONFIG_MAP: Karpenter's nodes join with an access entry",
            f"Run `aws eks update-cluster-config --name {name} --region {region} "
            "--access-config authenticationMode=API_AND_CONFIG_MAP`.",
        )
    if cluster.has_pod_identity is False:
        yield unmet(
            f"{format_value(name)}, a cluster without the add-on {_POD_IDENTITY}",
            "a cluster with it: Karpenter and jobs get their roles from it",
            f"Run `aws eks create-addon --cluster-name {name} --region {region} --addon-name {_POD_IDENTITY}`.",
        )
    if cluster.groups is not None:
        yield from system_node_problems(
            name,
            cluster.groups,
            fewest=_FEWEST_NODES,
            fix=f"Run `aws eks update-nodegroup-config --cluster-name {name} --region {region} --nodegroup-name GROUP "
            f"--labels addOrUpdateLabels={{{SYSTEM}={SYSTEM_VALUE}}}` for a group of on-demand nodes.",
        )
    yield from _network_problems(platform, cluster)


def _network_problems(platform: AwsPlatform, cluster: ExistingEks) -> Iterator[Problem]:
    network = platform.network
    vpc = known(network.vpc_id) if isinstance(network, AwsExistingNetwork) else None
    if vpc is not None and vpc != cluster.vpc_id:
        yield Problem(
            field=f"{PLATFORM}.network.vpcId",
            value=f"{format_value(vpc)}, but {cluster.name} is in {cluster.vpc_id}",
            allowed="the VPC of the existing cluster",
            fix=f"Write `vpcId: {cluster.vpc_id}`, or leave out network.",
        )
        return
    public = cluster.public_subnets or ()
    if public:
        chosen = isinstance(network, AwsExistingNetwork)
        yield Problem(
            field=f"{PLATFORM}.network.privateSubnetIds" if chosen else EXISTING,
            value=f"{', '.join(public)}, which give{'s' if len(public) == 1 else ''} machines public addresses",
            allowed="subnets without public addresses, in two zones or more",
            fix=f"Write `network: {{vpcId: {cluster.vpc_id}, privateSubnetIds: […]}}` with private subnets of the VPC.",
        )
