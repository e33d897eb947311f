"""What a stack will ask of an account's quotas. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast.infra.aws.preflight.quotas import quota_of
from holdfast.infra.config.reading import PLATFORM
from holdfast.scheduling.labels import CapacityType

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.infra.aws.config.stack import AwsPlatform
    from holdfast.infra.aws.preflight.quotas import Quota
    from holdfast.scheduling.machines import Machine


@dataclass(frozen=True, kw_only=True)
class Need:
    """Machines of one place in the configuration that count against one quota.

    `smallest` and `largest` are the vCPUs of one machine, `count` how many machines there may be of them. With
    `is_all`, no other quota has machines for the place.
    """

    field: str
    quota: Quota
    smallest: int
    largest: int
    count: int
    is_all: bool

    @property
    def vcpus(self) -> int:
        """The vCPUs of as many of the largest."""
        return self.largest * self.count


def needs(platform: AwsPlatform) -> Iterator[Need]:
    """Everything that a stack may run at once."""
    system = platform.cluster.system_nodes
    yield from _needs(
        platform.system_machines(), CapacityType.ON_DEMAND, system.count, f"{PLATFORM}.cluster.systemNodes"
    )
    for index, pool in enumerate(platform.pools):
        machines = pool.machines(platform.region)
        yield from _needs(machines, pool.capacity, pool.max_nodes, f"{PLATFORM}.pools[{index}]")


def _needs(machines: tuple[Machine, ...], capacity: CapacityType, count: int, field: str) -> Iterator[Need]:
    by_quota: dict[Quota | None, list[int]] = {}
    for machine in machines:
        by_quota.setdefault(quota_of(machine.name, capacity), []).append(machine.vcpus)
    for quota, vcpus in by_quota.items():
        if quota is not None:
            yield Need(
                field=field,
                quota=quota,
                smallest=min(vcpus),
                largest=max(vcpus),
                count=count,
                is_all=len(by_quota) == 1,
            )
