"""A role on Azure, given to somebody."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from pulumi import ComponentResource, Output, ResourceOptions
from pulumi_azure_native.authorization import RoleAssignment

if TYPE_CHECKING:
    from pulumi import Input

from uuid import UUID, uuid5

#: Reads, writes, deletes and lists blobs; not their older versions, and not who else may.
STORAGE_BLOB_DATA_CONTRIBUTOR: Final = "ba92f5b4-2d11-453d-a403-e96b0029c9fe"

#: Puts machines and load balancers into a subnet, when it is given there.
NETWORK_CONTRIBUTOR: Final = "4d97b98b-1d4f-4787-a291-c67834d212e7"
#: Sees, and changes nothing.
READER: Final = "acdd72a7-3385-48ef-bd42-f606fba81ae7"
#: Does everything in a cluster that takes Azure's roles for its own: "Azure Kubernetes Service RBAC Cluster Admin".
AKS_RBAC_CLUSTER_ADMIN: Final = "b1ff04bb-8a4e-4dc4-8eb5-8693973ce19b"

# Any one will do, as long as it is always the same.
_NAMES: Final = UUID("8f5ac1b2-0f7c-5a53-9d7e-3f2f0c2f6d11")


def role_definition_id(subscription_id: str, role: str) -> str:
    """The id of a built-in role, as Azure shows it in an assignment: within the subscription."""
    return f"/subscriptions/{subscription_id}/providers/Microsoft.Authorization/roleDefinitions/{role}"


def assignment_name(*, scope: str, principal_id: str, role: str) -> str:
    """The name of the assignment of a role to a principal at a scope, the same each time it is asked for.

    Azure tells assignments apart by these names alone, whatever the subscription, and changes neither principal nor
    scope of one that is there (`RoleAssignmentUpdateNotPermitted`): so all three are in it.
    """
    return str(uuid5(_NAMES, f"{scope.lower()}|{principal_id}|{role}"))


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
