"""The rules of a single pool on AWS."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.infra.aws.config.machine_rules import machine_problems
from holdfast.infra.aws.config.network_rules import zones_outside
from holdfast.infra.config.problems import shown
from holdfast.scheduling.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holdfast.infra.aws.config.pool import AwsPool
    from holdfast.scheduling.machines import Machine


def pool_problems(pool: AwsPool, *, region: str, network_zones: Sequence[str], at: str) -> Iterator[Problem]:
    """Everything that is wrong with a pool of a region.

    `network_zones` are the zones of the network, none where they are not named in the configuration.
    """
    wrong = list(machine_problems(pool, region, at))
    yield from wrong
    if not wrong:
        yield from _hardware(pool, pool.machines(region), at)
    yield from _zones(pool, region, network_zones, at)


def _hardware(pool: AwsPool, machines: Sequence[Machine], at: str) -> Iterator[Problem]:
    without = [machine.name for machine in machines if not machine.efa_interfaces]
    if pool.efa and without:
        yield Problem(
            field=f"{at}.efa",
            value=f"true, while these have no Elastic Fabric Adapter: {', '.join(without)}",
            allowed="true on a pool whose machines all have one",
            fix="Leave them out, or efa.",
        )
    architectures = sorted({machine.arch for machine in machines})
    if len(architectures) > 1:
        yield Problem(
            field=at,
            value=f"machines of {' and '.join(architectures)}",
            allowed="machines of one architecture, because a job's image is built for one",
            fix="Make two pools of it.",
        )


def _zones(pool: AwsPool, region: str, network_zones: Sequence[str], at: str) -> Iterator[Problem]:
    zones = pool.zones or ()
    outside = list(zones_outside(zones, region, f"{at}.zones"))
    yield from outside
    if network_zones and not outside:
        for index, zone in enumerate(zones):
            if zone not in network_zones:
                yield Problem(
                    field=f"{at}.zones[{index}]",
                    value=shown(zone),
                    allowed=f"the zones of the network: {', '.join(network_zones)}",
                    fix="Write one of them, or add it to network.zones.",
                )
    if pool.placement_group and len(zones) != 1:
        example = next(iter([*zones, *network_zones]), f"{region}a")
        yield Problem(
            field=f"{at}.placementGroup",
            value=f"true on a pool in {len(zones) or 'all'} zones",
            allowed="true on a pool in one zone, because machines that are close together are in one",
            fix=f"Write `zones: [{example}]` beside it, or leave it out.",
        )
