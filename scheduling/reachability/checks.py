"""The checks that decide whether a job's pods can run on a pool's nodes.

Each check passes, fails, or is undetermined while a value is unknown. `walk` applies them to every tier of a ladder. All
checks run, because one that fails stays failed whatever an undetermined one turns out to be.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from holdfast.scheduling.json import UNKNOWN
from holdfast.scheduling.reachability import messages
from holdfast.scheduling.reachability.affinity import any_holds, keys_of, label_of
from holdfast.scheduling.reachability.facts import PoolFacts, pod_capacity
from holdfast.scheduling.reachability.machine_capacity import MachineCapacity
from holdfast.scheduling.reachability.shape import Shape, total, widest
from holdfast.scheduling.taints import untolerated


@dataclass(frozen=True, kw_only=True)
class Failed:
    """A check that fails: why the job's pods cannot run on the pool's nodes, and the fix."""

    check: str
    reason: str
    fix: str = ""

    @classmethod
    def by(cls, check: str, template: messages.MessageTemplate, **values: object) -> "Failed":
        """A failed check with the message of this template."""
        return cls(check=check, reason=template.reason.format(**values), fix=template.fix.format(**values))


@dataclass(frozen=True, kw_only=True)
class Undetermined:
    """A check that depends on a value which is not known yet."""

    check: str
    reason: str


#: What a check yields; a check that passes yields nothing.
CheckResult: TypeAlias = Failed | Undetermined
Check: TypeAlias = Callable[[Shape, PoolFacts], Iterator[CheckResult]]


def accelerator(shape: Shape, pool: PoolFacts) -> Iterator[CheckResult]:
    """The pool has machines with the GPUs that the shape names."""
    if shape.accelerator is None or pool.machines is UNKNOWN:
        return
    kinds = sorted({machine.accelerator for machine in pool.machines if machine.accelerator is not None})
    if shape.accelerator in kinds:
        return
    if pool.unknown_machine_types:
        yield Undetermined(check="accelerator", reason=_not_in_table(pool))
        return
    yield Failed.by(
        "accelerator",
        messages.ACCELERATOR,
        kinds=" and ".join(kinds) or "no GPUs",
        accelerator=shape.accelerator,
    )


def selector(shape: Shape, pool: PoolFacts) -> Iterator[CheckResult]:
    """The nodes carry every label that the pods select beside the pool label."""
    if pool.labels is UNKNOWN:
        if shape.selector:
            yield Undetermined(check="selector", reason="its nodes' labels are not known yet")
        return
    for key, value in sorted(shape.selector.items()):
        there = label_of(pool.labels, key)
        if there is UNKNOWN:
            yield Undetermined(check="selector", reason=f"its nodes' label {key} is not known yet")
        elif there != value:
            has = (
                messages.NO_SUCH_LABEL if there is None else messages.OTHER_LABEL.format(key=key, there=there)
            )
            yield Failed.by("selector", messages.SELECTOR, key=key, value=value, has=has)


def affinity(shape: Shape, pool: PoolFacts) -> Iterator[CheckResult]:
    """One term of the required node affinity matches the nodes."""
    if not shape.affinity:
        return
    holds = UNKNOWN if pool.labels is UNKNOWN else any_holds(shape.affinity, pool.labels)
    keys = ", ".join(keys_of(shape.affinity))
    if holds is UNKNOWN:
        yield Undetermined(
            check="affinity", reason=f"whether its nodes match the node affinity for {keys} is not known yet"
        )
    elif not holds:
        yield Failed.by("affinity", messages.AFFINITY, keys=keys)


def taints(shape: Shape, pool: PoolFacts) -> Iterator[CheckResult]:
    """The pods tolerate every taint, with the tolerations that admission and the cloud add to them."""
    if pool.taints is UNKNOWN or pool.added_tolerations is UNKNOWN:
        which = "taints" if pool.taints is UNKNOWN else "tolerations by admission"
        yield Undetermined(check="taints", reason=f"its {which} are not known yet")
        return
    for taint in untolerated(pool.taints, (*shape.tolerations, *pool.added_for(shape.requests))):
        yield Failed.by("taints", messages.TAINT, taint=f"{taint.key}={taint.value}:{taint.effect}")


def machine(shape: Shape, pool: PoolFacts) -> Iterator[CheckResult]:
    """One pod fits on the allocatable resources of a machine type of the pool."""
    if pool.machines is UNKNOWN:
        yield Undetermined(check="machine", reason="its machine types are not known yet")
        return
    if any(each.pods_of(shape.requests) for each in pool.machines):
        return
    if pool.unknown_machine_types:
        yield Undetermined(check="machine", reason=_not_in_table(pool))
        return
    if not pool.machines:
        yield Undetermined(check="machine", reason="it names no machine type")
        return
    largest = max(pool.machines, key=MachineCapacity.size)
    yield Failed.by(
        "machine",
        messages.MACHINE,
        requests=shape.requests,
        machine=largest.name,
        room=largest.allocatable,
    )


def gang(shape: Shape, pool: PoolFacts) -> Iterator[CheckResult]:
    """All pods of the gang fit at once on as many nodes as the pool may have."""
    if pool.machines is UNKNOWN:
        return
    capacity = pod_capacity(shape.requests, pool.machines, pool.limits)
    if capacity is UNKNOWN:
        yield Undetermined(check="gang", reason="how many nodes it may have is not known yet")
        return
    if capacity.guaranteed is None or capacity.at_most is None or capacity.guaranteed >= shape.pods:
        return
    pods_per_node = max((each.pods_of(shape.requests) for each in pool.machines), default=0)
    if not pods_per_node or pool.unknown_machine_types:
        return
    if capacity.at_most >= shape.pods:
        yield Undetermined(
            check="gang",
            reason=f"it has room for at least {capacity.guaranteed} of the {shape.pods} pods that have to run together, and "
            "for more only if its smaller machines are bought",
        )
        return
    yield Failed.by(
        "gang",
        messages.TOO_MANY,
        room=capacity.at_most,
        pods=shape.pods,
        nodes=-(-shape.pods // pods_per_node),
    )


def zones(shape: Shape, pool: PoolFacts) -> Iterator[CheckResult]:
    """The pool can have nodes in a zone of the pods' volumes."""
    if shape.zones is None or pool.zones is None:
        return
    if pool.zones is UNKNOWN:
        yield Undetermined(check="zones", reason="its zones are not known yet")
    elif not shape.zones & pool.zones:
        yield Failed.by(
            "zones",
            messages.ZONES,
            volumes=", ".join(sorted(shape.zones)),
            nodes=", ".join(sorted(pool.zones)),
        )


#: In the order in which a message lists them.
CHECKS: Final[tuple[Check, ...]] = (accelerator, selector, affinity, taints, machine, gang, zones)


def check_pool(shape: Shape, pool: PoolFacts) -> tuple[CheckResult, ...]:
    """Every check that fails or is undetermined for this shape on this pool; empty if the pods can run there."""
    return tuple(result for check in CHECKS for result in check(shape, pool))


def check_last_tier(pool: PoolFacts, *, is_last: bool) -> Iterator[CheckResult]:
    """The pool of the last tier is on-demand."""
    if not is_last or pool.is_on_demand is True:
        return
    if pool.is_on_demand is UNKNOWN:
        yield Undetermined(check="capacity", reason="whether it is on-demand is not known yet")
        return
    kinds = " or ".join(sorted(pool.capacity_types)) or "no"
    yield Failed.by("capacity", messages.CAPACITY, title=pool.title, kinds=kinds)


def check_together(shapes: Sequence[Shape], pool: PoolFacts) -> Iterator[CheckResult]:
    """Several shapes that run at once request no more than all nodes of the pool have.

    A necessary condition only: how the pods are packed on nodes is not computed.
    """
    nodes = pool.limits.nodes
    if len(shapes) < 2 or pool.machines is UNKNOWN or pool.unknown_machine_types or not pool.machines:
        return
    if not isinstance(nodes, int):
        return
    available = widest([each.allocatable for each in pool.machines]).times(nodes)
    requested = total([shape.requests.times(shape.pods) for shape in shapes])
    if not requested.fits_in(available):
        yield Failed.by("gang", messages.TOO_MUCH, room=available, total=requested)


def _not_in_table(pool: PoolFacts) -> str:
    return f"the resources of {', '.join(pool.unknown_machine_types)} are not in any machine table"
