"""What a fault run came to. Pure."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from holdfast.fallback.policy.policy import Policy
from tests.soak.faults.evidence import evidence
from tests.soak.faults.model import deviations
from tests.soak.faults.record import Record


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Jobs by the tier they are on or as finished, moves and restarts in all, and everything that was wrong.

    `deaths` of the controller, `writes` that it made through it all. `seen`: what was, of each job that went wrong.
    """

    places: Mapping[str, int]
    moves: int
    restarts: int
    deaths: int
    writes: int
    problems: tuple[str, ...]
    seen: Mapping[str, str]


def judged(
    records: Sequence[Record], policy: Policy, *, overlaps: Sequence[object], deaths: int, writes: int
) -> Outcome:
    """Hold what was seen of every job against the ladder's function; `overlaps`: gangs of one that lived together."""
    wrong = {each.trace.name: problems for each in records if (problems := deviations(each, policy))}
    told = [f"{name}: {problem}" for name, problems in wrong.items() for problem in problems]
    traces = [each.trace for each in records]
    return Outcome(
        places=dict(sorted(Counter(trace.last.outcome or trace.last.pool for trace in traces).items())),
        moves=sum(trace.last.moves for trace in traces),
        restarts=sum(trace.last.restarts for trace in traces),
        deaths=deaths,
        writes=writes,
        problems=(*told, *(f"two gangs at once: {each}" for each in overlaps)),
        seen={each.trace.name: evidence(each) for each in records if each.trace.name in wrong},
    )
