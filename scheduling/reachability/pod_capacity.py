"""How many pods a pool can grow to hold, within its limits."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from holdfast.scheduling.json import UNKNOWN, Unknown
from holdfast.scheduling.reachability.facts import Limits
from holdfast.scheduling.reachability.machine_capacity import MachineCapacity
from holdfast.scheduling.reachability.shape import Resources


@dataclass(frozen=True, kw_only=True)
class PodCapacity:
    """How many pods a pool has room for: `guaranteed` in one plan, `at_most` whatever is bought. None: any number."""

    guaranteed: int | None
    at_most: int | None

    def __add__(self, other: "PodCapacity") -> "PodCapacity":
        """The room of two pools."""
        return PodCapacity(
            guaranteed=_sum(self.guaranteed, other.guaranteed), at_most=_sum(self.at_most, other.at_most)
        )


#: A pool that takes none of the pods.
NO_ROOM = PodCapacity(guaranteed=0, at_most=0)


def _sum(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one + other


@dataclass(frozen=True, kw_only=True)
class _Candidate:
    """A machine type: how many of the pods it holds, how much of each limit it uses, and its values of labels."""

    pods: int
    uses: tuple[int, ...]
    values: Mapping[str, object] = field(default_factory=dict[str, object])


def pod_capacity(
    requests: Resources,
    machines: Sequence[MachineCapacity],
    limits: Limits,
    *,
    min_values: Mapping[str, int] | None = None,
    one_per_node: bool = False,
) -> PodCapacity | Unknown:
    """How many pods with these requests fit on machines of these types, within the limits.

    Karpenter plans for all pending pods and fills machine after machine. Until it has chosen a machine's type, it counts
    that machine against the limits as the largest type it could become (Karpenter v1.14.1,
    pkg/controllers/provisioning/scheduling/scheduler.go, subtractMax). With types of one size the result is exact. With
    several sizes, and limits that do not match the largest, it is a range: what is bought may be smaller than what was
    counted, and the next plan uses the difference. A machine stops to be filled when the types that it could still become
    have fewer values of a label than `min_values`.
    """
    fitting = [machine for machine in machines if machine.pods_of(requests)]
    # The values of a label that does not follow from the type, such as its zone, are not counted here.
    minimum = {
        key: least
        for key, least in (min_values or {}).items()
        if all(machine.labels.get(key, UNKNOWN) is not UNKNOWN for machine in fitting)
    }
    nodes = [limits.nodes_of(machine) for machine in fitting]
    if all(each == 0 for each in nodes):
        return NO_ROOM
    if UNKNOWN in nodes:
        return UNKNOWN
    available, candidates = _counted(
        requests, fitting, limits, most=1 if one_per_node else None, keys=tuple(minimum)
    )
    # Karpenter drops the types that exceed a limit before it counts values: with no GPUs allowed, none of a GPU machine's.
    if not _filled([each for each in candidates if _fits(each.uses, available)], minimum):
        return NO_ROOM
    if _filled([each for each, count in zip(candidates, nodes, strict=True) if count is None], minimum):
        return PodCapacity(guaranteed=None, at_most=None)
    return PodCapacity(
        guaranteed=_in_one_plan(available, candidates, minimum),
        at_most=_upper_bound(
            available, candidates, skips_first=not limits.nodes_are_exact and limits.nodes is not None
        ),
    )


def static_capacity(requests: Resources, machines: Sequence[MachineCapacity], nodes: int) -> PodCapacity:
    """How many pods fit on this number of nodes of which Karpenter chooses the types without regard to pods."""
    pods = [machine.pods_of(requests) for machine in machines]
    return PodCapacity(
        guaranteed=nodes * min(pods, default=0),
        at_most=nodes * max(pods, default=0),
    )


def _counted(
    requests: Resources,
    machines: Sequence[MachineCapacity],
    limits: Limits,
    *,
    most: int | None,
    keys: tuple[str, ...],
) -> tuple[tuple[int, ...], Sequence[_Candidate]]:
    """The limits that are set, and how much of them each machine type uses; a machine uses one node.

    `most`: more pods than that never share a node.
    """
    limited = (limits.nodes, limits.cpu_millis, limits.memory_mib, limits.gpus)

    def of_limited(amounts: Sequence[int]) -> tuple[int, ...]:
        return tuple(amount for amount, limit in zip(amounts, limited, strict=True) if isinstance(limit, int))

    candidates = [
        _Candidate(
            pods=each.pods_of(requests) if most is None else min(most, each.pods_of(requests)),
            uses=of_limited((1, each.capacity.cpu_millis, each.capacity.memory_mib, each.capacity.gpus)),
            values={key: each.labels.get(key) for key in keys},
        )
        for each in machines
    ]
    return tuple(limit for limit in limited if isinstance(limit, int)), candidates


def _in_one_plan(
    available: tuple[int, ...], candidates: Sequence[_Candidate], min_values: Mapping[str, int]
) -> int:
    """The count of Karpenter: no machine is planned that might exceed a limit, and each is filled before the next."""
    held = 0
    while within := [each for each in candidates if _fits(each.uses, available)]:
        pods = _filled(within, min_values)
        if not pods:
            break
        largest = tuple(map(max, *(each.uses for each in within), (0,) * len(available)))
        # Karpenter plans this many alike, until one of the types that a machine may become no longer fits.
        alike = min(have // one for have, one in zip(available, largest, strict=True) if one)
        held += alike * pods
        available = tuple(have - alike * one for have, one in zip(available, largest, strict=True))
    return held


def _filled(candidates: Sequence[_Candidate], min_values: Mapping[str, int]) -> int:
    """How many pods Karpenter puts on a machine that may become any of these types; 0 if it makes none."""
    for pods in sorted({each.pods for each in candidates}, reverse=True):
        types = [each for each in candidates if each.pods >= pods]
        if all(
            len({each.values[key] for each in types} - {None}) >= least for key, least in min_values.items()
        ):
            return pods
    return 0


def _upper_bound(
    limits: tuple[int, ...], candidates: Sequence[_Candidate], *, skips_first: bool = False
) -> int | None:
    """No choice of machines holds more pods, by any of the limits; None if none of them bounds it."""
    most = max(each.pods for each in candidates)
    bounds: list[int] = []
    for index, limit in enumerate(limits):
        if skips_first and index == 0:
            continue
        if all(each.uses[index] for each in candidates):
            bounds.append(limit // min(each.uses[index] for each in candidates) * most)
            bounds.append(max(limit * each.pods // each.uses[index] for each in candidates))
    return min(bounds, default=None)


def _fits(uses: Sequence[int], available: Sequence[int]) -> bool:
    return all(one <= have for one, have in zip(uses, available, strict=True))
