"""The account has the service-linked role of EC2 Spot if a program buys spot on AWS.

`AWSServiceRoleForEC2Spot` exists once per account. Without it the first launch fails, unless the caller may create it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pulumi_holdfast.ladder.json import UNKNOWN
from pulumi_holdfast.program.pools.karpenter import may_buy_spot, node_pools
from pulumi_holdfast.program.pools.node_classes import is_on_aws
from pulumi_holdfast.program.resources import StackResource, at
from pulumi_holdfast.program.settings import MADE_ELSEWHERE, Elsewhere, Settings, is_made_elsewhere
from rule import Finding, Group, Level, Rule, RuleSeverity

_ROLE: Final = "aws:iam/serviceLinkedRole:ServiceLinkedRole"
_SERVICE: Final = "spot.amazonaws.com"


def find(resources: Sequence[StackResource], settings: Settings) -> tuple[Finding, ...]:
    """Return what is not judged if spot is bought on AWS, and nothing here creates the role or says that it exists."""
    spot = [each for each in node_pools(resources) if may_buy_spot(each) and is_on_aws(each)]
    if (
        not spot
        or is_made_elsewhere(settings, Elsewhere.ROLE)
        or any(_creates_role(each) for each in resources)
    ):
        return ()
    return (
        Finding(
            urn=spot[0].urn,
            message="this program buys spot machines on AWS, and does not create the role AWSServiceRoleForEC2Spot: whether "
            f"the account has it is not judged. Create it ({_ROLE} with `awsServiceName: {_SERVICE}`, retained when the stack "
            f"is destroyed), or declare `{MADE_ELSEWHERE}: [{Elsewhere.ROLE.value}]` if the account has it.",
            proven=False,
        ),
    )


def _creates_role(resource: StackResource) -> bool:
    return resource.type == _ROLE and at(resource.props, "awsServiceName") in (_SERVICE, UNKNOWN)


RULE: Final = Rule(
    name="spot-service-linked-role-exists",
    title="The service-linked role of EC2 Spot exists",
    description="If spot is bought on AWS, the role AWSServiceRoleForEC2Spot exists.",
    fix="Create the role, or set that the account has it.",
    group=Group.PLATFORM,
    level=Level.ADVISORY,
    severity=RuleSeverity.MEDIUM,
    find=find,
)
