"""Checkpoints on Azure: the storage account of a cluster, and where the jobs of each training namespace keep theirs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from ipaddress import IPv4Network
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import pulumi
from pulumi import ComponentResource, Input, Output, ResourceOptions
from pulumi_azure_native.resources import ResourceGroup
from pulumi_azure_native.storage import (
    Action,
    BlobContainer,
    BlobServiceProperties,
    DefaultAction,
    EncryptionArgsDict,
    IPRuleArgsDict,
    ManagementPolicy,
    ManagementPolicyRuleArgsDict,
    NetworkRuleSetArgsDict,
    PublicAccess,
    StorageAccount,
)

from pulumi_holdfast.azure.names import is_container_name, storage_account_prefix
from pulumi_holdfast.azure.private_endpoint import (
    BlobPrivateEndpoint,
    BlobPrivateEndpointArgs,
    BlobZone,
    BlobZoneArgs,
)
from pulumi_holdfast.config import naming
from pulumi_holdfast.kubernetes.kubernetes_object import tied_to
from pulumi_holdfast.kubernetes.other_clusters import USE_OTHER_STORE, home_checkpoints
from pulumi_holdfast.kubernetes.outputs import CHECKPOINT_ACCOUNT
from pulumi_holdfast.ladder.json import mapping

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pulumi_holdfast.azure.config.sections import AzurePlatform
    from pulumi_holdfast.azure.preflight.checks import Subscription
    from pulumi_holdfast.kubernetes.other_clusters import Home, HomeCheckpoints
    from pulumi_holdfast.ladder.json import JsonValue

#: The fewest and the most days for which Blob Storage keeps deleted data.
RETAIN_DAYS: Final = (1, 365)

#: Copies in one data center, or in three zones, which not every region has.
Redundancy: TypeAlias = Literal["Standard_LRS", "Standard_ZRS"]

# At least one full day: counted from when a version was written, not from when it was replaced.
_VERSION_DAYS: Final = 1

# The name that Azure requires for both resources; a storage account has one of each.
_ONLY: Final = "default"


@dataclass(frozen=True, kw_only=True)
class CustomerKey:
    """A key of the user's: its vault's URL, its name, and the ID of the managed identity with which the account uses it.

    Without a version the account uses the newest one.
    """

    vault: str
    name: str
    identity_id: Input[str]


@dataclass(frozen=True, kw_only=True)
class CheckpointBucketArgs:
    """Arguments of `CheckpointBucket`.

    `location` is the cluster's. Only clients in the subnet `subnet_id` and clients with a public address in `allowed_cidrs`
    reach the account: by the subnet's service endpoint for storage, or by a private endpoint with its name in the DNS zone
    `private_zone_id`. `namespaces` are the training namespaces; each gets a container. `retain_days` (1 to 365) is how long overwritten or deleted checkpoints can be restored.
    `redundancy` is where the copies are. If `protected`, the store cannot be deleted and, once the protection is removed, is
    retained when the stack is destroyed; otherwise it is deleted with its checkpoints. `key` encrypts the checkpoints; None for
    Azure's keys.

    Raises ValueError for values that Blob Storage would reject during an update.
    """

    location: str
    subnet_id: Input[str]
    namespaces: Sequence[str]
    retain_days: int
    protected: bool
    redundancy: Redundancy = "Standard_ZRS"
    allowed_cidrs: Sequence[str] = ()
    key: CustomerKey | None = None
    private_zone_id: Input[str] | None = None

    def __post_init__(self) -> None:
        fewest, most = RETAIN_DAYS
        if not fewest <= self.retain_days <= most:
            raise ValueError(f"retain_days is {self.retain_days}: Blob Storage allows {fewest} to {most}")
        for namespace in self.namespaces:
            if not is_container_name(namespace):
                raise ValueError(
                    f"{namespace!r} is no valid container name: use 3 to 63 of a-z, 0-9 and single hyphens"
                )


class CheckpointBucket(ComponentResource):
    """The checkpoint store on Azure (`holdfast:index:CheckpointBucket`): a container for each namespace.

    Creates a ResourceGroup of its own, so that deleting another group does not delete the checkpoints; a
    StorageAccount closed to other networks, without public access, shared keys or plain HTTP; versioning with soft delete for blobs and
    containers; a lifecycle that deletes old versions and never a current blob; and the BlobContainers. The
    group and the account have generated names, so that a new stack does not collide with an account that an
    old stack left behind; the account's begins with the letters and digits of `name`.
    """

    def __init__(self, name: str, args: CheckpointBucketArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:CheckpointBucket", name, None, opts)
        retained = ResourceOptions(parent=self, protect=args.protected, retain_on_delete=args.protected)
        group = ResourceGroup(f"{name}-group", location=args.location, opts=retained)
        is_public = args.private_zone_id is None or bool(args.allowed_cidrs)
        account = StorageAccount(
            storage_account_prefix(name),
            resource_group_name=group.name,
            location=args.location,
            kind="StorageV2",
            sku={"name": args.redundancy},
            allow_blob_public_access=False,
            # Only Entra ID: a shared key gives access to the checkpoints of all namespaces with all versions.
            allow_shared_key_access=False,
            is_local_user_enabled=False,
            default_to_o_auth_authentication=True,
            allow_cross_tenant_replication=False,
            enable_https_traffic_only=True,
            minimum_tls_version="TLS1_2",
            # The rules below apply to the public endpoint, which the service endpoint uses, too.
            public_network_access="Enabled" if is_public else "Disabled",
            network_rule_set=_network_rules(
                args.subnet_id if args.private_zone_id is None else None, args.allowed_cidrs
            ),
            encryption=None if args.key is None else _encryption(args.key),
            identity=None
            if args.key is None
            else {"type": "UserAssigned", "user_assigned_identities": [args.key.identity_id]},
            opts=retained,
        )
        service = BlobServiceProperties(
            f"{name}-service",
            account_name=account.name,
            resource_group_name=group.name,
            blob_services_name=_ONLY,
            is_versioning_enabled=True,
            delete_retention_policy={"enabled": True, "days": args.retain_days},
            container_delete_retention_policy={"enabled": True, "days": args.retain_days},
            opts=retained,
        )
        after_service = ResourceOptions.merge(retained, ResourceOptions(depends_on=[service]))
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
                # Without soft delete a checkpoint would be deleted permanently.
                opts=after_service,
            )
            for namespace in args.namespaces
        }
        if args.private_zone_id is not None:
            BlobPrivateEndpoint(
                f"{name}-private",
                BlobPrivateEndpointArgs(
                    location=args.location,
                    resource_group=group.name,
                    subnet_id=args.subnet_id,
                    account_id=account.id,
                    dns_zone_id=args.private_zone_id,
                ),
                opts=ResourceOptions(parent=self),
            )
        self.resource_group = group.name
        self.account_id = account.id
        self.account_name = account.name
        self.register_outputs({"account_name": self.account_name})

    def container_id(self, namespace: str) -> Output[str]:
        """The resource ID of a namespace's container, available once the container exists.

        Raises ValueError for a namespace that is not in `namespaces`.
        """
        return self._container(namespace).id

    def uri(self, namespace: str) -> Output[str]:
        """The `abfss://` address of a namespace's checkpoints.

        At the account's blob endpoint: its dfs endpoint rejects requests, because the account has soft delete and no
        hierarchical namespace (EndpointUnsupportedAccountFeatures).
        """
        container = self._container(namespace)
        address = Output.concat("abfss://", namespace, "@", self.account_name, ".blob.core.windows.net")
        return tied_to(address, [container])

    def _container(self, namespace: str) -> BlobContainer:
        if namespace not in self._containers:
            raise ValueError(f"{namespace!r} is not one of the store's namespaces {sorted(self._containers)}")
        return self._containers[namespace]


def _network_rules(subnet_id: Input[str] | None, allowed_cidrs: Sequence[str]) -> NetworkRuleSetArgsDict:
    """The rules that close the account's public endpoint to all but a subnet and some public addresses."""
    return {
        "default_action": DefaultAction.DENY,
        "bypass": "None",
        "virtual_network_rules": []
        if subnet_id is None
        else [{"virtual_network_resource_id": subnet_id, "action": Action.ALLOW}],
        "ip_rules": [_ip_rule(each) for cidr in allowed_cidrs for each in _ranges(IPv4Network(cidr))],
    }


def _ip_rule(addresses: str) -> IPRuleArgsDict:
    return {"i_p_address_or_range": addresses, "action": Action.ALLOW}


# Storage accounts accept single addresses without a prefix, and no smaller block.
_SMALLEST_BLOCK: Final = 30


def _ranges(block: IPv4Network) -> Sequence[str]:
    return [str(block)] if block.prefixlen <= _SMALLEST_BLOCK else [str(address) for address in block]


def _encryption(key: CustomerKey) -> EncryptionArgsDict:
    return {
        "key_source": "Microsoft.Keyvault",
        "key_vault_properties": {"key_vault_uri": key.vault, "key_name": key.name},
        "encryption_identity": {"encryption_user_assigned_identity": key.identity_id},
    }


def _old_versions() -> ManagementPolicyRuleArgsDict:
    """The rule that soft-deletes old versions; from then on they are kept for `retain_days`."""
    return {
        # Only letters and digits are allowed.
        "name": "OldVersions",
        "type": "Lifecycle",
        "enabled": True,
        "definition": {
            "filters": {"blob_types": ["blockBlob", "appendBlob"]},
            "actions": {"version": {"delete": {"days_after_creation_greater_than": _VERSION_DAYS}}},
        },
    }


@dataclass(frozen=True, kw_only=True)
class Store:
    """Where the jobs of a namespace keep their checkpoints: a container, and the subscription that it is in."""

    uri: Input[str]
    container_id: Input[str]
    subscription_id: Input[str]


def zone_of(
    platform: AzurePlatform, *, resource_group: Input[str], subnet_id: Input[str], parent: pulumi.Resource
) -> Input[str] | None:
    """The DNS zone of storage accounts with a private endpoint in a subnet: the user's or a new one; None without such an account."""
    private = platform.checkpoints.private_endpoint
    if private is None and not platform.checkpoint_homes:
        return None
    if private is not None and private.dns_zone is not None:
        return private.dns_zone
    return BlobZone(
        naming.part(parent.pulumi_resource_name, "blob-zone"),
        BlobZoneArgs(resource_group=resource_group, subnet_id=subnet_id),
        opts=pulumi.ResourceOptions(parent=parent),
    ).zone_id


def stores_of(
    platform: AzurePlatform,
    subscription: Subscription,
    checkpoints: CheckpointBucket,
    *,
    resource_group: Input[str],
    subnet_id: Input[str],
    zone_id: Input[str] | None,
    parent: pulumi.Resource,
) -> Mapping[str, Store]:
    """The store of each training namespace: the stack's account, or, of the same tenant, that in which accepted jobs keep theirs.

    The endpoint of such an account is created in `resource_group`, with an address of the subnet and its name in the zone.
    """
    own = {
        each.name: Store(
            uri=checkpoints.uri(each.name),
            container_id=checkpoints.container_id(each.name),
            subscription_id=subscription.subscription_id,
        )
        for each in platform.namespaces
    }
    at_home: dict[str, Store] = {}
    endpoints: dict[str, BlobPrivateEndpoint] = {}
    for name, found in home_checkpoints(platform.accepts_from, "Azure", parent=parent).items():
        account_id = _account_id(found, subscription.tenant_id)
        if zone_id is not None and found.home.stack not in endpoints:
            endpoints[found.home.stack] = BlobPrivateEndpoint(
                naming.home_endpoint(parent.pulumi_resource_name, found.home.stack),
                BlobPrivateEndpointArgs(
                    location=platform.location,
                    resource_group=resource_group,
                    subnet_id=subnet_id,
                    account_id=account_id,
                    dns_zone_id=zone_id,
                ),
                opts=pulumi.ResourceOptions(parent=parent),
            )
        at_home[name] = Store(
            uri=tied_to(found.uri, [endpoints[found.home.stack].names]),
            container_id=account_id.apply(partial(container_in, namespace=name)),
            subscription_id=account_id.apply(subscription_in),
        )
    return own | at_home


def container_in(account_id: str, namespace: str) -> str:
    """The resource ID of a namespace's container in a storage account."""
    return f"{account_id}/blobServices/default/containers/{namespace}"


def subscription_in(resource_id: str) -> str:
    """The subscription of a resource."""
    return resource_id.split("/")[2]


def _account_id(found: HomeCheckpoints, tenant: str) -> Output[str]:
    judged = pulumi.Output.all(found.uri, found.home.output(CHECKPOINT_ACCOUNT))
    return judged.apply(lambda known: account_at_home(found.home, *known, tenant=tenant))


def account_at_home(home: Home, uri: str, account: JsonValue, *, tenant: str) -> str:
    """The resource ID of the storage account that home's stack exports. Raises pulumi.RunError if identities here cannot use it."""
    exported = mapping(account)
    account_id, its_tenant = exported.get("id"), exported.get("tenantId")
    if not isinstance(account_id, str):
        raise home.refusal(
            "which exports no storage account",
            allowed="a stack of this release",
            fix="Update that stack with this release first.",
        )
    if its_tenant != tenant:
        raise home.refusal(
            f"with an account in the tenant {its_tenant}",
            allowed=f"a stack in the tenant {tenant}: no identity of one tenant gets rights in another",
            fix=USE_OTHER_STORE,
        )
    if f"@{account_id.rpartition('/')[2]}." not in uri:
        raise home.refusal(
            f"which keeps these checkpoints in the account of another stack, at {uri}",
            allowed="the stack that has the account",
            fix="Write the stack that this one names in its own acceptsFrom.",
        )
    return account_id
