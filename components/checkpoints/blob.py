"""Checkpoints in Azure Blob Storage."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from pulumi import ComponentResource, Output, ResourceOptions
from pulumi_azure_native.managedidentity import FederatedIdentityCredential, UserAssignedIdentity
from pulumi_azure_native.resources import ResourceGroup
from pulumi_azure_native.storage import (
    BlobContainer,
    BlobServiceProperties,
    ManagementPolicy,
    PublicAccess,
    StorageAccount,
)

from holdfast.components.azure_names import is_container_name
from holdfast.components.iam.azure import STORAGE_BLOB_DATA_CONTRIBUTOR, Assignment, AssignmentArgs
from holdfast.components.ordering import tied_to

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulumi import Input
    from pulumi_azure_native.storage import ManagementPolicyRuleArgsDict


#: Days for which Blob Storage can keep what was deleted, from the fewest to the most.
RETAIN_DAYS: Final = (1, 365)

#: Copies in one place, or in three zones of the region, which not every region has.
Redundancy: TypeAlias = Literal["Standard_LRS", "Standard_ZRS"]

# The fewest that are sure to be whole: counted from when a version was written, not from when another took its place.
_VERSION_DAYS: Final = 1

# The one there is in every storage account, of either kind.
_ONLY: Final = "default"


@dataclass(frozen=True, kw_only=True)
class CheckpointBucketArgs:
    """What a store of checkpoints is told.

    `location` is the cluster's; `namespaces` are the training namespaces, each with a container of its own.
    `retain_days` (1 to 365) is how long a checkpoint can be had back that was overwritten or deleted. `redundancy` says
    in how many places the copies are. `protected`: the store refuses to be deleted, and once that is lifted outlives
    the stack; else it goes with it, checkpoints and all.

    Raises ValueError for what Blob Storage would refuse halfway through an update.
    """

    location: str
    namespaces: Sequence[str]
    retain_days: int
    protected: bool
    redundancy: Redundancy = "Standard_ZRS"

    def __post_init__(self) -> None:
        fewest, most = RETAIN_DAYS
        if not fewest <= self.retain_days <= most:
            raise ValueError(
                f"Blob Storage keeps what was deleted for {fewest} to {most} days, not {self.retain_days}"
            )
        for namespace in self.namespaces:
            if not is_container_name(namespace):
                raise ValueError(
                    f"{namespace!r} cannot be a container's name: 3 to 63 of a-z, 0-9 and single hyphens"
                )


class CheckpointBucket(ComponentResource):
    """The place for checkpoints on Azure: one storage account, one container for each training namespace.

    Creates a ResourceGroup of its own, which no other resource's end takes with it; in it the StorageAccount, closed to
    the public, to shared keys and to plain text; versioned, with soft delete for versions and for containers, and a
    lifecycle that ends old versions and never a current blob; and the BlobContainers. Group and account have names that
    are made up, so that a new stack never meets the account that an old one left. `name` has up to 16 letters and
    digits, apart from hyphens: the account's begins with it.
    """

    def __init__(self, name: str, args: CheckpointBucketArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:CheckpointBucket", name, None, opts)
        kept = ResourceOptions(parent=self, protect=args.protected, retain_on_delete=args.protected)
        group = ResourceGroup(f"{name}-group", location=args.location, opts=kept)
        account = StorageAccount(
            # An account's name has neither hyphens nor more than 24 characters, 8 of them made up.
            name.replace("-", ""),
            resource_group_name=group.name,
            location=args.location,
            kind="StorageV2",
            sku={"name": args.redundancy},
            allow_blob_public_access=False,
            # Entra ID alone: whoever has a key has every namespace's checkpoints, versions and all.
            allow_shared_key_access=False,
            is_local_user_enabled=False,
            default_to_o_auth_authentication=True,
            allow_cross_tenant_replication=False,
            enable_https_traffic_only=True,
            minimum_tls_version="TLS1_2",
            opts=kept,
        )
        service = BlobServiceProperties(
            f"{name}-service",
            account_name=account.name,
            resource_group_name=group.name,
            blob_services_name=_ONLY,
            is_versioning_enabled=True,
            delete_retention_policy={"enabled": True, "days": args.retain_days},
            container_delete_retention_policy={"enabled": True, "days": args.retain_days},
            opts=kept,
        )
        after_service = ResourceOptions.merge(kept, ResourceOptions(depends_on=[service]))
        ManagementPolicy(
            f"{name}-lifecycle",
            account_name=account.name,
            resource_group_name=group.name,
            management_policy_name=_ONLY,
            policy={"rules": [_old_versions()]},
            opts=after_service,
        )
        self._containers = {
            namespace: BlobContainer(
                f"{name}-{namespace}",
                account_name=account.name,
                resource_group_name=group.name,
                container_name=namespace,
                public_access=PublicAccess.NONE,
                # A checkpoint that is written before soft delete is on would be deleted for good.
                opts=after_service,
            )
            for namespace in args.namespaces
        }
        self.account_name = account.name
        self.register_outputs({"account_name": self.account_name})

    def container_id(self, namespace: str) -> Output[str]:
        """The resource id of a namespace's container, there when the container is.

        Raises ValueError for a namespace that the store was not told of.
        """
        return self._container(namespace).id

    def uri(self, namespace: str) -> Output[str]:
        """The `abfss://` address of a namespace's checkpoints: its container in the account."""
        container = self._container(namespace)
        address = Output.concat("abfss://", namespace, "@", self.account_name, ".dfs.core.windows.net")
        return tied_to(address, [container])

    def _container(self, namespace: str) -> BlobContainer:
        if namespace not in self._containers:
            raise ValueError(f"{namespace!r} is none of the store's namespaces: {sorted(self._containers)}")
        return self._containers[namespace]


def _old_versions() -> ManagementPolicyRuleArgsDict:
    """The rule that deletes what was overwritten or deleted, softly: from then on it is kept for the days asked for."""
    return {
        # Letters and digits alone.
        "name": "OldVersions",
        "type": "Lifecycle",
        "enabled": True,
        "definition": {
            "filters": {"blob_types": ["blockBlob", "appendBlob"]},
            "actions": {"version": {"delete": {"days_after_creation_greater_than": _VERSION_DAYS}}},
        },
    }


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
