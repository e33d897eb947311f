"""What is known of a tier and of its pool. Every fact may be UNKNOWN, alone: the others are still judged."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from holdfast.scheduling.json import UNKNOWN, Unknown
from holdfast.scheduling.labels import ON_DEMAND, SPOT
from holdfast.scheduling.reachability.machine_capacity import MachineCapacity
from holdfast.scheduling.reachability.shape import Resources
from holdfast.scheduling.taints import Taint, Toleration

#: A label's value as far as it is known.
LabelValue: TypeAlias = "str | Unknown"


@dataclass(frozen=True, kw_only=True)
class Limits:
    """How far a pool may grow; None: without end. Resources are counted over whole machines, as Karpenter does."""

    nodes: int | Unknown | None = None
    cpu_millis: int | Unknown | None = None
    memory_mib: int | Unknown | None = None
    gpus: int | Unknown | None = None

    def nodes_of(self, machine: MachineCapacity) -> int | Unknown | None:
        """How many machines of this type there may be, None without end."""
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
    """A toleration that a pod is given on its way to a pool; `for_gpu_pods`: only one that requests GPUs."""

    toleration: Toleration
    for_gpu_pods: bool = False


@dataclass(frozen=True, kw_only=True)
class PoolFacts:
    """A pool as a program declares it, or as the cloud completes it.

    `capacity_types` are those its nodes may have; while not `is_decided`, something unknown may still take some away.
    `taints` are all that its nodes have, those the cloud adds among them; `labels` those that pods may select by.
    `machines` are UNKNOWN where none of its types could be read; `unknown_machine_types` those of its types that no table
    knows. `added_tolerations` are those that pods which ask for this pool are given, by admission or by the cloud.
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
        """The tolerations that pods of these requests are given here."""
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
    """A rung of a ladder as far as it is known.

    `node_pools` are the pools of that name, several where several NodePools share the label; empty where no title is
    known. `may_be_external`: it may be made by something that cannot be seen, as another stack.
    """

    number: int
    pool: str | Unknown
    max_failures: int | Unknown | None = None
    has_timeout: bool | Unknown = False
    node_pools: tuple[PoolFacts, ...] = ()
    may_be_external: bool = False


@dataclass(frozen=True, kw_only=True)
class PodCapacity:
    """How many pods have room: `guaranteed` in one plan, `at_most` whatever is bought. None: without end."""

    guaranteed: int | None
    at_most: int | None


@dataclass(frozen=True, kw_only=True)
class _Candidate:
    """A machine type: how many of the pods it holds, and what it takes of each limit there is."""

    pods: int
    takes: tuple[int, ...]


def pod_capacity(
    requests: Resources, machines: Sequence[MachineCapacity], limits: Limits
) -> PodCapacity | Unknown:
    """How many pods of these requests there is room for on machines of these types, within the limits."""
    fitting = [machine for machine in machines if machine.pods_of(requests)]
    nodes = [limits.nodes_of(machine) for machine in fitting]
    if all(each == 0 for each in nodes):
        return PodCapacity(guaranteed=0, at_most=0)
    if UNKNOWN in nodes:
        return UNKNOWN
    if None in nodes:
        return PodCapacity(guaranteed=None, at_most=None)
    left, candidates = _counted(requests, fitting, limits)
    return PodCapacity(
        guaranteed=_in_one_plan(left, candidates), at_most=_whatever_is_bought(left, candidates)
    )


def _counted(
    requests: Resources, machines: Sequence[MachineCapacity], limits: Limits
) -> tuple[tuple[int, ...], Sequence[_Candidate]]:
    """The limits there are, and what each type takes of them; a node takes one node."""
    written = (limits.nodes, limits.cpu_millis, limits.memory_mib, limits.gpus)

    def kept(amounts: Sequence[int]) -> tuple[int, ...]:
        return tuple(amount for amount, limit in zip(amounts, written, strict=True) if isinstance(limit, int))

    candidates = [
        _Candidate(
            pods=each.pods_of(requests),
            takes=kept((1, each.capacity.cpu_millis, each.capacity.memory_mib, each.capacity.gpus)),
        )
        for each in machines
    ]
    return tuple(limit for limit in written if isinstance(limit, int)), candidates


def _in_one_plan(left: tuple[int, ...], candidates: Sequence[_Candidate]) -> int:
    """As Karpenter counts it: no machine is planned that might break a limit, and each is filled before the next."""
    held = 0
    while within := [each for each in candidates if _fits(each.takes, left)]:
        largest = tuple(map(max, *(each.takes for each in within), (0,) * len(left)))
        # So many are planned alike, until one of those that it may become has no place any more.
        alike = min(there // one for there, one in zip(left, largest, strict=True) if one)
        held += alike * max(each.pods for each in within)
        left = tuple(there - alike * one for there, one in zip(left, largest, strict=True))
    return held


def _whatever_is_bought(limits: tuple[int, ...], candidates: Sequence[_Candidate]) -> int:
    """No choice of machines has room for more, by any of the limits."""
    most = max(each.pods for each in candidates)
    bounds: list[int] = []
    for place, limit in enumerate(limits):
        if all(each.takes[place] for each in candidates):
            bounds.append(limit // min(each.takes[place] for each in candidates) * most)
            bounds.append(max(limit * each.pods // each.takes[place] for each in candidates))
    return min(bounds)


def _fits(takes: Sequence[int], left: Sequence[int]) -> bool:
    return all(one <= there for one, there in zip(takes, left, strict=True))
