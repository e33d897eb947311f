"""A training namespace's way to its own checkpoints in Blob Storage."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pulumi import ComponentResource, ResourceOptions
from pulumi_azure_native.managedidentity import FederatedIdentityCredential, UserAssignedIdentity

from holdfast.components.iam.azure_assignment import Assignment, AssignmentArgs
from holdfast.components.iam.azure_roles import STORAGE_BLOB_DATA_CONTRIBUTOR
from holdfast.components.network.ordering import tied_to

if TYPE_CHECKING:
    from pulumi import Input

#: On a service account: the identity that its pods get.
CLIENT_ID: Final = "azure.workload.identity/client-id"

# What the tokens of pods are for, in the one audience that Entra ID takes them for.
_AUDIENCE: Final = "api://AzureADTokenExchange"


@dataclass(frozen=True, kw_only=True)
class CheckpointAccessArgs:
    """Whose way it is and where to.

    `resource_group` and `location` are where the identity is made, `subscription_id` is the subscription they are in.
    `oidc_issuer` is the cluster's; `namespace` and `service_account` say which of its pods. `container_id` is the
    resource id of the container.
    """

    resource_group: Input[str]
    location: str
    subscription_id: str
    oidc_issuer: Input[str]
    namespace: str
    service_account: str = "trainer"
    container_id: Input[str]


class CheckpointAccess(ComponentResource):
    """Lets the pods of one service account reach one container, and nothing else.

    Creates a UserAssignedIdentity, its one FederatedIdentityCredential, which says that those pods are it, and the
    Assignment that gives it the container. `client_id`, for the service account's annotation CLIENT_ID, is known
    when all are there. Neither namespace nor service account need be there yet. Entra ID takes up to a few minutes
    until it heeds a new credential, and up to ten for a new assignment: jobs are refused until then.

    One identity has room for 20 credentials, written one after the other: here it has one, so that a namespace more
    waits for no other, and no cluster can use up those of the next.
    """

    def __init__(self, name: str, args: CheckpointAccessArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:CheckpointAccess", name, None, opts)
        identity = UserAssignedIdentity(
            f"{name}-identity",
            resource_group_name=args.resource_group,
            location=args.location,
            opts=ResourceOptions(parent=self),
        )
        credential = FederatedIdentityCredential(
            f"{name}-credential",
            resource_name_=identity.name,
            resource_group_name=args.resource_group,
            issuer=args.oidc_issuer,
            subject=f"system:serviceaccount:{args.namespace}:{args.service_account}",
            audiences=[_AUDIENCE],
            opts=ResourceOptions(parent=self),
        )
        assignment = Assignment(
            f"{name}-checkpoints",
            AssignmentArgs(
                subscription_id=args.subscription_id,
                scope=args.container_id,
                role=STORAGE_BLOB_DATA_CONTRIBUTOR,
                principal_id=identity.principal_id,
                # Else Azure looks for the principal, which the place it looks in may not know for minutes.
                principal_type="ServicePrincipal",
            ),
            opts=ResourceOptions(parent=self),
        )
        self.client_id = tied_to(identity.client_id, [credential, assignment])
        self.register_outputs({"client_id": self.client_id})
