"""Whether the ledgers of a fault run say what its nodes did: a second account, from the watches of the run. Pure.

Each time between two written ledgers is compared alone. What the controller cannot know is allowed: a controller that was
killed misses nodes that were gone before it started again, and one that was cut off counts lost nodes until it learns of them.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Final, TypeAlias

from pulumi_holdfast.controller.jobs.patches import read_state
from pulumi_holdfast.controller.jobs.state import JobState, Ledger, Phase, PoolUse
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import CapacityType
from pulumi_holdfast.ladder.ladder import cluster_of
from tests.soak.faults.nodes import NodeTimeline
from tests.soak.faults.observations import Record

#: How long a controller that was killed or cut off may learn nothing.
_BLIND: Final = timedelta(minutes=2)
_NOTHING: Final = timedelta(0)
_HOUR: Final = timedelta(hours=1)
# Ledgers are written in seconds with six digits.
_ROUNDED: Final = timedelta(milliseconds=1)


@dataclass(frozen=True, kw_only=True)
class TierFacts:
    """What the ladder says of a pool."""

    capacity: CapacityType
    price: float


@dataclass(frozen=True, kw_only=True)
class Span:
    """A time in which a job has a node of a pool, or a part of it beside other jobs."""

    pool: str
    since: datetime
    until: datetime
    share: float = 1.0

    def within(self, since: datetime, until: datetime) -> timedelta:
        """How much node time of it is between two times."""
        return max(_NOTHING, min(self.until, until) - max(self.since, since)) * self.share


def wrong_bills(
    record: Record, states: Iterable[Json], jobs: "NodeUse", tiers: Mapping[str, TierFacts]
) -> list[str]:
    """Return what is wrong in the ledgers of a job, empty if nothing is. `states` are those of its timeline, in order.

    `jobs`: those that may have pods on its nodes. All pods of a run request the same.
    """
    kept = [
        state
        for each in states
        if isinstance(state := read_state(json.dumps(each)), JobState) and state.ledger is not None
    ]
    if not kept:
        return ["it has no ledger that can be read"]
    last = kept[-1].ledger
    assert last is not None
    problems = [*_sums(kept[-1], last), *_prices(last, tiers)]
    spans = spans_of(record, jobs)
    for before, after in pairwise(kept):
        if before.ledger is not None and after.ledger is not None:
            problems += _between(before.ledger, after.ledger, spans, record)
    return problems


_Stay: TypeAlias = tuple["datetime", "datetime"]


class NodeUse:
    """The nodes of a run, and when which of its jobs had pods or placeholders on them."""

    def __init__(self, nodes: NodeTimeline, records: Iterable[Record]) -> None:
        self.nodes = nodes
        self._stays: dict[str, list[tuple[str, _Stay]]] = {}
        for each in records:
            for node, stays in _stays(each, nodes).items():
                self._stays.setdefault(node, []).extend((each.trace.uid, stay) for stay in stays)

    def beside(self, job: str, node: str) -> Sequence[_Stay]:
        """Return when other jobs were on a node."""
        return [stay for other, stay in self._stays.get(node, ()) if other != job]


def spans_of(record: Record, jobs: NodeUse) -> Sequence[Span]:
    """Return when the job had which node: from its first pod or reservation there until the last one is over.

    While other jobs have pods on the node, its part is that of its pods.
    """
    nodes, found = jobs.nodes, list[Span]()
    own = _stays(record, nodes)
    tainted: dict[str, list[_Stay]] = {}
    for each in nodes.taints:
        if each.job == record.trace.uid:
            tainted.setdefault(each.node, []).append((each.since, each.until or record.until))
    for node in own.keys() | tainted.keys():
        parts = own.get(node, [])
        beside = jobs.beside(record.trace.uid, node)
        changes = {at for stay in (*beside, *parts) for at in stay} if beside else set["datetime"]()
        for since, until in _joined([*parts, *tainted.get(node, ())]):
            last = min(until, nodes.gone.get(node, record.until))
            for begin, end in pairwise([since, *sorted(at for at in changes if since < at < last), last]):
                if begin < end:
                    share = _share(parts, beside, begin)
                    found.append(Span(pool=nodes.pools.get(node, ""), since=begin, until=end, share=share))
    return found


def _stays(record: Record, nodes: NodeTimeline) -> Mapping[str, Sequence[_Stay]]:
    """Return when the job had pods or placeholders on which node."""
    times: dict[str, list[_Stay]] = {}
    pods = [(each.node, each.bound_at, each.ended_at) for each in record.trace.pods.values()]
    holds = [(each.node, each.since, each.until) for each in nodes.held(record.trace.uid)]
    for node, since, until in (*pods, *holds):
        if since is not None:
            times.setdefault(node, []).append((since, until or record.until))
    return times


def _share(own: Sequence[_Stay], beside: Sequence[_Stay], at: datetime) -> float:
    here, there = (sum(since <= at < until for since, until in stays) for stays in (own, beside))
    return here / (here + there) if there else 1.0


def _joined(parts: Sequence[tuple[datetime, datetime]]) -> Iterator[tuple[datetime, datetime]]:
    """Yield the times without overlaps: a node with two pods is one node."""
    since = until = None
    for begin, end in sorted(parts):
        if since is None or until is None or begin > until:
            if since is not None and until is not None:
                yield since, until
            since, until = begin, end
        else:
            until = max(until, end)
    if since is not None and until is not None:
        yield since, until


def _between(before: Ledger, after: Ledger, spans: Sequence[Span], record: Record) -> Iterator[str]:
    since, until = before.counted_until, after.counted_until
    if until < since or after.counted_from != before.counted_from:
        yield f"its ledger of {until:%X} does not continue that of {since:%X}"
        return
    is_blind = any(since - _BLIND < kill < until for kill in record.kills)
    for pool in sorted({each.pool for each in spans} | {use.pool for use in after.uses}):
        # What a copy uses in another cluster is folded in as the controller there writes it.
        if not pool or cluster_of(pool):
            continue
        own = [each for each in spans if each.pool == pool]
        counted = _time(after, pool) - _time(before, pool)
        least, most = _bounds(own, since, until, record.lag, is_blind=is_blind)
        if not least <= counted <= most:
            yield (
                f"between {since:%X} and {until:%X} its ledger counts {counted.total_seconds():.1f} s of nodes of {pool}, "
                f"and it had {sum((each.within(since, until) for each in own), _NOTHING).total_seconds():.1f} s"
            )


def _bounds(
    spans: Sequence[Span], since: datetime, until: datetime, lag: timedelta, *, is_blind: bool
) -> tuple[timedelta, timedelta]:
    """Return how much the ledger may count between two writes: each begin and end of a node may be learned late, or sooner."""
    least = most = _NOTHING
    for each in spans:
        exact = each.within(since, until)
        slack = lag * sum(since - lag <= at <= until + lag for at in (each.since, each.until))
        least += _NOTHING if is_blind else max(_NOTHING, exact - slack)
        most += exact + slack
        if is_blind:
            # Lost while no controller could see it: it counts until one learns of it.
            most += max(_NOTHING, min(until, each.until + _BLIND) - max(each.until, since))
    return least - _ROUNDED, most + _ROUNDED


def _sums(state: JobState, ledger: Ledger) -> Iterator[str]:
    """The parts of the ledger add up to the time that it covers, and no time is in two of them."""
    ran, covered = ledger.worked + ledger.lost, ledger.counted_until - ledger.counted_from
    by_pool = sum((use.ran for use in ledger.uses), _NOTHING)
    if abs(ran - by_pool) > _ROUNDED * 100:
        yield f"it ran for {ran} in all and for {by_pool} on its pools"
    gap = covered - ran - ledger.waited
    # What a copy's ledger does not tell yet, or never will, is in none of the parts.
    may_lack = state.phase in {Phase.FINISHED, Phase.AWAY} or any(cluster_of(use.pool) for use in ledger.uses)
    if gap < -_ROUNDED * 100 or (not may_lack and gap > _ROUNDED * 100):
        yield f"its ledger covers {covered}, and it ran for {ran} and waited for {ledger.waited}"


def _prices(ledger: Ledger, tiers: Mapping[str, TierFacts]) -> Iterator[str]:
    for use in ledger.uses:
        tier = tiers.get(use.pool)
        if tier is None:
            continue
        due = tier.price * (use.node_time / _HOUR)
        if abs((use.cost or 0.0) - due) > 1e-6 + 1e-4 * due:
            yield f"{use.node_time} of {use.pool} at {tier.price} per hour cost {due:.6f}, and its ledger says {use.cost}"
        if use.capacity is not tier.capacity:
            yield f"its ledger calls {use.pool} {use.capacity}"


def _time(ledger: Ledger, pool: str) -> timedelta:
    return next((use.node_time for use in ledger.uses if use.pool == pool), PoolUse(pool=pool).node_time)
