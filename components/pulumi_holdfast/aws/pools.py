"""Pools on AWS: NodePools of Karpenter with EC2NodeClasses, and their summaries for the fallback controller."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, cast

import pulumi
from pulumi import ComponentResource, Input, Output, ResourceOptions
from pulumi_aws.ec2 import PlacementGroup, SecurityGroup
from pulumi_aws.vpc import SecurityGroupEgressRule, SecurityGroupIngressRule

from pulumi_holdfast.aws.config.sections import AwsNewNetwork
from pulumi_holdfast.config import naming
from pulumi_holdfast.kubernetes.karpenter_pool import (
    KarpenterPool,
    KarpenterPoolArgs,
    NodeClass,
    Spec,
    SpecValue,
    node_labels,
)
from pulumi_holdfast.ladder.labels import EFA_RESOURCE
from pulumi_holdfast.ladder.machines.market import unused_network_warnings
from pulumi_holdfast.ladder.pools import spot_pool_warnings, weights
from pulumi_holdfast.ladder.reachability.machine_capacity import Provisioner
from pulumi_holdfast.ladder.reachability.pool_summary import PoolSummary, summarize_pool
from pulumi_holdfast.ladder.taints import EBS_CSI_NOT_READY

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pulumi_holdfast.aws.config.sections import AwsPlatform, AwsPool
    from pulumi_holdfast.aws.karpenter.component import EksKarpenter
    from pulumi_holdfast.aws.network import Network
    from pulumi_holdfast.ladder.machines import Machine


@dataclass(frozen=True, kw_only=True)
class EfaFabricArgs:
    """`vpc_id` is the machines' VPC."""

    vpc_id: Input[str]


class EfaFabric(ComponentResource):
    """A security group for Elastic Fabric Adapters (`holdfast:index:EfaFabric`).

    Creates a security group, used in addition to the cluster's, that allows all traffic between its members
    and no other traffic. Adapters bypass the operating system only between members of such a group; a rule
    that allows all addresses does not suffice.
    """

    security_group_id: Output[str]

    def __init__(self, name: str, args: EfaFabricArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:EfaFabric", name, None, opts)
        group = SecurityGroup(
            f"{name}-members",
            vpc_id=args.vpc_id,
            description="Fabric traffic between the machines of a pool",
            opts=ResourceOptions(parent=self),
        )
        SecurityGroupIngressRule(
            f"{name}-from-members",
            security_group_id=group.id,
            referenced_security_group_id=group.id,
            ip_protocol="-1",
            opts=ResourceOptions(parent=self),
        )
        SecurityGroupEgressRule(
            f"{name}-to-members",
            security_group_id=group.id,
            referenced_security_group_id=group.id,
            ip_protocol="-1",
            opts=ResourceOptions(parent=self),
        )
        self.security_group_id = group.id
        self.register_outputs({"security_group_id": self.security_group_id})


#: The root volume of Amazon Linux 2023.
_ROOT_DEVICE: Final = "/dev/xvda"

#: IMDSv2 with a hop limit of 1 answers agents of the node. A pod in its own network is one hop further away
#: and cannot get the node's credentials.
_METADATA: Final[Spec] = {
    "httpEndpoint": "enabled",
    "httpProtocolIPv6": "disabled",
    "httpPutResponseHopLimit": 1,
    "httpTokens": "required",
}


@dataclass(frozen=True, kw_only=True)
class Ec2NodeClassArgs:
    """Arguments of `ec2_node_class`.

    Exactly one of `node_role` (a role's name, for which Karpenter creates instance profiles) and
    `instance_profile` (an existing profile's name). Subnets and security groups are IDs, one or more of each.
    `ami_alias` names an AMI family and release (`al2023@v20260903`), `volume_gib` the root volume's size,
    `placement_group` a placement group's ID, `reservation` a capacity reservation's. `tags` are put on everything that Karpenter creates in EC2. `block_storage`: the cluster certainly has
    the block storage driver, whose agent removes its startup taint; without it no pod would ever run.

    Raises ValueError if both or neither of the two identities are set.
    """

    subnet_ids: Input[Sequence[Input[str]]]
    security_group_ids: Sequence[Input[str]]
    ami_alias: str
    volume_gib: int
    node_role: Input[str] | None = None
    instance_profile: Input[str] | None = None
    placement_group: Input[str] | None = None
    reservation: Input[str] | None = None
    tags: Mapping[str, str] = field(default_factory=dict[str, str])
    block_storage: bool = False

    def __post_init__(self) -> None:
        if (self.node_role is None) == (self.instance_profile is None):
            raise ValueError("set exactly one of node_role and instance_profile")


def ec2_node_class(args: Ec2NodeClassArgs) -> NodeClass:
    """Return the EC2NodeClass of a pool.

    It selects by ID: selection by tag would require tagging the user's subnets and security groups, and would
    match all others with the tag. Fabric adapters are not listed: Karpenter attaches all that a type has if a
    pod requests `vpc.amazonaws.com/efa`.
    """
    return NodeClass(
        group="karpenter.k8s.aws",
        version="v1",
        kind="EC2NodeClass",
        spec={
            **_identity(args),
            **_placement(args),
            **_reservation(args),
            "amiSelectorTerms": [{"alias": args.ami_alias}],
            "subnetSelectorTerms": _by_id(args.subnet_ids),
            "securityGroupSelectorTerms": [{"id": group} for group in args.security_group_ids],
            "metadataOptions": _METADATA,
            "blockDeviceMappings": [
                {
                    "deviceName": _ROOT_DEVICE,
                    "ebs": {
                        "volumeSize": f"{args.volume_gib}Gi",
                        "volumeType": "gp3",
                        "encrypted": True,
                        "deleteOnTermination": True,
                    },
                }
            ],
            # Uses the local disks of training machines, which EC2 encrypts, for images and scratch files.
            # Without it these share the root volume. It has no effect on types without local disks.
            "instanceStorePolicy": "RAID0",
            "tags": args.tags,
        },
        startup_taints=[EBS_CSI_NOT_READY] if args.block_storage else [],
    )


def _by_id(ids: Input[Sequence[Input[str]]]) -> SpecValue:
    """The selector terms of these ids; an Output of a list may be of any length."""

    def terms(known: Sequence[Input[str]]) -> Sequence[SpecValue]:
        return [{"id": each} for each in known]

    return (
        Output.from_input(ids).apply(terms)
        if isinstance(ids, Output)
        else terms(cast("Sequence[Input[str]]", ids))
    )


def _identity(args: Ec2NodeClassArgs) -> Spec:
    if args.instance_profile is not None:
        return {"instanceProfile": args.instance_profile}
    return {"role": args.node_role} if args.node_role is not None else {}


def _placement(args: Ec2NodeClassArgs) -> Spec:
    return (
        {"placementGroupSelector": {"id": args.placement_group}} if args.placement_group is not None else {}
    )


def _reservation(args: Ec2NodeClassArgs) -> Spec:
    # Karpenter finds a Capacity Block in the same way. Its feature gate ReservedCapacity is on by default.
    return (
        {"capacityReservationSelectorTerms": [{"id": args.reservation}]}
        if args.reservation is not None
        else {}
    )


#: The tag that the IAM policy of EKS's block storage driver requires on instances before it attaches a volume.
_VOLUMES: Final = "ebs.csi.aws.com/cluster-name"


@dataclass(frozen=True, kw_only=True)
class PoolDependencies:
    """What the pools of `parent` depend on. `cluster_name` is the physical name; `tags` are those of every instance, `image` is the release of their image.

    `block_storage`: the stack itself installs the cluster's block storage driver.
    """

    parent: pulumi.Resource
    cluster_name: str
    security_group_id: Output[str]
    network: Network
    karpenter: EksKarpenter
    tags: Mapping[str, str]
    image: str
    block_storage: bool


def make_pools(
    platform: AwsPlatform, dependencies: PoolDependencies, *, after: pulumi.ResourceOptions
) -> Sequence[KarpenterPool]:
    """Create every pool, dependent on the resources in `after`, and warn about spot pools with few machine types."""
    fabric = (
        EfaFabric(
            naming.part(dependencies.parent.pulumi_resource_name, "fabric"),
            EfaFabricArgs(vpc_id=dependencies.network.vpc_id),
            opts=pulumi.ResourceOptions(parent=dependencies.parent),
        ).security_group_id
        if platform.has_efa
        else None
    )
    weight = weights(platform.scheduling_pools())
    return [
        _pool(pool, platform.region, dependencies, fabric, weight[pool.name], after)
        for pool in platform.pools
    ]


def pool_summaries(platform: AwsPlatform) -> Mapping[str, PoolSummary]:
    """The summary of each pool for the fallback controller, by name."""
    found: dict[str, PoolSummary] = {}
    network = platform.network
    # A number of zones chooses among those that the account has, which are not known here.
    named = network.zone_names(()) if isinstance(network, AwsNewNetwork) else ()
    for config in platform.pools:
        pool = config.as_pool(platform.region)
        labels = node_labels(pool, efa=config.efa)
        machines = config.machines(platform.region)
        found[pool.name] = summarize_pool(
            pool, machines, pool.taints, labels, provisioner=Provisioner.EKS, zones=config.zones or named
        )
    return found


def _pool(
    config: AwsPool,
    region: str,
    dependencies: PoolDependencies,
    fabric: Output[str] | None,
    weight: int,
    after: pulumi.ResourceOptions,
) -> KarpenterPool:
    pool, machines = config.as_pool(region), config.machines(region)
    for warning in (
        *spot_pool_warnings(pool, machines),
        *adapter_warnings(config, machines),
        *unused_network_warnings(pool.name, machines, max_nodes=pool.max_nodes, uses_adapters=config.efa),
    ):
        pulumi.log.warn(warning)
    if config.efa and len(config.zones or ()) != 1:
        pulumi.log.info(
            f"pool {config.name} has fabric adapters, whose traffic does not cross zones: admission keeps each job that "
            f"requests {EFA_RESOURCE} in one zone, which must have capacity for all its pods."
        )
    return KarpenterPool(
        naming.pool(dependencies.parent.pulumi_resource_name, config.name),
        KarpenterPoolArgs(
            pool=pool,
            machines=machines,
            node_class=_node_class(config, dependencies, fabric),
            weight=weight,
            zones=config.zones or (),
            efa=config.efa,
            roll_out=config.roll_out,
            reservation=None if config.reservation is None else config.reservation.id,
        ),
        opts=after,
    )


def adapter_warnings(config: AwsPool, machines: Sequence[Machine]) -> Iterator[str]:
    """The warning about a pool whose machine types have different numbers of fabric adapters."""
    counts = {machine.name: machine.efa_interfaces for machine in machines}
    if not config.efa or len(set(counts.values())) < 2:
        return
    fewest = min(counts.values())
    listed = ", ".join(f"{name} has {count}" for name, count in counts.items())
    more = ", ".join(name for name, count in counts.items() if count > fewest)
    yield (
        f"pool {config.name} buys machines with different numbers of fabric adapters ({listed}). A pod that requests more "
        f"than {fewest} {EFA_RESOURCE} runs on {more} only, and one that requests {fewest} leaves adapters of these "
        "unused. Make a pool for each number, or request the smallest."
    )


def _node_class(config: AwsPool, dependencies: PoolDependencies, fabric: Output[str] | None) -> NodeClass:
    parent = dependencies.parent
    # It reduces the available capacity: the pool's machines are in one zone.
    placement = (
        PlacementGroup(
            naming.placement(parent.pulumi_resource_name, config.name),
            strategy="cluster",
            opts=pulumi.ResourceOptions(parent=parent),
        )
        if config.compact_placement
        else None
    )
    groups: list[Input[str]] = [dependencies.security_group_id]
    if config.efa and fabric is not None:
        groups.append(fabric)
    profile = dependencies.karpenter.instance_profile
    return ec2_node_class(
        Ec2NodeClassArgs(
            node_role=dependencies.karpenter.node_role_name if profile is None else None,
            instance_profile=profile,
            subnet_ids=dependencies.network.private_subnet_ids,
            security_group_ids=groups,
            ami_alias=f"al2023@v{dependencies.image.partition('-')[2]}",
            volume_gib=config.disk_gib,
            placement_group=placement.placement_group_id if placement is not None else None,
            reservation=None if config.reservation is None else config.reservation.id,
            tags={**dependencies.tags, _VOLUMES: dependencies.cluster_name},
            block_storage=dependencies.block_storage,
        )
    )
