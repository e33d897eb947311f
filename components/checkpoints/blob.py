"""Checkpoints in Azure Blob Storage."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from pulumi import ComponentResource, Output, ResourceOptions
from pulumi_azure_native.resources import ResourceGroup
from pulumi_azure_native.storage import (
    BlobContainer,
    BlobServiceProperties,
    ManagementPolicy,
    PublicAccess,
    StorageAccount,
)

from holdfast.components.checkpoints.blob_names import is_container_name
from holdfast.components.network.ordering import tied_to

if TYPE_CHECKING:
    from collections.abc import Sequence

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
