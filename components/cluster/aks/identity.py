"""Who the cluster is, where it may put machines and which disks it may encrypt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pulumi import ComponentResource, Output, ResourceOptions
from pulumi_azure_native.managedidentity import UserAssignedIdentity

from holdfast.components.iam.azure import NETWORK_CONTRIBUTOR, READER, Assignment, AssignmentArgs
from holdfast.components.ordering import tied_to

if TYPE_CHECKING:
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
