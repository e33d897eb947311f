"""The address plan of a VPC: which ranges are valid and how they are divided. No SDK needed."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Network, NetmaskValueError
from itertools import islice
from typing import Final

from pulumi_holdfast.ladder.errors import Problem

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
