"""Pools of EC2 instances: the Karpenter node class, the EFA security group and the placement group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from pulumi import ComponentResource, Input, Output, ResourceOptions
from pulumi_aws.ec2 import PlacementGroup, SecurityGroup
from pulumi_aws.vpc import SecurityGroupEgressRule, SecurityGroupIngressRule

from pulumi_holdfast.kubernetes.karpenter_pool import NodeClass, Spec


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


class ClusterPlacement(ComponentResource):
    """A placement group for machines close to each other (`holdfast:index:ClusterPlacement`).

    Creates it with strategy `cluster`. It reduces the available capacity: the pool's machines are in one
    zone.
    """

    placement_group_id: Output[str]

    def __init__(self, name: str, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:ClusterPlacement", name, None, opts)
        group = PlacementGroup(f"{name}-group", strategy="cluster", opts=ResourceOptions(parent=self))
        self.placement_group_id = group.placement_group_id
        self.register_outputs({"placement_group_id": self.placement_group_id})


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
    `placement_group` a placement group's ID, `reservation` a capacity reservation's. `tags` are put on everything that Karpenter creates in EC2.

    Raises ValueError if both or neither of the two identities are set.
    """

    subnet_ids: Sequence[Input[str]]
    security_group_ids: Sequence[Input[str]]
    ami_alias: str
    volume_gib: int
    node_role: Input[str] | None = None
    instance_profile: Input[str] | None = None
    placement_group: Input[str] | None = None
    reservation: Input[str] | None = None
    tags: Mapping[str, str] = field(default_factory=dict[str, str])

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
            "subnetSelectorTerms": [{"id": subnet} for subnet in args.subnet_ids],
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
