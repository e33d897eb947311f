"""The links of the chain from a job to a pool's nodes. Each one holds, is broken, or cannot be told yet.

All are judged, since one that is broken is broken whatever an unknown one beside it turns out to be.
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
    """Why the job's pods cannot be on the pool's nodes, and the fix."""

    link: str
    reason: str
    fix: str = ""

    @classmethod
    def by(cls, link: str, said: messages.MessageTemplate, **values: object) -> "Failed":
        """The link is broken, in these words."""
        return cls(link=link, reason=said.reason.format(**values), fix=said.fix.format(**values))


@dataclass(frozen=True, kw_only=True)
class Undetermined:
    """What has to be known before the link can be judged."""

    link: str
    reason: str


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
        yield Undetermined(link="accelerator", reason=_not_in_table(pool))
        return
    yield Failed.by(
        "accelerator",
        messages.ACCELERATOR,
        kinds=" and ".join(kinds) or "no GPUs",
        accelerator=shape.accelerator,
    )


def selector(shape: Shape, pool: PoolFacts) -> Iterator[CheckResult]:
    """The nodes carry every label that the pods select beside the pool's own."""
    if pool.labels is UNKNOWN:
        if shape.selector:
            yield Undetermined(link="selector", reason="its nodes' labels are not known yet")
        return
    for key, value in sorted(shape.selector.items()):
        there = label_of(pool.labels, key)
        if there is UNKNOWN:
            yield Undetermined(link="selector", reason=f"its nodes' label {key} is not known yet")
        elif there != value:
            has = (
                messages.NO_SUCH_LABEL if there is None else messages.OTHER_LABEL.format(key=key, there=there)
            )
            yield Failed.by("selector", messages.SELECTOR, key=key, value=value, has=has)


def affinity(shape: Shape, pool: PoolFacts) -> Iterator[CheckResult]:
    """One of the alternatives that the pods require is true of the nodes."""
    if not shape.affinity:
        return
    holds = UNKNOWN if pool.labels is UNKNOWN else any_holds(shape.affinity, pool.labels)
    keys = ", ".join(keys_of(shape.affinity))
    if holds is UNKNOWN:
        yield Undetermined(
            link="affinity", reason=f"whether its nodes have what is asked of {keys} is not known yet"
        )
    elif not holds:
        yield Failed.by("affinity", messages.AFFINITY, keys=keys)


def taints(shape: Shape, pool: PoolFacts) -> Iterator[CheckResult]:
    """The pods tolerate every taint, with what admission and the cloud add to them."""
    if pool.taints is UNKNOWN or pool.added_tolerations is UNKNOWN:
        which = "taints" if pool.taints is UNKNOWN else "tolerations by admission"
        yield Undetermined(link="taints", reason=f"its {which} are not known yet")
        return
    for taint in untolerated(pool.taints, (*shape.tolerations, *pool.added_for(shape.requests))):
        yield Failed.by("taints", messages.TAINT, taint=f"{taint.key}={taint.value}:{taint.effect}")


def machine(shape: Shape, pool: PoolFacts) -> Iterator[CheckResult]:
    """One pod fits on a machine of the pool, beside what is reserved there and what runs on every node."""
    if pool.machines is UNKNOWN:
        yield Undetermined(link="machine", reason="its machine types are not known yet")
        return
    if any(each.pods_of(shape.requests) for each in pool.machines):
        return
    if pool.unknown_machine_types:
        yield Undetermined(link="machine", reason=_not_in_table(pool))
        return
    if not pool.machines:
        yield Undetermined(link="machine", reason="it names no machine type")
        return
    largest = max(pool.machines, key=MachineCapacity.size)
    yield Failed.by(
        "machine", messages.MACHINE, requests=shape.requests, machine=largest.name, room=largest.allocatable
    )


def gang(shape: Shape, pool: PoolFacts) -> Iterator[CheckResult]:
    """All pods of the gang fit at once on as many nodes as the pool may have."""
    if pool.machines is UNKNOWN:
        return
    room = pod_capacity(shape.requests, pool.machines, pool.limits)
    if room is UNKNOWN:
        yield Undetermined(link="gang", reason="how many nodes it may have is not known yet")
        return
    if room.guaranteed is None or room.at_most is None or room.guaranteed >= shape.pods:
        return
    wide = max((each.pods_of(shape.requests) for each in pool.machines), default=0)
    if not wide or pool.unknown_machine_types:
        return
    if room.at_most >= shape.pods:
        yield Undetermined(
            link="gang",
            reason=f"it guaranteed has room for {room.guaranteed} of the {shape.pods} pods that have to run together, and for more "
            "where its smaller machines are bought",
        )
        return
    yield Failed.by(
        "gang", messages.TOO_MANY, room=room.at_most, pods=shape.pods, nodes=-(-shape.pods // wide)
    )


def zones(shape: Shape, pool: PoolFacts) -> Iterator[CheckResult]:
    """The pool's nodes can be where the pods' volumes are."""
    if shape.zones is None or pool.zones is None:
        return
    if pool.zones is UNKNOWN:
        yield Undetermined(link="zones", reason="its zones are not known yet")
    elif not shape.zones & pool.zones:
        yield Failed.by(
            "zones",
            messages.ZONES,
            volumes=", ".join(sorted(shape.zones)),
            nodes=", ".join(sorted(pool.zones)),
        )


#: In the order in which a reader looks for the fault.
CHECKS: Final[tuple[Check, ...]] = (accelerator, selector, affinity, taints, machine, gang, zones)


def check_pool(shape: Shape, pool: PoolFacts) -> tuple[CheckResult, ...]:
    """Everything that keeps the shape's pods off the pool's nodes, or may."""
    return tuple(doubt for link in CHECKS for doubt in link(shape, pool))


def capacity(pool: PoolFacts, *, is_last: bool) -> Iterator[CheckResult]:
    """The last tier's pool is on-demand."""
    if not is_last or pool.is_on_demand is True:
        return
    if pool.is_on_demand is UNKNOWN:
        yield Undetermined(link="capacity", reason="whether it is on-demand is not known yet")
        return
    kinds = " or ".join(sorted(pool.capacity_types)) or "no"
    yield Failed.by("capacity", messages.CAPACITY, title=pool.title, kinds=kinds)


def together(shapes: Sequence[Shape], pool: PoolFacts) -> Iterator[CheckResult]:
    """Several shapes that run at once ask for no more than all nodes of the pool have.

    Whether they can be packed so is not asked: what is refused here has no room however it is packed.
    """
    nodes = pool.limits.nodes
    if len(shapes) < 2 or pool.machines is UNKNOWN or pool.unknown_machine_types or not pool.machines:
        return
    if not isinstance(nodes, int):
        return
    most = widest([each.allocatable for each in pool.machines]).times(nodes)
    asked = total([shape.requests.times(shape.pods) for shape in shapes])
    if not asked.fits_in(most):
        yield Failed.by("gang", messages.TOO_MUCH, room=most, total=asked)


def _not_in_table(pool: PoolFacts) -> str:
    return f"what {', '.join(pool.unknown_machine_types)} has is in no machine table"
