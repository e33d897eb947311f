"""Checks the existing subnet of a stack: the checkpoints admit only clients in it, by its service endpoint for storage."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pulumi_holdfast.azure.config.sections import AzureExistingNetwork
from pulumi_holdfast.azure.preflight.quotas import MANAGEMENT
from pulumi_holdfast.config.errors import format_value
from pulumi_holdfast.config.fields import known
from pulumi_holdfast.config.loader import PLATFORM
from pulumi_holdfast.config.preflight import EXISTING
from pulumi_holdfast.ladder.errors import Problem
from pulumi_holdfast.ladder.json import mapping, sequence

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pulumi_holdfast.azure.config.sections import AzurePlatform
    from pulumi_holdfast.azure.preflight.existing_cluster import ExistingAks
    from pulumi_holdfast.azure.preflight.quotas import Get

#: What Azure calls the endpoint of a subnet for storage in its region, and for storage in all regions.
STORAGE: Final = "Microsoft.Storage"
_GLOBAL_STORAGE: Final = "Microsoft.Storage.Global"


def existing_subnet(platform: AzurePlatform, cluster: ExistingAks | None) -> str | None:
    """The id of the existing subnet of a stack's nodes: its own, or that of its existing cluster.

    None if the stack creates it, or if the checkpoints have a private endpoint, which needs nothing of the subnet.
    """
    if platform.checkpoints.private_endpoint is not None:
        return None
    network = platform.network
    if isinstance(network, AzureExistingNetwork):
        return known(network.subnet_id)
    return known(cluster.subnet_id) or None if cluster is not None else None


def service_endpoints(subnet_id: str, get: Get) -> frozenset[str]:
    """Query the services that a subnet has endpoints for. The subnet can be in another subscription."""
    found = mapping(get(f"{MANAGEMENT}{subnet_id}?api-version=2024-05-01").get("properties"))
    return frozenset(str(mapping(one).get("service")) for one in sequence(found.get("serviceEndpoints")))


def subnet_problems(
    platform: AzurePlatform, cluster: ExistingAks | None, services: frozenset[str] | None
) -> Iterator[Problem]:
    """The problem of a subnet without a service endpoint for storage; `services` is None if the query failed.

    Azure refuses the storage account's rule for such a subnet, after the cluster has been created.
    """
    subnet_id = existing_subnet(platform, cluster)
    if subnet_id is None or services is None or services & {STORAGE, _GLOBAL_STORAGE}:
        return
    endpoints = " ".join((*sorted(services), STORAGE))
    own = isinstance(platform.network, AzureExistingNetwork)
    yield Problem(
        field=f"{PLATFORM}.network.subnetId" if own else EXISTING,
        value=f"{format_value(subnet_id)}, a subnet with service endpoints for {', '.join(sorted(services)) or 'no service'}",
        allowed=f"a subnet with a service endpoint for {STORAGE}: only clients in it reach the checkpoints",
        fix=f"Run `az network vnet subnet update --ids {subnet_id} --service-endpoints {endpoints}`.",
    )
