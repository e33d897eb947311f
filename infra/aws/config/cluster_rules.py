"""The rules of an EKS cluster's configuration."""

from __future__ import annotations

from ipaddress import IPv4Network
from typing import TYPE_CHECKING, Final

from holdfast.components.admission.rules import version_problem
from holdfast.components.cluster.eks.addon_versions import KUBERNETES_VERSIONS, addon_versions
from holdfast.infra.aws.config.regions import partition_of
from holdfast.infra.aws.config.system_node_rules import system_machine_problems
from holdfast.infra.config.access_rules import is_everywhere, not_on_the_internet
from holdfast.infra.config.problems import shown
from holdfast.scheduling.errors import Problem
from holdfast.scheduling.taints import GPU, SPOT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.infra.aws.config.cluster import AwsCluster

_WIDEST_SERVICES: Final = 12
_NARROWEST_SERVICES: Final = 24

_FOR_SERVICES: Final = tuple(IPv4Network(cidr) for cidr in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"))


def cluster_problems(cluster: AwsCluster, region: str | None, at: str) -> Iterator[Problem]:
    """Everything that is wrong with a cluster; `region` is None where it is not known."""
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
        value=shown(version),
        allowed=f"the versions whose five add-ons are pinned: {', '.join(KUBERNETES_VERSIONS)}",
        fix=f'Write "{KUBERNETES_VERSIONS[-1]}".',
    )


def _public_access(cluster: AwsCluster, at: str) -> Iterator[Problem]:
    blocks = cluster.public_access_cidrs
    everywhere = is_everywhere(blocks)
    allowed = cluster.allow_public_access_from_anywhere
    if everywhere and not allowed:
        yield Problem(
            field=f"{at}.publicAccessCidrs",
            value="the whole internet",
            allowed="the blocks from which you work, or none for a private endpoint",
            fix="Write your own addresses, such as 203.0.113.0/24; or say allowPublicAccessFromAnywhere: true.",
        )
    if allowed and not everywhere:
        yield Problem(
            field=f"{at}.allowPublicAccessFromAnywhere",
            value="true, while publicAccessCidrs are not the whole internet",
            allowed="true only beside publicAccessCidrs: [0.0.0.0/0]",
            fix="Leave it out.",
        )
    if not blocks and not cluster.private_access_cidrs:
        yield Problem(
            field=f"{at}.publicAccessCidrs",
            value="nothing, nor are there privateAccessCidrs",
            allowed="one of the two: but for nodes, the API server lets in only whom they name, and `pulumi up` not else",
            fix="Add the public address from which you work, such as `publicAccessCidrs: [203.0.113.7/32]`; or, for a "
            "private endpoint, privateAccessCidrs with the network in which `pulumi up` runs.",
        )
    yield from not_on_the_internet(
        blocks,
        f"{at}.publicAccessCidrs",
        fix="Leave it out: from inside the network the private endpoint answers, whatever stands here.",
    )


def _services(cidr: str, field: str) -> Iterator[Problem]:
    block = IPv4Network(cidr)
    private = any(block.subnet_of(one) for one in _FOR_SERVICES)
    if not private or not _WIDEST_SERVICES <= block.prefixlen <= _NARROWEST_SERVICES:
        yield Problem(
            field=field,
            value=shown(cidr),
            allowed=f"a block of /{_WIDEST_SERVICES} to /{_NARROWEST_SERVICES} within "
            + ", ".join(str(one) for one in _FOR_SERVICES),
            fix="Leave it out, or write, for example, 172.20.0.0/16.",
        )


def _admin(admin: str, before: tuple[str, ...], partition: str | None, field: str) -> Iterator[Problem]:
    own = admin.split(":")[1]
    if partition is not None and own != partition:
        yield Problem(
            field=field,
            value=shown(admin),
            allowed=f"principals of the partition of this region, whose ARNs start with arn:{partition}:",
            fix=f"Write {shown(admin.replace(f'arn:{own}:', f'arn:{partition}:', 1))}, if that is the one.",
        )
    if admin in before:
        yield Problem(
            field=field,
            value=f"{shown(admin)} a second time",
            allowed="each principal once: EKS keeps one access entry for it",
            fix="Remove one of the two.",
        )
