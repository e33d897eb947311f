"""The rules of a GCP stack's network: its ranges are apart, and hold what the pools may grow to."""

from __future__ import annotations

from ipaddress import IPv4Network
from typing import TYPE_CHECKING, Final

from holdfast.infra.config.problems import shown
from holdfast.infra.config.range_rules import (
    ADDRESS_BITS,
    Range,
    fewest_bits,
    overlapping_ranges,
    public_ranges,
    room,
    services_size,
)
from holdfast.infra.gcp.config.network import MadeGcpNetwork
from holdfast.infra.gcp.config.regions import REGION
from holdfast.scheduling.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.infra.gcp.config.network import BroughtGcpNetwork

#: Compute Engine keeps these of a subnetwork for itself.
_RESERVED_ADDRESSES: Final = 4

#: GKE gives each node a block of this size for its pods, up to 110 of them.
_PODS_OF_A_NODE: Final = 24

_WIDEST_SERVICES: Final = 16
_NARROWEST_SERVICES: Final = 27


def network_problems(
    network: MadeGcpNetwork | BroughtGcpNetwork, *, region: str | None, most_nodes: int, at: str
) -> Iterator[Problem]:
    """Everything that is wrong with a network.

    `most_nodes` is how many nodes there may be at once, as far as that is known; `region` is None where it is not.
    """
    if isinstance(network, MadeGcpNetwork):
        yield from _made(network, most_nodes, at)
    else:
        yield from _brought(network, region, at)


def _made(network: MadeGcpNetwork, most_nodes: int, at: str) -> Iterator[Problem]:
    nodes = Range(field=f"{at}.nodesCidr", block=IPv4Network(network.nodes_cidr))
    pods = Range(field=f"{at}.podsCidr", block=IPv4Network(network.pods_cidr))
    services = Range(field=f"{at}.servicesCidr", block=IPv4Network(network.services_cidr))
    ranges = (nodes, pods, services)
    yield from public_ranges(ranges)
    yield from overlapping_ranges(ranges)
    yield from room(nodes, fewest_bits(most_nodes + _RESERVED_ADDRESSES), most_nodes)
    yield from room(pods, fewest_bits(most_nodes) + ADDRESS_BITS - _PODS_OF_A_NODE, most_nodes)
    yield from services_size(services, widest=_WIDEST_SERVICES, narrowest=_NARROWEST_SERVICES)


def _brought(network: BroughtGcpNetwork, region: str | None, at: str) -> Iterator[Problem]:
    parts = network.subnetwork.split("/")
    if region is not None and len(parts) > 1 and parts[3] != region:
        yield Problem(
            field=f"{at}.subnetwork",
            value=f"a subnetwork in {parts[3]}",
            allowed=f"one in {region}, the stack's region",
            fix=f"Write another, or change {REGION}.",
        )
    if network.pods_range == network.services_range:
        yield Problem(
            field=f"{at}.servicesRange",
            value=f"{shown(network.services_range)}, which is the pods' too",
            allowed="a secondary range of its own",
            fix="Write another one of the subnetwork's.",
        )
