"""The faults of a run, drawn from its seed. Pure: the same arguments draw the same faults."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from random import Random
from typing import Final, TypeAlias


class Shortage(StrEnum):
    """Why a pool has no capacity."""

    STOCK = "stock"  #: the cloud has no machines
    LIMITS = "limits"  #: the limits of its NodePool are 0


@dataclass(frozen=True, kw_only=True)
class Evict:
    """Evict one pod of each of these jobs, by number."""

    jobs: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class TakeNode:
    """Interrupt a machine of a tier, with a notice and a drain or without.

    `place`, between 0 and 1, selects it from the sorted nodes.
    """

    tier: int
    place: float
    is_announced: bool


@dataclass(frozen=True, kw_only=True)
class RunOut:
    """A tier has no capacity, and its machines are lost without notice."""

    tier: int
    shortage: Shortage


@dataclass(frozen=True, kw_only=True)
class Recover:
    """Every tier has capacity again."""


@dataclass(frozen=True, kw_only=True)
class SlowDown:
    """Machines of a tier take more seconds to start."""

    tier: int
    seconds: int


@dataclass(frozen=True, kw_only=True)
class Complete:
    """Complete these jobs, by number."""

    jobs: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class KillController:
    """Kill the controller at its `write`-th write from now, before or after the API server has handled it."""

    write: int
    is_done: bool


@dataclass(frozen=True, kw_only=True)
class KillServer:
    """Kill the API server, and etcd if `with_etcd`; both are started again."""

    with_etcd: bool


@dataclass(frozen=True, kw_only=True)
class Partition:
    """The controller does not reach the API server for some seconds; both go on."""

    seconds: int


PlannedFault: TypeAlias = (
    Evict | TakeNode | RunOut | Recover | SlowDown | Complete | KillController | KillServer | Partition
)


#: Tiers whose machines can be interrupted; the last tier is on-demand.
SPOT_TIERS: Final = 2
# A move is four writes: what was counted, the suspension, the child Job's deletion, the resumption.
_WRITES: Final = 40
_SHARE: Final = 0.3
_COMPLETED_SHARE: Final = 0.1
_SLOWEST: Final = 5
_MOST_FAILURES: Final = 3
#: Shorter and longer than the lease of the leader, which is 15 s.
_PARTITION_SECONDS: Final = (5, 25)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The faults of a run by round; those of a round are injected one after another.

    `failures` is the maxFailures of each spot tier; with `returns` jobs fail back.
    """

    seed: int
    jobs: int
    failures: tuple[int, ...]
    returns: bool
    rounds: tuple[tuple[PlannedFault, ...], ...]


def draw_plan(seed: int, *, jobs: int, rounds: int) -> Plan:
    """Draw the faults of a run. Three rounds or more contain every kind of fault; a single round contains the quick ones."""
    random = Random(seed)
    kinds = [_eviction_round, _shortage_round, _server_round]
    random.shuffle(kinds)
    drawn = [*kinds[:rounds], *(random.choice(kinds) for _ in range(rounds - len(kinds)))]
    return Plan(
        seed=seed,
        jobs=jobs,
        # A single round is one outage, and jobs must move because of it.
        failures=tuple(random.randint(1, _MOST_FAILURES if rounds > 1 else 1) for _ in range(SPOT_TIERS)),
        returns=rounds > 1,
        rounds=tuple(tuple(draw(random, jobs)) for draw in (drawn if rounds > 1 else [_quick_round])),
    )


def _quick_round(random: Random, jobs: int) -> Sequence[PlannedFault]:
    """Lose pods and a node while the controller is killed, then kill the API server."""
    return [
        KillController(write=random.randint(1, jobs // 2), is_done=random.random() < 0.5),
        _evict(random, jobs),
        TakeNode(tier=0, place=random.random(), is_announced=False),
        KillServer(with_etcd=random.random() < 0.5),
    ]


def _eviction_round(random: Random, jobs: int) -> Sequence[PlannedFault]:
    """Lose pods and nodes while the controller is killed."""
    return [
        Recover(),
        _kill_controller(random, jobs),
        _evict(random, jobs),
        _take_node(random),
        _take_node(random),
        *([_complete(random, jobs)] if random.random() < 0.5 else []),
    ]


def _shortage_round(random: Random, jobs: int) -> Sequence[PlannedFault]:
    """One pool has no capacity, another one is slow, and the controller is killed while it moves jobs."""
    tier = random.randrange(SPOT_TIERS)
    return [
        Recover(),
        SlowDown(tier=random.randrange(SPOT_TIERS + 1), seconds=random.randint(1, _SLOWEST)),
        _kill_controller(random, jobs),
        _evict(random, jobs),
        RunOut(tier=tier, shortage=random.choice(list(Shortage))),
    ]


def _server_round(random: Random, jobs: int) -> Sequence[PlannedFault]:
    """Separate the controller from the API server during moves, then kill the API server, sometimes with etcd."""
    return [
        Recover(),
        _complete(random, jobs),
        _evict(random, jobs),
        _take_node(random),
        Partition(seconds=random.randint(*_PARTITION_SECONDS)),
        _evict(random, jobs),
        KillServer(with_etcd=random.random() < 0.5),
    ]


def _evict(random: Random, jobs: int) -> Evict:
    return Evict(jobs=_some(random, jobs, _SHARE))


def _complete(random: Random, jobs: int) -> Complete:
    return Complete(jobs=_some(random, jobs, _COMPLETED_SHARE))


def _take_node(random: Random) -> TakeNode:
    return TakeNode(
        tier=random.randrange(SPOT_TIERS), place=random.random(), is_announced=random.random() < 0.5
    )


def _kill_controller(random: Random, jobs: int) -> KillController:
    # Few jobs cause few writes, and a kill after the last write would not happen.
    return KillController(write=random.randint(1, min(_WRITES, jobs)), is_done=random.random() < 0.5)


def _some(random: Random, jobs: int, share: float) -> tuple[int, ...]:
    return tuple(sorted(random.sample(range(jobs), max(1, round(jobs * share)))))
