"""The facts about pools and tiers that reachability checks use, and how many pods a pool can grow to hold.

Any single fact may be UNKNOWN; the others are still checked.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from holdfast.scheduling.json import UNKNOWN, Unknown
from holdfast.scheduling.labels import ON_DEMAND, SPOT
from holdfast.scheduling.reachability.machine_capacity import MachineCapacity
from holdfast.scheduling.reachability.shape import Resources
from holdfast.scheduling.taints import Taint, Toleration

#: A label's value, or UNKNOWN.
LabelValue: TypeAlias = "str | Unknown"


@dataclass(frozen=True, kw_only=True)
class Limits:
    """How far a pool may grow; None: unlimited. Resources are counted over whole machines, as Karpenter does."""

    nodes: int | Unknown | None = None
    cpu_millis: int | Unknown | None = None
    memory_mib: int | Unknown | None = None
    gpus: int | Unknown | None = None

    def nodes_of(self, machine: MachineCapacity) -> int | Unknown | None:
        """How many machines of this type there may be; None: any number."""
        allowed = (
            self.nodes,
            _whole(self.cpu_millis, machine.capacity.cpu_millis),
            _whole(self.memory_mib, machine.capacity.memory_mib),
            _whole(self.gpus, machine.capacity.gpus),
        )
        known = [limit for limit in allowed if isinstance(limit, int)]
        if UNKNOWN in allowed:
            # One limit of 0 decides, whatever the others are.
            return 0 if 0 in known else UNKNOWN
        return min(known, default=None)


def _whole(limit: int | Unknown | None, each: int) -> int | Unknown | None:
    return limit // each if isinstance(limit, int) and each > 0 else limit if limit is UNKNOWN else None


@dataclass(frozen=True, kw_only=True)
class AddedToleration:
    """A toleration that admission or the cloud adds to a pool's pods; `for_gpu_pods`: only to pods that request GPUs."""

    toleration: Toleration
    for_gpu_pods: bool = False


@dataclass(frozen=True, kw_only=True)
class PoolFacts:
    """A pool as a program declares it, with what the cloud adds.

    `title` names it in messages. `capacity_types` are those its nodes may have; unless `is_decided`, an unknown value may
    still exclude some of them. `taints` are all taints of its nodes, those of the cloud included; `labels` those that pods
    may select by. `machines` is UNKNOWN where none of its types could be read; `unknown_machine_types` are types that are
    in no machine table. `added_tolerations` are given to pods that select this pool, by admission or by the cloud.
    """

    name: str
    title: str
    capacity_types: frozenset[str]
    is_decided: bool = True
    labels: Mapping[str, LabelValue] | Unknown = field(default_factory=dict[str, LabelValue])
    taints: tuple[Taint, ...] | Unknown = ()
    machines: tuple[MachineCapacity, ...] | Unknown = ()
    unknown_machine_types: tuple[str, ...] = ()
    limits: Limits = field(default_factory=Limits)
    zones: frozenset[str] | Unknown | None = None
    added_tolerations: tuple[AddedToleration, ...] | Unknown = ()

    def added_for(self, requests: Resources) -> tuple[Toleration, ...]:
        """The tolerations that are added to pods with these requests."""
        if self.added_tolerations is UNKNOWN:
            return ()
        return tuple(
            added.toleration for added in self.added_tolerations if requests.gpus or not added.for_gpu_pods
        )

    @property
    def is_on_demand(self) -> bool | Unknown:
        """Whether it makes on-demand nodes and never spot ones."""
        if ON_DEMAND not in self.capacity_types:
            return False
        if not self.is_decided:
            return UNKNOWN
        return SPOT not in self.capacity_types


@dataclass(frozen=True, kw_only=True)
class TierFacts:
    """A tier of a ladder, as far as it is known.

    `node_pools` are the known pools of that name: several where NodePools share the label, none where no resource makes
    one. `may_be_external`: something that cannot be seen from here, such as another stack, may make it.
    """

    number: int
    pool: str | Unknown
    max_failures: int | Unknown | None = None
    has_timeout: bool | Unknown = False
    node_pools: tuple[PoolFacts, ...] = ()
    may_be_external: bool = False


@dataclass(frozen=True, kw_only=True)
class PodCapacity:
    """How many pods a pool has room for: `guaranteed` in one plan, `at_most` whatever is bought. None: any number."""

    guaranteed: int | None
    at_most: int | None


@dataclass(frozen=True, kw_only=True)
class _Candidate:
    """A machine type: how many of the pods it holds, and how much of each limit it uses."""

    pods: int
    uses: tuple[int, ...]


def pod_capacity(
    requests: Resources, machines: Sequence[MachineCapacity], limits: Limits
) -> PodCapacity | Unknown:
    """How many pods with these requests fit on machines of these types, within the limits.

    Karpenter plans for all pending pods and fills machine after machine. Until it has chosen a machine's type, it counts
    that machine against the limits as the largest type it could become (Karpenter v1.14.1,
    pkg/controllers/provisioning/scheduling/scheduler.go, subtractMax). With types of one size the result is exact. With
    several sizes, and limits that do not match the largest, it is a range: what is bought may be smaller than what was
    counted, and the next plan uses the difference.
    """
    fitting = [machine for machine in machines if machine.pods_of(requests)]
    nodes = [limits.nodes_of(machine) for machine in fitting]
    if all(each == 0 for each in nodes):
        return PodCapacity(guaranteed=0, at_most=0)
    if UNKNOWN in nodes:
        return UNKNOWN
    if None in nodes:
        return PodCapacity(guaranteed=None, at_most=None)
    available, candidates = _counted(requests, fitting, limits)
    return PodCapacity(
        guaranteed=_in_one_plan(available, candidates), at_most=_upper_bound(available, candidates)
    )


def _counted(
    requests: Resources, machines: Sequence[MachineCapacity], limits: Limits
) -> tuple[tuple[int, ...], Sequence[_Candidate]]:
    """The limits that are set, and how much of them each machine type uses; a machine uses one node."""
    limited = (limits.nodes, limits.cpu_millis, limits.memory_mib, limits.gpus)

    def of_limited(amounts: Sequence[int]) -> tuple[int, ...]:
        return tuple(amount for amount, limit in zip(amounts, limited, strict=True) if isinstance(limit, int))

    candidates = [
        _Candidate(
            pods=each.pods_of(requests),
            uses=of_limited((1, each.capacity.cpu_millis, each.capacity.memory_mib, each.capacity.gpus)),
        )
        for each in machines
    ]
    return tuple(limit for limit in limited if isinstance(limit, int)), candidates


def _in_one_plan(available: tuple[int, ...], candidates: Sequence[_Candidate]) -> int:
    """The count of Karpenter: no machine is planned that might exceed a limit, and each is filled before the next."""
    held = 0
    while within := [each for each in candidates if _fits(each.uses, available)]:
        largest = tuple(map(max, *(each.uses for each in within), (0,) * len(available)))
        # Karpenter plans this many alike, until one of the types that a machine may become no longer fits.
        alike = min(have // one for have, one in zip(available, largest, strict=True) if one)
        held += alike * max(each.pods for each in within)
        available = tuple(have - alike * one for have, one in zip(available, largest, strict=True))
    return held


def _upper_bound(limits: tuple[int, ...], candidates: Sequence[_Candidate]) -> int:
    """No choice of machines holds more pods, by any of the limits."""
    most = max(each.pods for each in candidates)
    bounds: list[int] = []
    for index, limit in enumerate(limits):
        if all(each.uses[index] for each in candidates):
            bounds.append(limit // min(each.uses[index] for each in candidates) * most)
            bounds.append(max(limit * each.pods // each.uses[index] for each in candidates))
    return min(bounds)


def _fits(uses: Sequence[int], available: Sequence[int]) -> bool:
    return all(one <= have for one, have in zip(uses, available, strict=True))
