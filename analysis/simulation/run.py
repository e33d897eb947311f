"""Running simulated jobs through time: capacity comes and goes, and each look goes through `decide`."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Final, Protocol

from holdfast.analysis.simulation.job import (
    JobPlan,
    Nodes,
    SimulatedJob,
    carry_out,
    completion,
    evict,
    finish,
    work,
)
from holdfast.fallback.state_machine.decision import decide
from holdfast.fallback.state_machine.observation import ContendingGang, Observation, Reservation

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from holdfast.fallback.policy.policy import NoPolicy, Policy
    from holdfast.fallback.state_machine.events import JobEvent

# More than any job asks for: a pool that never says no.
ENDLESS: Final = 1_000_000


class Availability(Protocol):
    """What a market or a test says of capacity; piecewise constant."""

    def nodes(self, pool: str, at: datetime) -> int:
        """How many nodes the pool can have in all."""
        ...

    def next_change(self, at: datetime) -> datetime | None:
        """When any pool's number changes next after a time; None for never."""
        ...


@dataclass(frozen=True, kw_only=True)
class Steps:
    """Availability as steps: for each pool, times in order, and from each on how many nodes. None before the first.

    A pool that is not named is endless.
    """

    pools: Mapping[str, Sequence[tuple[datetime, int]]]

    def nodes(self, pool: str, at: datetime) -> int:
        """How many nodes the pool can have in all."""
        steps = self.pools.get(pool)
        if steps is None:
            return ENDLESS
        place = bisect_right(steps, at, key=lambda step: step[0])
        return steps[place - 1][1] if place else 0

    def next_change(self, at: datetime) -> datetime | None:
        """When any pool's number changes next after a time; None for never."""
        ahead: list[datetime] = []
        for steps in self.pools.values():
            place = bisect_right(steps, at, key=lambda step: step[0])
            if place < len(steps):
                ahead.append(steps[place][0])
        return min(ahead, default=None)


def observed(job: SimulatedJob, jobs: Sequence[SimulatedJob], now: datetime) -> Observation:
    """The job among the others."""
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
        contending_gang=max(
            (
                ContendingGang(uid=other.plan.uid, created=other.plan.created)
                for other in jobs
                if other is not job and _is_rival(other, job)
            ),
            default=None,
        ),
    )


def _reservation(job: SimulatedJob) -> Reservation | None:
    if job.held is None:
        return None
    placed = min(job.held.there, job.placeholders)
    return Reservation(
        pool=job.held.pool, pods=job.placeholders, placed=placed, tainted=placed if job.is_tainted else 0
    )


def _is_rival(other: SimulatedJob, job: SimulatedJob) -> bool:
    waits = not other.suspended and 0 < other.nodes.there < other.plan.pods
    return waits and other.nodes.pool == job.nodes.pool


# A job that is still not at rest after so many looks at one moment never will be.
_MOST_LOOKS: Final = 50


@dataclass(frozen=True, kw_only=True)
class Use:
    """So many nodes of a pool that were paid for during a time, booting ones included."""

    uid: str
    pool: str
    nodes: int
    start: datetime
    end: datetime


@dataclass(frozen=True, kw_only=True)
class Said:
    """What was said of a job, and when."""

    at: datetime
    uid: str
    report: JobEvent


@dataclass(kw_only=True)
class Simulation:
    """Jobs, where they stand at `now`, which nodes were paid for, and all that was said but standing reports."""

    policy: Policy | NoPolicy
    availability: Availability
    now: datetime
    jobs: tuple[SimulatedJob, ...]
    uses: list[Use] = field(default_factory=list[Use])
    said: list[Said] = field(default_factory=list[Said])
    wakes: dict[str, datetime | None] = field(default_factory=dict[str, datetime | None])

    def run(self, until: datetime) -> None:
        """Advance to a time, or to when every job has finished."""
        self._settle()
        while self.now < until and any(job.outcome is None for job in self.jobs):
            self._pass(min([*self._times_ahead(), until]))
            self._settle()

    def _times_ahead(self) -> Iterator[datetime]:
        times = [self.availability.next_change(self.now), *self.wakes.values()]
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
        """Let everything happen that happens now: nodes come and go, and each job is looked at until none is touched."""
        for _ in range(_MOST_LOOKS):
            for job in self.jobs:
                self._move_nodes(job)
            touched = [job for job in self.jobs if self._look(job)]
            if not touched:
                return
        raise RuntimeError(f"jobs do not come to rest at {self.now}")

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
            job.placed_at = (job.placed_at or self.now) if job.is_placed else None

    def _fill(self, job: SimulatedJob, nodes: Nodes, wanted: int) -> int:
        """Give nodes what the pool has for them; return how many of those that were there it took away."""
        nodes.come(self.now)
        others = [each for other in self.jobs for each in other.occupied if each is not nodes]
        taken = sum(each.taken for each in others if each.pool == nodes.pool)
        room = max(0, self.availability.nodes(nodes.pool, self.now) - taken)
        lost = nodes.lose(max(0, nodes.taken - room))
        bought = max(0, min(wanted, room) - nodes.taken)
        nodes.booting += [self.now + job.plan.boot] * bought
        nodes.come(self.now)
        return lost

    def _look(self, job: SimulatedJob) -> bool:
        """Look at a job once and do what is decided; return whether that was anything."""
        seen = observed(job, self.jobs, self.now)
        decision = decide(job.state, seen, self.policy)
        self.wakes[job.plan.uid] = decision.requeue_at
        said = [report for report in decision.events if not report.is_standing]
        self.said += [Said(at=self.now, uid=job.plan.uid, report=report) for report in said]
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
    """Run jobs from a time until another, or until all have finished. The same arguments give the same run."""
    jobs = tuple(SimulatedJob(plan=plan, nodes=Nodes(pool=plan.pool)) for plan in plans)
    simulation = Simulation(policy=policy, availability=availability, now=start, jobs=jobs)
    simulation.run(until)
    return simulation
