"""Quotas of training namespaces: how much of the pools the jobs of a namespace may use together."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from pulumi_holdfast.ladder.errors import Problem
from pulumi_holdfast.ladder.quantities import format_cpu, format_memory
from pulumi_holdfast.ladder.reachability.pool_summary import PoolSummary
from pulumi_holdfast.ladder.reachability.shape import LEAST, MAX_PODS_PER_NODE, Shape

#: Objects of each kind that a namespace has room for, without its nodes and for each of them.
OBJECTS: Final = 200
OBJECTS_PER_NODE: Final = 10

#: Disks of a namespace, and as much again for each of its nodes.
STORAGE_MIB: Final = 1024 * 1024

#: Pods on the default pool, beside those of the ladder's pools: Ray heads, submitters and helpers. Each has LEAST.
BESIDE: Final = 50


@dataclass(frozen=True, kw_only=True)
class Quota:
    """Limits on the unfinished pods of a namespace: what they request together, and their number; on disks, and on objects of a kind."""

    cpu_millis: int
    memory_mib: int
    gpus: int
    pods: int
    storage_mib: int
    objects: int


@dataclass(frozen=True, kw_only=True)
class QuotaSettings:
    """A quota as configured: an amount that is None is derived; unless `enforced`, there is no quota."""

    enforced: bool = True
    cpu_millis: int | None = None
    memory_mib: int | None = None
    gpus: int | None = None
    pods: int | None = None
    storage_mib: int | None = None
    objects: int | None = None


def quota_of(settings: QuotaSettings, pools: Sequence[PoolSummary], shapes: Sequence[Shape]) -> Quota | None:
    """The quota of a namespace whose ladder has these pools and whose jobs have these shapes."""
    if not settings.enforced:
        return None
    derived = derived_quota(pools, shapes)
    return Quota(
        cpu_millis=derived.cpu_millis if settings.cpu_millis is None else settings.cpu_millis,
        memory_mib=derived.memory_mib if settings.memory_mib is None else settings.memory_mib,
        gpus=derived.gpus if settings.gpus is None else settings.gpus,
        pods=derived.pods if settings.pods is None else settings.pods,
        storage_mib=derived.storage_mib if settings.storage_mib is None else settings.storage_mib,
        objects=derived.objects if settings.objects is None else settings.objects,
    )


def derived_quota(pools: Sequence[PoolSummary], shapes: Sequence[Shape]) -> Quota:
    """The capacity of all pools of a ladder together, and at least the gang of each shape.

    Jobs of one namespace may be on all tiers at once. A gang that moves counts once: its pods on one tier are gone before
    it starts on the next, and its placeholder pods are in another namespace.
    """
    gangs = [gang_of(shape) for shape in shapes]
    nodes = sum(pool.max_nodes for pool in pools)
    return Quota(
        cpu_millis=max(
            sum(pool.max_nodes * pool.largest.vcpus * 1000 for pool in pools), *_each(gangs, "cpu_millis")
        )
        + BESIDE * LEAST.cpu_millis,
        memory_mib=max(
            sum(pool.max_nodes * pool.largest.memory_mib for pool in pools), *_each(gangs, "memory_mib")
        )
        + BESIDE * LEAST.memory_mib,
        gpus=max(sum(pool.max_nodes * pool.largest.gpus for pool in pools), *_each(gangs, "gpus")),
        pods=max(sum(pool.max_nodes * _pods_on(pool) for pool in pools), *_each(gangs, "pods")) + BESIDE,
        storage_mib=(1 + nodes) * STORAGE_MIB,
        objects=OBJECTS + nodes * OBJECTS_PER_NODE,
    )


def _pods_on(pool: PoolSummary) -> int:
    """The number of pods on a full node: one for each CPU, up to the kubelet's limit."""
    return min(pool.largest.vcpus, MAX_PODS_PER_NODE)


def gang_of(shape: Shape) -> Quota:
    """What the gang of a shape uses."""
    return Quota(
        cpu_millis=shape.pods * shape.requests.cpu_millis,
        memory_mib=shape.pods * shape.requests.memory_mib,
        gpus=shape.pods * shape.requests.gpus,
        pods=shape.pods,
        storage_mib=0,
        objects=1,
    )


_Amount: TypeAlias = Literal["cpu_millis", "memory_mib", "gpus", "pods", "storage_mib", "objects"]

#: The field of each amount in the configuration, and how it is written there.
_FIELDS: Final[Mapping[_Amount, tuple[str, Callable[[int], str]]]] = {
    "cpu_millis": ("cpu", format_cpu),
    "memory_mib": ("memory", format_memory),
    "gpus": ("gpus", str),
    "pods": ("pods", str),
    "storage_mib": ("storage", format_memory),
    "objects": ("objects", str),
}


def _each(of: Sequence[Quota], amount: _Amount) -> tuple[int, ...]:
    """An amount of each, after a 0."""
    return (0, *(int(getattr(each, amount)) for each in of))


def quota_problems(
    settings: QuotaSettings, shapes: Sequence[Shape], at: str, *, on_gpus: bool = False
) -> Iterator[Problem]:
    """Validate a quota for jobs of these shapes; `at` is the path of its settings.

    `on_gpus`: the ladder's pools have GPUs.
    """
    gangs = [gang_of(shape) for shape in shapes]
    for amount, (field, written) in _FIELDS.items():
        given: int | None = getattr(settings, amount)
        if given is None:
            continue
        needs = _each(gangs, amount)[1:]
        most = max(needs, default=0)
        if not settings.enforced:
            yield _not_enforced(f"{at}.{field}", written(given))
        elif given < most:
            yield _too_small(f"{at}.{field}", written(given), written(most), shapes[needs.index(most)])
    if settings.enforced and on_gpus and settings.gpus == 0 and not any(_each(gangs, "gpus")):
        yield _no_gpus(f"{at}.gpus")


def _no_gpus(field: str) -> Problem:
    return Problem(
        field=field,
        value="0 on a ladder of pools with GPUs",
        allowed="1 or more: without GPUs no job could use them",
        fix="Remove it, to derive the number from the ladder's pools, or set how many its jobs may use.",
    )


def _not_enforced(field: str, number: str) -> Problem:
    return Problem(
        field=field,
        value=f"{number} beside enforced: false",
        allowed="nothing beside enforced: false, which leaves the namespace without quota",
        fix="Remove one of them.",
    )


def _too_small(field: str, number: str, needed: str, shape: Shape) -> Problem:
    return Problem(
        field=field,
        value=f"{number}, with {shape.title}",
        allowed=f"{needed} or more: all pods of a shape run together",
        fix=f"Write {needed} or more, or declare a smaller shape.",
    )
