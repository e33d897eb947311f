"""The faults of a run, drawn from its seed. Pure: the same arguments draw the same faults."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum, auto
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


class Side(StrEnum):
    """One of two clusters; a run in one cluster has only a home."""

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


Step: TypeAlias = Strike | Link | Wait

#: Tiers whose machines can be interrupted; the last tier is on-demand.
SPOT_TIERS: Final = 2
#: The tier of the ladder at home that has capacity there, and that tier in the ladder there.
FIRST: Final = 0
ELSEWHERE: Final = 1

# A move is four writes: what was counted, the suspension, the child Job's deletion, the resumption.
_WRITES: Final = 40
_WRITES_OF_TWO: Final = 20
_SHARE: Final = 0.3
_SHARE_OF_TWO: Final = 0.4
_COMPLETED_SHARE: Final = 0.1
_SLOWEST: Final = 5
_MOST_FAILURES: Final = 3
_MOST_FAILURES_OF_TWO: Final = 2
#: A round has some five faults of one kind, and of one more for each so many faults of the run.
_FAULTS_OF_SHORT_RUNS: Final = 75
#: Shorter and longer than the lease of the leader, which is 15 s.
_CUT_SECONDS: Final = (5, 40)
_PARTITION_SECONDS: Final = (5, 25)
#: Longer than `returnAfter` and the time until capacity at home is reserved for some jobs, one after the other.
_RETURN_SECONDS: Final = 120


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The faults of a run by round; those of a round are injected one after another. `jobs`: their numbers.

    `failures`: the maxFailures of each spot tier; with two clusters of the first tier at home, of the tier elsewhere, and of the
    first tier there. With `returns` jobs fail back.
    """

    seed: int
    jobs: tuple[int, ...]
    failures: tuple[int, ...]
    returns: bool
    rounds: tuple[tuple[Step, ...], ...]

    @property
    def faults(self) -> int:
        """How many faults there are; a recovery is none."""
        return sum(_is_fault(step) for each in self.rounds for step in each)


def _is_fault(step: Step) -> bool:
    return step is not Link.WHOLE and not (
        isinstance(step, Wait) or (isinstance(step, Strike) and isinstance(step.fault, Recover))
    )


def draw_plan(seed: int, *, jobs: int, rounds: int) -> Plan:
    """Draw the faults of a run. Three rounds or more contain every kind of fault; a single round contains the quick ones."""
    random, numbers = Random(seed), tuple(range(jobs))
    kinds = [_eviction_round, _shortage_round, _server_round]
    random.shuffle(kinds)
    drawn = [*kinds[:rounds], *(random.choice(kinds) for _ in range(rounds - len(kinds)))]
    return Plan(
        seed=seed,
        jobs=numbers,
        # A single round is one outage, and jobs must move because of it.
        failures=tuple(random.randint(1, _MOST_FAILURES if rounds > 1 else 1) for _ in range(SPOT_TIERS)),
        returns=rounds > 1,
        rounds=tuple(
            tuple(Strike(side=Side.HOME, fault=fault) for fault in draw(random, numbers))
            for draw in (drawn if rounds > 1 else [_quick_round])
        ),
    )


def _quick_round(random: Random, jobs: Sequence[int]) -> Sequence[PlannedFault]:
    """Lose pods and a node while the controller is killed, then kill the API server."""
    return [
        _kill(random, len(jobs) // 2),
        _evict(random, jobs, _SHARE),
        TakeNode(tier=FIRST, place=random.random(), is_announced=False),
        _kill_server(random),
    ]


def _eviction_round(random: Random, jobs: Sequence[int]) -> Sequence[PlannedFault]:
    """Lose pods and nodes while the controller is killed."""
    return [
        Recover(),
        # Few jobs cause few writes, and a kill after the last write would not happen.
        _kill(random, min(_WRITES, len(jobs))),
        _evict(random, jobs, _SHARE),
        _take_node(random, random.randrange(SPOT_TIERS)),
        _take_node(random, random.randrange(SPOT_TIERS)),
        *([_complete(random, jobs)] if random.random() < 0.5 else []),
    ]


def _shortage_round(random: Random, jobs: Sequence[int]) -> Sequence[PlannedFault]:
    """One pool has no capacity, another one is slow, and the controller is killed while it moves jobs."""
    return [
        Recover(),
        SlowDown(tier=random.randrange(SPOT_TIERS + 1), seconds=random.randint(1, _SLOWEST)),
        _kill(random, min(_WRITES, len(jobs))),
        _evict(random, jobs, _SHARE),
        _run_out(random, random.randrange(SPOT_TIERS)),
    ]


def _server_round(random: Random, jobs: Sequence[int]) -> Sequence[PlannedFault]:
    """Separate the controller from the API server during moves, then kill the API server, sometimes with etcd."""
    return [
        Recover(),
        _complete(random, jobs),
        _evict(random, jobs, _SHARE),
        _take_node(random, random.randrange(SPOT_TIERS)),
        Partition(seconds=random.randint(*_PARTITION_SECONDS)),
        _evict(random, jobs, _SHARE),
        _kill_server(random),
    ]


def draw_two_clusters(seed: int, *, jobs: Sequence[int], faults: int) -> Plan:
    """Draw rounds in two clusters until they contain so many faults. With many, several kinds follow each other before jobs settle."""
    random, rounds, count = Random(seed), list[tuple[Step, ...]](), 0
    kinds = [_leave, _separate, _crash, _return]
    together = max(1, faults // _FAULTS_OF_SHORT_RUNS)
    while count < faults:
        first = kinds[len(rounds)] if len(rounds) < len(kinds) else random.choice(kinds)
        drawn = [first, *random.choices(kinds, k=together - 1)]
        steps = tuple(step for draw in drawn for step in draw(random, jobs))
        rounds.append(steps)
        count += sum(map(_is_fault, steps))
    there = _MOST_FAILURES_OF_TWO
    return Plan(
        seed=seed,
        jobs=tuple(jobs),
        # Copies come back when their failures there are spent; some move on the ladder there first.
        failures=(1, random.randint(1, there), random.randint(1, 2 * there)),
        returns=True,
        rounds=tuple(rounds),
    )


def _leave(random: Random, jobs: Sequence[int]) -> Sequence[Step]:
    """Home's first tier runs out while requests to the other cluster are lost and a controller is killed."""
    return [
        Link.DISTURBED,
        Strike(side=random.choice(list(Side)), fault=_kill(random, _WRITES_OF_TWO)),
        Strike(side=Side.HOME, fault=_run_out(random, FIRST)),
        *_evictions(random, jobs),
        Wait(seconds=random.randint(*_CUT_SECONDS)),
    ]


def _separate(random: Random, jobs: Sequence[int]) -> Sequence[Step]:
    """The clusters are separated while pods and nodes are lost in both, and a controller or an API server is killed."""
    completed, side = _complete(random, jobs), random.choice(list(Side))
    return [
        *_evictions(random, jobs),
        Wait(seconds=random.randint(0, 10)),
        Link.CUT,
        *_evictions(random, jobs),
        Strike(side=Side.THERE, fault=_take_node(random, ELSEWHERE)),
        *(Strike(side=each, fault=completed) for each in Side),
        Strike(side=side, fault=random.choice([_kill(random, _WRITES_OF_TWO), _kill_server(random)])),
        Wait(seconds=random.randint(*_CUT_SECONDS)),
    ]


def _crash(random: Random, jobs: Sequence[int]) -> Sequence[Step]:
    """Both controllers are killed at a write, and a controller is separated from its API server, or that is killed."""
    partition = Partition(seconds=random.randint(*_PARTITION_SECONDS))
    return [
        *(Strike(side=side, fault=_kill(random, _WRITES_OF_TWO)) for side in Side),
        *_evictions(random, jobs),
        Strike(side=Side.HOME, fault=_take_node(random, FIRST)),
        Strike(side=random.choice(list(Side)), fault=random.choice([partition, _kill_server(random)])),
    ]


def _return(random: Random, jobs: Sequence[int]) -> Sequence[Step]:
    """Home has capacity again, and the other cluster loses pods or runs out, so that copies come back."""
    return [
        *(Strike(side=side, fault=Recover()) for side in Side),
        random.choice([Link.DISTURBED, Link.WHOLE]),
        Strike(side=random.choice(list(Side)), fault=_kill(random, _WRITES_OF_TWO)),
        Wait(seconds=_RETURN_SECONDS),
        Strike(
            side=Side.THERE, fault=random.choice([_take_node(random, ELSEWHERE), _run_out(random, ELSEWHERE)])
        ),
        Wait(seconds=random.randint(*_CUT_SECONDS)),
    ]


def _evictions(random: Random, jobs: Sequence[int]) -> Sequence[Strike]:
    return [Strike(side=side, fault=_evict(random, jobs, _SHARE_OF_TWO)) for side in Side]


def _evict(random: Random, jobs: Sequence[int], share: float) -> Evict:
    return Evict(jobs=_some(random, jobs, share))


def _complete(random: Random, jobs: Sequence[int]) -> Complete:
    return Complete(jobs=_some(random, jobs, _COMPLETED_SHARE))


def _take_node(random: Random, tier: int) -> TakeNode:
    return TakeNode(tier=tier, place=random.random(), is_announced=random.random() < 0.5)


def _run_out(random: Random, tier: int) -> RunOut:
    return RunOut(tier=tier, shortage=random.choice(list(Shortage)))


def _kill(random: Random, writes: int) -> KillController:
    return KillController(write=random.randint(1, writes), is_done=random.random() < 0.5)


def _kill_server(random: Random) -> KillServer:
    return KillServer(with_etcd=random.random() < 0.5)


def _some(random: Random, jobs: Sequence[int], share: float) -> tuple[int, ...]:
    return tuple(sorted(random.sample(list(jobs), max(1, round(len(jobs) * share)))))
