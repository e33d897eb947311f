"""How many pods a pool can grow to hold.

Karpenter plans for all pods that wait and fills machine after machine. While it does not know yet which of its types one
will be, it counts that one against the limits as the largest that it could become (Karpenter v1.14.1,
pkg/controllers/provisioning/scheduling/scheduler.go, subtractMax). Where all types are of one size that says everything.
Where they are not, and the limits are not made for the largest, it leaves something open: what is bought may be smaller
than what was counted, and the next plan has the difference.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.scheduling.json import UNKNOWN, Unknown
from holdfast.scheduling.reachability.facts import Limits
from holdfast.scheduling.reachability.machine_capacity import MachineCapacity
from holdfast.scheduling.reachability.shape import Resources


@dataclass(frozen=True, kw_only=True)
class Places:
    """How many pods have room: `surely` in one plan, `at_most` whatever is bought. None: without end."""

    surely: int | None
    at_most: int | None


@dataclass(frozen=True, kw_only=True)
class _Candidate:
    """A machine type: how many of the pods it holds, and what it takes of each limit there is."""

    pods: int
    takes: tuple[int, ...]


def places(requests: Resources, machines: Sequence[MachineCapacity], limits: Limits) -> Places | Unknown:
    """How many pods of these requests there is room for on machines of these types, within the limits."""
    fitting = [machine for machine in machines if machine.pods_of(requests)]
    nodes = [limits.nodes_of(machine) for machine in fitting]
    if all(each == 0 for each in nodes):
        return Places(surely=0, at_most=0)
    if UNKNOWN in nodes:
        return UNKNOWN
    if None in nodes:
        return Places(surely=None, at_most=None)
    left, candidates = _counted(requests, fitting, limits)
    return Places(surely=_in_one_plan(left, candidates), at_most=_whatever_is_bought(left, candidates))


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
            takes=kept((1, each.total.cpu_millis, each.total.memory_mib, each.total.gpus)),
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
