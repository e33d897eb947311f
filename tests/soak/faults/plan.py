"""The faults of a run, drawn from its seed. Pure: the same arguments give the same faults."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from random import Random
from typing import Final, TypeAlias


class Shortage(StrEnum):
    """How a pool comes to have no machines to give."""

    STOCK = "stock"  #: the cloud has none
    LIMITS = "limits"  #: its NodePool may have none


@dataclass(frozen=True, kw_only=True)
class Evict:
    """One pod of each of these jobs is evicted; jobs by their numbers."""

    jobs: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class TakeNode:
    """A machine is taken, with a notice that drains it or without any: the one at a place among those of a tier.

    `place` is between 0 and 1.
    """

    tier: int
    place: float
    is_told: bool


@dataclass(frozen=True, kw_only=True)
class RunOut:
    """A tier gives no machine any more, and those it gave are taken without notice."""

    tier: int
    shortage: Shortage


@dataclass(frozen=True, kw_only=True)
class Recover:
    """Every tier gives machines again."""


@dataclass(frozen=True, kw_only=True)
class SlowDown:
    """A tier's machines take so many seconds more to come up."""

    tier: int
    seconds: int


@dataclass(frozen=True, kw_only=True)
class Complete:
    """These jobs come to their end; jobs by their numbers."""

    jobs: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class KillController:
    """The controller is killed at its `write`-th write from now, before the API server has it or after it was done."""

    write: int
    is_done: bool


@dataclass(frozen=True, kw_only=True)
class KillServer:
    """The API server is killed, and etcd with it if so said; both come back."""

    with_etcd: bool


PlannedFault: TypeAlias = (
    Evict | TakeNode | RunOut | Recover | SlowDown | Complete | KillController | KillServer
)


#: Tiers that may lose machines; the last one is on demand and loses none to the market.
SPOT_TIERS: Final = 2
# A move is four writes: what was counted, the suspension, the child Job's deletion, the resumption.
_WRITES: Final = 40
_SHARE: Final = 0.3
_COMPLETED_SHARE: Final = 0.1
_SLOWEST: Final = 5
_MOST_FAILURES: Final = 3


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What is done, round by round; the faults of a round are given one right after the other.

    `failures` is what each tier on spot may cost; with `returns` jobs go back up.
    """

    seed: int
    jobs: int
    failures: tuple[int, ...]
    returns: bool
    rounds: tuple[tuple[PlannedFault, ...], ...]


def draw_plan(seed: int, *, jobs: int, rounds: int) -> Plan:
    """Draw the faults of a run. Three rounds or more have every kind of fault, a single one has all that are quick."""
    random = Random(seed)
    kinds = [_eviction_round, _shortage_round, _server_round]
    random.shuffle(kinds)
    drawn = [*kinds[:rounds], *(random.choice(kinds) for _ in range(rounds - len(kinds)))]
    return Plan(
        seed=seed,
        jobs=jobs,
        # A single round is one outage at most, and jobs are to move of it.
        failures=tuple(random.randint(1, _MOST_FAILURES if rounds > 1 else 1) for _ in range(SPOT_TIERS)),
        returns=rounds > 1 and random.random() < 0.5,
        rounds=tuple(tuple(draw(random, jobs)) for draw in (drawn if rounds > 1 else [_quick_round])),
    )


def _quick_round(random: Random, jobs: int) -> Sequence[PlannedFault]:
    """Pods and nodes are lost while the controller dies, and then the API server."""
    return [
        KillController(write=random.randint(1, jobs // 2), is_done=random.random() < 0.5),
        _evict(random, jobs),
        TakeNode(tier=0, place=random.random(), is_told=False),
        KillServer(with_etcd=random.random() < 0.5),
    ]


def _eviction_round(random: Random, jobs: int) -> Sequence[PlannedFault]:
    """Pods and nodes are lost while the controller dies."""
    return [
        Recover(),
        _kill_controller(random, jobs),
        _evict(random, jobs),
        _take_node(random),
        _take_node(random),
        *([_complete(random, jobs)] if random.random() < 0.5 else []),
    ]


def _shortage_round(random: Random, jobs: int) -> Sequence[PlannedFault]:
    """A pool is gone from the market; another is slow; the controller dies while it moves the jobs."""
    tier = random.randrange(SPOT_TIERS)
    return [
        Recover(),
        SlowDown(tier=random.randrange(SPOT_TIERS + 1), seconds=random.randint(1, _SLOWEST)),
        _kill_controller(random, jobs),
        _evict(random, jobs),
        RunOut(tier=tier, shortage=random.choice(list(Shortage))),
    ]


def _server_round(random: Random, jobs: int) -> Sequence[PlannedFault]:
    """The API server dies in the middle of moves, perhaps with etcd."""
    return [
        Recover(),
        _complete(random, jobs),
        _evict(random, jobs),
        _take_node(random),
        KillServer(with_etcd=random.random() < 0.5),
    ]


def _evict(random: Random, jobs: int) -> Evict:
    return Evict(jobs=_some(random, jobs, _SHARE))


def _complete(random: Random, jobs: int) -> Complete:
    return Complete(jobs=_some(random, jobs, _COMPLETED_SHARE))


def _take_node(random: Random) -> TakeNode:
    return TakeNode(tier=random.randrange(SPOT_TIERS), place=random.random(), is_told=random.random() < 0.5)


def _kill_controller(random: Random, jobs: int) -> KillController:
    # Few jobs make few writes; a kill that comes after the last of them is none.
    return KillController(write=random.randint(1, min(_WRITES, jobs)), is_done=random.random() < 0.5)


def _some(random: Random, jobs: int, share: float) -> tuple[int, ...]:
    return tuple(sorted(random.sample(range(jobs), max(1, round(jobs * share)))))
