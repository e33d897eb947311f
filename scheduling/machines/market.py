"""Where machines are sold: regions and their zones."""

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from types import MappingProxyType
from typing import Final

from scheduling.machines.tables import aws_table, gcp_table

#: The zones of the simulated cloud.
LOCAL_ZONES: Final = ("local-a", "local-b", "local-c")


def regions(cloud: str) -> frozenset[str]:
    """The regions of a cloud (`aws`, `gcp`) that are known."""
    return frozenset(_REGIONS[cloud]())


def regions_of(name: str) -> frozenset[str]:
    """The regions of AWS that sell an instance type; none for a type that is not known."""
    return _sold().get(name, frozenset())


def is_sold_in(name: str, region: str) -> bool:
    """Whether a region of AWS sells an instance type."""
    return region in regions_of(name)


def zones_of(region: str) -> tuple[str, ...]:
    """The zones of a region of AWS or GCP by name, in order; none where they are not known (China and GovCloud).

    On AWS the names are those which most accounts see: which building `us-east-1a` is differs from account to account,
    and an old region's newer accounts are shown fewer zones. No region of one cloud has the name of one of the other's.
    """
    on_gcp = gcp_table()["regions"].get(region, "")
    return tuple(
        [f"{region}{zone}" for zone in aws_table()["zones"].get(region, "")]
        + [f"{region}-{zone}" for zone in on_gcp]
    )


@cache
def _sold() -> Mapping[str, frozenset[str]]:
    table = aws_table()
    return MappingProxyType(
        {
            name: frozenset(table["regions"][letter] for letter in letters)
            for name, *_, letters in table["machines"]
        }
    )


_REGIONS: Final[Mapping[str, Callable[[], Iterable[str]]]] = {
    "aws": lambda: aws_table()["regions"].values(),
    "gcp": lambda: gcp_table()["regions"],
}
