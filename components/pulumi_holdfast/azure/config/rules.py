"""The rules on the parsed configuration of a stack on Azure."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from ipaddress import IPv4Network
from typing import Final

from pulumi_holdfast.azure.config.sections import (
    LOCATION,
    NO_CAP,
    RESERVED_NEEDS_FIXED,
    SUBSCRIPTION,
    TENANT,
    AzureAccess,
    AzureCheckpoints,
    AzureCluster,
    AzureClusterNetwork,
    AzureExistingNetwork,
    AzureMaintenanceExclusion,
    AzureNewNetwork,
    AzurePlatform,
    AzurePool,
    AzureSystemNodes,
    Scaling,
    zones_here,
)
from pulumi_holdfast.azure.names import LENGTHS, agent_pool_name, is_container_name
from pulumi_holdfast.config import cidrs as networks
from pulumi_holdfast.config import rules
from pulumi_holdfast.config.errors import format_value
from pulumi_holdfast.config.fields import known, known_items
from pulumi_holdfast.config.loader import checked, parse
from pulumi_holdfast.config.namespace import NamespaceSection
from pulumi_holdfast.config.storage import VolumeKind
from pulumi_holdfast.config.storage_rules import STORAGE, Sizes, storage_problems
from pulumi_holdfast.ladder.errors import Problem
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import CapacityType
from pulumi_holdfast.ladder.machines import Machine, family_of
from pulumi_holdfast.ladder.taints import AKS_SPOT, GPU, SPOT

#: Prefixes of the namespaces that AKS creates.
_OF_AKS: Final = ("aks-", "gatekeeper-")


def read_azure_platform(
    document: Json, *, location: str | None, subscription_id: str | None, tenant_id: str | None
) -> AzurePlatform:
    """Parse an Azure stack's configuration, and check its rules.

    `location`, `subscription_id` and `tenant_id` are the stack's values of `azure-native:location`,
    `azure-native:subscriptionId` and `azure-native:tenantId`. Raises ConfigError with every problem of the shape; or, if it
    has none, with every problem of the rules.
    """
    settings = {LOCATION: location, SUBSCRIPTION: subscription_id, TENANT: tenant_id}
    platform = parse(AzurePlatform, document, settings)
    return checked(platform, azure_problems(platform))


def azure_problems(platform: AzurePlatform) -> Iterator[Problem]:
    """The problems of a platform that involve more than one field, or a setting."""
    market = rules.market_of(
        "azure",
        platform.location,
        what="VM size",
        setting=LOCATION,
        command=f"az vm list-skus --location {platform.location} --resource-type virtualMachines --query [].name",
    )
    cluster, network = platform.cluster, platform.network
    yield from rules.network_beside_existing_problems(cluster, network, AzureNewNetwork, ("subnetId",))
    if isinstance(cluster, AzureCluster):
        yield from _cluster(cluster, platform, market)
        if not isinstance(network, AzureClusterNetwork):
            # An upgrade adds a system node before it removes one.
            most_nodes = sum(pool.max_nodes for pool in platform.pools) + cluster.system_nodes.count + 1
            yield from _network(network, cluster.access, most_nodes)
    yield from _checkpoints(platform.checkpoints, platform.location)
    yield from _storage(platform)
    if platform.has_scale_sets:
        yield from _scale_set_names([pool.name for pool in platform.pools])
    of_pool = _fixed_pool if platform.has_scale_sets else _nap_pool
    yield from rules.pool_and_ladder_problems(
        platform,
        platform.pools,
        problems_of=lambda pool, at: of_pool(pool, market, at),
        as_pool=lambda pool: pool.as_pool(market.region),
        a_default_pool="{name: cpu, capacity: on-demand, vmSizes: [Standard_D4ds_v5], maxNodes: 20, default: true}",
    )
    yield from rules.accepted_cluster_problems(platform.accepts_from, platform.namespaces)
    yield from _container_names(platform.namespaces)
    yield from rules.tag_problems(platform.tags, _TAGS)
    yield from rules.cloud_prefix_problems(platform.namespaces, _OF_AKS, "AKS")


#: The sizes of a premium share of Azure Files.
_SHARE: Final = Sizes(least=100, most=102_400, step=1)

#: The smallest file system of Azure Managed Lustre in TiB, and the step to larger ones, by its throughput; and the largest.
_LUSTRE: Final = {40: (48, 768), 125: (16, 128), 250: (8, 128), 500: (4, 128)}


def _storage(platform: AzurePlatform) -> Iterator[Problem]:
    sizes = {
        number: _SHARE if volume.kind is VolumeKind.SHARED else _lustre(*_LUSTRE[volume.throughput])
        for number, volume in enumerate(platform.storage)
        if volume.kind is not VolumeKind.BUCKET
    }
    yield from storage_problems(
        platform.storage, platform.namespaces, sizes, zones=zones_here(platform.location)
    )
    network = platform.network
    own, other = ("cidr", "subnetId") if isinstance(network, AzureNewNetwork) else ("subnetId", "cidr")
    for number, volume in enumerate(platform.storage):
        at, given = f"{STORAGE}[{number}]", {"cidr": volume.cidr, "subnetId": volume.subnet_id}
        if volume.kind is VolumeKind.BUCKET and not is_container_name(volume.name):
            allowed = "a container's name: 3 to 63 of a-z, 0-9 and single hyphens"
            yield Problem(f"{at}.name", format_value(volume.name), allowed, "Write a longer name.")
        if volume.kind is not VolumeKind.PARALLEL:
            continue
        if given[own] is None:
            where = "the stack's network" if own == "cidr" else "an existing network"
            yield Problem(f"{at}.{own}", "nothing", f"a value in {where}", "Add it.")
        if given[other] is not None:
            yield Problem(
                f"{at}.{other}", "a value", f"nothing: write {own} in this network", "Leave it out."
            )
        if isinstance(network, AzureNewNetwork) and volume.cidr is not None:
            yield from _lustre_subnet(volume.cidr, network.cidr, f"{at}.cidr")


def _lustre(least: int, most: int) -> Sizes:
    return Sizes(least=least * 1024, most=most * 1024, step=least * 1024)


#: The smallest subnet of a file system of Azure Managed Lustre.
_LUSTRE_SUBNET: Final = 27


def _lustre_subnet(cidr: str, network: str, at: str) -> Iterator[Problem]:
    block = IPv4Network(cidr)
    if block.prefixlen > _LUSTRE_SUBNET or block.overlaps(IPv4Network(network)):
        allowed = f"a block of /{_LUSTRE_SUBNET} or larger outside {network}, the network's"
        yield Problem(at, format_value(cidr), allowed, "Write another private block, such as 10.60.0.0/26.")


_TAGS: Final = rules.TagRules(
    key=r"[^<>%&\\?/]{1,128}",
    value=r".{0,256}",
    allowed="a key of 1 to 128 characters without `<>%&\\?/`, and a value of up to 256",
    own=("microsoft", "azure", "windows", "aks-managed", "karpenter", "managed-by", "holdfast"),
)

#: The taints of spot nodes; AKS adds its own to scale sets.
_SPOT_TAINTS: Final = {Scaling.NAP: (SPOT,), Scaling.FIXED: (SPOT, AKS_SPOT)}


def _cluster(
    cluster: AzureCluster, platform: AzurePlatform, market: rules.MachineMarket
) -> Iterator[Problem]:
    yield from rules.minor_version_problems(cluster.version, (*_SPOT_TAINTS[cluster.scaling], GPU))
    yield from _access(cluster.access)
    admins = known_items(cluster.admins)
    yield from rules.duplicate_problems(admins, f"{rules.CLUSTER}.admins", "administrator")
    yield from _exclusions(cluster.maintenance.exclusions, f"{rules.CLUSTER}.maintenance.exclusions")
    yield from _system_nodes(cluster.system_nodes, market)
    disks, subscription = known(cluster.disk_encryption_set), platform.subscription_id
    own = disks.split("/")[2] if disks is not None else ""
    if disks is not None and subscription is not None and own.lower() != subscription.lower():
        got = f"a disk encryption set in the subscription {own}"
        allowed = f"one in {subscription}, the stack's: Azure uses a set only within its subscription"
        fix = f"Create one there, or change {SUBSCRIPTION}."
        yield Problem(f"{rules.CLUSTER}.diskEncryptionSet", got, allowed, fix)


_ONE_WAY_IN: Final = "one of public and private: true"


def _access(access: AzureAccess) -> Iterator[Problem]:
    """Access that no client can use, or that the whole internet can use."""
    at = f"{rules.CLUSTER}.access"
    if access.public is None and not access.private:
        fix = "Add your public address, such as `public: {cidrs: [203.0.113.7/32]}`; or `private: true`, and run `pulumi up` in the stack's network or one connected to it."
        yield Problem(at, "neither public nor private: true", _ONE_WAY_IN, fix)
    if access.public is not None and access.private:
        allowed = f"{_ONE_WAY_IN}: AKS allows no public addresses for a private cluster"
        yield Problem(at, "both", allowed, "Remove one of the two.")
    if access.public_name and not access.private:
        allowed = "true for a private cluster: the name of a public one is always public"
        yield Problem(f"{at}.publicName", "true without private: true", allowed, "Leave it out.")
    cidrs, field = access.public.cidrs if access.public is not None else (), f"{at}.public.cidrs"
    if networks.covers_internet(cidrs):
        fix = "Write your own addresses, such as 203.0.113.0/24; or `private: true` instead of public."
        yield Problem(field, "the whole internet", "the public blocks of your network", fix)
    yield from rules.duplicate_problems(cidrs, field, "block")
    yield from networks.private_block_problems(
        cidrs, field, fix="Write the public address of its NAT gateway; or `private: true` instead of public."
    )


def _exclusions(exclusions: Sequence[AzureMaintenanceExclusion], at: str) -> Iterator[Problem]:
    """Exclusions that end before they start, or that overlap."""
    for index, exclusion in enumerate(exclusions):
        if exclusion.end < exclusion.start:
            got = f"{exclusion.end}, before the start {exclusion.start}"
            allowed = "the start date or a later one: the last day without upgrades"
            yield Problem(f"{at}[{index}].end", got, allowed, "Write a later date.")
            continue
        # Dates with the year first compare as text.
        before = (other for other in enumerate(exclusions[:index]) if other[1].start <= exclusion.end)
        found = next(((place, other) for place, other in before if exclusion.start <= other.end), None)
        if found is not None:
            place, other = found
            got = f"{exclusion.start} to {exclusion.end}, which overlaps {at}[{place}]"
            fix = (
                f"Write one instead: {min(exclusion.start, other.start)} to {max(exclusion.end, other.end)}."
            )
            yield Problem(f"{at}[{index}]", got, "days of no other exclusion", fix)


#: The number of addresses that Azure reserves in a subnet.
_RESERVED_ADDRESSES: Final = 5

#: The prefix length of the block that Azure's overlay gives each node, for up to 250 pods.
_PODS_OF_A_NODE: Final = 24

_WIDEST_SERVICES: Final = 12
#: The tenth address is the cluster's DNS service.
_NARROWEST_SERVICES: Final = 28

#: Private ranges that AKS reserves.
_NETWORK_OF_AKS: Final = tuple(IPv4Network(cidr) for cidr in ("172.30.0.0/16", "172.31.0.0/16"))


def _network(
    network: AzureNewNetwork | AzureExistingNetwork, access: AzureAccess, most_nodes: int
) -> Iterator[Problem]:
    """The problems of a network; `most_nodes` is the largest number of nodes at a time."""
    pods = networks.Range(field=f"{rules.NETWORK}.podsCidr", block=IPv4Network(network.pods_cidr))
    services = networks.Range(field=f"{rules.NETWORK}.servicesCidr", block=IPv4Network(network.services_cidr))
    ranges = [pods, services]
    if isinstance(network, AzureNewNetwork):
        nodes = networks.Range(field=f"{rules.NETWORK}.cidr", block=IPv4Network(network.cidr))
        ranges.insert(0, nodes)
        yield from networks.range_size_problems(
            nodes, networks.fewest_bits(most_nodes + _RESERVED_ADDRESSES), most_nodes
        )
    else:
        yield from _egress(network, access, f"{rules.NETWORK}.egressCidrs")
    yield from networks.public_range_problems(ranges)
    yield from _ranges_of_aks(ranges)
    yield from networks.overlapping_range_problems(ranges)
    yield from networks.range_size_problems(
        pods, networks.fewest_bits(most_nodes) + networks.ADDRESS_BITS - _PODS_OF_A_NODE, most_nodes
    )
    yield from networks.service_range_problems(
        services, widest=_WIDEST_SERVICES, narrowest=_NARROWEST_SERVICES
    )


def _ranges_of_aks(ranges: Sequence[networks.Range]) -> Iterator[Problem]:
    for one in ranges:
        kept = next((block for block in _NETWORK_OF_AKS if one.block.overlaps(block)), None)
        if kept is not None:
            got = f"{format_value(str(one.block))}, which overlaps {kept}"
            allowed = (
                "a block that does not overlap "
                + " and ".join(str(block) for block in _NETWORK_OF_AKS)
                + ", which AKS reserves"
            )
            yield Problem(one.field, got, allowed, "Leave it out, or write another block.")


def _egress(network: AzureExistingNetwork, access: AzureAccess, field: str) -> Iterator[Problem]:
    if access.public is not None and not network.egress_cidrs:
        allowed = "the public egress addresses of the subnet's nodes, which reach the API server at its public address"
        fix = "Add the address of the NAT gateway or the firewall from `az network public-ip show --ids ID --query ipAddress`, such as `egressCidrs: [198.51.100.7/32]`; or write `private: true` as the cluster's access."
        yield Problem(field, "nothing, but the API server has a public address", allowed, fix)
    yield from rules.duplicate_problems(network.egress_cidrs, field, "block")
    yield from networks.private_block_problems(
        network.egress_cidrs, field, fix="Write the public address of the NAT gateway or the firewall."
    )


def _checkpoints(checkpoints: AzureCheckpoints, location: str) -> Iterator[Problem]:
    if checkpoints.redundancy == "Standard_ZRS" and not zones_here(location):
        got = f"Standard_ZRS in {location}, which has no zones"
        fix = "Write `redundancy: Standard_LRS`."
        yield Problem(f"{rules.CHECKPOINTS}.redundancy", got, "Standard_LRS in this location", fix)
    cidrs, field = checkpoints.allowed_cidrs, f"{rules.CHECKPOINTS}.allowedCidrs"
    yield from rules.duplicate_problems(cidrs, field, "block")
    yield from networks.private_block_problems(
        cidrs, field, fix="Write public addresses: clients in the nodes' subnet have access already."
    )


def _container_names(namespaces: Sequence[NamespaceSection]) -> Iterator[Problem]:
    """Namespaces whose name is not valid for the Blob Storage container of their checkpoints."""
    fewest, most = LENGTHS
    for index, namespace in enumerate(namespaces):
        name = namespace.name
        if not is_container_name(name):
            shorter = re.sub(r"-+", "-", name)[:most].strip("-")
            allowed = f"{fewest} to {most} characters without consecutive hyphens: its checkpoints are in a container with this name"
            fix = f'Write another name, such as "{shorter if len(shorter) >= fewest else f"{shorter}-training"}".'
            yield Problem(f"{rules.NAMESPACES}[{index}].name", format_value(name), allowed, fix)


def _nap_pool(pool: AzurePool, market: rules.MachineMarket, at: str) -> Iterator[Problem]:
    if pool.capacity is CapacityType.RESERVED or pool.reservation is not None:
        field = "capacity" if pool.reservation is None else "reservation"
        allowed = "spot or on-demand: Karpenter's provider for Azure does not know capacity reservations"
        yield Problem(f"{at}.{field}", "reserved with `scaling: nap`", allowed, RESERVED_NEEDS_FIXED)
    if pool.spot_max_price is not None:
        allowed = "nothing: AKS's node auto-provisioning requests every spot machine with −1, up to the on-demand price"
        fix = (
            "Leave it out: a tier's procurementTimeout moves jobs if spot has no capacity. For a cap, write `scaling: fixed` under "
            "cluster, where spot pools have spotMaxPrice."
        )
        yield Problem(f"{at}.spotMaxPrice", f"{pool.spot_max_price:g} with `scaling: nap`", allowed, fix)
    wrong = list(_nap_machines(pool, market, at))
    yield from wrong
    if not wrong:
        yield from rules.mixed_architecture_problems(pool.machines(market.region), at)
    yield from _zones(pool.zones, market.region, f"{at}.zones")


def _fixed_pool(pool: AzurePool, market: rules.MachineMarket, at: str) -> Iterator[Problem]:
    sizes, one_size = pool.vm_sizes or (), "one, because a scale set has one VM size"
    chosen = next(
        (name for name, value in (("families", pool.families), ("vcpus", pool.vcpus)) if value), None
    )
    if chosen is not None:
        fix = "Write vmSizes, with one size for each pool. With `scaling: nap` under cluster, a pool can have several."
        yield Problem(f"{at}.{chosen}", f"{chosen} with `scaling: fixed`", f"vmSizes with {one_size}", fix)
    elif not sizes:
        yield Problem(f"{at}.vmSizes", "nothing", one_size, "Add `vmSizes: [Standard_D4ds_v5]`.")
    elif len(sizes) > 1:
        fix = (
            "Write one of them. If it is often out of capacity, add a pool for each size and a tier for each pool; or write "
            "`scaling: nap` under cluster, where a pool can have several sizes."
        )
        yield Problem(f"{at}.vmSizes", f"{len(sizes)} VM sizes with `scaling: fixed`", one_size, fix)
    if sizes:
        yield from _named_machine(sizes[0], market, f"{at}.vmSizes[0]")
    if pool.roll_out:
        fix = "Leave it out: AKS upgrades the nodes of a scale set, in the maintenance window."
        yield Problem(f"{at}.rollOut", "true with `scaling: fixed`", "false", fix)
    yield from _price_cap(pool, f"{at}.spotMaxPrice")
    sources, example = {"reservation": pool.reservation}, "reservation: {group: ID}"
    yield from rules.reservation_problems(pool.capacity, sources, at, example=example)
    yield from _zones(pool.zones, market.region, f"{at}.zones")


def _named_machine(name: str, market: rules.MachineMarket, field: str) -> Iterator[Problem]:
    """A VM size that does not exist, or that the location does not offer."""
    # Azure accepts a name without its prefix and in any case; a node label and a NodePool do not.
    if name not in market.here:
        yield rules.unknown_machine_problem(name, market, field)


def _scale_set_names(names: Sequence[str]) -> Iterator[Problem]:
    """Pools whose scale sets would have the same name: AKS allows 12 characters and no hyphen."""
    first: dict[str, str] = {}
    for index, name in enumerate(names):
        other = first.setdefault(agent_pool_name(name), name)
        if other != name:
            got = (
                f"{format_value(name)}, whose scale set would be {agent_pool_name(name)}, as that of {other}"
            )
            allowed = (
                "names with different letters and digits: AKS allows no hyphen in the name of a node pool"
            )
            fix = f"Rename one of the two, such as {format_value(f'{name}-2')}."
            yield Problem(f"{rules.POOLS}[{index}].name", got, allowed, fix)


#: The number of decimals that AKS allows in a price cap.
_DECIMALS: Final = 5


def _price_cap(pool: AzurePool, field: str) -> Iterator[Problem]:
    cap = pool.spot_max_price
    if cap is None:
        return
    if pool.capacity is not CapacityType.SPOT:
        allowed = "nothing: only spot machines have a variable price"
        yield Problem(field, f"{cap:g} on a pool that is {pool.capacity.value}", allowed, "Leave it out.")
    elif cap != NO_CAP and not (math.isfinite(cap) and cap > 0 and round(cap, _DECIMALS) == cap):
        allowed = (
            f"USD per hour, more than 0, with up to {_DECIMALS} decimals; or -1 for up to the on-demand price"
        )
        fix = (
            f"Write `spotMaxPrice: {round(cap, _DECIMALS):g}`."
            if math.isfinite(cap) and round(cap, _DECIMALS) > 0
            else "Leave it out for up to the on-demand price."
        )
        yield Problem(field, f"{cap:g}", allowed, fix)


def _nap_machines(pool: AzurePool, market: rules.MachineMarket, at: str) -> Iterator[Problem]:
    """The problems of a pool's selection of VM sizes with node auto-provisioning."""
    wrong = list(
        rules.machine_selection_problems(
            pool,
            ("vmSizes", "[Standard_D4ds_v5, Standard_D4ads_v5]"),
            {"families": "[Dds_v5, Dads_v5]", "vcpus": "[4]"},
            at,
        )
    )
    yield from wrong
    if pool.vm_sizes is not None and not wrong:
        yield from rules.machine_problems(pool.vm_sizes, market, f"{at}.vmSizes")
    elif not wrong:
        yield from _families_and_vcpus(pool, market, at)


def _families_and_vcpus(pool: AzurePool, market: rules.MachineMarket, at: str) -> Iterator[Problem]:
    families, numbers = pool.families or (), pool.vcpus or ()
    # A family that only other locations offer is left out, unless nothing remains.
    sold = pool.machines(market.region)
    there = _numbers_by_family({**market.here, **market.elsewhere} if sold else market.here)
    how = (" on spot" if pool.capacity is CapacityType.SPOT else "") + (
        "" if sold else f" in {market.region}"
    )
    unknown = [name for name in families if name not in there]
    for name in unknown:
        got = f"{format_value(name)}, a family without a VM size{how}"
        allowed = "a family: the name of a VM size without its number, such as Dds_v5 for Standard_D4ds_v5"
        fix = rules.close_fix(name, _numbers_by_family(rules.replacements(name, market)), "Remove it.")
        yield Problem(f"{at}.families[{families.index(name)}]", got, allowed, fix)
    if unknown:
        # Another family may have these numbers of vCPUs.
        return
    known = {number for name in families for number in there[name]}
    for index, number in enumerate(numbers):
        if number not in known:
            got = f"{number}, the vCPUs of no VM size of {', '.join(families)}{how}"
            allowed = f"a number of vCPUs of these families: {', '.join(map(str, sorted(known)))}"
            yield Problem(f"{at}.vcpus[{index}]", got, allowed, "Write one of them, or remove it.")
    for index, name in enumerate(families):
        if known & set(numbers) and there[name].isdisjoint(numbers):
            got = f"{format_value(name)}, a family without a VM size of {' or '.join(map(str, numbers))} vCPUs{how}"
            allowed = f"a family with one of the pool's vcpus; this one has {', '.join(map(str, sorted(there[name])))}"
            fix = "Remove it, or add one of its numbers to vcpus."
            yield Problem(f"{at}.families[{index}]", got, allowed, fix)
    yield from rules.mixed_gpu_problems(sold, f"{at}.families")


def _numbers_by_family(machines: Mapping[str, Machine]) -> Mapping[str, frozenset[int]]:
    """The vCPUs of the VM sizes of each family."""
    found: dict[str, frozenset[int]] = {}
    for name, machine in machines.items():
        family = family_of(name)
        if family is not None:
            found[family] = found.get(family, frozenset()) | {machine.vcpus}
    return found


#: AKS's minimum for a machine of a system pool.
_FEWEST_VCPUS: Final = 4
_LEAST_MIB: Final = 4096


def _system_nodes(nodes: AzureSystemNodes, market: rules.MachineMarket) -> Iterator[Problem]:
    field = f"{rules.CLUSTER}.systemNodes.vmSize"
    yield from _named_machine(nodes.vm_size, market, field)
    if nodes.vm_size in market.here:
        yield from rules.system_machine_problems(
            market.here[nodes.vm_size],
            field,
            example="Standard_D4ds_v5",
            fewest_vcpus=_FEWEST_VCPUS,
            least_mib=_LEAST_MIB,
        )
    yield from _zones(nodes.zones, market.region, f"{rules.CLUSTER}.systemNodes.zones")


def _zones(zones: Sequence[str], location: str, at: str) -> Iterator[Problem]:
    """Zones that a location does not have, and duplicates."""
    yield from rules.duplicate_problems(zones, at, "zone")
    there = zones_here(location)
    if zones and not there:
        got = f"{', '.join(zones)} in {location}, which has no zones"
        yield Problem(at, got, "no zones", f"Leave it out, or change {LOCATION}.")
    for index, zone in enumerate(zones if there else ()):
        if zone not in there:
            allowed = f"one of its zones: {', '.join(there)}"
            yield Problem(f"{at}[{index}]", f"{zone} in {location}", allowed, f"Write {there[0]}.")
