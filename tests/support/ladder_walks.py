"""What a walk down a ladder and back up shows when all goes well; one override spoils one thing."""

from datetime import UTC, datetime, timedelta

from holdfast.rehearsal.scenarios.ladder_walk import LadderWalk
from holdfast.rehearsal.timeline.traces import Move

START = datetime(2030, 5, 1, 12, 0, tzinfo=UTC)


def move(source: str, target: str, at: float, *, bound: float | None = 3.0) -> Move:
    """A move: gone after half a second, resumed after one, and bound when its nodes are there."""
    begun = START + timedelta(seconds=at)
    return Move(
        source=source,
        target=target,
        suspended_at=begun,
        gone_at=begun + timedelta(seconds=0.5),
        resumed_at=begun + timedelta(seconds=1),
        bound_at=None if bound is None else begun + timedelta(seconds=bound),
    )


def walk(
    *,
    evictions: int = 3,
    moves: tuple[Move, ...] = (
        move("a-spot", "b-spot", 60, bound=None),
        move("b-spot", "a", 70),
        move("a", "a-spot", 100, bound=1.5),
    ),
    overlaps: tuple[str, ...] = (),
) -> LadderWalk:
    """Three evictions, no capacity, and back up."""
    return LadderWalk(
        jobset="train",
        pools=("a-spot", "b-spot", "a"),
        evictions=evictions,
        restarts=2,
        moves=moves,
        evicted_at=START + timedelta(seconds=59.5),
        overlaps=overlaps,
    )
