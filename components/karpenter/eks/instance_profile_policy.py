"""What Karpenter may do in IAM: hand its nodes their role, in instance profiles of its own. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.components.iam.aws import Statement

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holdfast.components.karpenter.eks.scope import ControllerScope


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
