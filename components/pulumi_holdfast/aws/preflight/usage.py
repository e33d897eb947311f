"""Compares a stack's demand with the granted and used quotas of EC2, as the AWS CLI prints them."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import TYPE_CHECKING, Final

from pulumi_holdfast.aws.preflight.checks import increase_command, quota_demands
from pulumi_holdfast.config.loader import PLATFORM
from pulumi_holdfast.config.preflight import Demand, QuotaUse, Usage, quota_use
from pulumi_holdfast.kubernetes import labels
from pulumi_holdfast.ladder.labels import CapacityType
from pulumi_holdfast.ladder.machines import machine_catalogue
from pulumi_holdfast.ladder.machines.ec2_quotas import quota_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pulumi_holdfast.aws.config.sections import AwsPlatform
    from pulumi_holdfast.aws.preflight.checks import QuotaDemand
    from pulumi_holdfast.config.preflight import Runner
    from pulumi_holdfast.ladder.machines.ec2_quotas import Ec2Quota

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
