"""Whether the reservations of a fault run followed their rules: one incomplete hold of a pool at a time, none too long. Pure."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import combinations
from typing import Final

from tests.soak.faults.nodes import NodeTimeline, Placeholder

# A hold that is complete stays until the job's pods have ended and it is resumed.
_MOVE: Final = timedelta(seconds=60)


def broken_holds(
    nodes: NodeTimeline,
    pods: Mapping[str, int],
    *,
    hold_timeout: timedelta,
    late: timedelta,
    kills: Sequence[datetime],
    until: datetime,
) -> list[str]:
    """Return what is wrong with the reservations, empty if nothing is.

    `pods` are those that each job needs, by uid. `late`: how late the controller may act; a killed controller may act two
    minutes late.
    """
    holds: dict[tuple[str, str], list[Placeholder]] = defaultdict(list)
    for each in nodes.placeholders.values():
        holds[each.job, each.pool].append(each)
    attempts = [
        _Attempt(job, pool, part, pods.get(job, 1), until)
        for (job, pool), found in holds.items()
        for part in _attempts(found, until)
    ]
    problems: list[str] = []
    for each in attempts:
        limit = hold_timeout + _MOVE + late + _blindness(kills, each.since, each.until)
        if each.until - each.since > limit:
            problems.append(
                f"{each.job} held capacity in {each.pool} from {each.since:%X} to {each.until:%X}; allowed: {hold_timeout}"
            )
    for one, other in combinations(attempts, 2):
        if one.pool != other.pool or one.job == other.job:
            continue
        since, end = max(one.since, other.since), min(one.complete_at, other.complete_at)
        if end - since > late * 2 + _blindness(kills, since, end):
            problems.append(
                f"{one.job} and {other.job} both held a part of {one.pool} from {since:%X} to {end:%X}"
            )
    return problems


class _Attempt:
    """One hold of a job in a pool; `complete_at`: when all of its pods had nodes, or when it ended without."""

    def __init__(
        self, job: str, pool: str, placeholders: Sequence[Placeholder], size: int, until: datetime
    ) -> None:
        self.job, self.pool = job, pool
        self.since = min(each.born_at for each in placeholders)
        self.until = max(each.ended_at or until for each in placeholders)
        bound = sorted(each.bound_at for each in placeholders if each.bound_at is not None)
        self.complete_at = bound[size - 1] if len(bound) >= size else self.until


def _attempts(placeholders: Sequence[Placeholder], until: datetime) -> Iterator[Sequence[Placeholder]]:
    """Yield the placeholders of one attempt after the other: no time without any is between them."""
    part: list[Placeholder] = []
    end = until
    for each in sorted(placeholders, key=lambda found: found.born_at):
        if part and each.born_at > end:
            yield part
            part = []
        end = max(end, each.ended_at or until) if part else each.ended_at or until
        part.append(each)
    if part:
        yield part


def _blindness(kills: Sequence[datetime], since: datetime, until: datetime) -> timedelta:
    blind = timedelta(minutes=2)
    return blind if any(since - blind < kill < until for kill in kills) else timedelta(0)
