"""What a walk down the ladder and back up has shown. Pure: the facts, what is wrong with them, and their table."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from holdfast.rehearsal.scenarios.ladder_demo_policy import EVICTIONS
from holdfast.rehearsal.timeline.moves import Move


@dataclass(frozen=True, kw_only=True)
class LadderWalk:
    """What was seen.

    `pools` are the ladder's, best first; `evictions` were counted against the first, the last of them given at
    `evicted_at`; `restarts` is the JobSet's own count; `overlaps` names each time that two gangs were alive together.
    """

    jobset: str
    pools: tuple[str, ...]
    evictions: int
    restarts: int
    moves: tuple[Move, ...]
    evicted_at: datetime
    overlaps: tuple[str, ...]


HEADS = ("move", "because of", "decided", "pods gone", "resumed", "nodes for all", "in all")


def walk_rows(seen: LadderWalk) -> list[tuple[str, ...]]:
    """Return a line for each move, with the seconds that each of its steps took."""
    why = (f"{seen.evictions} evictions", "no capacity", "capacity held above")
    return [
        (
            f"{move.source} → {move.target}",
            reason,
            _seconds(seen.evicted_at if number == 0 else None, move.suspended_at),
            _seconds(move.suspended_at, move.gone_at),
            _seconds(move.gone_at, move.resumed_at),
            _seconds(move.resumed_at, move.bound_at),
            _seconds(move.suspended_at, move.bound_at),
        )
        for number, (move, reason) in enumerate(zip(seen.moves, why, strict=False))
    ]


def walked(seen: LadderWalk) -> str:
    """Return the way in one line."""
    way = " → ".join([*(move.source for move in seen.moves[:1]), *(move.target for move in seen.moves)])
    return f"{way}; {seen.evictions} evictions, restarts: {seen.restarts}"


def unmet_by_walk(seen: LadderWalk) -> list[str]:
    """Down by evictions, down by a lack of capacity, and back up; each eviction counted once; never two gangs."""
    best, second, last = seen.pools
    wanted = [(best, second), (second, last), (last, best)]
    found = [(move.source, move.target) for move in seen.moves]
    unbound = [move.target for move in seen.moves if move.bound_at is None and move.target != second]
    problems = [
        (found != wanted, f"the way was {_way(found)} and not {_way(wanted)}"),
        (seen.evictions != EVICTIONS, f"{EVICTIONS} evictions were counted as {seen.evictions}"),
        (bool(unbound), f"not every pod found a node in {', '.join(unbound)}"),
        (bool(seen.overlaps), f"two gangs were alive together: {'; '.join(seen.overlaps)}"),
    ]
    return [problem for is_wrong, problem in problems if is_wrong]


def _way(moves: Sequence[tuple[str, str]]) -> str:
    return ", ".join(f"{source} → {target}" for source, target in moves) or "none"


def _seconds(start: datetime | None, end: datetime | None) -> str:
    return "–" if start is None or end is None else f"{(end - start).total_seconds():.1f} s"
