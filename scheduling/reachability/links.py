"""The links of the chain from a job to a pool's nodes. Each one holds, is broken, or cannot be told yet.

All are judged, since one that is broken is broken whatever an unknown one beside it turns out to be.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

from scheduling.labels import ON_DEMAND
from scheduling.reachability.facts import MachineRoom, PoolFacts
from scheduling.reachability.shape import Shape
from scheduling.tolerations import untolerated
from scheduling.unknown import UNKNOWN, Unknown


@dataclass(frozen=True, kw_only=True)
class Broken:
    """Why the job's pods cannot be on the pool's nodes, and the mend."""

    link: str
    reason: str
    mend: str = ""


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
    yield Broken(
        link="accelerator",
        reason=f"its machines have {' and '.join(kinds) or 'no GPUs'}, not {shape.accelerator}",
        mend=f"Give the pool machine types with {shape.accelerator}, or the ladder a pool that has them.",
    )


def selector(shape: Shape, pool: PoolFacts) -> Iterator[Doubt]:
    """The nodes carry every label that the pods select beside the pool's own."""
    if pool.labels is UNKNOWN:
        if shape.selector:
            yield Untold(link="selector", reason="its nodes' labels are not known yet")
        return
    for key, value in shape.selector.items():
        there = pool.labels.get(key)
        if there is UNKNOWN:
            yield Untold(link="selector", reason=f"its nodes' label {key} is not known yet")
        elif there != value:
            has = "have no such label" if there is None else f"have {key}={there}"
            yield Broken(
                link="selector",
                reason=f"the pods select {key}={value}, and its nodes {has}",
                mend=f"Leave {key} out of the job, or label the pool's nodes so.",
            )


def taints(shape: Shape, pool: PoolFacts) -> Iterator[Doubt]:
    """The pods tolerate every taint, with what admission and the cloud add to them."""
    if pool.taints is UNKNOWN or pool.added_tolerations is UNKNOWN:
        which = "taints" if pool.taints is UNKNOWN else "tolerations by admission"
        yield Untold(link="taints", reason=f"its {which} are not known yet")
        return
    for taint in untolerated(pool.taints, (*shape.tolerations, *pool.given_to(shape.requests))):
        yield Broken(
            link="taints",
            reason=f"taint {taint.key}={taint.value}:{taint.effect} is not tolerated",
            mend="Let admission add the toleration to pods that ask for this pool, or give it to the jobs.",
        )


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
    largest = max(
        pool.machines, key=lambda each: (each.room.gpus, each.room.memory_mib, each.room.cpu_millis)
    )
    yield Broken(
        link="machine",
        reason=f"no machine of it has room for a pod of {shape.requests}: {largest.name} has {largest.room} left for pods",
        mend="Ask for less, or give the pool larger machines.",
    )


def gang(shape: Shape, pool: PoolFacts) -> Iterator[Doubt]:
    """All pods of the gang fit at once on as many nodes as the pool may have."""
    if pool.machines is UNKNOWN:
        return
    fitting = [each for each in pool.machines if each.pods_of(shape.requests)]
    rooms = [_room(each, shape, pool) for each in fitting]
    if any(room is None or (isinstance(room, int) and room >= shape.pods) for room in rooms):
        return
    if UNKNOWN in rooms:
        yield Untold(link="gang", reason="how many nodes it may have is not known yet")
        return
    known = [room for room in rooms if isinstance(room, int)]
    if not known or pool.unread_machines:
        return
    best = max(known)
    wide = max(fitting, key=lambda each: each.pods_of(shape.requests)).pods_of(shape.requests)
    yield Broken(
        link="gang",
        reason=f"it may have room for {best} of the {shape.pods} pods that have to run together",
        mend=f"Let it have {-(-shape.pods // wide)} nodes or more (`maxNodes`), or declare a smaller gang.",
    )


def zones(shape: Shape, pool: PoolFacts) -> Iterator[Doubt]:
    """The pool's nodes can be where the pods' volumes are."""
    if shape.zones is None or pool.zones is None:
        return
    if pool.zones is UNKNOWN:
        yield Untold(link="zones", reason="its zones are not known yet")
    elif not shape.zones & pool.zones:
        yield Broken(
            link="zones",
            reason=f"the pods' volumes are in {', '.join(sorted(shape.zones))}, its nodes in "
            f"{', '.join(sorted(pool.zones))}",
            mend="Keep checkpoints in the bucket or on a volume that is not tied to a zone.",
        )


#: In the order in which a reader looks for the fault.
LINKS: Final[tuple[Link, ...]] = (accelerator, selector, taints, machine, gang, zones)


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
    yield Broken(
        link="capacity",
        reason=f"{pool.maker} makes {kinds} nodes and not {ON_DEMAND} ones alone",
        mend="Append a tier with an on-demand pool, or say `maxFailures: -1` on this one to stay there for ever.",
    )


def _room(each: MachineRoom, shape: Shape, pool: PoolFacts) -> int | Unknown | None:
    nodes = pool.limits.nodes_of(each)
    return nodes * each.pods_of(shape.requests) if isinstance(nodes, int) else nodes


def _not_in_table(pool: PoolFacts) -> str:
    return f"what {', '.join(pool.unread_machines)} has is in no machine table"
