"""The links of the chain from a job to a pool's nodes. Each one holds, is broken, or cannot be told yet.

All are judged, since one that is broken is broken whatever an unknown one beside it turns out to be.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from holdfast.scheduling.reachability import words
from holdfast.scheduling.reachability.affinity import any_holds, keys_of, label_of
from holdfast.scheduling.reachability.facts import MachineRoom, PoolFacts
from holdfast.scheduling.reachability.growth import places
from holdfast.scheduling.reachability.shape import Shape, total, widest
from holdfast.scheduling.tolerations import untolerated
from holdfast.scheduling.unknown import UNKNOWN


@dataclass(frozen=True, kw_only=True)
class Broken:
    """Why the job's pods cannot be on the pool's nodes, and the fix."""

    link: str
    reason: str
    fix: str = ""

    @classmethod
    def by(cls, link: str, said: words.Words, **values: object) -> "Broken":
        """The link is broken, in these words."""
        return cls(link=link, reason=said.reason.format(**values), fix=said.fix.format(**values))


@dataclass(frozen=True, kw_only=True)
class Untold:
    """What has to be known before the link can be judged."""

    link: str
    reason: str


Doubt: TypeAlias = Broken | Untold
Link: TypeAlias = Callable[[Shape, PoolFacts], Iterator[Doubt]]


def accelerator(shape: Shape, pool: PoolFacts) -> Iterator[Doubt]:
    """The pool has machines with the GPUs that the shape names."""
    if shape.accelerator is None or pool.machines is UNKNOWN:
        return
    kinds = sorted({machine.accelerator for machine in pool.machines if machine.accelerator is not None})
    if shape.accelerator in kinds:
        return
    if pool.unread_machines:
        yield Untold(link="accelerator", reason=_not_in_table(pool))
        return
    yield Broken.by(
        "accelerator",
        words.ACCELERATOR,
        kinds=" and ".join(kinds) or "no GPUs",
        accelerator=shape.accelerator,
    )


def selector(shape: Shape, pool: PoolFacts) -> Iterator[Doubt]:
    """The nodes carry every label that the pods select beside the pool's own."""
    if pool.labels is UNKNOWN:
        if shape.selector:
            yield Untold(link="selector", reason="its nodes' labels are not known yet")
        return
    for key, value in sorted(shape.selector.items()):
        there = label_of(pool.labels, key)
        if there is UNKNOWN:
            yield Untold(link="selector", reason=f"its nodes' label {key} is not known yet")
        elif there != value:
            has = words.NO_SUCH_LABEL if there is None else words.OTHER_LABEL.format(key=key, there=there)
            yield Broken.by("selector", words.SELECTOR, key=key, value=value, has=has)


def affinity(shape: Shape, pool: PoolFacts) -> Iterator[Doubt]:
    """One of the alternatives that the pods require is true of the nodes."""
    if not shape.affinity:
        return
    holds = UNKNOWN if pool.labels is UNKNOWN else any_holds(shape.affinity, pool.labels)
    keys = ", ".join(keys_of(shape.affinity))
    if holds is UNKNOWN:
        yield Untold(
            link="affinity", reason=f"whether its nodes have what is asked of {keys} is not known yet"
        )
    elif not holds:
        yield Broken.by("affinity", words.AFFINITY, keys=keys)


def taints(shape: Shape, pool: PoolFacts) -> Iterator[Doubt]:
    """The pods tolerate every taint, with what admission and the cloud add to them."""
    if pool.taints is UNKNOWN or pool.added_tolerations is UNKNOWN:
        which = "taints" if pool.taints is UNKNOWN else "tolerations by admission"
        yield Untold(link="taints", reason=f"its {which} are not known yet")
        return
    for taint in untolerated(pool.taints, (*shape.tolerations, *pool.given_to(shape.requests))):
        yield Broken.by("taints", words.TAINT, taint=f"{taint.key}={taint.value}:{taint.effect}")


def machine(shape: Shape, pool: PoolFacts) -> Iterator[Doubt]:
    """One pod fits on a machine of the pool, beside what is reserved there and what runs on every node."""
    if pool.machines is UNKNOWN:
        yield Untold(link="machine", reason="its machine types are not known yet")
        return
    if any(each.pods_of(shape.requests) for each in pool.machines):
        return
    if pool.unread_machines:
        yield Untold(link="machine", reason=_not_in_table(pool))
        return
    if not pool.machines:
        yield Untold(link="machine", reason="it names no machine type")
        return
    largest = max(pool.machines, key=MachineRoom.size)
    yield Broken.by(
        "machine", words.MACHINE, requests=shape.requests, machine=largest.name, room=largest.room
    )


def gang(shape: Shape, pool: PoolFacts) -> Iterator[Doubt]:
    """All pods of the gang fit at once on as many nodes as the pool may have."""
    if pool.machines is UNKNOWN:
        return
    room = places(shape.requests, pool.machines, pool.limits)
    if room is UNKNOWN:
        yield Untold(link="gang", reason="how many nodes it may have is not known yet")
        return
    if room.surely is None or room.at_most is None or room.surely >= shape.pods:
        return
    wide = max((each.pods_of(shape.requests) for each in pool.machines), default=0)
    if not wide or pool.unread_machines:
        return
    if room.at_most >= shape.pods:
        yield Untold(
            link="gang",
            reason=f"it surely has room for {room.surely} of the {shape.pods} pods that have to run together, and for more "
            "where its smaller machines are bought",
        )
        return
    yield Broken.by("gang", words.TOO_MANY, room=room.at_most, pods=shape.pods, nodes=-(-shape.pods // wide))


def zones(shape: Shape, pool: PoolFacts) -> Iterator[Doubt]:
    """The pool's nodes can be where the pods' volumes are."""
    if shape.zones is None or pool.zones is None:
        return
    if pool.zones is UNKNOWN:
        yield Untold(link="zones", reason="its zones are not known yet")
    elif not shape.zones & pool.zones:
        yield Broken.by(
            "zones",
            words.ZONES,
            volumes=", ".join(sorted(shape.zones)),
            nodes=", ".join(sorted(pool.zones)),
        )


#: In the order in which a reader looks for the fault.
LINKS: Final[tuple[Link, ...]] = (accelerator, selector, affinity, taints, machine, gang, zones)


def doubts(shape: Shape, pool: PoolFacts) -> tuple[Doubt, ...]:
    """Everything that keeps the shape's pods off the pool's nodes, or may."""
    return tuple(doubt for link in LINKS for doubt in link(shape, pool))


def capacity(pool: PoolFacts, *, is_last: bool) -> Iterator[Doubt]:
    """The last tier's pool is on-demand."""
    if not is_last or pool.is_on_demand is True:
        return
    if pool.is_on_demand is UNKNOWN:
        yield Untold(link="capacity", reason="whether it is on-demand is not known yet")
        return
    kinds = " or ".join(sorted(pool.capacity_types)) or "no"
    yield Broken.by("capacity", words.CAPACITY, maker=pool.maker, kinds=kinds)


def together(shapes: Sequence[Shape], pool: PoolFacts) -> Iterator[Doubt]:
    """Several shapes that run at once ask for no more than all nodes of the pool have.

    Whether they can be packed so is not asked: what is refused here has no room however it is packed.
    """
    nodes = pool.limits.nodes
    if len(shapes) < 2 or pool.machines is UNKNOWN or pool.unread_machines or not pool.machines:
        return
    if not isinstance(nodes, int):
        return
    most = widest([each.room for each in pool.machines]).times(nodes)
    asked = total([shape.requests.times(shape.pods) for shape in shapes])
    if not asked.fits_in(most):
        yield Broken.by("gang", words.TOO_MUCH, room=most, total=asked)


def _not_in_table(pool: PoolFacts) -> str:
    return f"what {', '.join(pool.unread_machines)} has is in no machine table"
