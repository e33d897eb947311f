"""Where the two clusters of a transfer start, and where they come to rest once nothing fails any more."""

from typing import Final

from pulumi_holdfast.controller.other_clusters.protocol import (
    Permit,
    SetPermit,
    TransferRecord,
    TransferStage,
    WriteRecord,
    may_run,
)
from tests.support.fakes.transfer_world import (
    CLUSTER,
    UID,
    Copy,
    Home,
    Request,
    Rules,
    World,
    arrived,
    decisions,
)

_MOST_STEPS: Final = 200


def at_rest(world: World, rules: Rules) -> World:
    """Return where the world comes to rest once every request arrives, every read is current and users do nothing.

    `rules` must have bounds that nothing reaches.
    """
    world = world._replace(requests=(), user=0)
    for _ in range(_MOST_STEPS):
        after = _healed_step(world, rules)
        if after == world:
            return world
        world = after
    return world


def _healed_step(world: World, rules: Rules) -> World:
    world = _operators_at_rest(world)
    world = world._replace(
        read_home=(world.home, True), read_copy=(world.copy, not world.pods, True), requests=()
    )
    for decided in decisions(world, rules, is_healed=True):
        after = arrived(decided, decided.requests[0], rules)
        if after is not None:
            return _operators_at_rest(after._replace(requests=()))
    return world


def _operators_at_rest(world: World) -> World:
    home, copy = world.home, world.copy
    if home is not None:
        runs = not home.suspended and not home.is_ended and not home.is_deleted
        home = home._replace(is_carried_out=home.suspended, has_pods=runs)
    if copy is not None:
        if may_run(copy.permit) and not copy.is_ended:
            copy = copy._replace(suspended=False)
        copy = copy._replace(is_carried_out=copy.suspended)
    runs = copy is not None and not copy.suspended and not copy.is_ended
    pods = frozenset({copy.number}) if copy is not None and runs else frozenset[int]()
    return world._replace(home=home, copy=copy, pods=pods, late=frozenset[int]())


def problem_at_rest(world: World) -> str | None:
    """Return what is wrong with a world at rest; None if the job is where its ladder wants it, once."""
    home, copy = world.home, world.copy
    if home is None or home.is_deleted:
        return "a copy outlives its job" if copy is not None else ("a deleted job stays" if home else None)
    if home.is_ended:
        return "an ended job has a copy or stays held" if copy is not None or home.is_held else None
    if not world.wanted:
        if copy is not None:
            return "a copy is left although the job is at home"
        return None if home.has_pods and not home.is_held else "the job is left suspended at home"
    if home.has_pods or copy is None or copy.number not in world.pods:
        return "the job is left suspended away"
    return None


def home_runs() -> World:
    """The job runs at home."""
    return World()


def copy_runs() -> World:
    """The copy of the first transfer runs."""
    record = TransferRecord(uid=UID, epoch=1, stage=TransferStage.AWAY, cluster=CLUSTER, copy="1")
    home = Home(record=record, is_held=True, suspended=True, is_carried_out=True, has_pods=False)
    copy = Copy(1, 1, Permit.GRANTED, suspended=False, is_carried_out=False)
    return World(
        home=home,
        copy=copy,
        pods=frozenset({1}),
        created=1,
        read_home=(home, True),
        read_copy=(copy, False, True),
        wanted=CLUSTER,
    )


def leftover_waits() -> World:
    """The job runs at home after a transfer; a late request has created one more copy of it."""
    home = Home(record=TransferRecord(uid=UID, epoch=1))
    copy = Copy(2, 1)
    return World(home=home, copy=copy, created=2, read_home=(home, True), read_copy=(copy, True, True))


def late_requests() -> World:
    """The copy of the second transfer runs, while requests of the first are still under way."""
    world = copy_runs()
    record = TransferRecord(uid=UID, epoch=2, stage=TransferStage.AWAY, cluster=CLUSTER, copy="1")
    home = world.home and world.home._replace(record=record)
    copy = world.copy and world.copy._replace(epoch=2)
    late = (
        Request(WriteRecord(record=TransferRecord(uid=UID, epoch=1), is_held=False), is_current=False),
        Request(SetPermit(copy="1", version="read", permit=Permit.GRANTED), is_current=False),
    )
    return world._replace(
        home=home, copy=copy, read_home=(home, True), read_copy=(copy, False, True), requests=late
    )
