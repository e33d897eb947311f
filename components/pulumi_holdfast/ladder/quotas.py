"""Quotas of training namespaces: how much of the pools the jobs of a namespace may use together."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from pulumi_holdfast.ladder.errors import Problem
from pulumi_holdfast.ladder.reachability.pool_summary import PoolSummary
from pulumi_holdfast.ladder.reachability.shape import MAX_PODS_PER_NODE, Shape

#: Pods on the default pool, beside those of the ladder's pools: Ray heads, submitters and helpers.
BESIDE: Final = 50


@dataclass(frozen=True, kw_only=True)
class Quota:
    """Limits on the unfinished pods of a namespace: the GPUs that they request, and their number.

    Neither requires pods to set requests: a quota for CPUs or memory would reject every pod without them.
    """

    gpus: int
    pods: int


@dataclass(frozen=True, kw_only=True)
class QuotaSettings:
    """A quota as configured: a number that is None is derived; unless `enforced`, there is no quota."""

    enforced: bool = True
    gpus: int | None = None
    pods: int | None = None


def quota_of(settings: QuotaSettings, pools: Sequence[PoolSummary], shapes: Sequence[Shape]) -> Quota | None:
    """The quota of a namespace whose ladder has these pools and whose jobs have these shapes."""
    if not settings.enforced:
        return None
    derived = derived_quota(pools, shapes)
    return Quota(
        gpus=derived.gpus if settings.gpus is None else settings.gpus,
        pods=derived.pods if settings.pods is None else settings.pods,
    )


def derived_quota(pools: Sequence[PoolSummary], shapes: Sequence[Shape]) -> Quota:
    """The capacity of all pools of a ladder together, and at least the gang of each shape.

    Jobs of one namespace may be on all tiers at once. A gang that moves counts once: its pods on one tier are gone before
    it starts on the next, and its placeholder pods are in another namespace.
    """
    gpus = sum(pool.max_nodes * pool.largest.gpus for pool in pools)
    pods = sum(pool.max_nodes * _pods_on(pool) for pool in pools)
    return Quota(gpus=max(gpus, *gang_gpus(shapes)), pods=max(pods, *gang_pods(shapes)) + BESIDE)


def _pods_on(pool: PoolSummary) -> int:
    """The number of pods on a full node: one for each CPU, up to the kubelet's limit."""
    return min(pool.largest.vcpus, MAX_PODS_PER_NODE)


def gang_gpus(shapes: Sequence[Shape]) -> tuple[int, ...]:
    """The GPUs of each shape's gang, after a 0."""
    return (0, *(shape.pods * shape.requests.gpus for shape in shapes))


def gang_pods(shapes: Sequence[Shape]) -> tuple[int, ...]:
    """The pods of each shape's gang, after a 0."""
    return (0, *(shape.pods for shape in shapes))


def quota_problems(
    settings: QuotaSettings, shapes: Sequence[Shape], at: str, *, on_gpus: bool = False
) -> Iterator[Problem]:
    """Validate a quota for jobs of these shapes; `at` is the path of its settings.

    `on_gpus`: the ladder's pools have GPUs.
    """
    given = {"gpus": settings.gpus, "pods": settings.pods}
    if not settings.enforced:
        for name, number in given.items():
            if number is not None:
                yield _not_enforced(f"{at}.{name}", number)
        return
    for name, needs in (("gpus", gang_gpus(shapes)[1:]), ("pods", gang_pods(shapes)[1:])):
        number, most = given[name], max(needs, default=0)
        if number is not None and number < most:
            yield _too_small(f"{at}.{name}", number, most, shapes[needs.index(most)])
    if on_gpus and settings.gpus == 0 and not any(gang_gpus(shapes)):
        yield _no_gpus(f"{at}.gpus")


def _no_gpus(field: str) -> Problem:
    return Problem(
        field=field,
        value="0 on a ladder of pools with GPUs",
        allowed="1 or more: without GPUs no job could use them",
        fix="Remove it, to derive the number from the ladder's pools, or set how many its jobs may use.",
    )


def _not_enforced(field: str, number: int) -> Problem:
    return Problem(
        field=field,
        value=f"{number} beside enforced: false",
        allowed="nothing beside enforced: false, which leaves the namespace without quota",
        fix="Remove one of them.",
    )


def _too_small(field: str, number: int, needed: int, shape: Shape) -> Problem:
    return Problem(
        field=field,
        value=f"{number}, with {shape.title}",
        allowed=f"{needed} or more: all pods of a shape run together",
        fix=f"Write {needed} or more, or declare a smaller shape.",
    )
