"""Who may do everything in a cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pulumi import ComponentResource, Output, ResourceOptions
from pulumi_azure_native.managedidentity import UserAssignedIdentity

from holdfast.components.iam.azure import (
    AKS_RBAC_CLUSTER_ADMIN,
    NETWORK_CONTRIBUTOR,
    READER,
    Assignment,
    AssignmentArgs,
)
from holdfast.components.ordering import tied_to

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulumi import Input


@dataclass(frozen=True, kw_only=True)
class ClusterIdentityArgs:
    """The cluster's name and place; the subnet of its nodes, and the disk encryption set of their disks, if any."""

    cluster_name: str
    location: str
    subscription_id: str
    resource_group: Input[str]
    subnet_id: Input[str]
    disk_encryption_set_id: str | None


class ClusterIdentity(ComponentResource):
    """The identity of a cluster's control plane, one of our own: it is there, and let in, before the cluster.

    Creates the identity, the role assignment that lets it put machines and load balancers in the subnet, without which
    node auto-provisioning makes none in a network of ours, and the one to read the disk encryption set. `identity_id` is
    tied to all of them.
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

        grants = [granted("subnet", NETWORK_CONTRIBUTOR, args.subnet_id)]
        if args.disk_encryption_set_id is not None:
            grants.append(granted("disks", READER, args.disk_encryption_set_id))
        self.identity_id = tied_to(identity.id, grants)
        self.register_outputs({"identity_id": self.identity_id})


@dataclass(frozen=True, kw_only=True)
class DeployerArgs:
    """Whoever makes the stack, by their object id, and the resource group that the cluster is going to be in."""

    subscription_id: str
    resource_group: Input[str]
    principal_id: str


class Deployer(ComponentResource):
    """Lets whoever makes the stack into the cluster, before there is one.

    Creates their role on the resource group, which holds for clusters in it. It is theirs as long as the stack is there,
    also when somebody else runs `up`: who that may be, `admins` says. Otherwise each of two who take turns would take the
    other's role away, and find their own not heeded yet.
    """

    def __init__(self, name: str, args: DeployerArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:Deployer", name, None, opts)
        Assignment(
            f"{name}-role",
            AssignmentArgs(
                subscription_id=args.subscription_id,
                scope=Output.from_input(args.resource_group).apply(
                    lambda group: f"/subscriptions/{args.subscription_id}/resourceGroups/{group}"
                ),
                role=AKS_RBAC_CLUSTER_ADMIN,
                principal_id=args.principal_id,
                kept=True,
            ),
            opts=ResourceOptions(parent=self),
        )
        self.register_outputs({})


@dataclass(frozen=True, kw_only=True)
class AdministratorsArgs:
    """Users, groups and principals by their object ids, and the cluster."""

    subscription_id: str
    cluster_id: Input[str]
    principal_ids: Sequence[str]


class Administrators(ComponentResource):
    """Lets further people, groups and pipelines into a cluster.

    Creates a role for each of them, on the cluster itself: the deployer, who has one on the group, may be among them.
    """

    def __init__(self, name: str, args: AdministratorsArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:Administrators", name, None, opts)
        for principal_id in args.principal_ids:
            Assignment(
                f"{name}-{principal_id}",
                AssignmentArgs(
                    subscription_id=args.subscription_id,
                    scope=args.cluster_id,
                    role=AKS_RBAC_CLUSTER_ADMIN,
                    principal_id=principal_id,
                ),
                opts=ResourceOptions(parent=self),
            )
        self.register_outputs({})
