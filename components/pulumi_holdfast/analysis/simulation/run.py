"""Runs simulated jobs through time: capacity changes, and each reconcile calls `decide`."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final, Protocol

from pulumi_holdfast.analysis.simulation.job import (
    JobPlan,
    Nodes,
    SimulatedJob,
    carry_out,
    completion,
    evict,
    finish,
    work,
)
from pulumi_holdfast.controller.jobs.node_usage import NodeUsage, UsedNode
from pulumi_holdfast.controller.jobs.observation import (
    ContendingGang,
    Deadline,
    NodeKind,
    Observation,
    PoolStatus,
    Reservation,
)
from pulumi_holdfast.controller.jobs.state import JobState
from pulumi_holdfast.controller.state_machine.decision import decide
from pulumi_holdfast.ladder.ladder import Policy, capacity_of, tier_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pulumi_holdfast.controller.jobs.actions import JobEvent
    from pulumi_holdfast.ladder.ladder import NoPolicy

# More nodes than any job requests.
ENDLESS: Final = 1_000_000


class Availability(Protocol):
    """The capacity and the prices of pools over time; piecewise constant."""

    def nodes(self, pool: str, at: datetime) -> int:
        """The number of nodes the pool can have."""
        ...

    def price(self, pool: str, at: datetime) -> float | None:
        """What a node of the pool costs per hour; None if that is not known."""
        ...

    def next_change(self, at: datetime) -> datetime | None:
        """The next time at which the capacity or the price of any pool changes, None for never."""
        ...


@dataclass(frozen=True, kw_only=True)
class Steps:
    """Capacity as steps: for each pool, sorted times with the number of nodes from then on; 0 before the first.

    A pool that is not listed has unlimited capacity. `prices`: likewise for each pool whose price is known, None where it is
    not; a ladder has its own prices for the others.
    """

    pools: Mapping[str, Sequence[tuple[datetime, int]]]
    prices: Mapping[str, Sequence[tuple[datetime, float | None]]] = field(
        default_factory=dict[str, "Sequence[tuple[datetime, float | None]]"]
    )

    def nodes(self, pool: str, at: datetime) -> int:
        """The number of nodes the pool can have."""
        steps = self.pools.get(pool)
        if steps is None:
            return ENDLESS
        place = bisect_right(steps, at, key=lambda step: step[0])
        return steps[place - 1][1] if place else 0

    def price(self, pool: str, at: datetime) -> float | None:
        """What a node of the pool costs per hour; None if that is not known."""
        steps = self.prices.get(pool, ())
        place = bisect_right(steps, at, key=lambda step: step[0])
        return steps[place - 1][1] if place else None

    def next_change(self, at: datetime) -> datetime | None:
        """The next time at which the capacity or the price of any pool changes, None for never."""
        ahead = (
            steps[place][0]
            for steps in (*self.pools.values(), *self.prices.values())
            if (place := bisect_right(steps, at, key=lambda step: step[0])) < len(steps)
        )
        return min(ahead, default=None)


def observed(
    job: SimulatedJob,
    jobs: Sequence[SimulatedJob],
    now: datetime,
    node_time: Mapping[NodeKind, timedelta] | None = None,
    *,
    nodes: Mapping[NodeKind, int] | None = None,
    prices: Mapping[str, float | None] | None = None,
) -> Observation:
    """Return the observation of a job beside the others.

    `node_time`: since its ledger was last written. `nodes`: those that it has now. `prices`: of pools.
    """
    placed = 0 if job.suspended else min(job.nodes.there, job.plan.pods)
    is_terminating = job.leaving is not None
    return Observation(
        uid=job.plan.uid,
        created=job.plan.created,
        now=now,
        suspended=job.suspended,
        is_suspension_complete=job.suspended and not is_terminating,
        outcome=job.outcome,
        pool=job.nodes.pool,
        restarts=job.restarts,
        losses=tuple(job.losses),
        pods_expected=job.plan.pods,
        pods_placed=placed,
        pods_started=placed,
        pods_remaining=job.plan.pods if is_terminating or not job.suspended else 0,
        shapes=job.shapes,
        reservation=_reservation(job),
        pools=_pools(job, jobs, prices or {}),
        deadline=_deadline(job),
        max_cost=job.plan.max_cost,
        node_time=node_time or {},
        nodes=nodes or {},
        work_done=job.progress if job.plan.reports and job.plan.work is not None else None,
        contending_gang=max(
            (
                ContendingGang(uid=other.plan.uid, created=other.plan.created)
                for other in jobs
                if other is not job and _is_contending(other, job)
            ),
            default=None,
        ),
    )


def _pools(
    job: SimulatedJob, jobs: Sequence[SimulatedJob], prices: Mapping[str, float | None]
) -> Mapping[str, PoolStatus]:
    """The pools with their prices, and the oldest of the others that reserve capacity there."""
    found: dict[str, ContendingGang] = {}
    for other in jobs:
        pool = None if other is job else _reserving(other)
        if pool is not None:
            gang = ContendingGang(uid=other.plan.uid, created=other.plan.created)
            found[pool] = min(gang, found.get(pool, gang))
    return {pool: PoolStatus(reserving=found.get(pool), price=prices.get(pool)) for pool in {*found, *prices}}


def _reserving(job: SimulatedJob) -> str | None:
    held = job.held
    return held.pool if held is not None and job.placeholders > 0 and held.there < job.placeholders else None


def _deadline(job: SimulatedJob) -> Deadline | None:
    plan = job.plan
    if plan.finish_by is None or plan.work is None:
        return None
    return Deadline(
        finish_by=plan.finish_by, work=plan.work, progress=job.progress / plan.work if plan.reports else None
    )


def _reservation(job: SimulatedJob) -> Reservation | None:
    if job.held is None:
        return None
    placed = min(job.held.there, job.placeholders)
    return Reservation(
        pool=job.held.pool, pods=job.placeholders, placed=placed, tainted=placed if job.is_tainted else 0
    )


def _is_contending(other: SimulatedJob, job: SimulatedJob) -> bool:
    waits = not other.suspended and 0 < other.nodes.there < other.plan.pods
    return waits and other.nodes.pool == job.nodes.pool


# More reconciles at one time mean an endless loop.
_MOST_RECONCILES: Final = 50


@dataclass(frozen=True, kw_only=True)
class Use:
    """Nodes of a pool that are billed for a time, booting ones included."""

    uid: str
    pool: str
    nodes: int
    start: datetime
    end: datetime


@dataclass(frozen=True, kw_only=True)
class RecordedEvent:
    """An Event of a job, with its time."""

    at: datetime
    uid: str
    report: JobEvent


@dataclass(kw_only=True)
class Simulation:
    """The jobs at `now`, the billed nodes, and all Events except standing ones."""

    policy: Policy | NoPolicy
    availability: Availability
    now: datetime
    jobs: tuple[SimulatedJob, ...]
    uses: list[Use] = field(default_factory=list[Use])
    events: list[RecordedEvent] = field(default_factory=list[RecordedEvent])
    requeue_at: dict[str, datetime | None] = field(default_factory=dict[str, datetime | None])
    usage: NodeUsage[str] = field(default_factory=NodeUsage[str], compare=False)

    def run(self, until: datetime) -> None:
        """Advance to a time, or to when every job has finished."""
        self._settle()
        while self.now < until and any(job.outcome is None for job in self.jobs):
            self._pass(min([*self._times_ahead(), until]))
            self._settle()

    def _times_ahead(self) -> Iterator[datetime]:
        times = [self.availability.next_change(self.now), *self.requeue_at.values()]
        for job in self.jobs:
            times += [job.left_at, completion(job, self.now)]
            times += [at for nodes in job.occupied for at in nodes.booting]
        yield from (time for time in times if time is not None and time > self.now)

    def _pass(self, end: datetime) -> None:
        for job in self.jobs:
            work(job, self.now, end)
            for nodes in job.occupied:
                if nodes.taken:
                    self._charge(job, nodes, end)
        self.now = end

    def _charge(self, job: SimulatedJob, nodes: Nodes, end: datetime) -> None:
        self.uses.append(Use(uid=job.plan.uid, pool=nodes.pool, nodes=nodes.taken, start=self.now, end=end))

    def _settle(self) -> None:
        """Apply all changes of the current time: nodes come and go, and jobs are reconciled until none changes."""
        for _ in range(_MOST_RECONCILES):
            for job in self.jobs:
                self._move_nodes(job)
            touched = [job for job in self.jobs if self._reconcile(job)]
            if not touched:
                return
        raise RuntimeError(f"jobs do not settle at {self.now}")

    def _move_nodes(self, job: SimulatedJob) -> None:
        if completion(job, self.now) == self.now:
            finish(job, self.now)
        if job.left_at is not None and job.left_at <= self.now:
            job.leaving, job.left_at = None, None
        if job.held is not None:
            self._fill(job, job.held, job.placeholders)
        if not job.suspended and job.outcome is None:
            lost = self._fill(job, job.nodes, job.plan.pods)
            if lost:
                evict(job, lost, self.now)
            if job.is_placed and job.placed_at is None:
                job.starts[job.nodes.pool] += 1
            job.placed_at = (job.placed_at or self.now) if job.is_placed else None

    def _fill(self, job: SimulatedJob, nodes: Nodes, wanted: int) -> int:
        """Add or remove nodes according to the pool's capacity; return how many ready nodes were removed."""
        nodes.come(self.now)
        others = [each for other in self.jobs for each in other.occupied if each is not nodes]
        taken = sum(each.taken for each in others if each.pool == nodes.pool)
        room = max(0, self.availability.nodes(nodes.pool, self.now) - taken)
        lost = nodes.lose(max(0, nodes.taken - room))
        bought = max(0, min(wanted, room) - nodes.taken)
        nodes.booting += [self.now + job.plan.boot] * bought
        nodes.come(self.now)
        return lost

    def observed(self, job: SimulatedJob) -> Observation:
        """The observation of a job now."""
        ledger = job.state.ledger if isinstance(job.state, JobState) else None
        used = tuple(
            UsedNode(kind=self._kind(nodes.pool)) for nodes in job.occupied for _ in range(nodes.taken)
        )
        time = self.usage.update(job.plan.uid, ledger and ledger.counted_until, self.now, used)
        tiers = self.policy.tiers if isinstance(self.policy, Policy) else ()
        prices = {tier.name: self.availability.price(tier.name, self.now) for tier in tiers}
        known = {pool: price for pool, price in prices.items() if price is not None}
        return observed(
            job, self.jobs, self.now, time, nodes=Counter(node.kind for node in used), prices=known
        )

    def _kind(self, pool: str) -> NodeKind:
        tier, price = tier_of(pool, self.policy), self.availability.price(pool, self.now)
        declared = None if tier is None else tier.price
        return NodeKind(
            pool=pool, capacity=capacity_of(pool, self.policy), price=declared if price is None else price
        )

    def _reconcile(self, job: SimulatedJob) -> bool:
        """Reconcile a job once; return whether there was an action."""
        decision = decide(job.state, self.observed(job), self.policy)
        self.requeue_at[job.plan.uid] = decision.requeue_at
        events = [report for report in decision.events if not report.is_standing]
        self.events += [RecordedEvent(at=self.now, uid=job.plan.uid, report=report) for report in events]
        for action in decision.actions:
            carry_out(job, action, self.now)
        return bool(decision.actions)


def simulate(
    plans: Iterable[JobPlan],
    policy: Policy | NoPolicy,
    availability: Availability,
    *,
    start: datetime,
    until: datetime,
) -> Simulation:
    """Run jobs until a time, or until all have finished. The same arguments give the same run."""
    jobs = tuple(SimulatedJob(plan=plan, nodes=Nodes(pool=plan.pool)) for plan in plans)
    simulation = Simulation(policy=policy, availability=availability, now=start, jobs=jobs)
    simulation.run(until)
    return simulation
