"""Two clusters, a job in one and its copies in the other, and requests that arrive late, twice or never.

A state is a value, and `next_states` returns everything that may happen in it, so that a test can explore all orders. Reads
are stored and may be old when they are decided by. A written object makes every earlier read of it outdated.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache, lru_cache
from typing import Final, NamedTuple, TypeAlias, TypeVar

from pulumi_holdfast.controller.jobs.observation import JobOutcome
from pulumi_holdfast.controller.other_clusters.protocol import (
    CopyView,
    CreateCopy,
    DeleteCopy,
    HomeView,
    LiveRead,
    Permit,
    RecordOutcome,
    RemoteView,
    SetPermit,
    SuspendAtHome,
    TransferAction,
    TransferRecord,
    TransferStage,
    WriteRecord,
    decide_leftover,
    decide_transfer,
    may_run,
)

UID: Final = "job"
CLUSTER: Final = "elsewhere"
FIRST: Final = TransferRecord(uid=UID)


class Guard(StrEnum):
    """What keeps two generations apart beside the decisions. A test turns one off to see that the world notices."""

    HOME_VERSION = "a write of the job has the version that was read"
    COPY_VERSION = "a write of the copy has the uid and version that were read"
    LOOK_AT_HOME = "the job's pods are read right before the copy is recorded"
    LOOK_THERE = "the copy and its pods are read right before the job goes home"
    CREATED_SUSPENDED = "a copy is created suspended, without a permit"
    HOME_ADMISSION = "home's API server refuses to resume a job that is held"
    REMOTE_ADMISSION = "the other API server refuses to resume a copy without a permit"
    DELETION_ADMISSION = "the other API server refuses to delete a copy that is not recalled"
    PERMIT_ORDER = "the other API server refuses a permit that goes back"
    LEFTOVERS = "copies that no transfer needs are removed"


class Home(NamedTuple):
    """The job at home. `has_pods`: any; `is_carried_out`: its operator has seen the suspension."""

    record: TransferRecord | None = FIRST
    is_held: bool = False
    is_deleted: bool = False
    suspended: bool = False
    is_carried_out: bool = False
    has_pods: bool = True
    is_ended: bool = False


class Copy(NamedTuple):
    """The copy in the other cluster."""

    number: int
    epoch: int
    permit: Permit = Permit.WAITING
    suspended: bool = True
    is_carried_out: bool = True
    is_ended: bool = False


class Request(NamedTuple):
    """A write under way. `is_current`: the object has not changed since it was read."""

    action: TransferAction | str
    is_current: bool


class World(NamedTuple):
    """Everything.

    `home` None: the job is gone. `pods`: the numbers of the copies with child Jobs or pods. `late`: the numbers of deleted
    copies whose operator has not noticed, and may still create pods. `read_*`: what was read last, and whether the object has
    not changed since. `user`: how many things users may still do.
    """

    home: Home | None = Home()
    copy: Copy | None = None
    pods: frozenset[int] = frozenset()
    late: frozenset[int] = frozenset()
    created: int = 0
    read_home: tuple[Home | None, bool] = (Home(), True)
    read_copy: tuple[Copy | None, bool, bool] = (None, True, True)
    requests: tuple[Request, ...] = ()
    wanted: str = ""
    user: int = 2


Decide: TypeAlias = Callable[[HomeView, Mapping[str, RemoteView | None]], TransferAction | None]
_RESUME: Final = "resume at home"
_SUSPEND: Final = "suspend at home"


@dataclass(frozen=True, kw_only=True)
class Rules:
    """The controller, what guards its writes, and the bounds of the exploration."""

    decide: Decide = decide_transfer
    guards: frozenset[Guard] = frozenset(Guard)
    epochs: int = 2
    requests: int = 2
    copies: int = 3
    decided: Callable[..., TransferAction | None] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "decided", lru_cache(maxsize=None)(self._decide))

    def has(self, guard: Guard) -> bool:
        """Whether a guard is on."""
        return guard in self.guards

    def _decide(self, view: HomeView, remote: RemoteView | None) -> TransferAction | None:
        return self.decide(view, {CLUSTER: remote})


@cache
def home_view(home: Home, wanted: str) -> HomeView:
    """Return the job as the controller sees it."""
    return HomeView(
        uid=UID,
        record=home.record,
        is_held=home.is_held,
        is_deleted=home.is_deleted,
        is_suspended=home.suspended,
        is_quiet=home.suspended and home.is_carried_out and not home.has_pods,
        is_ended=home.is_ended,
        wanted=wanted,
    )


@cache
def remote_view(copy: Copy | None, is_clear: bool) -> RemoteView:
    """Return the other cluster as the controller sees it; `is_clear`: it has no pod of a copy."""
    if copy is None:
        return RemoteView(is_clear=is_clear)
    seen = CopyView(
        uid=str(copy.number),
        version="read",
        origin=UID,
        epoch=copy.epoch,
        permit=copy.permit,
        is_quiet=is_clear and copy.suspended and copy.is_carried_out,
        outcome=JobOutcome.COMPLETED if copy.is_ended else None,
    )
    return RemoteView(copy=seen, is_clear=is_clear)


def generations_with_pods(world: World) -> int:
    """How many generations of the job have pods, over both clusters."""
    return len(world.pods) + (world.home is not None and world.home.has_pods)


def next_states(world: World, rules: Rules) -> Iterator[World]:
    """Return everything that may happen next."""
    yield from _reads(world)
    yield from decisions(world, rules)
    yield from _arrivals(world, rules)
    yield from _operators(world)
    if world.user:
        yield from (each._replace(user=world.user - 1) for each in _users(world, rules))


def _reads(world: World) -> Iterator[World]:
    """An object and its pods are read by two watches, of which either may lag behind."""
    (home, _), (_, is_clear, _) = world.read_home, world.read_copy
    read = world.home and world.home._replace(has_pods=home is not None and home.has_pods)
    yield world._replace(read_home=(read, True))
    if home is not None and world.home is not None:
        read = home._replace(has_pods=world.home.has_pods)
        yield world._replace(read_home=(read, world.read_home[1]))
    yield world._replace(read_copy=(world.copy, is_clear, True))
    yield world._replace(read_copy=(world.read_copy[0], not world.pods, world.read_copy[2]))


def decisions(world: World, rules: Rules, *, is_healed: bool = False) -> Iterator[World]:
    """The controller decides by what it read last, which may be long ago; or by the job alone, if it cannot read the other."""
    if len(world.requests) >= rules.requests:
        return
    (home, home_is_current), (copy, is_clear, copy_is_current) = world.read_home, world.read_copy
    found: list[TransferAction | None] = []
    if home is not None:
        view = home_view(home, world.wanted)
        found = [rules.decided(view, remote_view(copy, is_clear))]
        if not is_healed:
            found.append(rules.decided(view, None))
        yield from _moves_on_the_ladder(world, home, home_is_current)
    if rules.has(Guard.LEFTOVERS) and copy is not None:
        # The job is read again, after the copy.
        record = None if world.home is None else world.home.record or _held(world.home)
        seen = remote_view(copy, is_clear).copy
        found.append(None if seen is None else decide_leftover(seen, CLUSTER, record))
    for action in found:
        if action is None or not _is_within(action, rules):
            continue
        if isinstance(action, WriteRecord) and not _reads_live(world, action.live_read, rules):
            continue
        is_of_copy = isinstance(action, SetPermit | DeleteCopy)
        request = Request(action, copy_is_current if is_of_copy else home_is_current)
        yield _with_request(world, request)


def _may_run_at_home(view: HomeView) -> bool:
    """Whether the job may be resumed at home."""
    return not view.is_held and (view.record is None or view.record.stage is TransferStage.HOME)


def _is_allowed_update(before: Permit, after: Permit, *, is_suspended: bool) -> bool:
    """Whether the other cluster's API server accepts an update of a copy, of any client."""
    order = tuple(Permit)
    return order.index(after) >= order.index(before) and (is_suspended or may_run(after))


def _held(home: Home) -> TransferRecord | None:
    """A job that is held without a record may need any copy."""
    return TransferRecord(uid=UID, stage=TransferStage.RETURNING, cluster=CLUSTER) if home.is_held else FIRST


def _moves_on_the_ladder(world: World, home: Home, is_current: bool) -> Iterator[World]:
    """What the ladder itself does: it suspends the job to move it, and resumes it at home."""
    view = home_view(home, world.wanted)
    if home.is_deleted or home.is_ended or not _may_run_at_home(view):
        return
    if world.wanted and not home.suspended:
        yield _with_request(world, Request(_SUSPEND, is_current))
    if not world.wanted and view.is_quiet and world.home is not None and not world.home.has_pods:
        yield _with_request(world, Request(_RESUME, is_current))


@cache
def _order(request: Request) -> str:
    return repr(request)


def _with_request(world: World, request: Request) -> World:
    requests = tuple(sorted({*world.requests, request}, key=_order))
    return world._replace(requests=requests)


def _is_within(action: TransferAction, rules: Rules) -> bool:
    return not isinstance(action, WriteRecord) or action.record.epoch <= rules.epochs


def _reads_live(world: World, live_read: LiveRead, rules: Rules) -> bool:
    """Whether the API servers show what the write needs."""
    if live_read is LiveRead.QUIET_AT_HOME and rules.has(Guard.LOOK_AT_HOME):
        home = world.home
        return home is not None and home.is_carried_out and not home.has_pods
    if live_read is LiveRead.NOTHING_THERE and rules.has(Guard.LOOK_THERE):
        return world.copy is None and not world.pods
    return True


def _arrivals(world: World, rules: Rules) -> Iterator[World]:
    """Each request arrives, arrives and is sent again, or is lost."""
    for place, request in enumerate(world.requests):
        without = world._replace(requests=world.requests[:place] + world.requests[place + 1 :])
        yield without
        done = arrived(world, request, rules)
        if done is not None:
            yield done
            requests = tuple(each for at, each in enumerate(done.requests) if at != place)
            yield done._replace(requests=requests)


def arrived(world: World, request: Request, rules: Rules) -> World | None:
    action = request.action
    if isinstance(action, CreateCopy):
        return _created(world, action, rules)
    if isinstance(action, SetPermit | DeleteCopy):
        copy = world.copy
        is_same = copy is not None and str(copy.number) == action.copy and request.is_current
        if copy is None or (rules.has(Guard.COPY_VERSION) and not is_same):
            return None
        if isinstance(action, DeleteCopy):
            is_refused = rules.has(Guard.DELETION_ADMISSION) and copy.permit is not Permit.RECALLED
            return None if is_refused else _copy_deleted(world, copy)
        suspended = not may_run(action.permit)
        is_allowed = _is_allowed_update(copy.permit, action.permit, is_suspended=suspended)
        if rules.has(Guard.PERMIT_ORDER) and not is_allowed:
            return None
        return _copy_written(world, _suspend(copy._replace(permit=action.permit), suspended=suspended))
    home = world.home
    if home is None or (rules.has(Guard.HOME_VERSION) and not request.is_current):
        return None
    match action:
        case WriteRecord():
            return _home_written(world, home._replace(record=action.record, is_held=action.is_held))
        case RecordOutcome():
            return _home_written(world, home._replace(is_ended=True))
        case SuspendAtHome():
            return _home_written(world, _suspend(home, suspended=True))
        case _:
            is_refused = rules.has(Guard.HOME_ADMISSION) and home.is_held and action == _RESUME
            return None if is_refused else _home_written(world, _suspend(home, suspended=action == _SUSPEND))


_Suspended = TypeVar("_Suspended", Home, Copy)


def _suspend(obj: _Suspended, *, suspended: bool) -> _Suspended:
    return obj._replace(
        suspended=suspended, is_carried_out=obj.is_carried_out if obj.suspended == suspended else False
    )


def _created(world: World, action: CreateCopy, rules: Rules) -> World | None:
    if world.copy is not None or world.created >= rules.copies:
        return None
    number = world.created + 1
    copy = Copy(number, action.epoch)
    if not rules.has(Guard.CREATED_SUSPENDED):
        copy = copy._replace(permit=Permit.GRANTED, suspended=False)
    return _copy_written(world, copy)._replace(created=number)


def _home_written(world: World, home: Home | None) -> World:
    """Every earlier read of the job is outdated."""
    if home is not None and home.is_deleted and not home.is_held:
        home = None
    requests = tuple(
        each if isinstance(each.action, SetPermit | DeleteCopy) else each._replace(is_current=False)
        for each in world.requests
    )
    return world._replace(
        home=home, read_home=(world.read_home[0], False), requests=tuple(sorted(set(requests), key=_order))
    )


def _copy_deleted(world: World, copy: Copy) -> World:
    is_noticed = copy.is_ended or (copy.suspended and copy.is_carried_out)
    late = world.late if is_noticed else world.late | {copy.number}
    return _copy_written(world, None)._replace(late=late)


def _copy_written(world: World, copy: Copy | None) -> World:
    """Every earlier read of the copy is outdated."""
    requests = tuple(
        each._replace(is_current=False) if isinstance(each.action, SetPermit | DeleteCopy) else each
        for each in world.requests
    )
    return world._replace(
        copy=copy, read_copy=(*world.read_copy[:2], False), requests=tuple(sorted(set(requests), key=_order))
    )


def _operators(world: World) -> Iterator[World]:
    """Operators create pods, carry suspensions out, and pods end; the other controller moves a copy on its own ladder."""
    if world.home is not None:
        yield from _operator_at_home(world, world.home)
    if world.copy is not None:
        yield from _operator_there(world, world.copy)
    copy = world.copy
    for number in world.late:
        yield world._replace(late=world.late - {number})
        yield world._replace(pods=world.pods | {number})
    for number in world.pods - world.late:
        is_stopped = copy is None or copy.number != number or copy.is_ended
        if is_stopped or (copy is not None and copy.suspended and copy.is_carried_out):
            yield world._replace(pods=world.pods - {number})


def _operator_at_home(world: World, home: Home) -> Iterator[World]:
    if not home.has_pods and not home.is_ended and not (home.suspended and home.is_carried_out):
        yield world._replace(home=home._replace(has_pods=True))
    if home.suspended and not home.is_carried_out:
        yield world._replace(home=home._replace(is_carried_out=True))
    if home.has_pods and (home.is_ended or (home.suspended and home.is_carried_out)):
        yield world._replace(home=home._replace(has_pods=False))


def _operator_there(world: World, copy: Copy) -> Iterator[World]:
    if copy.number not in world.pods and not copy.is_ended and not (copy.suspended and copy.is_carried_out):
        yield world._replace(pods=world.pods | {copy.number})
    if copy.suspended and not copy.is_carried_out:
        yield world._replace(copy=copy._replace(is_carried_out=True))
    if may_run(copy.permit) and not copy.is_ended:
        yield _copy_written(world, _suspend(copy, suspended=not copy.suspended))


def _users(world: World, rules: Rules) -> Iterator[World]:
    """What users do in both clusters, and the end of the program."""
    home, copy = world.home, world.copy
    yield world._replace(wanted="" if world.wanted else CLUSTER)
    if home is not None:
        if not home.is_deleted:
            yield _home_written(world, home._replace(is_deleted=True))
        if home.suspended and not (rules.has(Guard.HOME_ADMISSION) and home.is_held):
            yield _home_written(world, _suspend(home, suspended=False))
        if home.record is not None and home.record != FIRST:
            yield _home_written(world, home._replace(record=None))
        if home.has_pods and not home.suspended and not home.is_ended:
            yield _home_written(world, home._replace(is_ended=True))
    if copy is not None:
        # Its namespace is deleted with everything in it, or its cluster.
        yield _copy_written(world, None)._replace(pods=world.pods - {copy.number})
        if not rules.has(Guard.DELETION_ADMISSION):
            yield _copy_deleted(world, copy)
        if copy.suspended and (
            not rules.has(Guard.REMOTE_ADMISSION)
            or _is_allowed_update(copy.permit, copy.permit, is_suspended=False)
        ):
            yield _copy_written(world, _suspend(copy, suspended=False))
        if copy.number in world.pods and not copy.suspended and not copy.is_ended:
            yield _copy_written(world, copy._replace(is_ended=True))
