"""Role assignments of an AKS cluster: its own identity, the deployer and the administrators."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pulumi import ComponentResource, Input, Output, Resource, ResourceOptions
from pulumi_azure_native.managedidentity import UserAssignedIdentity

from pulumi_holdfast.azure.role_assignments import (
    AKS_RBAC_CLUSTER_ADMIN,
    CONTRIBUTOR,
    NETWORK_CONTRIBUTOR,
    READER,
    Assignment,
    AssignmentArgs,
)
from pulumi_holdfast.kubernetes.ordering import tied_to


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
