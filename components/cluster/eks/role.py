"""A role that holds policies which AWS keeps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pulumi import ComponentResource, ResourceOptions
from pulumi_aws.iam import Role, RolePolicyAttachment

from holdfast.components.ordering import tied_to

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulumi import Output

    from holdfast.components.iam.aws import Place


@dataclass(frozen=True, kw_only=True)
class RoleWithPoliciesArgs:
    """`trust` is the document that says who assumes the role, `policies` the names of policies that AWS keeps."""

    place: Place
    trust: str
    policies: Sequence[str]
    description: str


class RoleWithPolicies(ComponentResource):
    """A role with its policies.

    Creates both. `arn` is tied to the policies: who uses the role finds it with them, and loses it before them.
    """

    arn: Output[str]

    def __init__(self, name: str, args: RoleWithPoliciesArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:RoleWithPolicies", name, None, opts)
        role = Role(
            f"{name}-role",
            assume_role_policy=args.trust,
            description=args.description,
            opts=ResourceOptions(parent=self),
        )
        attachments = [
            RolePolicyAttachment(
                f"{name}-{policy}",
                role=role.name,
                policy_arn=args.place.aws_policy(policy),
                opts=ResourceOptions(parent=self),
            )
            for policy in args.policies
        ]
        self.arn = tied_to(role.arn, attachments)
        self.register_outputs({"arn": self.arn})
