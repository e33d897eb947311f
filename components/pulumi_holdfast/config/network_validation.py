"""Validates address ranges on every cloud: those of nodes, pods and Services, and those with access to an API server."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, collapse_addresses, ip_network
from itertools import combinations
from typing import Final

from pulumi_holdfast.config.cidrs import PRIVATE
from pulumi_holdfast.config.errors import format_value
from pulumi_holdfast.ladder.errors import Problem
from pulumi_holdfast.ladder.json import JsonValue

ADDRESS_BITS: Final = 32


@dataclass(frozen=True, kw_only=True)
class Range:
    """A block of addresses, and the field that has it."""

    field: str
    block: IPv4Network


def fewest_bits(number: int) -> int:
    """The number of address bits for so many addresses."""
    return max(number - 1, 0).bit_length()


def public_range_problems(ranges: Sequence[Range]) -> Iterator[Problem]:
    """Ranges of public addresses."""
    for one in ranges:
        if not any(one.block.subnet_of(private) for private in PRIVATE):
            allowed = "a block within " + ", ".join(str(private) for private in PRIVATE)
            fix = "Leave it out, or write a block within these."
            yield Problem(one.field, format_value(str(one.block)), allowed, fix)


def overlapping_range_problems(ranges: Sequence[Range]) -> Iterator[Problem]:
    """Ranges that overlap."""
    for first, second in combinations(ranges, 2):
        if first.block.overlaps(second.block):
            got = f"{format_value(str(second.block))}, which overlaps {first.field} ({first.block})"
            allowed = "a block that overlaps no other range of the network"
            yield Problem(second.field, got, allowed, "Write another block, or leave out all of them.")


def range_size_problems(place: Range, bits: int, most_nodes: int) -> Iterator[Problem]:
    """A range too small for the nodes, which need `bits` bits of addresses in it."""
    if ADDRESS_BITS - place.block.prefixlen < bits:
        got = f"{format_value(str(place.block))}, for up to {most_nodes} nodes"
        allowed = f"a block of /{ADDRESS_BITS - bits} or larger, for the pools' maxNodes and the system nodes; it cannot be changed once there are nodes"
        yield Problem(place.field, got, allowed, "Write a larger block, or smaller maxNodes.")


def service_range_problems(services: Range, *, widest: int, narrowest: int) -> Iterator[Problem]:
    """A range of Services that is larger or smaller than the cloud allows."""
    if not widest <= services.block.prefixlen <= narrowest:
        allowed = f"a block of /{widest} to /{narrowest}"
        fix = f'Write "{services.block.network_address}/20", or leave it out.'
        yield Problem(services.field, format_value(str(services.block)), allowed, fix)


_EVERYWHERE: Final = IPv4Network("0.0.0.0/0")

#: Addresses that no request from the internet has; clouds reject them for a public endpoint.
_NOT_ON_THE_INTERNET: Final = tuple(
    IPv4Network(cidr)
    for cidr in (
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.168.0.0/16",
    )
)


def covers_internet(blocks: Sequence[str]) -> bool:
    """Whether these blocks together are the whole internet, such as 0.0.0.0/1 with 128.0.0.0/1."""
    return _EVERYWHERE in collapse_addresses(IPv4Network(block) for block in blocks)


def private_block_problems(blocks: Sequence[str], at: str, *, fix: str) -> Iterator[Problem]:
    """Blocks of private addresses in a list of public ones."""
    for index, block in enumerate(blocks):
        if any(IPv4Network(block).subnet_of(private) for private in _NOT_ON_THE_INTERNET):
            allowed = "the public addresses of your network, as the internet sees them"
            yield Problem(f"{at}[{index}]", f"{format_value(block)}, a private block", allowed, fix)


#: Addresses of documentation (RFC 5737, RFC 3849): stack files use them for the user's own.
_PLACEHOLDERS: Final = tuple(
    ip_network(block) for block in ("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "2001:db8::/32")
)


def placeholder_address_problems(document: JsonValue, at: str) -> Iterator[Problem]:
    """Addresses of documentation anywhere in a document; `at` is its path.

    No request comes from such an address, so an API server that allows only these is unreachable.
    """
    if isinstance(document, dict):
        for key, inner in document.items():
            yield from placeholder_address_problems(inner, f"{at}.{key}")
    elif isinstance(document, list | tuple):
        for index, inner in enumerate(document):
            yield from placeholder_address_problems(inner, f"{at}[{index}]")
    elif isinstance(document, str) and _is_placeholder(document):
        got = f"{format_value(document)}, an address of documentation, which no request has"
        fix = "Write your own: `curl -s https://checkip.amazonaws.com` prints the public address of this machine; append /32 to it."
        yield Problem(at, got, "the addresses of your own network", fix)


def _is_placeholder(text: str) -> bool:
    try:
        block = ip_network(text, strict=False)
    except ValueError:
        return False
    return any(_within(block, placeholder) for placeholder in _PLACEHOLDERS)


def _within(block: IPv4Network | IPv6Network, wider: IPv4Network | IPv6Network) -> bool:
    if isinstance(block, IPv4Network) and isinstance(wider, IPv4Network):
        return block.subnet_of(wider)
    return isinstance(block, IPv6Network) and isinstance(wider, IPv6Network) and block.subnet_of(wider)
