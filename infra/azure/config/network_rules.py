"""The rules of an Azure stack's network: its ranges are apart, and hold what the pools may grow to."""

from __future__ import annotations

from ipaddress import IPv4Network
from typing import TYPE_CHECKING, Final

from holdfast.infra.azure.config.network import MadeAzureNetwork
from holdfast.infra.config import rules
from holdfast.infra.config.access_rules import not_on_the_internet
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
from holdfast.scheduling.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holdfast.infra.azure.config.cluster import AzureAccess
    from holdfast.infra.azure.config.network import BroughtAzureNetwork

#: Azure keeps these of a subnet for itself.
_RESERVED_ADDRESSES: Final = 5

#: Azure's overlay gives each node a block of this size for its pods, up to 250 of them.
_PODS_OF_A_NODE: Final = 24

_WIDEST_SERVICES: Final = 12
#: Ten addresses on from its first is the cluster's DNS.
_NARROWEST_SERVICES: Final = 28

#: Private ranges that AKS keeps for itself.
_OF_AKS: Final = tuple(IPv4Network(cidr) for cidr in ("172.30.0.0/16", "172.31.0.0/16"))


def network_problems(
    network: MadeAzureNetwork | BroughtAzureNetwork, *, access: AzureAccess | None, most_nodes: int, at: str
) -> Iterator[Problem]:
    """Everything that is wrong with a network.

    `most_nodes` is how many nodes there may be at once, as far as that is known; `access` is how the API server is
    reached, None where it is not known.
    """
    pods = Range(field=f"{at}.podsCidr", block=IPv4Network(network.pods_cidr))
    services = Range(field=f"{at}.servicesCidr", block=IPv4Network(network.services_cidr))
    ranges = [pods, services]
    if isinstance(network, MadeAzureNetwork):
        nodes = Range(field=f"{at}.cidr", block=IPv4Network(network.cidr))
        ranges.insert(0, nodes)
        yield from room(nodes, fewest_bits(most_nodes + _RESERVED_ADDRESSES), most_nodes)
    else:
        yield from _egress(network, access, f"{at}.egressCidrs")
    yield from public_ranges(ranges)
    yield from _ranges_of_aks(ranges)
    yield from overlapping_ranges(ranges)
    yield from room(pods, fewest_bits(most_nodes) + ADDRESS_BITS - _PODS_OF_A_NODE, most_nodes)
    yield from services_size(services, widest=_WIDEST_SERVICES, narrowest=_NARROWEST_SERVICES)


def _ranges_of_aks(ranges: Sequence[Range]) -> Iterator[Problem]:
    for one in ranges:
        kept = next((block for block in _OF_AKS if one.block.overlaps(block)), None)
        if kept is not None:
            yield Problem(
                field=one.field,
                value=f"{shown(str(one.block))}, which overlaps {kept}",
                allowed="a block apart from "
                + " and ".join(str(block) for block in _OF_AKS)
                + ", which AKS keeps",
                fix="Leave it out, or write another.",
            )


def _egress(network: BroughtAzureNetwork, access: AzureAccess | None, field: str) -> Iterator[Problem]:
    if access is not None and access.public is not None and not network.egress_cidrs:
        yield Problem(
            field=field,
            value="nothing, while the API server has a public address",
            allowed="the addresses from which the subnet's nodes are seen to call: they reach the API server by its "
            "public address, which lets in only whom it is told of",
            fix="Add what `az network public-ip show --ids ID --query ipAddress` prints for the NAT gateway's or the "
            "firewall's, such as `egressCidrs: [198.51.100.7/32]`; or write `private: true` as the cluster's access.",
        )
    yield from rules.repeated(network.egress_cidrs, field, "block")
    yield from not_on_the_internet(
        network.egress_cidrs,
        field,
        fix="Write the public address of the NAT gateway or the firewall.",
    )
