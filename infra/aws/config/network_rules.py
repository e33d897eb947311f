"""The rules of an AWS stack's network."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.components.network.cidrs import cidr_problems
from holdfast.infra.aws.config.network import MadeNetwork
from holdfast.infra.aws.config.regions import is_zone_of
from holdfast.infra.config import rules
from holdfast.infra.config.problems import shown
from holdfast.scheduling.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holdfast.infra.aws.config.network import BroughtNetwork


def network_problems(
    network: MadeNetwork | BroughtNetwork,
    *,
    region: str | None,
    service_cidr: str | None,
    has_image_mirror: bool,
    at: str,
) -> Iterator[Problem]:
    """Everything that is wrong with a network.

    `region` and `service_cidr`, the block of the cluster's Services, are None where they are not known.
    """
    if network.isolated and not has_image_mirror:
        yield Problem(
            field=f"{at}.isolated",
            value="true, while there is no mirror.images",
            allowed="true with a mirror, because no image can be had from the internet there",
            fix="Add mirror: {images: …} with a registry of ECR in this region, or leave isolated out.",
        )
    if isinstance(network, MadeNetwork):
        yield from _made(network, region, service_cidr, at)
    else:
        yield from rules.repeated(network.private_subnet_ids, f"{at}.privateSubnetIds", "subnet")


def _made(network: MadeNetwork, region: str | None, service_cidr: str | None, at: str) -> Iterator[Problem]:
    taken = {"the cluster's Services": service_cidr} if service_cidr else {}
    yield from cidr_problems(network.cidr, f"{at}.cidr", taken=taken)
    if not isinstance(network.zones, int) and region is not None:
        yield from zones_outside(network.zones, region, f"{at}.zones")
    if network.isolated and network.nat is not None:
        yield Problem(
            field=f"{at}.nat",
            value=f"{network.nat.value} in an isolated network",
            allowed="nothing here, since NAT is a way to the internet",
            fix="Leave out nat, or isolated.",
        )


def zones_outside(zones: Sequence[str], region: str, at: str) -> Iterator[Problem]:
    """Zones of other regions, and such as hold no EKS cluster."""
    for index, zone in enumerate(zones):
        if not is_zone_of(zone, region):
            yield Problem(
                field=f"{at}[{index}]",
                value=shown(zone),
                allowed=f"zones of {region}, the stack's region: {region}a, {region}b and so on",
                fix=f'Write "{region}{zone[-1]}", or change aws:region.',
            )
