"""Quotas of training namespaces: how much of the pools all jobs of one may take together."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from holdfast.scheduling.errors import Problem
from holdfast.scheduling.pools import PoolSummary
from holdfast.scheduling.reachability.shape import MAX_PODS_PER_NODE, Shape

#: Pods that may run beside those of the ladder's pools: Ray heads, submitters and helpers, on the default pool.
BESIDE: Final = 50


@dataclass(frozen=True, kw_only=True)
class Quota:
    """What the pods of a namespace that have not ended may be together: the GPUs they request, and their number.

    Neither makes a pod say anything: a quota of CPUs or memory would refuse every pod that requests none of them.
    """

    gpus: int
    pods: int


@dataclass(frozen=True, kw_only=True)
class AskedQuota:
    """A quota as it is asked for: None for a number that is left to be derived; not `enforced`, there is none."""

    enforced: bool = True
    gpus: int | None = None
    pods: int | None = None


def quota_of(asked: AskedQuota, pools: Sequence[PoolSummary], shapes: Sequence[Shape]) -> Quota | None:
    """The quota of a namespace whose ladder has these pools and whose jobs have these shapes."""
    if not asked.enforced:
        return None
    derived = derived_quota(pools, shapes)
    return Quota(
        gpus=derived.gpus if asked.gpus is None else asked.gpus,
        pods=derived.pods if asked.pods is None else asked.pods,
    )


def derived_quota(pools: Sequence[PoolSummary], shapes: Sequence[Shape]) -> Quota:
    """What the pools of a ladder can have together, and no less than the gang of each shape.

    Jobs of one namespace may be on all tiers at once. A gang that moves needs no more than its own: it is gone from the
    one tier before it starts on the next, and what holds capacity for it stands in another namespace.
    """
    gpus = sum(pool.max_nodes * pool.largest.gpus for pool in pools)
    pods = sum(pool.max_nodes * _pods_on(pool) for pool in pools)
    return Quota(
        gpus=max(gpus, *gang_gpus(shapes)),
        pods=max(pods, *gang_pods(shapes)) + BESIDE,
    )


def _pods_on(pool: PoolSummary) -> int:
    """How many pods are on a node that is full of them: one for each CPU, up to what a kubelet takes."""
    return min(pool.largest.vcpus, MAX_PODS_PER_NODE)


def gang_gpus(shapes: Sequence[Shape]) -> tuple[int, ...]:
    """The GPUs of each shape's gang, and none at least."""
    return (0, *(shape.pods * shape.requests.gpus for shape in shapes))


def gang_pods(shapes: Sequence[Shape]) -> tuple[int, ...]:
    """The pods of each shape's gang, and none at least."""
    return (0, *(shape.pods for shape in shapes))


def quota_problems(
    asked: AskedQuota, shapes: Sequence[Shape], at: str, *, on_gpus: bool = False
) -> Iterator[Problem]:
    """Everything that is wrong with a quota for jobs of these shapes; `at` is the path where it is said.

    `on_gpus`: the ladder's pools have GPUs.
    """
    given = {"gpus": asked.gpus, "pods": asked.pods}
    if not asked.enforced:
        for name, number in given.items():
            if number is not None:
                yield _not_enforced(f"{at}.{name}", number)
        return
    for name, needs in (("gpus", gang_gpus(shapes)[1:]), ("pods", gang_pods(shapes)[1:])):
        number, most = given[name], max(needs, default=0)
        if number is not None and number < most:
            yield _too_small(f"{at}.{name}", number, most, shapes[needs.index(most)])
    if on_gpus and asked.gpus == 0 and not any(gang_gpus(shapes)):
        yield _useless(f"{at}.gpus")


def _useless(field: str) -> Problem:
    return Problem(
        field=field,
        value="0 on a ladder of pools with GPUs",
        allowed="1 or more: without GPUs no job could use them",
        fix="Leave it out, for as many as the ladder's pools can have, or write how many its jobs may take.",
    )


def _not_enforced(field: str, number: int) -> Problem:
    return Problem(
        field=field,
        value=f"{number} beside enforced: false",
        allowed="nothing beside enforced: false, which leaves the namespace without quota",
        fix="Leave out the one or the other.",
    )


def _too_small(field: str, number: int, needed: int, shape: Shape) -> Problem:
    return Problem(
        field=field,
        value=f"{number}, with {shape.title}",
        allowed=f"{needed} or more: all pods of a shape run together",
        fix=f"Write {needed} or more, or declare a smaller shape.",
    )
