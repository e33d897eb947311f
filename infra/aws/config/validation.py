"""Validates an AWS stack's configuration: rules that involve more than one field, or the region."""

from __future__ import annotations

import json
from difflib import get_close_matches
from functools import partial
from ipaddress import IPv4Network
from typing import TYPE_CHECKING, Final

from holdfast.components.admission.rules import version_problem
from holdfast.components.cluster.eks.addon_versions import KUBERNETES_VERSIONS, addon_versions
from holdfast.components.network.cidrs import cidr_problems
from holdfast.infra.aws.config.cluster import AwsCluster
from holdfast.infra.aws.config.fields import is_zone_of, partition_of, region_problem
from holdfast.infra.aws.config.network import AwsNewNetwork, network_variant
from holdfast.infra.aws.config.pool import AwsPool
from holdfast.infra.aws.config.stack import AwsDocument, AwsPlatform
from holdfast.infra.config import machine_validation, validation
from holdfast.infra.config.errors import format_value
from holdfast.infra.config.loader import PLATFORM, read_part, read_parts, read_section
from holdfast.infra.config.machine_validation import machine_selection_problems
from holdfast.infra.config.network_validation import covers_internet, private_block_problems
from holdfast.infra.config.stack import CloudMirror
from holdfast.infra.config.validation import pool_and_ladder_problems
from holdfast.scheduling.errors import Problem
from holdfast.scheduling.labels import CapacityType
from holdfast.scheduling.machines import is_sold_in, machine_catalogue
from holdfast.scheduling.taints import GPU, SPOT

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holdfast.infra.aws.config.network import AwsExistingNetwork
    from holdfast.scheduling.json import Json
    from holdfast.scheduling.machines import Machine


_CLUSTER: Final = f"{PLATFORM}.cluster"

#: The region for looking up families while the stack's region is unknown: it has nearly all of them.
_LARGEST_REGION: Final = "us-east-1"


def read_aws_platform(document: Json, region: str | None) -> AwsPlatform:
    """Parse and validate an AWS stack's configuration; `region` is the stack's value of `aws:region`.

    Raises ConfigError with every problem.
    """
    read_section(AwsDocument, document, partial(aws_problems, region=region))
    return AwsPlatform.model_validate_json(json.dumps({**document, "region": region}))


def aws_problems(document: Json, region: str | None) -> Iterator[Problem]:
    """The problems of an AWS stack's document and region that involve more than one field."""
    wrong_region = region_problem(region)
    yield from (wrong_region,) if wrong_region else ()
    # Zones and machines depend on the region: their rules do not run without a valid one.
    here = None if wrong_region else region
    yield from _cluster_and_network(document, here)
    yield from pool_and_ladder_problems(
        document,
        read_parts(AwsPool, document.get("pools")),
        problems_of=lambda pool, at: _pool_problems(pool, document, here, at),
        as_pool=lambda pool: pool.as_pool(here or _LARGEST_REGION),
    )


def _pool_problems(pool: AwsPool, document: Json, region: str | None, at: str) -> Iterator[Problem]:
    if region is None:
        yield from known_machines(pool.instance_types or (), f"{at}.instanceTypes")
        return
    network = read_part(network_variant(document.get("network")), document, "network")
    zones = network.zones if isinstance(network, AwsNewNetwork) else ()
    yield from pool_problems(
        pool, region=region, network_zones=() if isinstance(zones, int) else zones, at=at
    )


def _cluster_and_network(document: Json, region: str | None) -> Iterator[Problem]:
    cluster = read_part(AwsCluster, document, "cluster")
    if cluster is not None:
        yield from cluster_problems(cluster, region, _CLUSTER)
    network = read_part(network_variant(document.get("network")), document, "network")
    if network is not None:
        mirror = read_part(CloudMirror, document, "mirror")
        yield from network_problems(
            network,
            region=region,
            service_cidr=cluster.service_cidr if cluster else None,
            # An invalid mirror is still a mirror.
            has_image_mirror=mirror is None or mirror.images is not None,
            at=f"{PLATFORM}.network",
        )


_WIDEST_SERVICES: Final = 12
_NARROWEST_SERVICES: Final = 24

_FOR_SERVICES: Final = tuple(IPv4Network(cidr) for cidr in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"))


def cluster_problems(cluster: AwsCluster, region: str | None, at: str) -> Iterator[Problem]:
    """The problems of a cluster; `region` is None if it is unknown."""
    yield from _version(cluster.version, f"{at}.version")
    yield from _public_access(cluster, at)
    yield from _services(cluster.service_cidr, f"{at}.serviceCidr")
    partition = partition_of(region) if region else None
    for index, admin in enumerate(cluster.admins):
        yield from _admin(admin, cluster.admins[:index], partition, f"{at}.admins[{index}]")
    yield from system_machine_problems(
        cluster.system_nodes.instance_types, region, f"{at}.systemNodes.instanceTypes"
    )


def _version(version: str, field: str) -> Iterator[Problem]:
    if addon_versions(version) is not None:
        return
    yield version_problem(field, version, (SPOT, GPU)) or Problem(
        field=field,
        value=format_value(version),
        allowed=f"one of the versions with pinned add-ons: {', '.join(KUBERNETES_VERSIONS)}",
        fix=f'Write "{KUBERNETES_VERSIONS[-1]}".',
    )


def _public_access(cluster: AwsCluster, at: str) -> Iterator[Problem]:
    blocks = cluster.public_access_cidrs
    everywhere = covers_internet(blocks)
    allowed = cluster.allow_public_access_from_anywhere
    if everywhere and not allowed:
        yield Problem(
            field=f"{at}.publicAccessCidrs",
            value="the whole internet",
            allowed="the public blocks of your network, or none for a private endpoint",
            fix="Write your own addresses, such as 203.0.113.0/24; or add `allowPublicAccessFromAnywhere: true`.",
        )
    if allowed and not everywhere:
        yield Problem(
            field=f"{at}.allowPublicAccessFromAnywhere",
            value="true, but publicAccessCidrs is not the whole internet",
            allowed="true only with publicAccessCidrs: [0.0.0.0/0]",
            fix="Leave it out.",
        )
    if not blocks and not cluster.private_access_cidrs:
        yield Problem(
            field=f"{at}.publicAccessCidrs",
            value="nothing, and privateAccessCidrs is empty too",
            allowed="one of the two, with the addresses of every client of the API server except nodes",
            fix="Set one of them; otherwise only nodes, not `pulumi up`, can reach the API server. Write your public "
            "address, such as `publicAccessCidrs: [203.0.113.7/32]`; or, for a private endpoint, write "
            "privateAccessCidrs with the network in which `pulumi up` runs.",
        )
    yield from private_block_problems(
        blocks,
        f"{at}.publicAccessCidrs",
        fix="Leave it out: clients inside the network use the private endpoint.",
    )


def _services(cidr: str, field: str) -> Iterator[Problem]:
    block = IPv4Network(cidr)
    private = any(block.subnet_of(one) for one in _FOR_SERVICES)
    if not private or not _WIDEST_SERVICES <= block.prefixlen <= _NARROWEST_SERVICES:
        yield Problem(
            field=field,
            value=format_value(cidr),
            allowed=f"a block of /{_WIDEST_SERVICES} to /{_NARROWEST_SERVICES} within "
            + ", ".join(str(one) for one in _FOR_SERVICES),
            fix="Leave it out, or write, for example, 172.20.0.0/16.",
        )


def _admin(admin: str, before: tuple[str, ...], partition: str | None, field: str) -> Iterator[Problem]:
    own = admin.split(":")[1]
    if partition is not None and own != partition:
        yield Problem(
            field=field,
            value=format_value(admin),
            allowed=f"principals of this region's partition, whose ARNs start with arn:{partition}:",
            fix=f"Write {format_value(admin.replace(f'arn:{own}:', f'arn:{partition}:', 1))}, if that is the principal.",
        )
    if admin in before:
        yield Problem(
            field=field,
            value=f"{format_value(admin)}, a duplicate",
            allowed="each principal once: EKS has one access entry for it",
            fix="Remove one of the two.",
        )


def network_problems(
    network: AwsNewNetwork | AwsExistingNetwork,
    *,
    region: str | None,
    service_cidr: str | None,
    has_image_mirror: bool,
    at: str,
) -> Iterator[Problem]:
    """The problems of a network.

    `region` and `service_cidr`, the block of the cluster's Services, are None if they are unknown.
    """
    if network.isolated and not has_image_mirror:
        yield Problem(
            field=f"{at}.isolated",
            value="true, without mirror.images",
            allowed="true with a mirror, because nodes cannot pull images from the internet",
            fix="Add `mirror: {images: …}` with an ECR registry in this region, or leave out isolated.",
        )
    if isinstance(network, AwsNewNetwork):
        yield from _new(network, region, service_cidr, at)
    else:
        yield from validation.duplicate_problems(
            network.private_subnet_ids, f"{at}.privateSubnetIds", "subnet"
        )


def _new(network: AwsNewNetwork, region: str | None, service_cidr: str | None, at: str) -> Iterator[Problem]:
    taken = {"the cluster's Services": service_cidr} if service_cidr else {}
    yield from cidr_problems(network.cidr, f"{at}.cidr", taken=taken)
    if not isinstance(network.zones, int) and region is not None:
        yield from zone_problems(network.zones, region, f"{at}.zones")
    if network.isolated and network.nat is not None:
        yield Problem(
            field=f"{at}.nat",
            value=f"{network.nat.value} in an isolated network",
            allowed="nothing, because NAT gives access to the internet",
            fix="Leave out nat or isolated.",
        )


def zone_problems(zones: Sequence[str], region: str, at: str) -> Iterator[Problem]:
    """Zones of other regions, and zones that cannot have an EKS cluster."""
    for index, zone in enumerate(zones):
        if not is_zone_of(zone, region):
            yield Problem(
                field=f"{at}[{index}]",
                value=format_value(zone),
                allowed=f"a zone of {region}, the stack's region: {region}a, {region}b and so on",
                fix=f'Write "{region}{zone[-1]}", or change aws:region.',
            )


#: The requests of the operators, Karpenter (1 GiB) and EKS's agents on one of two nodes, with a reserve.
_FEWEST_VCPUS: Final = 2
_LEAST_MIB: Final = 4096


def system_machine_problems(types: Sequence[str], region: str | None, at: str) -> Iterator[Problem]:
    """The problems of the system nodes' instance types; `region` is None if it is unknown."""
    if region is not None:
        yield from named_machines(types, region, at)
    catalogue = machine_catalogue("aws")
    machines = {index: catalogue[name] for index, name in enumerate(types) if name in catalogue}
    for index, machine in machines.items():
        yield from _unfit(machine, f"{at}[{index}]")
    architectures = {machine.arch for machine in machines.values()}
    if len(architectures) > 1:
        yield Problem(
            field=at,
            value=f"machines of {' and '.join(sorted(architectures))}",
            allowed="machines of one architecture, because a node group has one image",
            fix="Remove those of one architecture.",
        )


def _unfit(machine: Machine, field: str) -> Iterator[Problem]:
    if machine.gpus:
        yield Problem(
            field=field,
            value=f"{format_value(machine.name)}, which has {machine.gpus} GPUs",
            allowed="machines without GPUs, because only operators run here",
            fix="Write, for example, m7i.large.",
        )
    if machine.vcpus < _FEWEST_VCPUS or machine.memory_mib < _LEAST_MIB:
        yield Problem(
            field=field,
            value=f"{format_value(machine.name)}, which has {machine.vcpus} vCPUs and {machine.memory_mib} MiB",
            allowed=f"machines of {_FEWEST_VCPUS} vCPUs and {_LEAST_MIB} MiB or more; two of them run all operators",
            fix="Write, for example, m7i.large.",
        )


def pool_problems(pool: AwsPool, *, region: str, network_zones: Sequence[str], at: str) -> Iterator[Problem]:
    """The problems of a pool in a region.

    `network_zones` are the zones of the network, empty if the configuration does not name them.
    """
    wrong = list(machine_problems(pool, region, at))
    yield from wrong
    if not wrong:
        yield from _hardware(pool, pool.machines(region), at)
    yield from _zones(pool, region, network_zones, at)


def _hardware(pool: AwsPool, machines: Sequence[Machine], at: str) -> Iterator[Problem]:
    without = [machine.name for machine in machines if not machine.efa_interfaces]
    if pool.efa and without:
        yield Problem(
            field=f"{at}.efa",
            value=f"true, but these have no Elastic Fabric Adapter: {', '.join(without)}",
            allowed="true only if all machines of the pool have one",
            fix="Remove these machines, or efa.",
        )
    architectures = sorted({machine.arch for machine in machines})
    if len(architectures) > 1:
        yield Problem(
            field=at,
            value=f"machines of {' and '.join(architectures)}",
            allowed="machines of one architecture, because a job's image supports one",
            fix="Write two pools instead.",
        )


def _zones(pool: AwsPool, region: str, network_zones: Sequence[str], at: str) -> Iterator[Problem]:
    zones = pool.zones or ()
    outside = list(zone_problems(zones, region, f"{at}.zones"))
    yield from outside
    if network_zones and not outside:
        for index, zone in enumerate(zones):
            if zone not in network_zones:
                yield Problem(
                    field=f"{at}.zones[{index}]",
                    value=format_value(zone),
                    allowed=f"the zones of the network: {', '.join(network_zones)}",
                    fix="Write one of them, or add it to network.zones.",
                )
    if pool.placement_group and len(zones) != 1:
        example = next(iter([*zones, *network_zones]), f"{region}a")
        yield Problem(
            field=f"{at}.placementGroup",
            value=f"true on a pool in {len(zones) or 'all'} zones",
            allowed="true on a pool in one zone, because placement is within a zone",
            fix=f"Add `zones: [{example}]`, or leave it out.",
        )


_EC2: Final = machine_validation.Market(
    cloud="aws",
    what="instance type",
    setting="aws:region",
    command="aws ec2 describe-instance-type-offerings --region {region}",
)


def machine_problems(pool: AwsPool, region: str, at: str) -> Iterator[Problem]:
    """The problems of a pool's selection of machine types."""
    fields = {"instanceTypes": pool.instance_types, "families": pool.families, "sizes": pool.sizes}
    wrong = list(
        machine_selection_problems(
            ("instanceTypes", "[m7i.xlarge, m7a.xlarge]"),
            {"families": "[m7i, m7a]", "sizes": "[xlarge]"},
            frozenset(field for field, given in fields.items() if given is not None),
            at,
        )
    )
    yield from wrong
    if wrong:
        return
    if pool.instance_types is not None:
        yield from named_machines(pool.instance_types, region, f"{at}.instanceTypes")
        yield from _not_on_spot(pool, f"{at}.instanceTypes")
    else:
        yield from _families_and_sizes(pool, region, at)


def named_machines(types: Sequence[str], region: str, at: str) -> Iterator[Problem]:
    """Instance types that do not exist or that the region does not offer, and invalid combinations."""
    return machine_validation.regional_machine_problems(types, region, _EC2, at)


def known_machines(types: Sequence[str], at: str) -> Iterator[Problem]:
    """Instance types that no region offers, and invalid combinations."""
    return machine_validation.known_machine_problems(types, _EC2, at)


def _not_on_spot(pool: AwsPool, at: str) -> Iterator[Problem]:
    catalogue = machine_catalogue("aws")
    for index, name in enumerate(pool.instance_types or ()):
        machine = catalogue.get(name)
        if pool.capacity is CapacityType.SPOT and machine is not None and not machine.on_spot:
            yield Problem(
                field=f"{at}[{index}]",
                value=f"{format_value(name)} on a spot pool",
                allowed="a machine type that EC2 offers on spot; it never offers this one",
                fix="Leave it out, or write capacity: on-demand.",
            )


def _families_and_sizes(pool: AwsPool, region: str, at: str) -> Iterator[Problem]:
    chosen = pool.machines(region)
    here = [name for name in machine_catalogue("aws") if is_sold_in(name, region)]
    for place, field, names in ((0, "families", pool.families or ()), (1, "sizes", pool.sizes or ())):
        useful = {machine.name.split(".")[place] for machine in chosen}
        known = sorted({name.split(".")[place] for name in here})
        for index, name in enumerate(names):
            if name not in useful:
                close = [found for found in get_close_matches(name, known, n=2) if found != name]
                yield Problem(
                    field=f"{at}.{field}[{index}]",
                    value=f"{format_value(name)}, which matches no machine of this pool in {region}",
                    allowed=f"{field} that match a machine together with the pool's "
                    f"{'sizes' if place == 0 else 'families'}",
                    fix=f'Write "{close[0]}", or remove it.' if close else "Remove it.",
                )
    yield from machine_validation.mixed_gpu_problems(chosen, f"{at}.families")
