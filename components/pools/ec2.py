"""The node class of a pool of EC2 instances. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from pulumi import ComponentResource, ResourceOptions
from pulumi_aws.ec2 import PlacementGroup, SecurityGroup
from pulumi_aws.vpc import SecurityGroupEgressRule, SecurityGroupIngressRule

from holdfast.components.pools.karpenter import NodeClass

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pulumi import Input, Output

    from holdfast.components.pools.karpenter import Spec


@dataclass(frozen=True, kw_only=True)
class EfaFabricArgs:
    """`vpc_id` is the network of the machines."""

    vpc_id: Input[str]


class EfaFabric(ComponentResource):
    """What lets Elastic Fabric Adapters talk to each other.

    Creates a security group whose members may send anything to each other and nothing to anyone else, to stand beside
    the cluster's own. An adapter passes by the operating system only within such a group: to it, leave to send to any
    address is not leave to send to the group.
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
    """Machines close together in one zone, with the shortest way between them.

    Creates a placement group with strategy `cluster`. It narrows what EC2 can sell: machines of one pool in one zone.
    """

    placement_group_id: Output[str]

    def __init__(self, name: str, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:ClusterPlacement", name, None, opts)
        group = PlacementGroup(f"{name}-group", strategy="cluster", opts=ResourceOptions(parent=self))
        self.placement_group_id = group.placement_group_id
        self.register_outputs({"placement_group_id": self.placement_group_id})


#: The root volume of Amazon Linux 2023.
_ROOT_DEVICE: Final = "/dev/xvda"

#: Version 2 of the instance metadata service, one hop: it answers the node's own agents. A pod on its own network is
#: one hop further, and would get the node's credentials.
_METADATA: Final[Spec] = {
    "httpEndpoint": "enabled",
    "httpProtocolIPv6": "disabled",
    "httpPutResponseHopLimit": 1,
    "httpTokens": "required",
}


@dataclass(frozen=True, kw_only=True)
class Ec2NodeClassArgs:
    """How a pool's instances are started.

    Exactly one of `node_role`, the name of a role for which Karpenter makes instance profiles, and
    `instance_profile`, the name of one that is there already. Subnets and security groups are given by id, one or
    more of each; `ami_alias` names family and release (`al2023@v20260903`); `volume_gib` is the root volume's size;
    `placement_group` the id of a placement group; `tags` are put on what Karpenter makes in EC2.

    Raises ValueError where both or neither of the two identities are given.
    """

    subnet_ids: Sequence[Input[str]]
    security_group_ids: Sequence[Input[str]]
    ami_alias: str
    volume_gib: int
    node_role: Input[str] | None = None
    instance_profile: Input[str] | None = None
    placement_group: Input[str] | None = None
    tags: Mapping[str, str] = field(default_factory=dict[str, str])

    def __post_init__(self) -> None:
        if (self.node_role is None) == (self.instance_profile is None):
            raise ValueError(
                "give exactly one of node_role and instance_profile: an instance has one identity"
            )


def ec2_node_class(args: Ec2NodeClassArgs) -> NodeClass:
    """The EC2NodeClass of a pool.

    By id, because selection by tag would need subnets and security groups which are not ours to be tagged by us, and
    would take whatever else carries the tag. Fabric adapters are not listed: Karpenter attaches all that a type has
    to an instance which it starts for a pod that asks for `vpc.amazonaws.com/efa`.
    """
    return NodeClass(
        group="karpenter.k8s.aws",
        version="v1",
        kind="EC2NodeClass",
        spec={
            **_identity(args),
            **_placement(args),
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
            # Machines for training bring terabytes of local disk, which EC2 encrypts. Without this they lie idle, and
            # images and scratch files share the root volume. A type without such disks is not changed by it.
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
