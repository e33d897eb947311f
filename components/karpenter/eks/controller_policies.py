"""The six policies of Karpenter's controller, no wider than those of its official template for 1.14. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from holdfast.components.iam.aws import Statement, document

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from holdfast.components.iam.aws import Place


@dataclass(frozen=True, kw_only=True)
class ControllerScope:
    """One controller's own cluster, the role its nodes have, and its queue, by name.

    `isolated`: it runs where neither IAM's nor the price list's API can be reached.
    """

    place: Place
    cluster_name: str
    node_role: str
    queue: str
    isolated: bool

    @property
    def ownership_tag(self) -> str:
        """The tag that marks what belongs to the cluster; its value is `owned`."""
        return f"kubernetes.io/cluster/{self.cluster_name}"

    def ec2(self, kind: str) -> str:
        """The EC2 resources of a kind, shared ones of other accounts among them."""
        return f"arn:{self.place.partition}:ec2:{self.place.region}:*:{kind}/*"

    def public_ec2(self, kind: str) -> str:
        """The EC2 resources of a kind that belong to no account (`image`, `snapshot`)."""
        return f"arn:{self.place.partition}:ec2:{self.place.region}::{kind}/*"

    @property
    def instance_profiles(self) -> str:
        """The account's instance profiles."""
        return f"arn:{self.place.partition}:iam::{self.place.account}:instance-profile/*"


def iam_integration(scope: ControllerScope) -> Sequence[Statement]:
    """The role of the nodes to EC2 and to nobody else; instance profiles with the tags of this cluster.

    Where IAM cannot be reached the instance profile is made with the stack, and only the role is passed.
    """
    pass_role = Statement(
        sid="AllowPassingInstanceRole",
        actions=["iam:PassRole"],
        resources=[scope.place.role(scope.node_role)],
        conditions={"StringEquals": {"iam:PassedToService": ["ec2.amazonaws.com", "ec2.amazonaws.com.cn"]}},
    )
    return (pass_role,) if scope.isolated else (pass_role, *_instance_profiles(scope))


def _instance_profiles(scope: ControllerScope) -> Sequence[Statement]:
    is_owned = _tags("aws:ResourceTag", scope)
    becomes_owned = {
        **_tags("aws:RequestTag", scope),
        "aws:RequestTag/eks:eks-cluster-name": scope.cluster_name,
    }
    has_class = {"aws:ResourceTag/karpenter.k8s.aws/ec2nodeclass": "*"}
    gets_class = {"aws:RequestTag/karpenter.k8s.aws/ec2nodeclass": "*"}
    return (
        Statement(
            sid="AllowScopedInstanceProfileCreationActions",
            actions=["iam:CreateInstanceProfile"],
            resources=[scope.instance_profiles],
            conditions={"StringEquals": becomes_owned, "StringLike": gets_class},
        ),
        Statement(
            sid="AllowScopedInstanceProfileTagActions",
            actions=["iam:TagInstanceProfile"],
            resources=[scope.instance_profiles],
            conditions={
                "StringEquals": {**is_owned, **becomes_owned},
                "StringLike": {**has_class, **gets_class},
            },
        ),
        Statement(
            sid="AllowScopedInstanceProfileActions",
            actions=[
                "iam:AddRoleToInstanceProfile",
                "iam:RemoveRoleFromInstanceProfile",
                "iam:DeleteInstanceProfile",
            ],
            resources=[scope.instance_profiles],
            conditions={"StringEquals": is_owned, "StringLike": has_class},
        ),
    )


def _tags(key: str, scope: ControllerScope) -> Mapping[str, str]:
    return {
        f"{key}/{scope.ownership_tag}": "owned",
        f"{key}/topology.kubernetes.io/region": scope.place.region,
    }


_LAUNCH: Final = ("ec2:RunInstances", "ec2:CreateFleet")

#: What a launch makes, and so must carry the cluster's tags.
_MADE: Final = (
    "fleet",
    "instance",
    "volume",
    "network-interface",
    "launch-template",
    "spot-instances-request",
)

#: What a launch only uses, and may be tagged by others or shared from another account.
_USED: Final = ("security-group", "subnet", "capacity-reservation", "placement-group")


def node_lifecycle(scope: ControllerScope) -> Sequence[Statement]:
    """Instances and launch templates, told by the tags of this cluster and of one of its NodePools."""
    return (
        Statement(
            sid="AllowScopedEC2InstanceAccessActions",
            actions=_LAUNCH,
            resources=[
                scope.public_ec2("image"),
                scope.public_ec2("snapshot"),
                *(scope.ec2(kind) for kind in _USED),
            ],
        ),
        Statement(
            sid="AllowScopedEC2LaunchTemplateAccessActions",
            actions=_LAUNCH,
            resources=[scope.ec2("launch-template")],
            conditions=_is_owned(scope),
        ),
        Statement(
            sid="AllowScopedEC2InstanceActionsWithTags",
            actions=[*_LAUNCH, "ec2:CreateLaunchTemplate"],
            resources=[scope.ec2(kind) for kind in _MADE],
            conditions={
                "StringEquals": _becomes_owned(scope),
                "StringLike": {"aws:RequestTag/karpenter.sh/nodepool": "*"},
            },
        ),
        *_tagging(scope),
        Statement(
            sid="AllowScopedDeletion",
            actions=["ec2:TerminateInstances", "ec2:DeleteLaunchTemplate"],
            resources=[scope.ec2("instance"), scope.ec2("launch-template")],
            conditions=_is_owned(scope),
        ),
    )


def _tagging(scope: ControllerScope) -> Sequence[Statement]:
    """Tags: all of them in the act of making, and later only those that no permission rests on."""
    return (
        Statement(
            sid="AllowScopedResourceCreationTagging",
            actions=["ec2:CreateTags"],
            resources=[scope.ec2(kind) for kind in _MADE],
            conditions={
                "StringEquals": {
                    **_becomes_owned(scope),
                    "ec2:CreateAction": ["RunInstances", "CreateFleet", "CreateLaunchTemplate"],
                },
                "StringLike": {"aws:RequestTag/karpenter.sh/nodepool": "*"},
            },
        ),
        Statement(
            sid="AllowScopedResourceTagging",
            actions=["ec2:CreateTags"],
            resources=[scope.ec2("instance")],
            conditions={
                **_is_owned(scope),
                "StringEqualsIfExists": {"aws:RequestTag/eks:eks-cluster-name": scope.cluster_name},
                "ForAllValues:StringEquals": {
                    "aws:TagKeys": ["eks:eks-cluster-name", "karpenter.sh/nodeclaim", "Name"]
                },
                # "For all values" holds where there are none.
                "Null": {"aws:TagKeys": "false"},
            },
        ),
    )


def _is_owned(scope: ControllerScope) -> Mapping[str, Mapping[str, str]]:
    return {
        "StringEquals": {f"aws:ResourceTag/{scope.ownership_tag}": "owned"},
        "StringLike": {"aws:ResourceTag/karpenter.sh/nodepool": "*"},
    }


def _becomes_owned(scope: ControllerScope) -> Mapping[str, str]:
    return {
        f"aws:RequestTag/{scope.ownership_tag}": "owned",
        "aws:RequestTag/eks:eks-cluster-name": scope.cluster_name,
    }


_DESCRIBED: Final = (
    "CapacityReservations",
    "Images",
    "Instances",
    "InstanceStatus",
    "InstanceTypeOfferings",
    "InstanceTypes",
    "LaunchTemplates",
    "PlacementGroups",
    "SecurityGroups",
    "SpotPriceHistory",
    "Subnets",
)


def _eks_integration(scope: ControllerScope) -> Sequence[Statement]:
    return (
        Statement(
            sid="AllowAPIServerEndpointDiscovery",
            actions=["eks:DescribeCluster"],
            resources=[scope.place.cluster(scope.cluster_name)],
        ),
    )


def _interruption(scope: ControllerScope) -> Sequence[Statement]:
    return (
        Statement(
            sid="AllowInterruptionQueueActions",
            actions=["sqs:DeleteMessage", "sqs:GetQueueUrl", "sqs:ReceiveMessage"],
            resources=[scope.place.queue(scope.queue)],
        ),
    )


def _zonal_shift(scope: ControllerScope) -> Sequence[Statement]:
    return (
        Statement(
            sid="AllowZonalShiftStatusReadOnly",
            actions=["arc-zonal-shift:GetManagedResource"],
            resources=["*"],
            conditions={
                "StringEquals": {
                    "arc-zonal-shift:ResourceIdentifier": scope.place.cluster(scope.cluster_name)
                }
            },
        ),
    )


def _resource_discovery(scope: ControllerScope) -> Sequence[Statement]:
    """Reading what is for sale and what runs, which EC2 cannot confine to a resource."""
    region = {"StringEquals": {"aws:RequestedRegion": scope.place.region}}
    reachable = (
        Statement(
            sid="AllowRegionalReadActions",
            actions=[f"ec2:Describe{thing}" for thing in _DESCRIBED],
            resources=["*"],
            conditions=region,
        ),
        Statement(
            sid="AllowSSMReadActions",
            actions=["ssm:GetParameter"],
            resources=[
                f"arn:{scope.place.partition}:ssm:{scope.place.region}::parameter/aws/service/*",
            ],
        ),
    )
    return reachable if scope.isolated else (*reachable, *_prices_and_profiles(scope))


def _prices_and_profiles(scope: ControllerScope) -> Sequence[Statement]:
    return (
        Statement(sid="AllowPricingReadActions", actions=["pricing:GetProducts"], resources=["*"]),
        Statement(
            sid="AllowUnscopedInstanceProfileListAction",
            actions=["iam:ListInstanceProfiles"],
            resources=["*"],
        ),
        Statement(
            sid="AllowInstanceProfileReadActions",
            actions=["iam:GetInstanceProfile"],
            resources=[scope.instance_profiles],
        ),
    )


_POLICIES: Final[Mapping[str, Callable[[ControllerScope], Sequence[Statement]]]] = {
    "node-lifecycle": node_lifecycle,
    "iam-integration": iam_integration,
    "eks-integration": _eks_integration,
    "interruption": _interruption,
    "zonal-shift": _zonal_shift,
    "resource-discovery": _resource_discovery,
}

#: Their names, in the order of the template.
CONTROLLER_POLICIES: Final = tuple(_POLICIES)


def controller_policy(policy: str, scope: ControllerScope) -> str:
    """One of the six as a document, confined to the scope."""
    return document(*_POLICIES[policy](scope))
