"""Validates an Azure stack's configuration: cluster, maintenance, network, checkpoints, and rules across them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from ipaddress import IPv4Network
from typing import Final

from pulumi_holdfast.azure.config.cluster import (
    AzureAccess,
    AzureCluster,
    AzureMaintenance,
    AzureMaintenanceExclusion,
    Scaling,
    cluster_variant,
)
from pulumi_holdfast.azure.config.fields import (
    SUBSCRIPTION,
    location_problem,
    subscription_problem,
    tenant_problem,
    zones_here,
)
from pulumi_holdfast.azure.config.network import (
    AzureClusterNetwork,
    AzureExistingNetwork,
    AzureNewNetwork,
    network_variant,
)
from pulumi_holdfast.azure.config.pool import AzurePoolSection, FixedPool, NapPool
from pulumi_holdfast.azure.config.pool_validation import (
    fixed_pool_problems,
    nap_pool_problems,
    scale_set_names,
    system_node_problems,
)
from pulumi_holdfast.azure.config.stack import (
    AzureCheckpoints,
    AzurePlatform,
    FixedDocument,
    FixedPlatform,
    NapDocument,
    NapPlatform,
)
from pulumi_holdfast.azure.names import LENGTHS, is_container_name
from pulumi_holdfast.config import validation
from pulumi_holdfast.config.accepted_clusters import accepted_cluster_problems
from pulumi_holdfast.config.errors import format_value
from pulumi_holdfast.config.existing import is_existing_cluster, new_network_problems
from pulumi_holdfast.config.loader import PLATFORM, read_part, read_parts, read_section
from pulumi_holdfast.config.namespace import NamespaceSection
from pulumi_holdfast.config.network_validation import (
    ADDRESS_BITS,
    Range,
    covers_internet,
    fewest_bits,
    overlapping_range_problems,
    private_block_problems,
    public_range_problems,
    range_size_problems,
    service_range_problems,
)
from pulumi_holdfast.config.validation import NAMESPACES, pool_and_ladder_problems
from pulumi_holdfast.ladder.errors import Problem
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.taints import AKS_SPOT, GPU, SPOT

_A_DEFAULT_NAP_POOL: Final = (
    "`{name: cpu, capacity: on-demand, vmSizes: [Standard_D4ds_v5], maxNodes: 20, default: true}`"
)
_A_DEFAULT_FIXED_POOL: Final = (
    "`{name: cpu, capacity: on-demand, vmSize: Standard_D4ds_v5, maxNodes: 20, default: true}`"
)

#: Prefixes of the namespaces that AKS creates.
_OF_AKS: Final = ("aks-", "gatekeeper-")

#: The location for looking up families while the stack's location is unknown: it has nearly all of them.
_LARGEST_LOCATION: Final = "eastus"


def read_azure_platform(
    document: Json, *, location: str | None, subscription_id: str | None, tenant_id: str | None
) -> AzurePlatform:
    """Parse and validate an Azure stack's configuration.

    `location`, `subscription_id` and `tenant_id` are the stack's values of `azure-native:location`,
    `azure-native:subscriptionId` and `azure-native:tenantId`. Raises ConfigError with every problem.
    """
    beside = {"location": location, "subscriptionId": subscription_id, "tenantId": tenant_id}
    wrong = partial(azure_problems, location=location, subscription_id=subscription_id, tenant_id=tenant_id)
    if is_fixed(document):
        read_section(FixedDocument, document, wrong)
        return FixedPlatform.model_validate_json(json.dumps({**document, **beside}))
    read_section(NapDocument, document, wrong)
    return NapPlatform.model_validate_json(json.dumps({**document, **beside}))


def is_fixed(document: Json) -> bool:
    """Whether the pools of a document are scale sets, not pools of node auto-provisioning."""
    cluster, pools = document.get("cluster"), document.get("pools")
    scaling = cluster.get("scaling", Scaling.NAP.value) if isinstance(cluster, Mapping) else None
    if scaling in list(Scaling):
        return scaling == Scaling.FIXED.value
    # A typo in this field, or above it, must not cause a problem in every pool.
    written = pools if isinstance(pools, list | tuple) else ()
    return any(isinstance(pool, Mapping) and "vmSize" in pool for pool in written)


def azure_problems(
    document: Json, *, location: str | None, subscription_id: str | None, tenant_id: str | None
) -> Iterator[Problem]:
    """The problems of an Azure stack's document and settings that involve more than one field."""
    wrong_location = location_problem(location)
    wrong_subscription = subscription_problem(subscription_id)
    wrong = (wrong_location, wrong_subscription, tenant_problem(tenant_id))
    yield from (problem for problem in wrong if problem is not None)
    # Zones and machines depend on the location: their rules do not run without a valid one.
    here = None if wrong_location else location
    read = read_part(cluster_variant(document.get("cluster")), document, "cluster")
    cluster = read if isinstance(read, AzureCluster) else None
    yield from new_network_problems(document, f"{PLATFORM}.network", ("subnetId",))
    if cluster is not None:
        yield from cluster_problems(
            cluster,
            location=here,
            subscription=None if wrong_subscription else subscription_id,
            at=f"{PLATFORM}.cluster",
        )
    yield from _network(document, cluster)
    checkpoints = read_part(AzureCheckpoints, document, "checkpoints")
    if checkpoints is not None:
        yield from checkpoint_problems(checkpoints, here, f"{PLATFORM}.checkpoints")
    yield from _pools(document, here)
    yield from accepted_cluster_problems(document)
    namespaces = read_parts(NamespaceSection, document.get("namespaces")).names
    yield from container_problems(namespaces)
    yield from validation.cloud_prefix_problems(namespaces, _OF_AKS, "AKS", NAMESPACES)


def _network(document: Json, cluster: AzureCluster | None) -> Iterator[Problem]:
    network = read_part(network_variant(document.get("network")), document, "network")
    if (
        network is None
        or isinstance(network, AzureClusterNetwork)
        or is_existing_cluster(document.get("cluster"))
    ):
        return
    model: type[AzurePoolSection] = FixedPool if is_fixed(document) else NapPool
    pools = read_parts(model, document.get("pools")).items.values()
    # An upgrade adds a system node before it removes one.
    system = cluster.system_nodes.count + 1 if cluster else 0
    yield from network_problems(
        network,
        access=cluster.access if cluster else None,
        most_nodes=sum(pool.max_nodes for pool in pools) + system,
        at=f"{PLATFORM}.network",
    )


def _pools(document: Json, location: str | None) -> Iterator[Problem]:
    if is_fixed(document):
        fixed = read_parts(FixedPool, document.get("pools"))
        yield from scale_set_names(fixed.names)
        yield from pool_and_ladder_problems(
            document,
            fixed,
            problems_of=lambda pool, at: fixed_pool_problems(pool, location, at),
            as_pool=FixedPool.as_pool,
            a_default_pool=_A_DEFAULT_FIXED_POOL,
        )
        return
    yield from pool_and_ladder_problems(
        document,
        read_parts(NapPool, document.get("pools")),
        problems_of=lambda pool, at: nap_pool_problems(pool, location, at),
        as_pool=lambda pool: pool.as_pool(location or _LARGEST_LOCATION),
        a_default_pool=_A_DEFAULT_NAP_POOL,
    )


#: The taints of spot nodes; AKS adds its own to scale sets.
_SPOT_TAINTS: Final = {Scaling.NAP: (SPOT,), Scaling.FIXED: (SPOT, AKS_SPOT)}

_ONE_WAY_IN: Final = "one of public and private: true"


def cluster_problems(
    cluster: AzureCluster, *, location: str | None, subscription: str | None, at: str
) -> Iterator[Problem]:
    """The problems of a cluster; `location` and `subscription` are None if they are unknown."""
    taints = (*_SPOT_TAINTS[cluster.scaling], GPU)
    yield from validation.minor_version_problems(cluster.version, taints, f"{at}.version")
    yield from access_problems(cluster.access, f"{at}.access")
    yield from validation.duplicate_problems(cluster.admins, f"{at}.admins", "administrator")
    yield from maintenance_problems(cluster.maintenance, f"{at}.maintenance")
    yield from system_node_problems(cluster.system_nodes, location, f"{at}.systemNodes")
    if subscription is not None and cluster.disk_encryption_set is not None:
        yield from _in_subscription(cluster.disk_encryption_set, subscription, f"{at}.diskEncryptionSet")


def access_problems(access: AzureAccess, at: str) -> Iterator[Problem]:
    """Access that no client can use, or that the whole internet can use."""
    if access.public is None and not access.private:
        yield Problem(
            field=at,
            value="neither public nor private: true",
            allowed=_ONE_WAY_IN,
            fix="Add your public address, such as `public: {cidrs: [203.0.113.7/32]}`; or "
            "`private: true`, and run `pulumi up` in the stack's network or one connected to it.",
        )
    if access.public is not None and access.private:
        yield Problem(
            field=at,
            value="both",
            allowed=f"{_ONE_WAY_IN}: AKS allows no public addresses for a private cluster",
            fix="Remove one of the two.",
        )
    if access.public_name and not access.private:
        yield Problem(
            field=f"{at}.publicName",
            value="true without private: true",
            allowed="true for a private cluster: the name of a public one is always public",
            fix="Leave it out.",
        )
    if access.public is not None:
        yield from _public(access.public.cidrs, f"{at}.public.cidrs")


def _public(cidrs: tuple[str, ...], at: str) -> Iterator[Problem]:
    if covers_internet(cidrs):
        yield Problem(
            field=at,
            value="the whole internet",
            allowed="the public blocks of your network",
            fix="Write your own addresses, such as 203.0.113.0/24; or `private: true` instead of public.",
        )
    yield from validation.duplicate_problems(cidrs, at, "block")
    yield from private_block_problems(
        cidrs, at, fix="Write the public address of its NAT gateway; or `private: true` instead of public."
    )


def _in_subscription(resource: str, subscription: str, field: str) -> Iterator[Problem]:
    own = resource.split("/")[2]
    if own.lower() != subscription.lower():
        yield Problem(
            field=field,
            value=f"a disk encryption set in the subscription {own}",
            allowed=f"one in {subscription}, the stack's: Azure uses a set only within its subscription",
            fix=f"Create one there, or change {SUBSCRIPTION}.",
        )


def maintenance_problems(maintenance: AzureMaintenance, at: str) -> Iterator[Problem]:
    """Exclusions that end before they start, or that overlap."""
    exclusions = maintenance.exclusions
    for index, exclusion in enumerate(exclusions):
        field = f"{at}.exclusions[{index}]"
        if exclusion.end < exclusion.start:
            yield Problem(
                field=f"{field}.end",
                value=f"{exclusion.end}, before the start {exclusion.start}",
                allowed="the start date or a later one: the last day without upgrades",
                fix="Write a later date.",
            )
        else:
            yield from _overlap(exclusion, exclusions[:index], field, at)


def _overlap(
    exclusion: AzureMaintenanceExclusion, before: Sequence[AzureMaintenanceExclusion], field: str, at: str
) -> Iterator[Problem]:
    for index, other in enumerate(before):
        # Dates with the year first compare as text.
        if other.start <= exclusion.end and exclusion.start <= other.end:
            yield Problem(
                field=field,
                value=f"{exclusion.start} to {exclusion.end}, which overlaps {at}.exclusions[{index}]",
                allowed="days of no other exclusion",
                fix=f"Write one instead: {min(exclusion.start, other.start)} to {max(exclusion.end, other.end)}.",
            )
            return


#: The number of addresses that Azure reserves in a subnet.
_RESERVED_ADDRESSES: Final = 5

#: The prefix length of the block that Azure's overlay gives each node, for up to 250 pods.
_PODS_OF_A_NODE: Final = 24

_WIDEST_SERVICES: Final = 12
#: The tenth address is the cluster's DNS service.
_NARROWEST_SERVICES: Final = 28

#: Private ranges that AKS reserves.
_NETWORK_OF_AKS: Final = tuple(IPv4Network(cidr) for cidr in ("172.30.0.0/16", "172.31.0.0/16"))


def network_problems(
    network: AzureNewNetwork | AzureExistingNetwork, *, access: AzureAccess | None, most_nodes: int, at: str
) -> Iterator[Problem]:
    """The problems of a network.

    `most_nodes` is the largest number of nodes at a time, as far as it is known; `access` is None if it is unknown.
    """
    pods = Range(field=f"{at}.podsCidr", block=IPv4Network(network.pods_cidr))
    services = Range(field=f"{at}.servicesCidr", block=IPv4Network(network.services_cidr))
    ranges = [pods, services]
    if isinstance(network, AzureNewNetwork):
        nodes = Range(field=f"{at}.cidr", block=IPv4Network(network.cidr))
        ranges.insert(0, nodes)
        yield from range_size_problems(nodes, fewest_bits(most_nodes + _RESERVED_ADDRESSES), most_nodes)
    else:
        yield from _egress(network, access, f"{at}.egressCidrs")
    yield from public_range_problems(ranges)
    yield from _ranges_of_aks(ranges)
    yield from overlapping_range_problems(ranges)
    yield from range_size_problems(pods, fewest_bits(most_nodes) + ADDRESS_BITS - _PODS_OF_A_NODE, most_nodes)
    yield from service_range_problems(services, widest=_WIDEST_SERVICES, narrowest=_NARROWEST_SERVICES)


def _ranges_of_aks(ranges: Sequence[Range]) -> Iterator[Problem]:
    for one in ranges:
        kept = next((block for block in _NETWORK_OF_AKS if one.block.overlaps(block)), None)
        if kept is not None:
            yield Problem(
                field=one.field,
                value=f"{format_value(str(one.block))}, which overlaps {kept}",
                allowed="a block that does not overlap "
                + " and ".join(str(block) for block in _NETWORK_OF_AKS)
                + ", which AKS reserves",
                fix="Leave it out, or write another block.",
            )


def _egress(network: AzureExistingNetwork, access: AzureAccess | None, field: str) -> Iterator[Problem]:
    if access is not None and access.public is not None and not network.egress_cidrs:
        yield Problem(
            field=field,
            value="nothing, but the API server has a public address",
            allowed="the public egress addresses of the subnet's nodes, which reach the API server at its public address",
            fix="Add the address of the NAT gateway or the firewall from `az network public-ip show --ids ID --query "
            "ipAddress`, such as `egressCidrs: [198.51.100.7/32]`; or write `private: true` as the cluster's access.",
        )
    yield from validation.duplicate_problems(network.egress_cidrs, field, "block")
    yield from private_block_problems(
        network.egress_cidrs, field, fix="Write the public address of the NAT gateway or the firewall."
    )


def checkpoint_problems(checkpoints: AzureCheckpoints, location: str | None, at: str) -> Iterator[Problem]:
    """The problems of a storage account; `location` is None if it is unknown."""
    if location is not None and checkpoints.redundancy == "Standard_ZRS" and not zones_here(location):
        yield Problem(
            field=f"{at}.redundancy",
            value=f"Standard_ZRS in {location}, which has no zones",
            allowed="Standard_LRS in this location",
            fix="Write `redundancy: Standard_LRS`.",
        )
    field = f"{at}.allowedCidrs"
    yield from validation.duplicate_problems(checkpoints.allowed_cidrs, field, "block")
    yield from private_block_problems(
        checkpoints.allowed_cidrs,
        field,
        fix="Write public addresses: clients in the nodes' subnet have access already.",
    )


def container_problems(namespaces: Mapping[int, str]) -> Iterator[Problem]:
    """Namespaces whose name is not valid for the Blob Storage container of their checkpoints."""
    fewest, most = LENGTHS
    for index, name in namespaces.items():
        if not is_container_name(name) and re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", name):
            shorter = re.sub(r"-+", "-", name)[:most].strip("-")
            yield Problem(
                field=f"{NAMESPACES}[{index}].name",
                value=format_value(name),
                allowed=f"{fewest} to {most} characters without consecutive hyphens: its checkpoints are in a "
                "container with this name",
                fix=f'Write another name, such as "{shorter if len(shorter) >= fewest else f"{shorter}-training"}".',
            )
