"""EC2's vCPU quotas: what a stack counts against them, and what is granted and used, as the AWS CLI prints it.

Beyond a quota EC2 starts no machine for Karpenter or a node group.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pulumi_holdfast.aws.config.sections import AwsExistingCluster
from pulumi_holdfast.config.loader import PLATFORM
from pulumi_holdfast.config.preflight import Demand, QuotaUse, Usage, quota_use
from pulumi_holdfast.kubernetes import labels
from pulumi_holdfast.ladder.labels import CapacityType
from pulumi_holdfast.ladder.machines import machine_catalogue


@dataclass(frozen=True, kw_only=True)
class Ec2Quota:
    """A quota by its code and its name in the Service Quotas console."""

    code: str
    name: str


_STANDARD: Final = frozenset("acdhimrtz") | {"im", "is"}
_GRAPHICS: Final = frozenset({"g", "gr", "vt"})

_ON_DEMAND: Final[Mapping[str, Ec2Quota]] = {
    "standard": Ec2Quota(
        code="L-1216C47A", name="Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances"
    ),
    "graphics": Ec2Quota(code="L-DB2E81BA", name="Running On-Demand G and VT instances"),
    "dl": Ec2Quota(code="L-6E869C2A", name="Running On-Demand DL instances"),
    "f": Ec2Quota(code="L-74FC7D96", name="Running On-Demand F instances"),
    "hpc": Ec2Quota(code="L-F7808C92", name="Running On-Demand HPC instances"),
    "inf": Ec2Quota(code="L-1945791B", name="Running On-Demand Inf instances"),
    "p": Ec2Quota(code="L-417A185B", name="Running On-Demand P instances"),
    "trn": Ec2Quota(code="L-2C3B7624", name="Running On-Demand Trn instances"),
    "u": Ec2Quota(code="L-43DA4232", name="Running On-Demand High Memory instances"),
    "x": Ec2Quota(code="L-7295265B", name="Running On-Demand X instances"),
}
_SPOT_P4: Final = Ec2Quota(code="L-7212CCBC", name="All P4, P3 and P2 Spot Instance Requests")
_SPOT: Final[Mapping[str, Ec2Quota]] = {
    "standard": Ec2Quota(
        code="L-34B43A08", name="All Standard (A, C, D, H, I, M, R, T, Z) Spot Instance Requests"
    ),
    "graphics": Ec2Quota(code="L-3819A6DF", name="All G and VT Spot Instance Requests"),
    "dl": Ec2Quota(code="L-85EED4F7", name="All DL Spot Instance Requests"),
    "f": Ec2Quota(code="L-88CF9481", name="All F Spot Instance Requests"),
    "inf": Ec2Quota(code="L-B5D1601B", name="All Inf Spot Instance Requests"),
    "p2": _SPOT_P4,
    "p3": _SPOT_P4,
    "p4": _SPOT_P4,
    "p5": Ec2Quota(code="L-C4BD4855", name="All P5 Spot Instance Requests"),
    "trn": Ec2Quota(code="L-6B0D517C", name="All Trn Spot Instance Requests"),
    "x": Ec2Quota(code="L-E3A00192", name="All X Spot Instance Requests"),
}


def quota_of(instance_type: str, capacity: CapacityType) -> Ec2Quota | None:
    """The quota that machines of a type count against; None for families that AWS does not document."""
    series = re.match(r"([a-z]+)([0-9]*)", instance_type, re.ASCII)
    # A reservation was counted when it was made, and a Capacity Block never is.
    if series is None or capacity is CapacityType.RESERVED:
        return None
    letters, generation = series.groups()
    if capacity is CapacityType.ON_DEMAND:
        return _ON_DEMAND.get(_group(letters))
    return _SPOT.get(f"p{generation[:1]}" if letters == "p" else _group(letters))


def _group(letters: str) -> str:
    if letters in _STANDARD:
        return "standard"
    return "graphics" if letters in _GRAPHICS else letters


if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pulumi_holdfast.aws.config.sections import AwsPlatform
    from pulumi_holdfast.aws.preflight.quotas import Ec2Quota
    from pulumi_holdfast.config.preflight import Runner
    from pulumi_holdfast.ladder.machines import Machine

_SYSTEM: Final = f"{PLATFORM}.cluster.systemNodes"

#: Type, `spot` or nothing, and the value of the tag with the stack's name, of every machine that counts.
_INSTANCES: Final = (
    f"Reservations[].Instances[].[InstanceType, InstanceLifecycle, Tags[?Key=='{labels.STACK}'] | [0].Value]"
)


def quota_uses(platform: AwsPlatform, stack: str, runner: Runner) -> tuple[QuotaUse, ...]:
    """Each quota that machines of the stack count against: spot and on-demand pools, and the system nodes.

    A query that fails, such as one without permission, leaves its values unknown.
    """
    by_quota: dict[Ec2Quota, list[QuotaDemand]] = defaultdict(list)
    for demand in quota_demands(platform):
        by_quota[demand.quota].append(demand)
    used = _used_by_others(platform.region, stack, runner)
    return tuple(
        _use(quota, demands, platform.region, runner, None if used is None else used.get(quota, 0))
        for quota, demands in by_quota.items()
    )


def _use(
    quota: Ec2Quota, demands: Sequence[QuotaDemand], region: str, runner: Runner, used: float | None
) -> QuotaUse:
    answer = runner(
        (
            *(
                "aws",
                "service-quotas",
                "get-service-quota",
                "--service-code",
                "ec2",
                "--quota-code",
                quota.code,
            ),
            *("--query", "Quota.Value", "--output", "text", "--region", region),
        )
    )
    usage = Usage(
        granted=_number(answer.output) if answer.code == 0 else None,
        used=used,
        reason=" ".join((answer.errors or answer.output).split()),
    )
    return quota_use(
        quota.name,
        "vCPUs",
        [_demand(each) for each in demands],
        usage,
        increase=increase_command(quota, "{}", region),
    )


def _demand(demand: QuotaDemand) -> Demand:
    # The system nodes all run from the beginning; a pool starts with one of its machines.
    if demand.field == _SYSTEM:
        least = demand.smallest * demand.count
    else:
        least = demand.smallest if demand.is_all else 0
    return Demand(field=demand.field, asked=demand.vcpus, least=least)


def _used_by_others(region: str, stack: str, runner: Runner) -> Mapping[Ec2Quota, float] | None:
    """The vCPUs of the account's other machines, by quota; None if the caller may not list them."""
    answer = runner(
        (
            *("aws", "ec2", "describe-instances", "--region", region, "--output", "json"),
            *("--query", _INSTANCES),
            *("--filters", "Name=instance-state-name,Values=pending,running"),
        )
    )
    if answer.code != 0:
        return None
    own = labels.stack_labels(stack)[labels.STACK]
    catalogue = machine_catalogue("aws")
    found: dict[Ec2Quota, float] = defaultdict(float)
    listed: list[list[str | None]] = json.loads(answer.output or "[]")
    for name, lifecycle, owner in listed:
        machine = catalogue.get(name or "")
        quota = quota_of(
            name or "", CapacityType.SPOT if lifecycle == CapacityType.SPOT else CapacityType.ON_DEMAND
        )
        if machine is not None and quota is not None and owner != own:
            found[quota] += machine.vcpus
    return found


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


@dataclass(frozen=True, kw_only=True)
class QuotaDemand:
    """Machines of one field of the configuration that count against one quota.

    `smallest` and `largest` are the vCPUs of one machine, `count` is the largest number of machines. With `is_all`, all
    machines of the field count against this quota.
    """

    field: str
    quota: Ec2Quota
    smallest: int
    largest: int
    count: int
    is_all: bool

    @property
    def vcpus(self) -> int:
        """The vCPUs of `count` of the largest machines."""
        return self.largest * self.count


def quota_demands(platform: AwsPlatform) -> Iterator[QuotaDemand]:
    """The most that a stack may run at a time, by quota."""
    if not isinstance(platform.cluster, AwsExistingCluster):
        count, at = platform.cluster.system_nodes.count, f"{PLATFORM}.cluster.systemNodes"
        yield from _needs(platform.system_machines(), CapacityType.ON_DEMAND, count, at)
    for index, pool in enumerate(platform.pools):
        machines = pool.machines(platform.region)
        yield from _needs(machines, pool.capacity, pool.max_nodes, f"{PLATFORM}.pools[{index}]")


def _needs(
    machines: tuple[Machine, ...], capacity: CapacityType, count: int, field: str
) -> Iterator[QuotaDemand]:
    by_quota: dict[Ec2Quota | None, list[int]] = {}
    for machine in machines:
        by_quota.setdefault(quota_of(machine.name, capacity), []).append(machine.vcpus)
    for quota, vcpus in by_quota.items():
        if quota is not None:
            yield QuotaDemand(
                field=field,
                quota=quota,
                smallest=min(vcpus),
                largest=max(vcpus),
                count=count,
                is_all=len(by_quota) == 1,
            )


def increase_command(quota: Ec2Quota, vcpus: int | str, region: str) -> str:
    """The command that requests a larger quota."""
    return (
        f"aws service-quotas request-service-quota-increase --service-code ec2 --quota-code {quota.code} "
        f"--desired-value {vcpus} --region {region}"
    )
