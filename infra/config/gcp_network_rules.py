"""The rules of a GCP stack's network: its ranges are apart, and hold what the pools may grow to."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Network
from itertools import combinations
from typing import TYPE_CHECKING, Final

from components.network.cidrs import PRIVATE
from infra.config.gcp_network import MadeGcpNetwork
from infra.config.gcp_regions import REGION
from infra.config.problems import shown
from scheduling.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from infra.config.gcp_network import BroughtGcpNetwork

_ADDRESS_BITS: Final = 32

#: Compute Engine keeps these of a subnetwork for itself.
_RESERVED_ADDRESSES: Final = 4

#: GKE gives each node a block of this size for its pods, up to 110 of them.
_PODS_OF_A_NODE: Final = 24

_WIDEST_SERVICES: Final = 16
_NARROWEST_SERVICES: Final = 27


@dataclass(frozen=True, kw_only=True)
class _Range:
    """A block of addresses and the field that holds it."""

    field: str
    block: IPv4Network


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
    nodes = _Range(field=f"{at}.nodesCidr", block=IPv4Network(network.nodes_cidr))
    pods = _Range(field=f"{at}.podsCidr", block=IPv4Network(network.pods_cidr))
    services = _Range(field=f"{at}.servicesCidr", block=IPv4Network(network.services_cidr))
    for one in (nodes, pods, services):
        if not any(one.block.subnet_of(private) for private in PRIVATE):
            yield Problem(
                field=one.field,
                value=shown(str(one.block)),
                allowed="a block within " + ", ".join(str(private) for private in PRIVATE),
                mend="Leave it out, or write one of your own within these.",
            )
    for first, second in combinations((nodes, pods, services), 2):
        if first.block.overlaps(second.block):
            yield Problem(
                field=second.field,
                value=f"{shown(str(second.block))}, which overlaps {first.field} ({first.block})",
                allowed="a block apart from the network's others",
                mend="Write another, or leave out all three.",
            )
    yield from _room(nodes, _fewest_bits(most_nodes + _RESERVED_ADDRESSES), most_nodes)
    yield from _room(pods, _fewest_bits(most_nodes) + _ADDRESS_BITS - _PODS_OF_A_NODE, most_nodes)
    if not _WIDEST_SERVICES <= services.block.prefixlen <= _NARROWEST_SERVICES:
        yield Problem(
            field=services.field,
            value=shown(str(services.block)),
            allowed=f"a block of /{_WIDEST_SERVICES} to /{_NARROWEST_SERVICES}",
            mend=f'Write "{services.block.network_address}/20", or leave it out.',
        )


def _fewest_bits(number: int) -> int:
    """How many bits it takes to count so many."""
    return max(number - 1, 0).bit_length()


def _room(place: _Range, bits: int, most_nodes: int) -> Iterator[Problem]:
    if _ADDRESS_BITS - place.block.prefixlen < bits:
        yield Problem(
            field=place.field,
            value=f"{shown(str(place.block))}, for up to {most_nodes} nodes",
            allowed=f"a block of /{_ADDRESS_BITS - bits} or wider, as many as the pools' maxNodes and the system nodes "
            "take; it cannot be changed once there are nodes",
            mend="Write a wider one, or smaller maxNodes.",
        )


def _brought(network: BroughtGcpNetwork, region: str | None, at: str) -> Iterator[Problem]:
    parts = network.subnetwork.split("/")
    if region is not None and len(parts) > 1 and parts[3] != region:
        yield Problem(
            field=f"{at}.subnetwork",
            value=f"a subnetwork in {parts[3]}",
            allowed=f"one in {region}, the stack's region",
            mend=f"Write another, or change {REGION}.",
        )
    if network.pods_range == network.services_range:
        yield Problem(
            field=f"{at}.servicesRange",
            value=f"{shown(network.services_range)}, which is the pods' too",
            allowed="a secondary range of its own",
            mend="Write another one of the subnetwork's.",
        )
