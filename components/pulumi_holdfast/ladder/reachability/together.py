"""Whether several shapes of one job have room in a pool at the same time."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from pulumi_holdfast.ladder.json import UNKNOWN, Unknown
from pulumi_holdfast.ladder.reachability import messages
from pulumi_holdfast.ladder.reachability.facts import PoolFacts
from pulumi_holdfast.ladder.reachability.machine_capacity import MachineCapacity
from pulumi_holdfast.ladder.reachability.node_selection import alternatives
from pulumi_holdfast.ladder.reachability.pod_capacity import room_for
from pulumi_holdfast.ladder.reachability.results import CheckResult, Failed, Undetermined
from pulumi_holdfast.ladder.reachability.shape import MOST_COUNTED, Shape, run_at_once, total, widest


def check_together(shapes: Sequence[Shape], pool: PoolFacts) -> Iterator[CheckResult]:
    """Several shapes that run at once find room in the pool together.

    They certainly do if the pool has room for as many pods that request the most of any of them, and certainly do not if
    they request more than all its nodes have. How pods are packed between these two is not computed. Those that wait for
    none run together for certain; which of the others do depends on how long they run.
    """
    if pool.machines is UNKNOWN or pool.unknown_machine_types or not pool.machines:
        return
    nodes = _most_nodes(pool, pool.machines)
    if nodes is None:
        return
    available = (
        None if nodes is UNKNOWN else widest([each.allocatable for each in pool.machines]).times(nodes)
    )
    first = [shape for shape in shapes if not shape.after]
    requested = total([shape.requests.times(min(shape.pods, MOST_COUNTED)) for shape in first])
    unknown = {name for each in pool.machines for name in each.unknown_devices(requested)}
    requested_there = requested.without_devices(unknown)
    if available is not None and len(first) > 1 and not requested_there.fits_in(available):
        room, field = available.beside(requested), pool.limits.set_by
        yield Failed.by("gang", messages.TOO_MUCH, field=field, room=room, total=requested)
        return
    uncertain = [each for each in run_at_once(shapes) if len(each) > 1 and not _has_room(each, pool)]
    if uncertain:
        pods = sum(shape.pods for shape in uncertain[0])
        reason = f"whether it has room for all {pods} pods of the job at once is not certain"
        yield Undetermined(check="gang", reason=reason)


def _has_room(shapes: Sequence[Shape], pool: PoolFacts) -> bool:
    """Whether a pool certainly has room for all pods of these shapes at once."""
    alike = replace(
        shapes[0],
        pods=sum(shape.pods for shape in shapes),
        requests=widest([shape.requests for shape in shapes]),
        one_per_node=any(shape.one_per_node for shape in shapes),
    )
    found = room_for(alike, pool)
    selects_alike = len({(str(alternatives(shape)), shape.zones) for shape in shapes}) == 1
    return found is not UNKNOWN and (
        found.guaranteed is None or (selects_alike and found.guaranteed >= alike.pods)
    )


def _most_nodes(pool: PoolFacts, machines: Sequence[MachineCapacity]) -> int | Unknown | None:
    """How many nodes the pool has at most, whatever their types are; None: any number."""
    exact = pool.limits.nodes_are_exact or pool.limits.nodes == 0
    limits = pool.limits if exact else replace(pool.limits, nodes=None)
    nodes = [limits.nodes_of(machine) for machine in machines]
    known = [each for each in nodes if isinstance(each, int)]
    if len(known) == len(nodes):
        return max(known)
    return UNKNOWN if pool.limits.nodes is not None or UNKNOWN in nodes else None
