"""The six policies of Karpenter's controller, no wider than those of its official template for 1.14. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holdfast.components.iam.aws import Statement, document
from holdfast.components.karpenter.eks.instance_profile_policy import iam_integration
from holdfast.components.karpenter.eks.node_lifecycle_policy import node_lifecycle

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from holdfast.components.karpenter.eks.scope import ControllerScope

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
