"""The invariants of a fault run: every job follows the controller's own state machine. Pure.

The checker replays the complete record of a job through the state machine. The controller observed less of it, since it
and the API server were killed: its actions must be the decisions on the complete record, at the same time or later.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import Final

from pulumi_holdfast.controller.jobs.actions import Resume, Suspend
from pulumi_holdfast.controller.jobs.observation import ContendingGang, Observation
from pulumi_holdfast.controller.jobs.state import JobState, Phase, Purpose
from pulumi_holdfast.controller.state_machine.decision import decide
from pulumi_holdfast.controller.state_machine.tier_visit import pause_length
from pulumi_holdfast.ladder.ladder import Policy
from pulumi_holdfast.rehearsal.timeline.traces import JobChange, JobTrace, PodTrace
from tests.soak.fault_proxy import Fault
from tests.soak.faults.observations import Record, alive, evidence, losses_by, observed

#: How long there may be no leader after a kill: the lease expires after 15 s; the rest is for a busy computer.
BLIND: Final = timedelta(minutes=2)
_INSTANT: Final = timedelta(microseconds=1)
_SECOND: Final = timedelta(seconds=1)


@dataclass(kw_only=True)
class PossibleKnowledge:
    """The states that the controller may have had for a job in the last minutes, since its watches lag."""

    record: Record
    _lately: list[tuple[datetime, JobState]] = field(default_factory=list[tuple[datetime, JobState]])

    def learn(self, at: datetime, kept: JobState) -> None:
        """Record the state until a time."""
        oldest = at - max(BLIND, self.record.lag)
        self._lately = [*(each for each in self._lately if each[0] >= oldest), (at, kept)]

    def possible(self, at: datetime, kept: JobState) -> Iterator[tuple[datetime, JobState]]:
        """Yield each time whose facts may have been the latest the controller knew, with its possible state.

        A wait ends when the controller learns that a pod is bound, and begins when it learns that one is not. Of two
        watches either one may be ahead.
        """
        late = self.late(at)
        earlier = [(then - _INSTANT, before) for then, before in reversed(self._lately) if at - then <= late]
        sooner = [(at + seconds, kept) for seconds in _seconds(self.record.lag)]
        moments = [(at, kept), *sooner, *earlier]
        yield from moments
        for then, before in moments:
            for waiting_since in _later(before, then, late):
                yield then, replace(before, waiting_since=waiting_since)

    def late(self, at: datetime) -> timedelta:
        """How old the known facts may have been: a killed controller learns nothing."""
        blind_since = [kill for kill in self.record.kills if at - BLIND < kill < at]
        return max([self.record.lag, *(at - kill for kill in blind_since)])


def _later(kept: JobState, then: datetime, late: timedelta) -> Iterator[datetime]:
    begun = kept.waiting_since
    if begun is None:
        return
    yield from (begun + seconds for seconds in _seconds(late) if begun + seconds <= then)


def _seconds(length: timedelta) -> Iterator[timedelta]:
    return (number * _SECOND for number in range(1, int(length / _SECOND) + 1))


# The watches of the recorder and of the controller differ in time, and the API server writes whole seconds.
_SLACK: Final = timedelta(seconds=3)


def deviations(record: Record, policy: Policy) -> list[str]:
    """Return the differences between what the controller did and what the state machine decides, empty if there are none.

    No event records the loss of a node: a restarted controller notices it later, or not at all if the pod is gone. Its
    actions are correct if they are correct for any time at which it may have noticed. Nothing remains of an evicted worker of
    a RayJob either, which no restart counts: a controller that is killed in the same moments takes that with it.
    """
    if record.is_paced:
        # When it moves follows from its deadline and its work: late_by_fault judges that by what comes of it.
        return _deviations_of_a_paced_job(record, policy)
    problems = _deviations(record, policy)
    for known in (*_noticed_late(record), *_unseen(record)) if problems else ():
        if not _deviations(known, policy):
            return []
    return problems


def _deviations_of_a_paced_job(record: Record, policy: Policy) -> list[str]:
    last = record.trace.last
    if last.outcome:
        return [] if last.outcome == "Completed" else [f"it is {last.outcome}"]
    if last.suspended:
        return [f"it is suspended ({last.phase})"]
    return [] if policy.rank_of(last.pool) is not None else ["it has no state"]


def _noticed_late(record: Record) -> Iterator[Record]:
    nodes = sorted({pod.node for pod in record.trace.pods.values() if pod.node in record.vanished})
    for change in record.trace.changes:
        missed = [node for node in nodes if _is_missed(record, record.vanished[node], change.at)]
        for several in ([missed] if len(missed) > 1 else []) + [[node] for node in missed]:
            for looked_at in (change.at, change.at + record.lag):
                yield replace(record, noticed=dict.fromkeys(several, looked_at))


def _unseen(record: Record) -> Iterator[Record]:
    pods = record.trace.pods.values()
    if not any(pod.is_head for pod in pods):
        return
    unseen = [pod.uid for pod in pods if _is_unseen(record, pod)]
    for several in ([unseen] if len(unseen) > 1 else []) + [[uid] for uid in unseen]:
        yield replace(record, unseen=frozenset(several))


def _is_unseen(record: Record, pod: PodTrace) -> bool:
    """Whether a pod was evicted just before a kill or after it, and was gone before another controller led."""
    lost, ended = pod.lost_at, pod.ended_at
    if lost is None or ended is None:
        return False
    return any(kill - record.lag < lost and ended < kill + BLIND for kill in record.kills)


def _is_missed(record: Record, vanished_at: datetime, at: datetime) -> bool:
    """Whether a killed controller may not have noticed the loss of a node until then."""
    is_soon = vanished_at < at < vanished_at + BLIND
    return is_soon and any(vanished_at - BLIND < kill < at for kill in record.kills)


def _deviations(record: Record, policy: Policy) -> list[str]:
    model = _Model(record=record, policy=replace(policy, return_after=None), returns=policy.return_after)
    before: JobChange | None = None
    for at, change in _moments(record):
        if change.outcome:
            return [] if change.outcome == "Completed" else [f"it is {change.outcome}"]
        model.take(before, change, at)
        before = change
    model.end()
    return model.problems


def _moments(record: Record) -> Iterator[tuple[datetime, JobChange]]:
    """Yield each time at which something changed, with the state of the job."""
    trace = record.trace
    times = {change.at for change in trace.changes} | {record.until}
    for pod in trace.pods.values():
        times |= {at for at in (pod.born_at, pod.bound_at, pod.leaving_at, pod.ended_at, pod.lost_at) if at}
    times |= {loss.at for loss in losses_by(record, record.until)}
    times |= {at for pod in trace.pods.values() if (at := record.vanished.get(pod.node)) and pod.is_alive(at)}
    changes = iter(trace.changes)
    change, following = None, next(changes, None)
    for at in sorted(times):
        while following is not None and following.at <= at:
            change, following = following, next(changes, None)
        if change is not None:
            yield at, change


@dataclass(kw_only=True)
class _WrittenWait:
    """When the wait began by the controller's annotation, as far as the record does not contradict that.

    The write that begins a wait is seen after its decision: its wait cannot have begun before what was seen before the write.
    """

    lag: timedelta
    since: datetime | None = None
    _seen_until: datetime | None = None

    def learn(self, at: datetime, change: JobChange) -> None:
        """Take what was seen at a time."""
        written = change.waiting_since
        earliest = self.since or (self._seen_until or at) - self.lag
        self.since = written if written is not None and earliest <= written <= at else None
        self._seen_until = at

    def apply(self, kept: JobState) -> JobState:
        """Return a state with the wait as the controller wrote it."""
        return replace(kept, waiting_since=self.since) if self.since is not None else kept


@dataclass(kw_only=True)
class _Model:
    record: Record
    policy: Policy
    returns: timedelta | None
    state: JobState | None = None
    problems: list[str] = field(default_factory=list[str])

    def __post_init__(self) -> None:
        self.knowledge = PossibleKnowledge(record=self.record)
        self.written_wait = _WrittenWait(lag=self.record.lag)

    def take(self, before: JobChange | None, change: JobChange, at: datetime) -> None:
        """Advance the model to one time."""
        was_suspended = before is not None and before.suspended
        if change.suspended and not was_suspended and before is not None:
            self._left(before, change, at)
        elif was_suspended and not change.suspended:
            self._resumed(change, at)
        elif not change.suspended:
            # The record shows when the controller acts; until then the job stays, and losses count.
            staying = replace(self._seen(change, at), can_be_suspended=False)
            if self.state is not None:
                self.knowledge.learn(at, self.state)
            self.state = self._decided(staying, change)
        self.written_wait.learn(at, change)

    def end(self) -> None:
        """Compare the final state with the decision of the state machine."""
        last = self.record.trace.last
        if last.suspended:
            self.problems.append(f"it is suspended ({last.phase})")
            return
        if self.state is None:
            self.problems.append("it has no state")
            return
        if (self.state.pool, self.state.moves) != (last.pool, last.moves):
            self.problems.append(
                f"it is on {last.pool} after {last.moves} moves, and should be on {self.state.pool} after {self.state.moves}"
            )
        seen = self._seen(last, self.record.until)
        leaving = _suspension(decide(self.state, seen, self.policy).actions)
        if leaving is not None:
            self.problems.append(f"it is on {last.pool} and should have moved to {leaving.pool}")

    def _left(self, before: JobChange, change: JobChange, at: datetime) -> None:
        state = self.state
        if state is None:
            self.problems.append(f"suspended at {at:%X} before it had a state")
            return
        written = self.written_wait.apply(state)
        possible = (self.knowledge.possible(at, kept) for kept in (state, written))
        for then, kept in chain.from_iterable(possible):
            seen = replace(self._seen(before, then), now=at + _SLACK)
            for attempt in (seen, replace(seen, contending_gang=_ELDER)):
                decision = decide(kept, attempt, self.policy)
                leaving = _suspension(decision.actions)
                if leaving is not None and leaving.pool == change.pool:
                    self.state = decision.state
                    return
        rank = self.policy.rank_of(change.pool)
        if rank is None or rank >= state.rank or not self._may_return(state, at):
            self.problems.append(
                f"at {at:%X} it left {before.pool} for {change.pool}, though its tier had cost "
                f"{state.evictions + state.unexplained + state.application_failures} outages and {_waited(written, at)}"
            )
        self.state = replace(
            state,
            phase=Phase.SUSPENDING,
            purpose=Purpose.FAILBACK,
            pool=change.pool,
            rank=state.rank if rank is None else rank,
            suspended_at=at,
            waiting_since=None,
        )

    def _seen(self, change: JobChange, at: datetime) -> Observation:
        return observed(self.record, change, at, first=self.policy.tiers[0].name)

    def _may_return(self, state: JobState, at: datetime) -> bool:
        # The visit began when the controller decided it; a cut-off controller writes that, and it is seen, later.
        since = state.since - self.knowledge.late(state.since)
        return self.returns is not None and at - since >= self.returns - _SLACK

    def _resumed(self, change: JobChange, at: datetime) -> None:
        left = [pod.name for pod in alive(self.record, at - _SLACK) if pod.is_alive(at + _SLACK)]
        if left:
            self.problems.append(f"resumed at {at:%X} with {', '.join(left)} left")
        state = self.state
        if state is None:
            return
        empty = replace(
            self._seen(change, at),
            suspended=True,
            is_suspension_complete=True,
            pods_remaining=0,
            pods_placed=0,
            pool=state.pool,
        )
        state = _paused(state)
        for late in (timedelta(0), _SLACK):
            decision = decide(state, replace(empty, now=at + late), self.policy)
            state = decision.state or state
            if any(isinstance(action, Resume) for action in decision.actions):
                self.state = state
                return
        self.problems.append(f"resumed on {change.pool} at {at:%X} out of {state.phase}")

    def _decided(self, observation: Observation, change: JobChange) -> JobState | None:
        if self.state is None and not change.phase:
            # The model begins with the first reconcile: earlier losses count on no tier.
            return None
        return decide(self.state, observation, self.policy).state


_ELDER: Final = ContendingGang(uid="", created=datetime.min.replace(tzinfo=UTC))


def _paused(state: JobState) -> JobState:
    """Return the state of a job that yields after its last pod is gone, shortly after its suspension."""
    if state.purpose is not Purpose.YIELD or state.suspended_at is None:
        return state
    until = state.suspended_at + pause_length(state)
    return replace(state, phase=Phase.PAUSED, resume_at=until, yields=state.yields + 1)


def _suspension(actions: tuple[object, ...]) -> Suspend | None:
    return next((action for action in actions if isinstance(action, Suspend)), None)


def _waited(state: JobState, at: datetime) -> str:
    if state.waiting_since is None:
        return "it had its nodes"
    return f"it had waited for {(at - state.waiting_since + state.waited).total_seconds():.0f} s"


@dataclass(frozen=True, kw_only=True)
class FaultRunResult:
    """The jobs by tier or outcome, how much happened, and every violated invariant.

    `deaths` counts kills of controllers, `writes` those of home's controller. `seen` are the timelines of all jobs if one is
    violated: jobs share nodes. Of two clusters: `transfers` and `returns` count moves between them, `looks` the comparisons of
    the pods of both, `requests` those between them by their fault.
    """

    places: Mapping[str, int]
    moves: int
    restarts: int
    ledgers: int
    deaths: int
    problems: tuple[str, ...]
    seen: Mapping[str, str]
    writes: int = 0
    transfers: int = 0
    returns: int = 0
    looks: int = 0
    requests: Mapping[Fault, int] = field(default_factory=dict[Fault, int])


def result_of(
    traces: Sequence[JobTrace], problems: Sequence[str], seen: Mapping[str, str], *, ledgers: int, deaths: int
) -> FaultRunResult:
    """Return the result of a run; `seen` are the timelines of all jobs."""
    return FaultRunResult(
        places=dict(sorted(Counter(trace.last.outcome or trace.last.pool for trace in traces).items())),
        moves=sum(trace.last.moves for trace in traces),
        restarts=sum(trace.last.restarts for trace in traces),
        ledgers=ledgers,
        deaths=deaths,
        problems=tuple(problems),
        seen=seen if problems else {},
    )


def check_records(
    records: Sequence[Record],
    policy: Policy,
    *,
    overlaps: Sequence[object],
    others: Sequence[str] = (),
    deaths: int,
    writes: int,
) -> FaultRunResult:
    """Check every job against the state machine.

    `overlaps` are gangs of one job that ran together, `others` problems that were found elsewhere.
    """
    wrong = [f"{each.trace.name}: {problem}" for each in records for problem in deviations(each, policy)]
    problems = [*wrong, *(f"two gangs at once: {each}" for each in overlaps), *others]
    traces = [each.trace for each in records]
    written = sum(len(trace.ledgers) for trace in traces)
    seen = {each.trace.name: evidence(each) for each in records if problems}
    return replace(result_of(traces, problems, seen, ledgers=written, deaths=deaths), writes=writes)
