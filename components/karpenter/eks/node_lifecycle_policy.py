"""What Karpenter may do with instances: start, tag and end those of its own cluster. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holdfast.components.iam.aws import Statement

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holdfast.components.karpenter.eks.scope import ControllerScope

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
