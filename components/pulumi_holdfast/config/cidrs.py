"""Address ranges: the plan of a VPC, and which ranges a stack may have. No SDK needed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import (
    AddressValueError,
    IPv4Network,
    IPv6Network,
    NetmaskValueError,
    collapse_addresses,
    ip_network,
)
from itertools import combinations, islice
from typing import Final

from pulumi_holdfast.config.errors import format_value
from pulumi_holdfast.ladder.errors import Problem
from pulumi_holdfast.ladder.json import JsonValue

#: EKS needs two zones; no region has more than six.
FEWEST_ZONES: Final = 2
MOST_ZONES: Final = 6

#: AWS's largest VPC. In a VPC below SMALLEST_PREFIX a public subnet would have fewer than 16 addresses, AWS's
#: minimum.
LARGEST_PREFIX: Final = 16
SMALLEST_PREFIX: Final = 22

#: The number of equal blocks of a VPC's range. It is independent of the number of zones, so that adding a
#: zone moves no subnet: moving a subnet replaces it and the cluster.
_BLOCKS: Final = 8
_PUBLIC_BLOCK: Final = 7

#: RFC 1918 and RFC 6598: ranges that are not used on the public internet.
PRIVATE: Final = tuple(
    IPv4Network(cidr) for cidr in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10")
)

_ALLOWED: Final = (
    f"a private range from /{LARGEST_PREFIX} to /{SMALLEST_PREFIX}, such as 10.40.0.0/16, "
    "that overlaps no other range of this stack"
)


@dataclass(frozen=True, kw_only=True)
class SubnetPlan:
    """The ranges of a VPC's subnets, one private and one public for each zone, in the order of the zones."""

    private: tuple[str, ...]
    public: tuple[str, ...]


def plan_subnets(cidr: str, zones: int) -> SubnetPlan:
    """Divide a VPC's range: an eighth for each zone's private subnet, and a small public one.

    Nodes and pods use the private subnets, NAT gateways the public ones. Raises ValueError for a range that
    `cidr_problems` rejects, and for fewer than 2 or more than 6 zones.
    """
    vpc = IPv4Network(cidr)
    if not (LARGEST_PREFIX <= vpc.prefixlen <= SMALLEST_PREFIX and FEWEST_ZONES <= zones <= MOST_ZONES):
        raise ValueError(
            f"{cidr} cannot be divided among {zones} zones: use /{LARGEST_PREFIX} to /{SMALLEST_PREFIX} and {FEWEST_ZONES} to {MOST_ZONES} zones"
        )
    blocks = list(vpc.subnets(prefixlen_diff=_BLOCKS.bit_length() - 1))
    slices = blocks[_PUBLIC_BLOCK].subnets(prefixlen_diff=_BLOCKS.bit_length() - 1)
    return SubnetPlan(
        private=tuple(str(block) for block in blocks[:zones]),
        public=tuple(str(part) for part in islice(slices, zones)),
    )


def cidr_problems(cidr: str, field: str, *, taken: Mapping[str, str] | None = None) -> Iterator[Problem]:
    """Yield what is wrong with a VPC's range.

    `field` is its full path in the configuration. `taken` are ranges that it must not overlap, by a
    description (`the cluster's services` → `172.20.0.0/16`).
    """
    others = taken or {}
    vpc = _parsed(cidr)
    nearest = None if vpc is None else _nearest(cidr, vpc)
    if vpc is None or nearest is None or str(nearest) != cidr:
        fix = f'Write "{nearest}".' if nearest else _example(others)
        yield Problem(field, f'"{cidr}"', _ALLOWED, fix)
        return
    for what, other in others.items():
        if vpc.overlaps(IPv4Network(other)):
            yield Problem(field, f'"{cidr}", which overlaps {what} ({other})', _ALLOWED, _example(others))


def _parsed(cidr: str) -> IPv4Network | None:
    try:
        return IPv4Network(cidr, strict=False)
    except (AddressValueError, NetmaskValueError, ValueError):
        return None


def _nearest(cidr: str, vpc: IPv4Network) -> IPv4Network | None:
    """Return the valid range that is closest to this one, or None if it would not be private."""
    asked = vpc.prefixlen if "/" in cidr else LARGEST_PREFIX
    prefix = min(max(asked, LARGEST_PREFIX), SMALLEST_PREFIX)
    nearest = IPv4Network((vpc.network_address, prefix), strict=False)
    return nearest if any(nearest.subnet_of(private) for private in PRIVATE) else None


def _example(taken: Mapping[str, str]) -> str:
    others = [IPv4Network(other) for other in taken.values()]
    free = (
        candidate
        for candidate in PRIVATE[0].subnets(new_prefix=LARGEST_PREFIX)
        if candidate.network_address >= IPv4Network("10.40.0.0/16").network_address
        and not any(candidate.overlaps(other) for other in others)
    )
    return f'Write, for example, "{next(free)}".'


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
