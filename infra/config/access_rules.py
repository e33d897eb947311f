"""The rules of addresses from which an API server is reached, on every cloud."""

from __future__ import annotations

from ipaddress import IPv4Network, collapse_addresses
from typing import TYPE_CHECKING, Final

from holdfast.infra.config.problems import shown
from holdfast.scheduling.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_EVERYWHERE: Final = IPv4Network("0.0.0.0/0")

#: Addresses that no request from the internet comes from; clouds take none of them for a public endpoint.
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


def is_everywhere(blocks: Sequence[str]) -> bool:
    """Whether these blocks are the whole internet, as 0.0.0.0/1 and 128.0.0.0/1 together are too."""
    return _EVERYWHERE in collapse_addresses(IPv4Network(block) for block in blocks)


def not_on_the_internet(blocks: Sequence[str], at: str, *, fix: str) -> Iterator[Problem]:
    """Blocks of private addresses, where those stand that the internet sees."""
    for index, block in enumerate(blocks):
        if any(IPv4Network(block).subnet_of(private) for private in _NOT_ON_THE_INTERNET):
            yield Problem(
                field=f"{at}[{index}]",
                value=f"{shown(block)}, which nobody on the internet has",
                allowed="public addresses: those that the internet sees you come from",
                fix=fix,
            )
