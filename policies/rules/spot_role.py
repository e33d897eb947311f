"""The rule that the account's service-linked role for EC2 Spot is ensured where a program buys spot on AWS.

`AWSServiceRoleForEC2Spot` is one per account. Without it the first launch fails, unless whoever launches may make it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holdfast.policies.findings import Finding
from holdfast.policies.known_values import UNKNOWN, at
from holdfast.policies.node_pools import may_buy_spot, node_pools

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.policies.findings import StackResource
    from holdfast.policies.rule import Settings

EXISTS: Final = "roleExists"
ROLE: Final = "aws:iam/serviceLinkedRole:ServiceLinkedRole"
_SERVICE: Final = "spot.amazonaws.com"
_ENSURED_BY: Final = "holdfast:index:SpotServiceLinkedRole"


def find(resources: Sequence[StackResource], settings: Settings) -> tuple[Finding, ...]:
    """Return a finding where spot pools of AWS have no such role, and the setting does not say that it is there."""
    spot = [
        each
        for each in node_pools(resources)
        if may_buy_spot(each)
        and at(each.props, "spec", "template", "spec", "nodeClassRef", "group") == "karpenter.k8s.aws"
    ]
    if not spot or settings[EXISTS] is True or any(_ensures(each) for each in resources):
        return ()
    return (
        Finding(
            urn=spot[0].urn,
            message="spot machines are bought on AWS, and nothing here ensures the role AWSServiceRoleForEC2Spot. Make it "
            f"({ROLE} with `awsServiceName: {_SERVICE}`, kept when the stack goes), or set `{EXISTS}: true` where the "
            "account has it.",
        ),
    )


def _ensures(resource: StackResource) -> bool:
    if resource.type == _ENSURED_BY:
        return True
    return resource.type == ROLE and at(resource.props, "awsServiceName") in (_SERVICE, UNKNOWN)
