"""The faults of a run over two clusters, drawn from its seed. Pure: the same arguments draw the same faults."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum, auto
from random import Random
from typing import Final, TypeAlias

from tests.soak.faults.plan import (
    Complete,
    Evict,
    KillController,
    KillServer,
    Partition,
    PlannedFault,
    Recover,
    RunOut,
    Shortage,
    TakeNode,
)


class Side(StrEnum):
    """One of the two clusters."""

    HOME = auto()  #: users create jobs here
    THERE = auto()  #: their copies run here


class Link(StrEnum):
    """How requests from home's controller to the other cluster fare."""

    WHOLE = auto()
    DISTURBED = auto()  #: some are lost, late, doubled, or their answers are lost
    CUT = auto()  #: none arrives


@dataclass(frozen=True, kw_only=True)
class Strike:
    """A fault in one cluster."""

    side: Side
    fault: PlannedFault


@dataclass(frozen=True, kw_only=True)
class Wait:
    """Nothing else happens for some seconds."""

    seconds: int


TwoClusterStep: TypeAlias = Strike | Link | Wait

#: The tier of the ladder at home that has capacity there, and that tier in the ladder there.
FIRST: Final = 0
ELSEWHERE: Final = 1

_SHARE: Final = 0.4
_COMPLETED_SHARE: Final = 0.1
_MOST_FAILURES: Final = 2
#: A round has some five faults of one kind, and of one more for each so many faults of the run.
_FAULTS_OF_SHORT_RUNS: Final = 75
_MOST_WRITES: Final = 20
#: Shorter and longer than the lease of the leader, which is 15 s.
_CUT_SECONDS: Final = (5, 40)
_PARTITION_SECONDS: Final = (5, 25)
#: Longer than `returnAfter` and the time until capacity at home is reserved for some jobs, one after the other.
_RETURN_SECONDS: Final = 120


@dataclass(frozen=True, kw_only=True)
class TwoClusterPlan:
    """The faults of a run by round. `jobs`: their numbers.

    `failures`: the maxFailures of the first tier at home, of the tier elsewhere, and of the first tier there.
    """

    seed: int
    jobs: tuple[int, ...]
    failures: tuple[int, int, int]
    rounds: tuple[tuple[TwoClusterStep, ...], ...]

    @property
    def faults(self) -> int:
        """How many faults there are; a recovery is none."""
        return sum(_is_fault(step) for each in self.rounds for step in each)


def draw_two_clusters(seed: int, *, jobs: Sequence[int], faults: int) -> TwoClusterPlan:
    """Draw rounds until they contain so many faults. With many, several kinds follow each other before jobs settle."""
    random, rounds, count = Random(seed), list[tuple[TwoClusterStep, ...]](), 0
    kinds = [_leave, _separate, _crash, _return]
    together = max(1, faults // _FAULTS_OF_SHORT_RUNS)
    while count < faults:
        first = kinds[len(rounds)] if len(rounds) < len(kinds) else random.choice(kinds)
        drawn = [first, *random.choices(kinds, k=together - 1)]
        steps = tuple(step for draw in drawn for step in draw(random, jobs))
        rounds.append(steps)
        count += sum(map(_is_fault, steps))
    return TwoClusterPlan(
        seed=seed,
        jobs=tuple(jobs),
        # Copies come back when their failures there are spent; some move on the ladder there first.
        failures=(1, random.randint(1, _MOST_FAILURES), random.randint(1, 2 * _MOST_FAILURES)),
        rounds=tuple(rounds),
    )


def _is_fault(step: TwoClusterStep) -> bool:
    return step is not Link.WHOLE and not (
        isinstance(step, Wait) or (isinstance(step, Strike) and isinstance(step.fault, Recover))
    )


def _leave(random: Random, jobs: Sequence[int]) -> Sequence[TwoClusterStep]:
    """Home's first tier runs out while requests to the other cluster are lost and a controller is killed."""
    return [
        Link.DISTURBED,
        _kill(random, random.choice(list(Side))),
        Strike(side=Side.HOME, fault=RunOut(tier=FIRST, shortage=random.choice(list(Shortage)))),
        *_evictions(random, jobs),
        Wait(seconds=random.randint(*_CUT_SECONDS)),
    ]


def _separate(random: Random, jobs: Sequence[int]) -> Sequence[TwoClusterStep]:
    """The clusters are separated while pods and nodes are lost in both, and a controller or an API server is killed."""
    return [
        *_evictions(random, jobs),
        Wait(seconds=random.randint(0, 10)),
        Link.CUT,
        *_evictions(random, jobs),
        _take_node(random, Side.THERE),
        *_complete(random, jobs),
        random.choice([_kill(random, Side.HOME), _kill(random, Side.THERE), _kill_server(random)]),
        Wait(seconds=random.randint(*_CUT_SECONDS)),
    ]


def _crash(random: Random, jobs: Sequence[int]) -> Sequence[TwoClusterStep]:
    """Both controllers are killed at a write, and a controller is separated from its API server, or that is killed."""
    side = random.choice(list(Side))
    partition = Strike(side=side, fault=Partition(seconds=random.randint(*_PARTITION_SECONDS)))
    return [
        _kill(random, Side.HOME),
        _kill(random, Side.THERE),
        *_evictions(random, jobs),
        _take_node(random, Side.HOME),
        random.choice([partition, _kill_server(random)]),
    ]


def _return(random: Random, jobs: Sequence[int]) -> Sequence[TwoClusterStep]:
    """Home has capacity again, and the other cluster loses pods or runs out, so that copies come back."""
    lost = random.choice(
        [
            _take_node(random, Side.THERE),
            Strike(side=Side.THERE, fault=RunOut(tier=ELSEWHERE, shortage=random.choice(list(Shortage)))),
        ]
    )
    return [
        *(Strike(side=side, fault=Recover()) for side in Side),
        random.choice([Link.DISTURBED, Link.WHOLE]),
        _kill(random, random.choice(list(Side))),
        Wait(seconds=_RETURN_SECONDS),
        lost,
        Wait(seconds=random.randint(*_CUT_SECONDS)),
    ]


def _evictions(random: Random, jobs: Sequence[int]) -> Sequence[Strike]:
    return [
        Strike(side=side, fault=Evict(jobs=_some(random, jobs, _SHARE))) for side in (Side.HOME, Side.THERE)
    ]


def _complete(random: Random, jobs: Sequence[int]) -> Sequence[Strike]:
    completed = _some(random, jobs, _COMPLETED_SHARE)
    return [Strike(side=side, fault=Complete(jobs=completed)) for side in Side]


def _take_node(random: Random, side: Side) -> Strike:
    tier = FIRST if side is Side.HOME else ELSEWHERE
    fault = TakeNode(tier=tier, place=random.random(), is_announced=random.random() < 0.5)
    return Strike(side=side, fault=fault)


def _kill(random: Random, side: Side) -> Strike:
    write = random.randint(1, _MOST_WRITES)
    return Strike(side=side, fault=KillController(write=write, is_done=random.random() < 0.5))


def _kill_server(random: Random) -> Strike:
    return Strike(side=random.choice(list(Side)), fault=KillServer(with_etcd=random.random() < 0.5))


def _some(random: Random, jobs: Sequence[int], share: float) -> tuple[int, ...]:
    return tuple(sorted(random.sample(list(jobs), max(1, round(len(jobs) * share)))))
