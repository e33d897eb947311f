"""A cluster of the package pulumi-eks with Karpenter and a spot pool of Holdfast. Needs `pulumi-holdfast[pulumi-eks]`."""

import pulumi
import pulumi_aws as aws
import pulumi_eks as eks

from pulumi_holdfast.aws.control_plane.access import NodeAccess, NodeAccessArgs
from pulumi_holdfast.aws.control_plane.component import cluster_of_pulumi_eks
from pulumi_holdfast.aws.control_plane.system_nodes import (
    SystemNodeGroup,
    SystemNodeGroupArgs,
    SystemNodesArgs,
)
from pulumi_holdfast.aws.karpenter.component import EksKarpenter, EksKarpenterArgs
from pulumi_holdfast.aws.policy_documents import Place
from pulumi_holdfast.aws.pools import Ec2NodeClassArgs, ec2_node_class
from pulumi_holdfast.config import versions as v
from pulumi_holdfast.kubernetes.karpenter_pool import KarpenterPool, KarpenterPoolArgs
from pulumi_holdfast.ladder.labels import CapacityType
from pulumi_holdfast.ladder.machines import machine_catalogue
from pulumi_holdfast.ladder.pools import Pool

NAME, TYPES = "shared", ("c7i.xlarge", "c6i.xlarge", "m7i.xlarge")
config = pulumi.Config()
subnets = config.require_object("subnets")
place = Place(
    account=config.require("account"), region=pulumi.Config("aws").require("region"), partition="aws"
)
made = eks.Cluster(
    NAME, name=NAME, version=v.KUBERNETES, vpc_id=config.require("vpc"), private_subnet_ids=subnets,
    authentication_mode=eks.AuthenticationMode.API, skip_default_node_group=True,
)  # fmt: skip
name = made.eks_cluster.apply(lambda found: found.name)
system = SystemNodeGroup("system", SystemNodeGroupArgs(
    nodes=SystemNodesArgs(instance_types=["m7i.large", "m6i.large"]), cluster_name=NAME, cluster=name,
    version=v.KUBERNETES, subnet_ids=subnets, place=place,
))  # fmt: skip
identities = aws.eks.Addon("identities", cluster_name=name, addon_name="eks-pod-identity-agent")
cluster = cluster_of_pulumi_eks("cluster", made, cluster_name=NAME, region=place.region)
inside = pulumi.ResourceOptions(provider=cluster.kubernetes, depends_on=[cluster, system, identities])
karpenter = EksKarpenter("karpenter", EksKarpenterArgs(
    cluster_name=NAME, account=place.account, region=place.region, partition=place.partition, charts=None,
    images=None, version=v.KARPENTER, image_digest=v.KARPENTER_IMAGE_DIGEST,
), opts=inside)  # fmt: skip
access = NodeAccess("nodes", NodeAccessArgs(cluster_name=name, role_arn=karpenter.node_role_arn))
node_class = ec2_node_class(Ec2NodeClassArgs(
    node_role=karpenter.node_role_name, subnet_ids=subnets, volume_gib=100,
    security_group_ids=[cluster.cluster_security_group_id], ami_alias=f"al2023@v{v.NODE_IMAGE_RELEASE}",
))  # fmt: skip
KarpenterPool("pool-cpu-spot", KarpenterPoolArgs(
    pool=Pool(name="cpu-spot", capacity=CapacityType.SPOT, has_gpus=False, max_nodes=8), weight=1,
    machines=[machine_catalogue("aws")[name] for name in TYPES], node_class=node_class,
), opts=pulumi.ResourceOptions.merge(inside, pulumi.ResourceOptions(depends_on=[karpenter, access])))  # fmt: skip
