"""Pools on an EKS cluster that has Karpenter: a spot pool, and the on-demand pool that jobs fall back to."""

import pulumi
import pulumi_kubernetes as kubernetes

from pulumi_holdfast.aws.pools import Ec2NodeClassArgs, ec2_node_class
from pulumi_holdfast.config import versions
from pulumi_holdfast.kubernetes.karpenter_pool import KarpenterPool, KarpenterPoolArgs
from pulumi_holdfast.ladder.labels import CapacityType
from pulumi_holdfast.ladder.machines import machine_catalogue
from pulumi_holdfast.ladder.pools import Pool, weights

config = pulumi.Config()
cluster = kubernetes.Provider(
    "cluster", kubeconfig=config.require("kubeconfig"), context=config.require("context")
)
node_class = ec2_node_class(
    Ec2NodeClassArgs(
        node_role=config.require("nodeRole"),
        subnet_ids=config.require_object("subnets"),
        security_group_ids=config.require_object("securityGroups"),
        ami_alias=f"al2023@v{versions.NODE_IMAGE_RELEASE}",
        volume_gib=100,
    )
)
pools = {
    Pool(name="cpu", capacity=CapacityType.ON_DEMAND, has_gpus=False, max_nodes=20, is_default=True): (
        "m7i.xlarge",
        "m7a.xlarge",
    ),
    Pool(name="cpu-spot", capacity=CapacityType.SPOT, has_gpus=False, max_nodes=8): (
        "c7i.xlarge",
        "c6i.xlarge",
        "m7i.xlarge",
    ),
}
weight = weights(list(pools))
for pool, types in pools.items():
    KarpenterPool(
        f"pool-{pool.name}",
        KarpenterPoolArgs(
            pool=pool,
            machines=[machine_catalogue("aws")[name] for name in types],
            node_class=node_class,
            weight=weight[pool.name],
        ),
        opts=pulumi.ResourceOptions(provider=cluster),
    )
