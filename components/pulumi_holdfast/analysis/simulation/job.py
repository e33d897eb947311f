"""A simulated job: its pods and nodes as numbers, and its state."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from pulumi_holdfast.controller.jobs.actions import (
    Action,
    CreatePlaceholders,
    DeletePlaceholders,
    Recreate,
    ReleaseReservation,
    Resume,
    Suspend,
    TaintReservedNodes,
    WriteState,
)
from pulumi_holdfast.controller.jobs.observation import Cause, JobOutcome, Loss, MaxCost
from pulumi_holdfast.controller.jobs.pod_shapes import PodShape
from pulumi_holdfast.controller.jobs.state import JobState, UnreadableState

_NOTHING = timedelta(0)
_REMEMBERED = 8


def completion(job: SimulatedJob, now: datetime) -> datetime | None:
    """The time at which the job completes without further evictions."""
    works_from = job.works_from
    if works_from is None or job.plan.work is None or job.outcome is not None:
        return None
    return max(works_from, now) + job.plan.work - job.progress


def work(job: SimulatedJob, start: datetime, end: datetime) -> None:
    """Add the progress of a time without changes."""
    works_from = job.works_from
    if works_from is not None:
        job.placed_for += end - start
        job.progress += max(_NOTHING, end - max(start, works_from))


def evict(job: SimulatedJob, pods: int, now: datetime) -> None:
    """Evict pods: the gang restarts from its latest checkpoint."""
    job.restarts += 1
    lost = Loss(
        pod=f"{job.plan.uid}/{job.restarts}/{pods}", at=now, cause=Cause.EVICTION, pool=job.nodes.pool
    )
    # Old losses are forgotten, as deleted pods are; otherwise a long replay would carry all of them.
    job.losses = [*job.losses[-_REMEMBERED:], lost]
    if job.plan.checkpoint_every is not None:
        since_checkpoint = job.progress % job.plan.checkpoint_every
        job.progress -= since_checkpoint
        job.lost += since_checkpoint
    job.placed_at = None


def finish(job: SimulatedJob, now: datetime) -> None:
    """Complete the job; its nodes are released."""
    job.outcome = JobOutcome.COMPLETED
    job.finished_at = now
    job.placed_at = None
    job.nodes = Nodes(pool=job.nodes.pool)


_AT_ONCE = timedelta(0)


@dataclass(frozen=True, kw_only=True)
class JobPlan:
    """The parameters of a job.

    `pods`: its gang, one node each. `work`: its duration without evictions; None for no end. `boot`: the start of a node.
    `restart`: from the last pod's node to the first new step. `grace`: the termination of pods. `checkpoint_every`: the
    most work that an eviction loses; None for none. A move loses no work: a suspended job writes a checkpoint on SIGTERM.
    `finish_by`, `max_cost`: the job's deadline and its limit of cost; None for none. `reports`: its program reports progress.
    """

    uid: str
    created: datetime
    pool: str
    pods: int = 1
    work: timedelta | None = None
    boot: timedelta = _AT_ONCE
    restart: timedelta = _AT_ONCE
    grace: timedelta = _AT_ONCE
    checkpoint_every: timedelta | None = None
    finish_by: datetime | None = None
    max_cost: MaxCost | None = None
    reports: bool = True


@dataclass(kw_only=True)
class Nodes:
    """The nodes of a job in one pool: those that are ready, and the times at which the others become ready."""

    pool: str
    there: int = 0
    booting: list[datetime] = field(default_factory=list[datetime])

    @property
    def taken(self) -> int:
        """The number of these nodes, including those that boot."""
        return self.there + len(self.booting)

    def come(self, now: datetime) -> None:
        """Move the nodes that have booted to those that are ready."""
        self.there += sum(at <= now for at in self.booting)
        self.booting = [at for at in self.booting if at > now]

    def lose(self, count: int) -> int:
        """Remove `count` nodes, booting ones first; return how many of them were ready."""
        unborn = min(count, len(self.booting))
        self.booting = self.booting[: len(self.booting) - unborn]
        lost = min(count - unborn, self.there)
        self.there -= lost
        return lost


@dataclass(kw_only=True)
class SimulatedJob:
    """The state of a job in the simulation.

    `leaving`: the nodes of pods that terminate until `left_at`. `held`: the nodes of its placeholders, kept while tainted
    after the placeholders are deleted; `placeholders`: their number. `lost`: repeated work. `placed_for`: the time with all
    of its nodes, restarts included. `starts`: how often it has got all of them, by pool.
    """

    plan: JobPlan
    nodes: Nodes
    state: JobState | UnreadableState | None = None
    suspended: bool = False
    leaving: Nodes | None = None
    left_at: datetime | None = None
    restarts: int = 0
    losses: list[Loss] = field(default_factory=list["Loss"])
    outcome: JobOutcome | None = None
    finished_at: datetime | None = None
    held: Nodes | None = None
    placeholders: int = 0
    is_tainted: bool = False
    progress: timedelta = _AT_ONCE
    lost: timedelta = _AT_ONCE
    placed_at: datetime | None = None
    placed_for: timedelta = _AT_ONCE
    starts: Counter[str] = field(default_factory=Counter[str])

    @property
    def shapes(self) -> tuple[PodShape, ...]:
        """The requests of its gang."""
        return (PodShape(count=self.plan.pods, requests={}),)

    @property
    def is_placed(self) -> bool:
        """Whether every pod has a node."""
        return not self.suspended and self.nodes.there >= self.plan.pods

    @property
    def works_from(self) -> datetime | None:
        """The time from which it makes progress; None while nodes are missing."""
        return None if self.placed_at is None else self.placed_at + self.plan.restart

    @property
    def occupied(self) -> tuple[Nodes, ...]:
        """All nodes that are billed for it."""
        return tuple(each for each in (self.nodes, self.leaving, self.held) if each is not None)


def carry_out(job: SimulatedJob, action: Action, now: datetime) -> None:
    """Execute an action.

    Simulated jobs ignore checkpoint requests, have no child Jobs, and their pods end in time: actions on those do nothing.
    """
    if isinstance(action, WriteState | Suspend | Resume | Recreate):
        job.state = action.state
    match action:
        case Suspend():
            _suspend(job, action.pool, now)
        case Resume():
            _resume(job, action)
        case CreatePlaceholders():
            job.held = job.held or Nodes(pool=action.pool)
            job.placeholders = job.plan.pods
        case TaintReservedNodes():
            job.is_tainted = True
        case DeletePlaceholders():
            job.placeholders = 0
        case ReleaseReservation():
            job.held, job.placeholders, job.is_tainted = None, 0, False
        case _:
            pass


def _suspend(job: SimulatedJob, pool: str, now: datetime) -> None:
    if not job.suspended:
        job.leaving, job.left_at = job.nodes, now + job.plan.grace
    job.suspended = True
    job.placed_at = None
    job.nodes = Nodes(pool=pool)


def _resume(job: SimulatedJob, action: Resume) -> None:
    job.suspended = False
    if action.tolerate_reservation and job.held is not None and job.held.pool == action.pool:
        job.nodes, job.held = job.held, Nodes(pool=action.pool)
