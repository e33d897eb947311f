"""The invariants of a run over two clusters, by what was recorded in both: one generation at a time, and one account. Pure."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Final

from pulumi_holdfast.controller.jobs.patches import read_state
from pulumi_holdfast.controller.jobs.state import JobState, Ledger, PoolUse
from pulumi_holdfast.ladder.ladder import pool_in
from pulumi_holdfast.rehearsal.timeline.traces import JobTrace, PodTrace
from tests.soak.fault_proxy import Fault
from tests.soak.faults.invariants import FaultRunResult, result_of
from tests.soak.faults.ledgers import NodeUse, spans_of, wrong_bills
from tests.soak.faults.manifests import PODS, TIERS
from tests.soak.faults.nodes import NodeTimeline
from tests.soak.faults.observations import Record, evidence
from tests.soak.faults.plan import Side

_NOTHING: Final = timedelta(0)
_ROUNDED: Final = timedelta(milliseconds=10)
#: Copies are read each 10 s, and within a minute after a step that failed.
_UNREAD: Final = timedelta(seconds=75)
#: How long a controller that was killed or cut off may learn nothing.
_BLIND: Final = timedelta(minutes=2)


@dataclass(frozen=True, kw_only=True)
class BothSides:
    """What was recorded in both clusters, by the names of jobs.

    `cluster`: home's name for the other one; `lag`: how late watches may be.
    """

    cluster: str
    home: Mapping[str, JobTrace]
    there: Mapping[str, JobTrace]
    home_nodes: NodeTimeline
    there_nodes: NodeTimeline
    vanished: Mapping[Side, Mapping[str, datetime]]
    kills: Mapping[Side, tuple[datetime, ...]]
    lag: timedelta
    until: datetime

    def record(self, side: Side, name: str) -> Record:
        """Return the record of a job, or of its copies, one after the other."""
        traces = self.home if side is Side.HOME else self.there
        return Record(
            trace=traces[name],
            pods=PODS,
            vanished=self.vanished[side],
            until=self.until,
            kills=self.kills[side],
            lag=self.lag,
        )


def check_both(
    both: BothSides, *, others: Sequence[str], looks: int, deaths: int, requests: Mapping[Fault, int]
) -> FaultRunResult:
    """Check every job. `others`: problems that were found elsewhere."""
    home = {name: both.record(Side.HOME, name) for name in both.home}
    there = {name: both.record(Side.THERE, name) for name in both.home}
    home_jobs, jobs_there = NodeUse(both.home_nodes, home.values()), NodeUse(both.there_nodes, there.values())
    problems = [
        f"{name}: {problem}"
        for name in home
        for problem in (
            *_problems(both, home[name], there[name]),
            *wrong_bills(home[name], home[name].trace.ledgers, home_jobs, TIERS),
            *_wrong_copies(both, home[name].trace, there[name], jobs_there),
        )
    ] + [*others]
    traces = [each.trace for each in home.values()]
    seen = {
        name: f"at home\n{evidence(home[name])}there\n{evidence(there[name])}" for name in home if problems
    }
    ledgers = sum(len(both.home[name].ledgers) + len(both.there[name].ledgers) for name in both.home)
    stays = [_stays(trace) for trace in traces]
    return replace(
        result_of(traces, problems, seen, ledgers=ledgers, deaths=deaths),
        transfers=sum(begun for begun, _ in stays),
        returns=sum(ended for _, ended in stays),
        looks=looks,
        requests=requests,
    )


def _stays(trace: JobTrace) -> tuple[int, int]:
    """Return how often a job went away, and how often it was resumed at home after that."""
    away = [False, *(change.phase == "Away" for change in trace.changes)]
    steps = Counter(pairwise(away))
    return steps[False, True], steps[True, False] - bool(away[-2:] == [True, False] and trace.last.outcome)


def _problems(both: BothSides, home: Record, there: Record) -> Iterator[str]:
    last = home.trace.last
    if not home.trace.is_there:
        yield "it is lost"
    if last.outcome not in {"", "Completed"}:
        yield f"it is {last.outcome}"
    if not last.outcome and last.suspended != (last.phase == "Away"):
        yield f"it is {'suspended' if last.suspended else 'running'} ({last.phase})"
    yield from _at_once(home.trace, there.trace, both.until, both.lag)


def _at_once(home: JobTrace, there: JobTrace, until: datetime, lag: timedelta) -> Iterator[str]:
    """Yield pods of both clusters that were alive together, for longer than their watches may differ."""
    for one in home.pods.values():
        for other in there.pods.values():
            since, end = max(one.born_at, other.born_at), min(_end(one, until), _end(other, until))
            if end - since > lag:
                yield f"{one.name} ran at home and {other.name} there, from {since:%X} to {end:%X}"


def _end(pod: PodTrace, until: datetime) -> datetime:
    return pod.ended_at or until


def _wrong_copies(both: BothSides, home: JobTrace, there: Record, jobs: NodeUse) -> Iterator[str]:
    """Compare three accounts of the copies: home's ledger, the ledgers of the copies, and their nodes."""
    copies = _ledgers_by_copy(there.trace)
    own = _last_ledger(home)
    spans = spans_of(there, jobs)
    is_running = there.trace.is_there and bool(there.trace.changes)
    live = copies.pop(there.trace.uid, []) if is_running else []
    for pool in sorted({each.pool for each in spans} | {use.pool for use in _uses(copies, live)}):
        if not pool:
            continue
        least = sum((_use(found[-1], pool).node_time for found in copies.values()), _NOTHING)
        told = _use(own, pool_in(both.cluster, pool)).node_time
        most = least + (_use(live[-1], pool).node_time if live else _NOTHING)
        known = [each for each in live if each.counted_until < both.until - _UNREAD]
        least += _use(known[-1], pool).node_time if known else _NOTHING
        if not least - _ROUNDED <= told <= most + _ROUNDED:
            yield f"its ledger says {told} of {pool} there, and those of its copies from {least} to {most}"
        counted_until = live[-1].counted_until if live else both.until
        ends = [at for each in spans if each.pool == pool for at in (each.since, each.until)]
        exact = sum(
            (each.within(home.changes[0].at, counted_until) for each in spans if each.pool == pool), _NOTHING
        )
        slack = both.lag * len(ends)
        blind = _BLIND * PODS * len(both.kills[Side.THERE])
        if not exact - slack - blind <= most <= exact + slack + blind:
            yield f"the ledgers of its copies say {most} of {pool} there, and the nodes {exact} ({len(ends) // 2} times)"


def _ledgers_by_copy(trace: JobTrace) -> dict[str, list[Ledger]]:
    found: dict[str, list[Ledger]] = {}
    for each in trace.ledgers:
        state = read_state(json.dumps(each))
        if isinstance(state, JobState) and state.ledger is not None:
            found.setdefault(state.uid, []).append(state.ledger)
    return found


def _last_ledger(trace: JobTrace) -> Ledger | None:
    return next(iter(_ledgers_by_copy(trace).get(trace.uid, [])[::-1]), None)


def _uses(copies: Mapping[str, Sequence[Ledger]], live: Sequence[Ledger]) -> Iterator[PoolUse]:
    for found in (*copies.values(), live):
        if found:
            yield from found[-1].uses


def _use(ledger: Ledger | None, pool: str) -> PoolUse:
    uses = () if ledger is None else ledger.uses
    return next((use for use in uses if use.pool == pool), PoolUse(pool=pool))
