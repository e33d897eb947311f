"""The rules on the parsed configuration of a stack on Google Cloud."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import timedelta
from ipaddress import IPv4Network
from typing import Final

from pulumi_holdfast.config import cidrs as networks
from pulumi_holdfast.config import rules
from pulumi_holdfast.config.errors import format_value
from pulumi_holdfast.config.fields import TextOrOutput, known
from pulumi_holdfast.config.loader import checked, parse
from pulumi_holdfast.config.storage import MOST_GIB, VolumeKind
from pulumi_holdfast.config.storage_rules import STORAGE, Sizes, storage_problems
from pulumi_holdfast.gcp.config.sections import (
    PROJECT,
    REGION,
    GcpAccelerator,
    GcpAccess,
    GcpCheckpoints,
    GcpCluster,
    GcpExistingCluster,
    GcpExistingNetwork,
    GcpFlexStart,
    GcpMaintenance,
    GcpNewNetwork,
    GcpPlatform,
    GcpPool,
    Recovery,
    Upgrades,
)
from pulumi_holdfast.ladder.errors import Problem
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import CapacityType
from pulumi_holdfast.ladder.machines import (
    Machine,
    attachable_to,
    can_be_placed_compactly,
    machine_catalogue,
    zones_of,
)
from pulumi_holdfast.ladder.quantities import format_duration
from pulumi_holdfast.ladder.taints import GKE_SPOT_TAINT, GPU

#: A regional control plane has its nodes in three zones by default.
_ZONES_OF_A_REGION: Final = 3

#: Prefixes of the namespaces that GKE creates or reserves.
_OF_GKE: Final = ("gke-", "gmp-")


def read_gcp_platform(document: Json, *, project: str | None, region: str | None) -> GcpPlatform:
    """Parse a GCP stack's configuration with its values of `gcp:project` and `gcp:region`, and check its rules.

    Raises ConfigError with every problem of the shape; or, if it has none, with every problem of the rules.
    """
    platform = parse(GcpPlatform, document, {PROJECT: project, REGION: region})
    return checked(platform, gcp_problems(platform))


def gcp_problems(platform: GcpPlatform) -> Iterator[Problem]:
    """The problems of a platform that involve more than one field, the project or the region."""
    location, region = platform.cluster.location, platform.region
    if location is not None and location != region and not _is_zone_of(location, region):
        allowed = f"{region}, the stack's region, or one of its zones"
        fix = f"Leave it out for {region}, or change {REGION}."
        yield Problem(f"{rules.CLUSTER}.location", format_value(location), allowed, fix)
    if isinstance(platform.cluster, GcpCluster):
        yield from _cluster(platform.cluster, region)
    yield from rules.network_beside_existing_problems(
        platform.cluster, platform.network, (GcpNewNetwork, GcpExistingNetwork)
    )
    if isinstance(platform.network, GcpNewNetwork):
        yield from _new_network(platform.network, _most_nodes(platform))
    elif isinstance(platform.network, GcpExistingNetwork):
        yield from _existing_network(platform.network, region)
    yield from _checkpoints(platform.checkpoints, region)
    yield from _storage(platform)
    yield from rules.pool_and_ladder_problems(
        platform,
        platform.pools,
        problems_of=lambda pool, at: _pool(pool, region, at),
        as_pool=GcpPool.as_pool,
        a_default_pool="{name: cpu, capacity: on-demand, machineType: n2-standard-4, maxNodes: 20, default: true}",
    )
    yield from _classes(platform)
    yield from rules.tag_problems(platform.tags, _LABELS)
    yield from rules.accepted_cluster_problems(platform.accepts_from, platform.namespaces)
    yield from rules.cloud_prefix_problems(platform.namespaces, _OF_GKE, "GKE")


#: The sizes of Filestore's regional tier, of its lower band of performance.
_FILESTORE: Final = Sizes(least=1024, most=9984, step=256)

#: The smallest file system of Managed Lustre, and the step to larger ones, by its throughput.
_LUSTRE: Final = {1000: 9000, 500: 18_000, 250: 36_000, 125: 72_000}


def _storage(platform: GcpPlatform) -> Iterator[Problem]:
    sizes = {
        number: _FILESTORE
        if volume.kind is VolumeKind.SHARED
        else Sizes(least=least, most=MOST_GIB, step=least)
        for number, volume in enumerate(platform.storage)
        if volume.kind is not VolumeKind.BUCKET and (least := _LUSTRE[volume.throughput])
    }
    yield from storage_problems(platform.storage, platform.namespaces, sizes, zones=zones_of(platform.region))
    if isinstance(platform.cluster, GcpExistingCluster):
        for number, volume in enumerate(platform.storage):
            if volume.kind is not VolumeKind.BUCKET:
                allowed = "bucket, on an existing cluster: the stack does not know its network"
                fix = "Create the file system, its volume and its claims beside this stack."
                yield Problem(f"{STORAGE}[{number}].kind", volume.kind.value, allowed, fix)


_LABELS: Final = rules.TagRules(
    key=r"[a-z][a-z0-9_-]{0,62}",
    value=r"[a-z0-9_-]{0,63}",
    allowed="a key and a value of up to 63 lower-case letters, digits, `_` and `-`; the key starts with a letter",
    own=("goog", "managed-by", "holdfast"),
)


def _is_zone_of(zone: str, region: str) -> bool:
    """Whether a zone is in a region; any letter is valid if the region's zones are unknown."""
    known = zones_of(region)
    return zone in known if known else zone[:-2] == region


def _zones(zones: Sequence[str], region: str, at: str) -> Iterator[Problem]:
    """Zones of other regions, and duplicates."""
    there = zones_of(region)
    for index, zone in enumerate(zones):
        same_letter = f"{region}-{zone[-1]}"
        if not _is_zone_of(zone, region):
            allowed = f"zones of {region}, the stack's region: {', '.join(there)}"
            fix = f'Write "{same_letter if same_letter in there else there[0]}", or change {REGION}.'
            yield Problem(f"{at}[{index}]", format_value(zone), allowed, fix)
    yield from rules.duplicate_problems(zones, at, "zone")


def _most_nodes(platform: GcpPlatform) -> int:
    """The largest number of nodes at a time."""
    # A blue-green upgrade creates a second set of nodes.
    of_pools = sum(
        pool.max_nodes * (2 if pool.upgrades is Upgrades.BLUE_GREEN else 1) for pool in platform.pools
    )
    if not isinstance(platform.cluster, GcpCluster):
        return of_pools
    system = platform.cluster.system_nodes
    zones = len(platform.cluster.zones) if platform.cluster.zones else _ZONES_OF_A_REGION
    return of_pools + (system.per_zone + system.spare_per_zone) * zones


def _cluster(cluster: GcpCluster, region: str) -> Iterator[Problem]:
    yield from rules.minor_version_problems(cluster.version, (GKE_SPOT_TAINT, GPU))
    yield from _access(cluster.access)
    yield from _maintenance(cluster.maintenance)
    zones, location = cluster.zones, cluster.location
    yield from _zones(zones or (), region, f"{rules.CLUSTER}.zones")
    if location is not None and _is_zone_of(location, region) and zones is not None and location not in zones:
        allowed = f"zones with {location} among them, where the control plane is"
        fix = "Add it, or leave out zones for this one alone."
        yield Problem(f"{rules.CLUSTER}.zones", ", ".join(zones), allowed, fix)
    yield from _key(cluster.secrets_key, region, f"{rules.CLUSTER}.secretsKey")
    field = f"{rules.CLUSTER}.systemNodes.machineType"
    yield from _named_machine(cluster.system_nodes.machine_type, field)
    machine = machine_catalogue("gcp").get(cluster.system_nodes.machine_type)
    if machine is not None:
        yield from rules.system_machine_problems(machine, field, example="e2-standard-4")


_ONE_WAY_IN: Final = "one of dnsEndpoint and authorizedNetworks"


def _access(access: GcpAccess) -> Iterator[Problem]:
    """Access that no client can use, or that opens the API server to the internet without confirmation."""
    at, named, blocks = f"{rules.CLUSTER}.access", access.dns_endpoint, access.authorized_networks
    if named is None and blocks is None:
        fix = "Add your public address, such as `authorizedNetworks: [203.0.113.7/32]`; or, for a private endpoint, the block of the network in which `pulumi up` runs."
        yield Problem(at, "neither dnsEndpoint nor authorizedNetworks", _ONE_WAY_IN, fix)
    if named is not None and blocks is not None:
        yield Problem(at, "both", _ONE_WAY_IN, "Remove one of the two.")
    if named is not None and not named.allow_external:
        allowed = "true: only IAM protects this endpoint, which is open to the whole internet or to no client"
        fix = "Write `allowExternal: true` to confirm it; or write authorizedNetworks instead of dnsEndpoint, with the blocks of your network."
        yield Problem(f"{at}.dnsEndpoint.allowExternal", "not true", allowed, fix)
    if networks.covers_internet(blocks or ()):
        allowed = "the public blocks of your network"
        fix = "Write your own addresses, such as 203.0.113.0/24; or, for an endpoint that is open to the internet and protected by IAM, `dnsEndpoint: {allowExternal: true}`."
        yield Problem(f"{at}.authorizedNetworks", "the whole internet", allowed, fix)
    yield from rules.duplicate_problems(blocks or (), f"{at}.authorizedNetworks", "block")


def _key(given: TextOrOutput | None, region: str, field: str) -> Iterator[Problem]:
    """A key in another location than the region of what it encrypts."""
    key = known(given)
    location = region if key is None else key.split("/")[3]
    if location != region:
        allowed = f"a key in {region}, the region of what it encrypts"
        fix = f"Create one there: `gcloud kms keys create NAME --keyring RING --location {region} --purpose encryption`."
        yield Problem(field, f"a key in {location}", allowed, fix)


#: GKE needs so many hours of maintenance windows in any 32 days, of which 28 are whole weeks.
_FEWEST_HOURS: Final = 48
_WEEKS: Final = 4


def _maintenance(maintenance: GcpMaintenance) -> Iterator[Problem]:
    """Windows that are too short for GKE, and exclusions that end before they start."""
    at, window = f"{rules.CLUSTER}.maintenance", maintenance.window
    yield from rules.duplicate_problems([day.value for day in window.days], f"{at}.window.days", "day")
    days = len(set(window.days))
    if days * window.hours * _WEEKS < _FEWEST_HOURS:
        got = f"{window.hours} on {days} days, {days * window.hours} hours a week"
        allowed = f"{_FEWEST_HOURS // _WEEKS} hours a week or more: GKE rejects less"
        fix = f"Write `hours: {-(-_FEWEST_HOURS // (_WEEKS * days))}`, or more days."
        yield Problem(f"{at}.window.hours", got, allowed, fix)
    for exclusion in maintenance.exclusions:
        if exclusion.end is not None and exclusion.end <= exclusion.start:
            got = f"{exclusion.end}, not after the start {exclusion.start}"
            fix = "Write a later date, or leave it out for an exclusion until the version's support ends."
            yield Problem(f"{at}.exclusions[0].end", got, "a day after the start", fix)


#: The number of addresses that Compute Engine reserves in a subnetwork.
_RESERVED_ADDRESSES: Final = 4

#: The prefix length of the block that GKE gives each node, for up to 110 pods.
_PODS_OF_A_NODE: Final = 24

_WIDEST_SERVICES: Final = 16
_NARROWEST_SERVICES: Final = 27


def _new_network(network: GcpNewNetwork, most_nodes: int) -> Iterator[Problem]:
    nodes = networks.Range(field=f"{rules.NETWORK}.cidr", block=IPv4Network(network.cidr))
    pods = networks.Range(field=f"{rules.NETWORK}.podsCidr", block=IPv4Network(network.pods_cidr))
    services = networks.Range(field=f"{rules.NETWORK}.servicesCidr", block=IPv4Network(network.services_cidr))
    ranges = (nodes, pods, services)
    yield from networks.public_range_problems(ranges)
    yield from networks.overlapping_range_problems(ranges)
    yield from networks.range_size_problems(
        nodes, networks.fewest_bits(most_nodes + _RESERVED_ADDRESSES), most_nodes
    )
    yield from networks.range_size_problems(
        pods, networks.fewest_bits(most_nodes) + networks.ADDRESS_BITS - _PODS_OF_A_NODE, most_nodes
    )
    yield from networks.service_range_problems(
        services, widest=_WIDEST_SERVICES, narrowest=_NARROWEST_SERVICES
    )


def _existing_network(network: GcpExistingNetwork, region: str) -> Iterator[Problem]:
    parts = (known(network.subnetwork) or "").split("/")
    if len(parts) > 1 and parts[3] != region:
        allowed = f"one in {region}, the stack's region"
        fix = f"Write another subnetwork, or change {REGION}."
        yield Problem(f"{rules.NETWORK}.subnetwork", f"a subnetwork in {parts[3]}", allowed, fix)
    if network.pods_range == network.services_range:
        got = f"{format_value(network.services_range)}, also the range of pods"
        fix = "Write another secondary range of the subnetwork."
        yield Problem(f"{rules.NETWORK}.servicesRange", got, "a secondary range for Services only", fix)


#: The range of days for which Cloud Storage can keep soft-deleted objects.
_FEWEST_DAYS: Final = 7
_MOST_DAYS: Final = 90


def _checkpoints(checkpoints: GcpCheckpoints, region: str) -> Iterator[Problem]:
    days = checkpoints.retain_days
    if checkpoints.recovery is Recovery.SOFT_DELETE and not _FEWEST_DAYS <= days <= _MOST_DAYS:
        allowed = f"{_FEWEST_DAYS} to {_MOST_DAYS}, Cloud Storage's range for soft delete"
        fix = (
            f"Write `retainDays: {min(max(days, _FEWEST_DAYS), _MOST_DAYS)}`, or add `recovery: versioning`."
        )
        yield Problem(f"{rules.CHECKPOINTS}.retainDays", f"{days} with soft delete", allowed, fix)
    if checkpoints.hierarchical and checkpoints.recovery is Recovery.VERSIONING:
        allowed = "soft-delete: a bucket with a hierarchical namespace keeps no versions, and Cloud Storage FUSE supports none"
        fix = "Write `recovery: soft-delete`, or leave out hierarchical."
        yield Problem(f"{rules.CHECKPOINTS}.recovery", "versioning with hierarchical: true", allowed, fix)
    yield from _key(checkpoints.kms_key, region, f"{rules.CHECKPOINTS}.kmsKey")


#: GKE's limit for the name of a node pool.
_LONGEST_NAME: Final = 40

_CLASSES_OF_GKE: Final = ("gke", "autopilot")


def _pool(pool: GcpPool, region: str, at: str) -> Iterator[Problem]:
    if len(pool.name) > _LONGEST_NAME or not re.match(r"[a-z]", pool.name, re.ASCII):
        shorter = re.sub(r"^[^a-z]+", "", pool.name)[:_LONGEST_NAME].strip("-")
        allowed = (
            f"a name of up to {_LONGEST_NAME} characters that starts with a letter, GKE's rule for node pools"
        )
        fix = f'Write "{shorter}".' if shorter else "Write a name such as a100-spot."
        yield Problem(f"{at}.name", format_value(pool.name), allowed, fix)
    yield from _machine(pool, at)
    yield from _zones(pool.zones or (), region, f"{at}.zones")
    yield from _compact(pool, region, at)
    if pool.graceful_shutdown_seconds is not None and pool.capacity is not CapacityType.SPOT:
        got = f"{pool.graceful_shutdown_seconds} on a pool that is {pool.capacity.value}"
        allowed = "nothing: GKE supports it for Spot VMs only"
        yield Problem(f"{at}.gracefulShutdownSeconds", got, allowed, "Leave it out.")
    yield from _reservation(pool, region, at)
    yield from _compute_class(pool, at)


def _compact(pool: GcpPool, region: str, at: str) -> Iterator[Problem]:
    zones = pool.zones or ()
    if pool.compact_placement:
        fix = (
            f"Add `zones: [{next(iter(zones), f'{region}-a')}]`, or leave it out. A later change of the zone replaces the node "
            "pool, and restarts its jobs."
        )
        yield from rules.one_zone_problems(zones, f"{at}.compactPlacement", "placement is within a zone", fix)
    if pool.compact_placement and pool.upgrades is Upgrades.BLUE_GREEN:
        allowed = "surge: GKE does not support blue-green upgrades of node pools with compact placement"
        advice = "Write `upgrades: surge`, or leave it out."
        yield Problem(f"{at}.upgrades", "blue-green with compactPlacement: true", allowed, advice)


#: The limits of Compute Engine for a machine that runs for a limited time.
_SHORTEST_RUN: Final = timedelta(minutes=10)
_LONGEST_RUN: Final = timedelta(days=7)


def _reservation(pool: GcpPool, region: str, at: str) -> Iterator[Problem]:
    sources = {"reservation": pool.reservation, "flexStart": pool.flex_start}
    yield from rules.reservation_problems(pool.capacity, sources, at, example="reservation: {name: h100}")
    if pool.capacity is not CapacityType.RESERVED:
        return
    if pool.reservation is not None:
        fix = f"Write the zone of the reservation, such as `zones: [{region}-a]`."
        yield from rules.one_zone_problems(pool.zones or (), f"{at}.zones", "a reservation is in one", fix)
    if pool.compact_placement:
        allowed = "nothing: reserved machines are placed as the reservation says"
        yield Problem(f"{at}.compactPlacement", "true on a reserved pool", allowed, "Leave it out.")
    if pool.upgrades is Upgrades.BLUE_GREEN:
        allowed = "surge: the reservation has no machines for a second set of nodes"
        advice = "Write `upgrades: surge`, or leave it out."
        yield Problem(f"{at}.upgrades", "blue-green on a reserved pool", allowed, advice)
    if pool.flex_start is not None:
        yield from _flex_start(pool, pool.flex_start, f"{at}.flexStart")


def _flex_start(pool: GcpPool, flex_start: GcpFlexStart, at: str) -> Iterator[Problem]:
    run, machine = flex_start.max_run_duration, machine_catalogue("gcp").get(pool.machine_type)
    if not _SHORTEST_RUN <= run <= _LONGEST_RUN:
        allowed = f"{format_duration(_SHORTEST_RUN)} to {format_duration(_LONGEST_RUN)}"
        fix = f"Write {format_duration(_LONGEST_RUN)}, or a shorter time."
        yield Problem(f"{at}.maxRunDuration", format_duration(run), allowed, fix)
    if machine is not None and not machine.gpus and pool.accelerator is None:
        allowed = "a value for machines with GPUs, the only ones that the Dynamic Workload Scheduler sells"
        fix = "Write a machineType with GPUs, such as a3-highgpu-8g, or another capacity."
        yield Problem(at, f"a value for {machine.name}, which has no GPUs", allowed, fix)


def _compute_class(pool: GcpPool, at: str) -> Iterator[Problem]:
    name = pool.compute_class
    if name is None:
        return
    if name.startswith(_CLASSES_OF_GKE):
        allowed = (
            f"a name that does not start with {' or '.join(_CLASSES_OF_GKE)}, which GKE uses for its own"
        )
        fix = f'Write another name, such as "training-{name}".'
        yield Problem(f"{at}.computeClass", format_value(name), allowed, fix)
    if pool.default:
        got = f"{format_value(name)} on the pool with default: true"
        allowed = "a class on other pools: a pod that names no pool selects no class"
        yield Problem(f"{at}.computeClass", got, allowed, "Leave it out on this pool.")


def _machine(pool: GcpPool, at: str) -> Iterator[Problem]:
    """The problems of a pool's machine type."""
    field = f"{at}.machineType"
    wrong = list(_named_machine(pool.machine_type, field))
    yield from wrong
    if wrong:
        return
    machine = machine_catalogue("gcp")[pool.machine_type]
    if pool.accelerator is not None:
        yield from _attached(pool.accelerator, machine, f"{at}.accelerator")
    if pool.compact_placement and not can_be_placed_compactly(machine):
        allowed = "true for a machine family that supports compact placement; this one does not"
        fix = "Leave it out, or write another machineType, such as c2-standard-8."
        yield Problem(f"{at}.compactPlacement", f"true for {machine.name}", allowed, fix)
    yield from _sold(pool.capacity, machine, field)
    if machine.arch != "amd64":
        got = f"{format_value(machine.name)}, a machine of {machine.arch}"
        allowed = "machines of amd64: GKE taints nodes of other architectures with kubernetes.io/arch, which the pods of jobs do not tolerate"
        yield Problem(field, got, allowed, "Write, for example, n2-standard-4.")


def _named_machine(name: str, field: str) -> Iterator[Problem]:
    """A machine type that does not exist."""
    known = machine_catalogue("gcp")
    if name not in known:
        market = rules.MachineMarket(
            here=known,
            allowed=f"one of the {len(known)} known machine types",
            fix="Write one from `gcloud compute machine-types list`.",
        )
        yield rules.unknown_machine_problem(name, market, field)


def _attached(accelerator: GcpAccelerator, machine: Machine, at: str) -> Iterator[Problem]:
    if machine.gpus:
        got = f"{accelerator.count} × {accelerator.type} in addition to the {machine.gpus} × {machine.accelerator} of {machine.name}"
        yield Problem(at, got, "nothing: the machine type includes its GPUs", "Leave it out.")
        return
    taken = attachable_to(machine)
    if not taken:
        allowed = "GPUs for machines of the n1 series, the only ones that support them"
        fix = "Write a machineType such as n1-standard-8, or one that includes GPUs, such as g2-standard-8."
        yield Problem(at, f"GPUs for {machine.name}", allowed, fix)
    elif accelerator.type not in taken:
        allowed = f"one of the kinds that {machine.name} supports: {', '.join(sorted(taken))}"
        fix = rules.close_fix(accelerator.type, taken, "Write one of them.")
        yield Problem(f"{at}.type", format_value(accelerator.type), allowed, fix)
    elif accelerator.count not in taken[accelerator.type]:
        counts = taken[accelerator.type]
        allowed = f"a number of this kind that {machine.name} supports: {' or '.join(map(str, counts))}"
        fix = f"Write `count: {counts[0]}`; a machine with fewer vCPUs may support fewer."
        yield Problem(f"{at}.count", str(accelerator.count), allowed, fix)


def _sold(capacity: CapacityType, machine: Machine, field: str) -> Iterator[Problem]:
    if capacity is CapacityType.RESERVED:
        return
    on_spot = capacity is CapacityType.SPOT
    if not (machine.on_spot if on_spot else machine.on_demand):
        got = f"{format_value(machine.name)} {'on spot' if on_spot else 'on demand'}"
        allowed = (
            f"another machine type; Compute Engine offers this one only {'on demand' if on_spot else 'on spot'}"
            if machine.on_spot or machine.on_demand
            else "another machine type; Compute Engine offers this one only by reservation"
        )
        yield Problem(field, got, allowed, "Write another machineType, or the other capacity.")


def _classes(platform: GcpPlatform) -> Iterator[Problem]:
    """The problems of the ComputeClasses that pools name: of one capacity type, and one pool of each in a ladder."""
    by_name: dict[str, GcpPool] = {}
    of_class: dict[str, GcpPool] = {}
    for index, pool in enumerate(platform.pools):
        by_name.setdefault(pool.name, pool)
        if pool.compute_class is None:
            continue
        other = of_class.setdefault(pool.compute_class, pool)
        if other.capacity is not pool.capacity:
            got = f"{format_value(pool.compute_class)} on a pool that is {pool.capacity.value}, but {other.name} of the same class is {other.capacity.value}"
            allowed = "pools of one capacity type in a class: GKE tries the next pool immediately and for each node, so a job's pods would run on both capacity types"
            fix = "Write a class and a tier for each capacity type."
            yield Problem(f"{rules.POOLS}[{index}].computeClass", got, allowed, fix)
    for index, namespace in enumerate(platform.namespaces):
        tiers = [by_name[tier.pool] for tier in namespace.ladder if tier.pool in by_name]
        yield from _classes_of_ladder(tiers, f"{rules.NAMESPACES}[{index}].ladder")


def _classes_of_ladder(tiers: Sequence[GcpPool], field: str) -> Iterator[Problem]:
    members: dict[str, list[str]] = {}
    for pool in tiers:
        members.setdefault(pool.compute_class or "", []).append(pool.name)
    without = members.pop("", [])
    if members and without:
        got = f"{', '.join(name for names in members.values() for name in names)} with computeClass, and {', '.join(without)} without"
        allowed = "pools that all have a class, or none: jobs select a class by cloud.google.com/compute-class, which GKE rejects together with its spot labels, and a job that moves keeps its node selectors"
        yield Problem(field, got, allowed, "Add computeClass to each of them, or to none.")
    for name, pools in members.items():
        if len(set(pools)) > 1:
            got = f"{', '.join(pools)}, all of the class {format_value(name)}"
            allowed = (
                "one pool of a class: a job that selects the class gets any of them, so they are one tier"
            )
            yield Problem(field, got, allowed, "Keep the first of them, or write a class for each.")
