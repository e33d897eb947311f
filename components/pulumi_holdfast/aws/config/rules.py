"""The rules on the parsed configuration of a stack on AWS."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from ipaddress import IPv4Network
from typing import Final

from pulumi_holdfast.aws.config.sections import (
    ASSUME_ROLES,
    OPEN_UPSTREAMS,
    REGION,
    RETENTION_DAYS,
    AwsCluster,
    AwsExistingNetwork,
    AwsNewNetwork,
    AwsPlatform,
    AwsPool,
    AwsPullThroughCache,
    AwsSystemNodes,
)
from pulumi_holdfast.aws.control_plane.addon_versions import KUBERNETES_VERSIONS, addon_versions
from pulumi_holdfast.config import cidrs as networks
from pulumi_holdfast.config import rules
from pulumi_holdfast.config.cidrs import LARGEST_PREFIX, SMALLEST_PREFIX, cidr_problems, plan_subnets
from pulumi_holdfast.config.errors import format_value
from pulumi_holdfast.config.fields import known, known_items
from pulumi_holdfast.config.loader import PLATFORM, checked, parse
from pulumi_holdfast.config.storage import MOST_GIB, VolumeKind
from pulumi_holdfast.config.storage_rules import STORAGE, Sizes, storage_problems
from pulumi_holdfast.config.versions import version_problem
from pulumi_holdfast.ladder.errors import Problem
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import CapacityType
from pulumi_holdfast.ladder.machines import Machine, machine_catalogue, zones_of
from pulumi_holdfast.ladder.taints import GPU, SPOT


def read_aws_platform(document: Json, region: str | None, *, assume_roles: str | None = None) -> AwsPlatform:
    """Parse an AWS stack's configuration, and check its rules.

    `region` is the stack's value of `aws:region`, `assume_roles` that of `aws:assumeRoles`, in JSON. Raises ConfigError
    with every problem of the shape; or, if it has none, with every problem of the rules.
    """
    platform = parse(AwsPlatform, document, {REGION: region, ASSUME_ROLES: assume_roles})
    return checked(platform, aws_problems(platform))


def aws_problems(platform: AwsPlatform) -> Iterator[Problem]:
    """The problems of a platform that involve more than one field, or the region."""
    market = rules.market_of(
        "aws",
        platform.region,
        what="instance type",
        setting=REGION,
        command=f"aws ec2 describe-instance-type-offerings --region {platform.region}",
    )
    if isinstance(platform.cluster, AwsCluster):
        yield from _cluster(platform.cluster, platform, market)
    yield from rules.network_beside_existing_problems(
        platform.cluster, platform.network, AwsNewNetwork, ("vpcId", "privateSubnetIds"), ("isolated",)
    )
    yield from _access(platform)
    yield from rules.accepted_cluster_problems(platform.accepts_from, platform.namespaces)
    if platform.checkpoints.drop_key and platform.checkpoints.kms:
        allowed = "true only with kms: false, once no checkpoint under the key is needed"
        yield Problem(f"{rules.CHECKPOINTS}.dropKey", "true with kms: true", allowed, "Leave it out.")
    yield from _pull_through_cache(platform)
    yield from _storage(platform)
    yield from _network(platform)
    yield from rules.tag_problems(platform.tags, _TAGS)
    yield from rules.pool_and_ladder_problems(
        platform,
        platform.pools,
        problems_of=lambda pool, at: _pool(pool, platform, market, at),
        as_pool=lambda pool: pool.as_pool(platform.region),
        a_default_pool="{name: cpu, capacity: on-demand, instanceTypes: [m7i.xlarge], maxNodes: 20, default: true}",
    )


#: The sizes of FSx for Lustre with SSDs, of the deployment type PERSISTENT_2.
_LUSTRE: Final = Sizes(least=1200, most=MOST_GIB, step=2400, from_zero=True)


def _storage(platform: AwsPlatform) -> Iterator[Problem]:
    sizes = {
        number: _LUSTRE
        for number, volume in enumerate(platform.storage)
        if volume.kind is VolumeKind.PARALLEL
    }
    network = platform.network
    named = (
        network.zones if isinstance(network, AwsNewNetwork) and not isinstance(network.zones, int) else None
    )
    yield from storage_problems(
        platform.storage, platform.namespaces, sizes, zones=named or zones_of(platform.region)
    )
    buckets = {volume.name for volume in platform.storage if volume.kind is VolumeKind.BUCKET}
    for number, volume in enumerate(platform.storage):
        at = f"{STORAGE}[{number}]"
        if volume.imports is not None and volume.imports not in buckets:
            allowed = f"a bucket volume of this stack: {', '.join(sorted(buckets)) or 'it has none'}"
            yield Problem(
                f"{at}.imports", format_value(volume.imports), allowed, "Write one of them, or leave it out."
            )
        if volume.kind is not VolumeKind.PARALLEL:
            continue
        if isinstance(network, AwsNewNetwork) and volume.subnet_id is not None:
            allowed = "nothing: the stack's network has a subnet in each zone"
            yield Problem(f"{at}.subnetId", format_value(known(volume.subnet_id)), allowed, "Leave it out.")
        if not isinstance(network, AwsNewNetwork) and volume.subnet_id is None:
            allowed = "the private subnet of the zone, in an existing network"
            yield Problem(f"{at}.subnetId", "nothing", allowed, "Add it.")


_TAGS: Final = rules.TagRules(
    key=r"[\w .:/=+@-]{1,128}",
    value=r"[\w .:/=+@-]{0,256}",
    allowed="a key of 1 to 128 and a value of up to 256 letters, digits, spaces and `_.:/=+-@`",
    own=(
        *("aws:", "eks:", "karpenter", "kubernetes.io/", "k8s.io/", "ebs.csi.aws.com/", "csivolumename"),
        *("app.kubernetes.io/managed-by", "holdfast"),
    ),
)

_WIDEST_SERVICES: Final = 12
_NARROWEST_SERVICES: Final = 24

_FOR_SERVICES: Final = tuple(IPv4Network(cidr) for cidr in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"))


def _cluster(cluster: AwsCluster, platform: AwsPlatform, market: rules.MachineMarket) -> Iterator[Problem]:
    if addon_versions(cluster.version) is None:
        yield version_problem(f"{rules.CLUSTER}.version", cluster.version, (SPOT, GPU)) or Problem(
            field=f"{rules.CLUSTER}.version",
            value=format_value(cluster.version),
            allowed=f"one of the versions with pinned add-ons: {', '.join(KUBERNETES_VERSIONS)}",
            fix=f'Write "{KUBERNETES_VERSIONS[-1]}".',
        )
    elif int(platform.nodes.image.split(".")[1]) > int(cluster.version.split(".")[1]):
        got = f"{format_value(platform.nodes.image)}, whose kubelet is newer than the control plane"
        fix = "Leave it out, or upgrade cluster.version first."
        yield Problem(f"{PLATFORM}.nodes.image", got, f"a release of {cluster.version} or older", fix)
    yield from _public_access(cluster)
    services = IPv4Network(cluster.service_cidr)
    private = any(services.subnet_of(one) for one in _FOR_SERVICES)
    if not private or not _WIDEST_SERVICES <= services.prefixlen <= _NARROWEST_SERVICES:
        allowed = f"a block of /{_WIDEST_SERVICES} to /{_NARROWEST_SERVICES} within " + ", ".join(
            str(one) for one in _FOR_SERVICES
        )
        fix = "Leave it out, or write, for example, 172.20.0.0/16."
        yield Problem(f"{rules.CLUSTER}.serviceCidr", format_value(cluster.service_cidr), allowed, fix)
    key = known(cluster.secrets_key)
    if key is not None and key.split(":")[3] != platform.region:
        allowed = f"a key in {platform.region}, the cluster's region"
        fix = "Write a key of this region, or leave it out: the stack then creates one."
        yield Problem(f"{rules.CLUSTER}.secretsKey", format_value(key), allowed, fix)
    if cluster.logs.retain_days not in RETENTION_DAYS:
        close = min(RETENTION_DAYS, key=lambda days: abs(days - cluster.logs.retain_days))
        got = str(cluster.logs.retain_days)
        allowed = f"a period that CloudWatch accepts: {', '.join(map(str, RETENTION_DAYS))} days"
        yield Problem(f"{rules.CLUSTER}.logs.retainDays", got, allowed, f"Write {close}.")
    yield from _system_nodes(cluster.system_nodes, market)


def _public_access(cluster: AwsCluster) -> Iterator[Problem]:
    blocks, field = cluster.public_access_cidrs, f"{rules.CLUSTER}.publicAccessCidrs"
    everywhere, allowed = networks.covers_internet(blocks), cluster.allow_public_access_from_anywhere
    if everywhere and not allowed:
        valid = "the public blocks of your network, or none for a private endpoint"
        fix = (
            "Write your own addresses, such as 203.0.113.0/24; or add `allowPublicAccessFromAnywhere: true`."
        )
        yield Problem(field, "the whole internet", valid, fix)
    if allowed and not everywhere:
        got = "true, but publicAccessCidrs is not the whole internet"
        valid = "true only with publicAccessCidrs: [0.0.0.0/0]"
        yield Problem(f"{rules.CLUSTER}.allowPublicAccessFromAnywhere", got, valid, "Leave it out.")
    elif not blocks and not cluster.private_access_cidrs:
        valid = "one of the two, with the addresses of every client of the API server except nodes"
        fix = "Set one of them; otherwise only nodes, not `pulumi up`, can reach the API server. Write your public address, such as `publicAccessCidrs: [203.0.113.7/32]`; or, for a private endpoint, write privateAccessCidrs with the network in which `pulumi up` runs."
        yield Problem(field, "nothing, and privateAccessCidrs is empty too", valid, fix)
    yield from networks.private_block_problems(
        blocks, field, fix="Leave it out: clients inside the network use the private endpoint."
    )


#: The requests of the operators, Karpenter (1 GiB) and EKS's agents on one of two nodes, with a reserve.
_FEWEST_VCPUS: Final = 2
_LEAST_MIB: Final = 4096


def _system_nodes(nodes: AwsSystemNodes, market: rules.MachineMarket) -> Iterator[Problem]:
    at, catalogue = f"{rules.CLUSTER}.systemNodes.instanceTypes", machine_catalogue("aws")
    types = nodes.types(market.region)
    if nodes.instance_types is not None and nodes.size is not None:
        allowed = "either instanceTypes, or size"
        yield Problem(
            f"{rules.CLUSTER}.systemNodes.size",
            "size in addition to instanceTypes",
            allowed,
            "Remove one of the two.",
        )
    yield from rules.machine_problems(types, market, at)
    machines = {index: catalogue[name] for index, name in enumerate(types) if name in catalogue}
    for index, machine in machines.items():
        yield from rules.system_machine_problems(
            machine, f"{at}[{index}]", example="m7i.large", fewest_vcpus=_FEWEST_VCPUS, least_mib=_LEAST_MIB
        )
    architectures = sorted({machine.arch for machine in machines.values()})
    if len(architectures) > 1:
        got = f"machines of {' and '.join(architectures)}"
        allowed = "machines of one architecture, because a node group has one image"
        yield Problem(at, got, allowed, "Remove those of one architecture.")


def _access(platform: AwsPlatform) -> Iterator[Problem]:
    """Principals of another partition, or in two places, and namespaces that the stack does not have."""
    admins = platform.cluster.admins if isinstance(platform.cluster, AwsCluster) else ()
    given = [(f"{rules.CLUSTER}.admins[{index}]", admin) for index, admin in enumerate(admins)]
    for index, entry in enumerate(platform.access):
        at = f"{PLATFORM}.access[{index}]"
        given.append((f"{at}.principal", entry.principal))
        yield from rules.training_namespace_problems(
            entry.namespaces, platform.namespaces, f"{at}.namespaces"
        )
    principals = [(field, text) for field, each in given if (text := known(each)) is not None]
    for field, principal in principals:
        own, partition = principal.split(":")[1], platform.partition
        if own != partition:
            meant = format_value(principal.replace(f"arn:{own}:", f"arn:{partition}:", 1))
            allowed = f"principals of this region's partition, whose ARNs start with arn:{partition}:"
            fix = f"Write {meant}, if that is the principal."
            yield Problem(field, format_value(principal), allowed, fix)
    for index, _ in rules.repeated([principal for _, principal in principals]):
        field, principal = principals[index]
        allowed = "each principal once, in admins or in access: EKS has one access entry for it"
        fix = "Remove one of the two. An entry of access can list several namespaces."
        yield Problem(field, f"{format_value(principal)}, a duplicate", allowed, fix)


def _pull_through_cache(platform: AwsPlatform) -> Iterator[Problem]:
    caches, at = platform.pull_through_cache, f"{PLATFORM}.pullThroughCache"
    if caches and platform.partition != "aws":
        allowed = "nothing in the regions of China and GovCloud, where ECR has no pull through cache"
        fix = "Leave it out, and copy large images to a registry of this region."
        yield Problem(at, f"upstream registries in {platform.region}", allowed, fix)
    if caches and platform.network.isolated:
        allowed = (
            "nothing: through an interface endpoint, ECR imports an image only with a route to the internet"
        )
        fix = "Leave it out, and copy large images to mirror.images; or leave out isolated."
        yield Problem(at, "upstream registries with an isolated network", allowed, fix)
    for index, _ in rules.repeated([cache.prefix for cache in caches]):
        got = f"{format_value(caches[index].prefix)}, a duplicate"
        allowed = "a prefix of its own for each upstream: ECR has one rule for it"
        fix = "Write another prefix, or remove one of the two."
        yield Problem(f"{at}[{index}].prefix", got, allowed, fix)
    for index, cache in enumerate(caches):
        yield from _credential(cache, platform.region, f"{at}[{index}].credentialArn")


def _credential(cache: AwsPullThroughCache, region: str, field: str) -> Iterator[Problem]:
    arn, is_open = cache.credential_arn, cache.upstream in OPEN_UPSTREAMS
    text = known(arn)
    if arn is None and not is_open:
        allowed = f"a secret with credentials of {cache.upstream}, without which ECR does not read it"
        fix = "Create one with `aws secretsmanager create-secret --name ecr-pullthroughcache/NAME`, and write its ARN."
        yield Problem(field, "nothing", allowed, fix)
    elif arn is not None and is_open:
        allowed = f"nothing: ECR reads {cache.upstream} without credentials"
        yield Problem(field, format_value(text or "an Output"), allowed, "Leave it out.")
    elif text is not None and text.split(":")[3] != region:
        fix = "Create the secret there, and write its ARN."
        yield Problem(field, format_value(text), f"a secret in {region}, the stack's region", fix)


def _network(platform: AwsPlatform) -> Iterator[Problem]:
    network = platform.network
    if network.isolated and platform.mirror.images is None:
        allowed = "true with a mirror, because nodes cannot pull images from the internet"
        fix = "Add `mirror: {images: …}` with an ECR registry in this region, or leave out isolated."
        yield Problem(f"{rules.NETWORK}.isolated", "true, without mirror.images", allowed, fix)
    if isinstance(network, AwsExistingNetwork):
        subnets = known_items(network.private_subnet_ids)
        yield from rules.duplicate_problems(subnets, f"{rules.NETWORK}.privateSubnetIds", "subnet")
    if isinstance(network, AwsNewNetwork):
        services = platform.cluster.service_cidr if isinstance(platform.cluster, AwsCluster) else None
        taken = {"the cluster's Services": services} if services else {}
        yield from cidr_problems(network.cidr, f"{rules.NETWORK}.cidr", taken=taken)
        yield from zone_problems(_named_zones(platform), platform.region, f"{rules.NETWORK}.zones")
        yield from _room(platform, network)
        if network.isolated and network.nat is not None:
            got = f"{network.nat.value} in an isolated network"
            allowed = "nothing, because NAT gives access to the internet"
            yield Problem(f"{rules.NETWORK}.nat", got, allowed, "Leave out nat or isolated.")


#: The addresses that AWS reserves in a subnet.
_RESERVED_ADDRESSES: Final = 5

#: The fewest addresses of a node at work: its own, and that of one pod, which has an address of the subnet too.
_OF_A_NODE: Final = 2


def _room(platform: AwsPlatform, network: AwsNewNetwork) -> Iterator[Problem]:
    """The problem of a new network whose private subnets have too few addresses for all nodes."""
    zones = network.zones if isinstance(network.zones, int) else len(network.zones)
    vpc = IPv4Network(network.cidr)
    if not LARGEST_PREFIX <= vpc.prefixlen <= SMALLEST_PREFIX:
        return
    system = platform.cluster.system_nodes.count if isinstance(platform.cluster, AwsCluster) else 0
    most_nodes = sum(pool.max_nodes for pool in platform.pools) + system
    if _most_nodes_in(vpc, zones) >= most_nodes:
        return
    fitting = [
        prefix
        for prefix in range(vpc.prefixlen - 1, LARGEST_PREFIX - 1, -1)
        if _most_nodes_in(vpc.supernet(new_prefix=prefix), zones) >= most_nodes
    ]
    largest = _most_nodes_in(vpc.supernet(new_prefix=LARGEST_PREFIX), zones)
    allowed = (
        f"a block of /{fitting[0]} or larger"
        if fitting
        else f"at most {largest} nodes, in a /{LARGEST_PREFIX}"
    )
    yield Problem(
        field=f"{rules.NETWORK}.cidr",
        value=f"{format_value(network.cidr)}, for up to {most_nodes} nodes in {zones} zones",
        allowed=f"{allowed}, for the pools' maxNodes and the system nodes; it cannot be changed once there are nodes",
        fix="Write a larger block, or smaller maxNodes." if fitting else "Write smaller maxNodes.",
    )


def _most_nodes_in(vpc: IPv4Network, zones: int) -> int:
    """The most nodes that the private subnets of a VPC have addresses for."""
    subnets = [IPv4Network(each) for each in plan_subnets(str(vpc), zones).private]
    return sum((each.num_addresses - _RESERVED_ADDRESSES) // _OF_A_NODE for each in subnets)


def _named_zones(platform: AwsPlatform) -> tuple[str, ...]:
    """The zones of the network, empty if the configuration does not name them."""
    return platform.network.zone_names(()) if isinstance(platform.network, AwsNewNetwork) else ()


def zone_problems(zones: Sequence[str], region: str, at: str) -> Iterator[Problem]:
    """Zones of other regions, and zones that cannot have an EKS cluster: Local Zones and Wavelength Zones.

    Accounts see different zones of a region: every letter up to the last known one is valid.
    """
    last = max((known[-1] for known in zones_of(region)), default="z")
    for index, zone in enumerate(zones):
        if not re.fullmatch(rf"{re.escape(region)}[a-{last}]", zone, re.ASCII):
            allowed = f"a zone of {region}, the stack's region: {region}a, {region}b and so on"
            fix = f'Write "{region}{zone[-1]}", or change aws:region.'
            yield Problem(f"{at}[{index}]", format_value(zone), allowed, fix)


def _pool(pool: AwsPool, platform: AwsPlatform, market: rules.MachineMarket, at: str) -> Iterator[Problem]:
    wrong = list(_machines(pool, market, at))
    yield from wrong
    if not wrong:
        yield from _hardware(pool, pool.machines(platform.region), at)
    yield from _zones(pool, platform, at)
    yield from _reservation(pool, at)


def _machines(pool: AwsPool, market: rules.MachineMarket, at: str) -> Iterator[Problem]:
    """The problems of a pool's selection of machine types."""
    wrong = list(
        rules.machine_selection_problems(
            pool,
            ("instanceTypes", "[m7i.xlarge, m7a.xlarge]"),
            {"families": "[m7i, m7a]", "sizes": "[xlarge]"},
            at,
        )
    )
    yield from wrong
    if wrong:
        return
    if pool.instance_types is None:
        yield from _families_and_sizes(pool, market, at)
        return
    yield from rules.machine_problems(pool.instance_types, market, f"{at}.instanceTypes")
    for index, name in enumerate(pool.instance_types):
        machine = market.here.get(name)
        if pool.capacity is CapacityType.SPOT and machine is not None and not machine.on_spot:
            got = f"{format_value(name)} on a spot pool"
            allowed = "a machine type that EC2 offers on spot; it never offers this one"
            fix = "Leave it out, or write capacity: on-demand."
            yield Problem(f"{at}.instanceTypes[{index}]", got, allowed, fix)


def _families_and_sizes(pool: AwsPool, market: rules.MachineMarket, at: str) -> Iterator[Problem]:
    chosen = pool.machines(market.region)
    # A family that only other regions offer is left out, unless nothing remains.
    matching = pool.machines(None) if chosen else ()
    for place, field, names in ((0, "families", pool.families or ()), (1, "sizes", pool.sizes or ())):
        useful = {machine.name.split(".")[place] for machine in matching}
        for index, name in enumerate(names):
            if name not in useful:
                known = rules.replacements(name, market) if place == 0 else market.here
                parts = sorted({each.split(".")[place] for each in known})
                close = [found for found in get_close_matches(name, parts, n=2) if found != name]
                other = "sizes" if place == 0 else "families"
                got = f"{format_value(name)}, which matches no machine of this pool{'' if chosen else f' in {market.region}'}"
                allowed = f"{field} that match a machine together with the pool's {other}"
                fix = f'Write "{close[0]}", or remove it.' if close else "Remove it."
                yield Problem(f"{at}.{field}[{index}]", got, allowed, fix)
    yield from rules.mixed_gpu_problems(chosen, f"{at}.families")


def _hardware(pool: AwsPool, machines: Sequence[Machine], at: str) -> Iterator[Problem]:
    without = [machine.name for machine in machines if not machine.efa_interfaces]
    if pool.efa and without:
        got = f"true, but these have no Elastic Fabric Adapter: {', '.join(without)}"
        allowed = "true only if all machines of the pool have one"
        yield Problem(f"{at}.efa", got, allowed, "Remove these machines, or efa.")
    yield from rules.mixed_architecture_problems(machines, at)


def _zones(pool: AwsPool, platform: AwsPlatform, at: str) -> Iterator[Problem]:
    zones, network_zones = pool.zones or (), _named_zones(platform)
    outside = list(zone_problems(zones, platform.region, f"{at}.zones"))
    yield from outside
    for index, zone in enumerate(zones if network_zones and not outside else ()):
        if zone not in network_zones:
            allowed = f"the zones of the network: {', '.join(network_zones)}"
            advice = "Write one of them, or add it to network.zones."
            yield Problem(f"{at}.zones[{index}]", format_value(zone), allowed, advice)
    if pool.compact_placement:
        example = next(iter([*zones, *network_zones]), f"{platform.region}a")
        fix = f"Add `zones: [{example}]`, or leave it out."
        yield from rules.one_zone_problems(zones, f"{at}.compactPlacement", "placement is within a zone", fix)


def _reservation(pool: AwsPool, at: str) -> Iterator[Problem]:
    """A reservation is of one instance type in one zone."""
    example = "reservation: {id: cr-0123456789abcdef0}"
    yield from rules.reservation_problems(
        pool.capacity, {"reservation": pool.reservation}, at, example=example
    )
    if pool.capacity is not CapacityType.RESERVED:
        return
    if len(pool.instance_types or ()) != 1:
        got = f"{len(pool.instance_types or ())} instance types on a reserved pool"
        allowed = "one instance type, because a reservation is of one"
        advice = "Write instanceTypes with the type of the reservation."
        yield Problem(f"{at}.instanceTypes", got, allowed, advice)
    fix = "Write zones with the zone of the reservation."
    yield from rules.one_zone_problems(pool.zones or (), f"{at}.zones", "a reservation is in one", fix)
    if pool.compact_placement:
        allowed = "nothing: a reservation has the placement it was made with, and EC2 launches into no other group from it"
        yield Problem(f"{at}.compactPlacement", "true on a reserved pool", allowed, "Leave it out.")
