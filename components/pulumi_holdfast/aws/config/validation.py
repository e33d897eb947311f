"""Validates an AWS stack's configuration: rules that involve more than one field, or the region."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from ipaddress import IPv4Network
from typing import Final

from pulumi_holdfast.aws.config.cluster import RETENTION_DAYS, AwsCluster, cluster_variant
from pulumi_holdfast.aws.config.fields import (
    OPEN_UPSTREAMS,
    assumed_role,
    assumed_role_problems,
    partition_of,
    region_problem,
)
from pulumi_holdfast.aws.config.network import (
    AwsClusterNetwork,
    AwsExistingNetwork,
    AwsNewNetwork,
    network_variant,
)
from pulumi_holdfast.aws.config.pool import AwsPool
from pulumi_holdfast.aws.config.pool_validation import (
    known_machines,
    pool_problems,
    system_machine_problems,
    zone_problems,
)
from pulumi_holdfast.aws.config.stack import (
    AwsAccess,
    AwsCheckpoints,
    AwsDocument,
    AwsPlatform,
    AwsPullThroughCache,
)
from pulumi_holdfast.aws.control_plane.addon_versions import KUBERNETES_VERSIONS, addon_versions
from pulumi_holdfast.config import validation
from pulumi_holdfast.config.accepted_clusters import accepted_cluster_problems
from pulumi_holdfast.config.cidrs import cidr_problems
from pulumi_holdfast.config.errors import format_value
from pulumi_holdfast.config.existing import new_network_problems
from pulumi_holdfast.config.loader import PLATFORM, Parts, read_part, read_parts, read_section
from pulumi_holdfast.config.namespace import NamespaceSection
from pulumi_holdfast.config.network_validation import covers_internet, private_block_problems
from pulumi_holdfast.config.stack import CloudMirror
from pulumi_holdfast.config.validation import pool_and_ladder_problems, training_namespace_problems
from pulumi_holdfast.kubernetes.admission.rules import version_problem
from pulumi_holdfast.ladder.errors import Problem
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.taints import GPU, SPOT

_CLUSTER: Final = f"{PLATFORM}.cluster"

#: The region for looking up families while the stack's region is unknown: it has nearly all of them.
_LARGEST_REGION: Final = "us-east-1"


def read_aws_platform(document: Json, region: str | None, *, assume_roles: str | None = None) -> AwsPlatform:
    """Parse and validate an AWS stack's configuration.

    `region` is the stack's value of `aws:region`, `assume_roles` that of `aws:assumeRoles`, in JSON. Raises ConfigError
    with every problem.
    """
    read_section(AwsDocument, document, partial(aws_problems, region=region, assume_roles=assume_roles))
    role = assumed_role(assume_roles)
    return AwsPlatform.model_validate_json(json.dumps({**document, "region": region, "roleArn": role}))


def aws_problems(document: Json, region: str | None, *, assume_roles: str | None = None) -> Iterator[Problem]:
    """The problems of an AWS stack's document and region that involve more than one field."""
    yield from assumed_role_problems(assume_roles)
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
    read = read_part(cluster_variant(document.get("cluster")), document, "cluster")
    cluster = read if isinstance(read, AwsCluster) else None
    if cluster is not None:
        yield from cluster_problems(cluster, region, _CLUSTER)
    yield from new_network_problems(
        document, f"{PLATFORM}.network", ("vpcId", "privateSubnetIds"), ("isolated",)
    )
    yield from _access(document, cluster, region)
    yield from _checkpoints(document)
    network = read_part(network_variant(document.get("network")), document, "network")
    yield from _pull_through_cache(document, region, isolated=network is not None and network.isolated)
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
    for index, admin in enumerate(cluster.admins):
        yield from _principal(admin, cluster.admins[:index], region, f"{at}.admins[{index}]")
    yield from _secrets_key(cluster.secrets_key, region, f"{at}.secretsKey")
    if cluster.logs.retain_days not in RETENTION_DAYS:
        close = min(RETENTION_DAYS, key=lambda days: abs(days - cluster.logs.retain_days))
        yield Problem(
            field=f"{at}.logs.retainDays",
            value=str(cluster.logs.retain_days),
            allowed=f"a period that CloudWatch accepts: {', '.join(map(str, RETENTION_DAYS))} days",
            fix=f"Write {close}.",
        )
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


def _secrets_key(key: str | None, region: str | None, field: str) -> Iterator[Problem]:
    if key is not None and region is not None and key.split(":")[3] != region:
        yield Problem(
            field=field,
            value=format_value(key),
            allowed=f"a key in {region}, the cluster's region",
            fix="Write a key of this region, or leave it out: the stack then creates one.",
        )


def _access(document: Json, cluster: AwsCluster | None, region: str | None) -> Iterator[Problem]:
    entries: Parts[AwsAccess] = read_parts(AwsAccess, document.get("access"))
    namespaces = read_parts(NamespaceSection, document.get("namespaces"))
    before = cluster.admins if cluster else ()
    for index, entry in entries.items.items():
        at = f"{PLATFORM}.access[{index}]"
        yield from _principal(entry.principal, before, region, f"{at}.principal")
        before = (*before, entry.principal)
        yield from training_namespace_problems(entry.namespaces, namespaces, f"{at}.namespaces")
    yield from accepted_cluster_problems(document)


def _checkpoints(document: Json) -> Iterator[Problem]:
    checkpoints = read_part(AwsCheckpoints, document, "checkpoints")
    if checkpoints is not None and checkpoints.drop_key and checkpoints.kms:
        yield Problem(
            field=f"{PLATFORM}.checkpoints.dropKey",
            value="true with kms: true",
            allowed="true only with kms: false, once no checkpoint under the key is needed",
            fix="Leave it out.",
        )


def _pull_through_cache(document: Json, region: str | None, *, isolated: bool) -> Iterator[Problem]:
    found = read_parts(AwsPullThroughCache, document.get("pullThroughCache"))
    at = f"{PLATFORM}.pullThroughCache"
    if region is not None and found.count and partition_of(region) != "aws":
        yield Problem(
            field=at,
            value=f"upstream registries in {region}",
            allowed="nothing in the regions of China and GovCloud, where ECR has no pull through cache",
            fix="Leave it out, and copy large images to a registry of this region.",
        )
    if isolated and found.count:
        yield Problem(
            field=at,
            value="upstream registries with an isolated network",
            allowed="nothing: through an interface endpoint, ECR imports an image only with a route to the internet",
            fix="Leave it out, and copy large images to mirror.images; or leave out isolated.",
        )
    before: set[str] = set()
    for index, entry in found.items.items():
        if entry.prefix in before:
            yield Problem(
                field=f"{at}[{index}].prefix",
                value=f"{format_value(entry.prefix)}, a duplicate",
                allowed="a prefix of its own for each upstream: ECR has one rule for it",
                fix="Write another prefix, or remove one of the two.",
            )
        before.add(entry.prefix)
        yield from _credential(entry, region, f"{at}[{index}].credentialArn")


def _credential(entry: AwsPullThroughCache, region: str | None, field: str) -> Iterator[Problem]:
    arn, is_open = entry.credential_arn, entry.upstream in OPEN_UPSTREAMS
    if arn is None and not is_open:
        yield Problem(
            field=field,
            value="nothing",
            allowed=f"a secret with credentials of {entry.upstream}, without which ECR does not read it",
            fix="Create one with `aws secretsmanager create-secret --name ecr-pullthroughcache/NAME`, and write its ARN.",
        )
    elif arn is not None and is_open:
        yield Problem(
            field=field,
            value=format_value(arn),
            allowed=f"nothing: ECR reads {entry.upstream} without credentials",
            fix="Leave it out.",
        )
    elif arn is not None and region is not None and arn.split(":")[3] != region:
        yield Problem(
            field=field,
            value=format_value(arn),
            allowed=f"a secret in {region}, the stack's region",
            fix="Create the secret there, and write its ARN.",
        )


def _principal(admin: str, before: tuple[str, ...], region: str | None, field: str) -> Iterator[Problem]:
    own, partition = admin.split(":")[1], partition_of(region) if region else None
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
            allowed="each principal once, in admins or in access: EKS has one access entry for it",
            fix="Remove one of the two. An entry of access can list several namespaces.",
        )


def network_problems(
    network: AwsNewNetwork | AwsExistingNetwork | AwsClusterNetwork,
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
    elif isinstance(network, AwsExistingNetwork):
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
