"""The IAM policies of Karpenter's controller, no wider than its official template for 1.14."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pulumi_holdfast.aws.policy_documents import Place, Statement, document


@dataclass(frozen=True, kw_only=True)
class ControllerScope:
    """What the policies are limited to: the cluster, the nodes' role and the queue, by name. `role_path` is the role's path.

    `isolated`: the APIs of IAM and of the price list are unreachable.
    """

    place: Place
    cluster_name: str
    node_role: str
    queue: str
    isolated: bool
    role_path: str = "/"

    @property
    def ownership_tag(self) -> str:
        """The tag of the cluster's resources; its value is `owned`."""
        return f"kubernetes.io/cluster/{self.cluster_name}"

    def ec2(self, kind: str) -> str:
        """The ARN of EC2 resources of a kind, including those shared by other accounts."""
        return f"arn:{self.place.partition}:ec2:{self.place.region}:*:{kind}/*"

    def public_ec2(self, kind: str) -> str:
        """The ARN of EC2 resources of a kind that belong to no account (`image`, `snapshot`)."""
        return f"arn:{self.place.partition}:ec2:{self.place.region}::{kind}/*"

    @property
    def instance_profiles(self) -> str:
        """The account's instance profiles."""
        return f"arn:{self.place.partition}:iam::{self.place.account}:instance-profile/*"


def iam_integration(scope: ControllerScope) -> Sequence[Statement]:
    """Pass the nodes' role to EC2 only, and manage instance profiles with this cluster's tags.

    In isolated mode the stack creates the instance profile, and only the role is passed.
    """
    pass_role = Statement(
        sid="AllowPassingInstanceRole",
        actions=["iam:PassRole"],
        resources=[scope.place.role(scope.node_role, scope.role_path)],
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

#: What a launch creates, which must have the cluster's tags.
_MADE: Final = (
    "fleet",
    "instance",
    "volume",
    "network-interface",
    "launch-template",
    "spot-instances-request",
)

#: What a launch only uses, which may have other tags or be shared by another account.
_USED: Final = ("security-group", "subnet", "capacity-reservation", "placement-group")


def node_lifecycle(scope: ControllerScope) -> Sequence[Statement]:
    """Launch and terminate instances with the tags of this cluster and of one of its NodePools."""
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
    """Set all tags on creation; later only tags that no permission depends on."""
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
                # "ForAllValues" is also true without any value.
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
    """Read offerings and instances, which EC2 cannot limit to resources."""
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
            resources=[f"arn:{scope.place.partition}:ssm:{scope.place.region}::parameter/aws/service/*"],
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

#: The policies' names, in the order of the template.
CONTROLLER_POLICIES: Final = tuple(_POLICIES)


def controller_policy(policy: str, scope: ControllerScope) -> str:
    """Return the document of one of the policies, limited to the scope."""
    return document(*_POLICIES[policy](scope))
