"""A role on Azure, given to somebody."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from pulumi import ComponentResource, Output, ResourceOptions
from pulumi_azure_native.authorization import RoleAssignment

from holdfast.components.iam.azure_roles import assignment_name, role_definition_id

if TYPE_CHECKING:
    from pulumi import Input


_OF_THE_PRINCIPAL: Final = ("principalId", "principalType", "roleAssignmentName")


@dataclass(frozen=True, kw_only=True)
class AssignmentArgs:
    """Who is given which role, and on what.

    `scope` is a resource id; `role` the id of a built-in role, without what stands before it; `principal_id` the object
    id of a user, group or principal, and `principal_type` which of them it is. None lets Azure look, which it can only
    for somebody that has been there for some minutes. `kept`: who was given the role first keeps it, whoever comes after.
    """

    subscription_id: str
    scope: Input[str]
    role: str
    principal_id: Input[str]
    principal_type: Literal["User", "Group", "ServicePrincipal"] | None = None
    kept: bool = False


class Assignment(ComponentResource):
    """Gives a role to somebody.

    Creates the RoleAssignment, under a name that follows from who, what and where: what is made twice is the same one.
    """

    def __init__(self, name: str, args: AssignmentArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:Assignment", name, None, opts)
        role = args.role
        RoleAssignment(
            f"{name}-assignment",
            scope=args.scope,
            role_definition_id=role_definition_id(args.subscription_id, role),
            principal_id=args.principal_id,
            # Left out, the SDK says that it is a user, and Azure refuses groups and principals. Nothing is what Azure is to
            # be told to look by itself.
            principal_type=args.principal_type or Output.from_input(None),
            role_assignment_name=Output.all(scope=args.scope, principal=args.principal_id).apply(
                lambda known: assignment_name(
                    scope=known["scope"], principal_id=known["principal"], role=role
                )
            ),
            opts=ResourceOptions(parent=self, ignore_changes=list(_OF_THE_PRINCIPAL) if args.kept else None),
        )
        self.register_outputs({})
