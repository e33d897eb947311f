"""A cluster of the package pulumi-eks with Karpenter and a spot pool of Holdfast. Needs `holdfast[pulumi-eks]`."""

import pulumi
import pulumi_aws as aws
import pulumi_eks as eks

from holdfast.components.cluster.eks.access import NodeAccess, NodeAccessArgs
from holdfast.components.cluster.eks.pulumi_eks import cluster_of_pulumi_eks
from holdfast.components.cluster.eks.system_nodes import SystemNodeGroup, SystemNodeGroupArgs, SystemNodesArgs
from holdfast.components.iam.aws import Place
from holdfast.components.karpenter.eks.component import EksKarpenter, EksKarpenterArgs
from holdfast.components.pools.ec2 import Ec2NodeClassArgs, ec2_node_class
from holdfast.components.pools.karpenter import KarpenterPool, KarpenterPoolArgs
from holdfast.infra import versions as v
from holdfast.scheduling.labels import CapacityType
from holdfast.scheduling.machines import machine_catalogue
from holdfast.scheduling.pools import Pool

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
