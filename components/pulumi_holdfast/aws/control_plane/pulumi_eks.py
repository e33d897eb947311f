"""A cluster of the package pulumi-eks, as the other components use it. Needs the extra `holdfast[pulumi-eks]`."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from pulumi import Output, ResourceOptions

from pulumi_holdfast.aws.control_plane.access import Caller
from pulumi_holdfast.aws.control_plane.existing import ExistingEksCluster, ExistingEksClusterArgs

if TYPE_CHECKING:
    from pulumi_aws.eks import Cluster as AwsCluster
    from pulumi_eks import Cluster


def cluster_of_pulumi_eks(
    name: str,
    cluster: Cluster,
    *,
    cluster_name: str,
    region: str,
    caller: Caller | None = None,
    opts: ResourceOptions | None = None,
) -> ExistingEksCluster:
    """Return the cluster with a Kubernetes provider of its own, as `EksCluster` has one.

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


def _certificate_authority(cluster: AwsCluster) -> Output[str]:
    return cluster.certificate_authority.apply(lambda authority: cast("str", authority.data))


def _security_group(cluster: AwsCluster) -> Output[str]:
    return cluster.vpc_config.apply(lambda network: cast("str", network.cluster_security_group_id))
