"""Role assignments on Azure, and the built-in roles that the components use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal
from uuid import UUID, uuid5

from pulumi import ComponentResource, Input, Output, Resource, ResourceOptions
from pulumi_azure_native.authorization import RoleAssignment
from pulumi_azure_native.managedidentity import UserAssignedIdentity

from pulumi_holdfast.kubernetes.kubernetes_object import tied_to

#: Reads, writes, deletes and lists blobs, but not their old versions, and without changing permissions.
STORAGE_BLOB_DATA_CONTRIBUTOR: Final = "ba92f5b4-2d11-453d-a403-e96b0029c9fe"

#: Reads and lists blobs.
STORAGE_BLOB_DATA_READER: Final = "2a2b9908-6ea1-4ae2-8e65-a410df84e7d1"

#: On a subnet: puts machines and load balancers into it.
NETWORK_CONTRIBUTOR: Final = "4d97b98b-1d4f-4787-a291-c67834d212e7"
#: On a capacity reservation group: reads it, and puts machines of scale sets into its reservations. No narrower built-in role
#: may do the second.
CONTRIBUTOR: Final = "b24988ac-6180-42a0-ab88-20f7382dd24c"
#: On a container registry: pulls images.
ACR_PULL: Final = "7f951dda-4ed3-4680-a7ca-43fe172d538d"
#: Reads everything and changes nothing.
READER: Final = "acdd72a7-3385-48ef-bd42-f606fba81ae7"
#: "Azure Kubernetes Service RBAC Cluster Admin": all actions in a cluster that uses Azure RBAC.
AKS_RBAC_CLUSTER_ADMIN: Final = "b1ff04bb-8a4e-4dc4-8eb5-8693973ce19b"

# An arbitrary constant; changing it would rename all assignments.
_NAMES: Final = UUID("8f5ac1b2-0f7c-5a53-9d7e-3f2f0c2f6d11")


def role_definition_id(subscription_id: str, role: str) -> str:
    """The resource ID of a built-in role in the subscription, as Azure returns it in assignments."""
    return f"/subscriptions/{subscription_id}/providers/Microsoft.Authorization/roleDefinitions/{role}"


def assignment_name(*, scope: str, principal_id: str, role: str) -> str:
    """The deterministic name of the assignment of a role to a principal at a scope.

    Azure identifies assignments by name across all subscriptions and allows neither another principal nor
    another scope (`RoleAssignmentUpdateNotPermitted`), so the name is derived from all three.
    """
    return str(uuid5(_NAMES, f"{scope.lower()}|{principal_id}|{role}"))


_OF_THE_PRINCIPAL: Final = ("principalId", "principalType", "roleAssignmentName")


@dataclass(frozen=True, kw_only=True)
class AssignmentArgs:
    """Arguments of `Assignment`.

    `scope` is a resource ID in the subscription `subscription_id`, `role` the GUID of a built-in role. `principal_id` is the object ID of a user,
    group or service principal and `principal_type` its type; None makes Azure look the type up, which works
    only if the principal has existed for some minutes. If `keep_principal`, a later change of the principal does not
    replace the assignment.
    """

    subscription_id: Input[str]
    scope: Input[str]
    role: str
    principal_id: Input[str]
    principal_type: Literal["User", "Group", "ServicePrincipal"] | None = None
    keep_principal: bool = False


class Assignment(ComponentResource):
    """Assigns a role to a principal (`holdfast:index:Assignment`).

    Creates the RoleAssignment with a name derived from principal, role and scope: assigning twice gives the
    same resource.
    """

    def __init__(self, name: str, args: AssignmentArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:Assignment", name, None, opts)
        role = args.role
        RoleAssignment(
            f"{name}-assignment",
            scope=args.scope,
            role_definition_id=Output.from_input(args.subscription_id).apply(
                lambda subscription: role_definition_id(subscription, role)
            ),
            principal_id=args.principal_id,
            # If it is left out, the SDK sends `User`, and Azure rejects groups and service principals. An
            # explicit null makes Azure look it up.
            principal_type=args.principal_type or Output.from_input(None),
            role_assignment_name=Output.all(scope=args.scope, principal=args.principal_id).apply(
                lambda known: assignment_name(
                    scope=known["scope"], principal_id=known["principal"], role=role
                )
            ),
            opts=ResourceOptions(
                parent=self, ignore_changes=list(_OF_THE_PRINCIPAL) if args.keep_principal else None
            ),
        )
        self.register_outputs({})


@dataclass(frozen=True, kw_only=True)
class ClusterIdentityArgs:
    """The cluster's name and location, the network or subnet that it joins, the disk encryption set, and its pools' reservation groups."""

    cluster_name: str
    location: str
    subscription_id: str
    resource_group: Input[str]
    joined_id: Input[str]
    disk_encryption_set_id: Input[str] | None
    reservation_group_ids: Sequence[str] = ()


class ClusterIdentity(ComponentResource):
    """The identity of the control plane, with its permissions, before the cluster exists.

    Type token `holdfast:index:ClusterIdentity`. Creates the identity, a role assignment on the network or
    the subnet, which node auto-provisioning and a private DNS zone need in a custom network, one to read the disk encryption set, and one on each capacity
    reservation group. `identity_id` depends on all of them.
    """

    identity_id: Output[str]

    def __init__(self, name: str, args: ClusterIdentityArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:ClusterIdentity", name, None, opts)
        identity = UserAssignedIdentity(
            f"{name}-identity",
            resource_name_=args.cluster_name,
            resource_group_name=args.resource_group,
            location=args.location,
            opts=ResourceOptions(parent=self),
        )

        def granted(what: str, role: str, scope: Input[str]) -> Assignment:
            return Assignment(
                f"{name}-{what}",
                AssignmentArgs(
                    subscription_id=args.subscription_id,
                    scope=scope,
                    role=role,
                    principal_id=identity.principal_id,
                    principal_type="ServicePrincipal",
                ),
                opts=ResourceOptions(parent=self),
            )

        grants = [granted("subnet", NETWORK_CONTRIBUTOR, args.joined_id)]
        if args.disk_encryption_set_id is not None:
            grants.append(granted("disks", READER, args.disk_encryption_set_id))
        grants += [
            granted(f"capacity-{group.rpartition('/')[2]}", CONTRIBUTOR, group)
            for group in args.reservation_group_ids
        ]
        self.identity_id = tied_to(identity.id, grants)
        self.register_outputs({"identity_id": self.identity_id})


def deployer_assignment(
    name: str, *, subscription_id: str, resource_group: Input[str], principal_id: str, parent: Resource
) -> Assignment:
    """Make the principal that runs `pulumi` an administrator before the cluster exists.

    The role is on the resource group, and applies to clusters in it. It stays with the first deployer when another principal runs
    `up` (add that one to `admins`). Otherwise two deployers in turn would remove each other's role and wait minutes for their own.
    """
    return Assignment(
        name,
        AssignmentArgs(
            subscription_id=subscription_id,
            scope=Output.from_input(resource_group).apply(
                lambda group: f"/subscriptions/{subscription_id}/resourceGroups/{group}"
            ),
            role=AKS_RBAC_CLUSTER_ADMIN,
            principal_id=principal_id,
            keep_principal=True,
        ),
        opts=ResourceOptions(parent=parent),
    )


@dataclass(frozen=True, kw_only=True)
class AdministratorsArgs:
    """The object IDs of users, groups and service principals, and the cluster."""

    subscription_id: str
    cluster_id: Input[str]
    principal_ids: Sequence[Input[str]]


class Administrators(ComponentResource):
    """Further administrators of a cluster (`holdfast:index:Administrators`).

    Creates a role assignment on the cluster for each of them. The deployer, whose assignment is on the group,
    may be among them.
    """

    def __init__(self, name: str, args: AdministratorsArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:Administrators", name, None, opts)
        for index, principal_id in enumerate(args.principal_ids):
            Assignment(
                f"{name}-{principal_id if isinstance(principal_id, str) else index}",
                AssignmentArgs(
                    subscription_id=args.subscription_id,
                    scope=args.cluster_id,
                    role=AKS_RBAC_CLUSTER_ADMIN,
                    principal_id=principal_id,
                ),
                opts=ResourceOptions(parent=self),
            )
        self.register_outputs({})
