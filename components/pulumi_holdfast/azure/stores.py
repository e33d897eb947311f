"""The stores of an Azure stack: where the jobs of each training namespace keep their checkpoints, here or at home.

Home's storage account refuses every other network. A private endpoint in the nodes' subnet leads to it from here, whatever its
network rules are; its name is in a DNS zone that all such endpoints of the network share.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import pulumi

from pulumi_holdfast.azure.private_endpoint import (
    BlobPrivateEndpoint,
    BlobPrivateEndpointArgs,
    BlobZone,
    BlobZoneArgs,
)
from pulumi_holdfast.config import naming
from pulumi_holdfast.kubernetes.ordering import tied_to
from pulumi_holdfast.kubernetes.other_clusters.home_checkpoints import USE_OTHER_STORE, home_checkpoints
from pulumi_holdfast.kubernetes.outputs import CHECKPOINT_ACCOUNT
from pulumi_holdfast.ladder.json import mapping

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pulumi import Input, Output

    from pulumi_holdfast.azure.checkpoints import CheckpointBucket
    from pulumi_holdfast.azure.config.sections import AzurePlatform
    from pulumi_holdfast.azure.preflight import Subscription
    from pulumi_holdfast.kubernetes.other_clusters.home_checkpoints import Home, HomeCheckpoints
    from pulumi_holdfast.ladder.json import JsonValue


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
