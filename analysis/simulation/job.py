"""A simulated job: its pods and nodes as numbers, and what is kept of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from holdfast.fallback.reservations.pod_shapes import PodShape
from holdfast.fallback.state_machine.actions import (
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
from holdfast.fallback.state_machine.observation import Cause, Loss, Outcome
from holdfast.fallback.state_machine.state import JobState, UnreadableState, read_state, write_state

_NOTHING = timedelta(0)
_REMEMBERED = 8


def completion(job: SimulatedJob, now: datetime) -> datetime | None:
    """When the job completes if nothing befalls it."""
    works_from = job.works_from
    if works_from is None or job.plan.work is None or job.outcome is not None:
        return None
    return max(works_from, now) + job.plan.work - job.progress


def work(job: SimulatedJob, start: datetime, end: datetime) -> None:
    """Let the job make the progress of a time in which nothing changes."""
    works_from = job.works_from
    if works_from is not None:
        job.placed_for += end - start
        job.progress += max(_NOTHING, end - max(start, works_from))


def evict(job: SimulatedJob, pods: int, now: datetime) -> None:
    """Lose pods to a reclaim: the gang restarts on what is left, from its latest checkpoint."""
    job.restarts += 1
    lost = Loss(
        pod=f"{job.plan.uid}/{job.restarts}/{pods}", at=now, cause=Cause.EVICTION, pool=job.nodes.pool
    )
    # Nobody sees for ever what became of a pod, and a long replay would carry all of them along.
    job.losses = [*job.losses[-_REMEMBERED:], lost]
    if job.plan.checkpoint_every is not None:
        since_checkpoint = job.progress % job.plan.checkpoint_every
        job.progress -= since_checkpoint
        job.lost += since_checkpoint
    job.placed_at = None


def finish(job: SimulatedJob, now: datetime) -> None:
    """End the job well: its nodes are paid for no longer."""
    job.outcome = Outcome.COMPLETED
    job.finished_at = now
    job.placed_at = None
    job.nodes = Nodes(pool=job.nodes.pool)


_AT_ONCE = timedelta(0)


@dataclass(frozen=True, kw_only=True)
class JobPlan:
    """What a job is before it runs.

    `pods`: its gang, one node each. `work`: how long it runs if nothing befalls it; None for ever. `boot`: how long a
    node needs until it is there. `restart`: from the last pod's node to the first new step. `grace`: how long pods
    take to terminate. `checkpoint_every`: what an eviction costs at most; None: nothing is lost, and a move loses
    nothing either way, as a suspended job writes a checkpoint on SIGTERM.
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


@dataclass(kw_only=True)
class Nodes:
    """Nodes in one pool: those that are there, and when those that were bought will be."""

    pool: str
    there: int = 0
    booting: list[datetime] = field(default_factory=list[datetime])

    @property
    def taken(self) -> int:
        """How many of the pool's nodes these are."""
        return self.there + len(self.booting)

    def come(self, now: datetime) -> None:
        """Count those that have booted by now among those that are there."""
        self.there += sum(at <= now for at in self.booting)
        self.booting = [at for at in self.booting if at > now]

    def lose(self, count: int) -> int:
        """Lose so many, those first that are still booting; return how many were there."""
        unborn = min(count, len(self.booting))
        self.booting = self.booting[: len(self.booting) - unborn]
        lost = min(count - unborn, self.there)
        self.there -= lost
        return lost


@dataclass(kw_only=True)
class SimulatedJob:
    """A job as it stands.

    `leaving`: the nodes of the pods that still terminate, until `left_at`. `held`: the nodes of its placeholders, kept
    while tainted after the pods themselves have gone; `placeholders`: how many of these there are. `lost`: work that
    had to be done again. `placed_for`: how long it has had all of its nodes, restarts included.
    """

    plan: JobPlan
    nodes: Nodes
    state: JobState | UnreadableState | None = None
    suspended: bool = False
    leaving: Nodes | None = None
    left_at: datetime | None = None
    restarts: int = 0
    losses: list[Loss] = field(default_factory=list["Loss"])
    outcome: Outcome | None = None
    finished_at: datetime | None = None
    held: Nodes | None = None
    placeholders: int = 0
    is_tainted: bool = False
    progress: timedelta = _AT_ONCE
    lost: timedelta = _AT_ONCE
    placed_at: datetime | None = None
    placed_for: timedelta = _AT_ONCE

    @property
    def shapes(self) -> tuple[PodShape, ...]:
        """What its gang asks for."""
        return (PodShape(count=self.plan.pods, requests={}),)

    @property
    def is_placed(self) -> bool:
        """Whether every pod has a node."""
        return not self.suspended and self.nodes.there >= self.plan.pods

    @property
    def works_from(self) -> datetime | None:
        """Since when, or from when on, it makes progress; None while it has not all of its nodes."""
        return None if self.placed_at is None else self.placed_at + self.plan.restart

    @property
    def occupied(self) -> tuple[Nodes, ...]:
        """All nodes that are paid for on its account."""
        return tuple(each for each in (self.nodes, self.leaving, self.held) if each is not None)


def carry_out(job: SimulatedJob, action: Action, now: datetime) -> None:
    """Do what an action says.

    Simulated jobs do not listen for requests, have no child Jobs, and their pods end in time, so the actions about
    those have nothing to do.
    """
    if isinstance(action, WriteState | Suspend | Resume | Recreate):
        # By way of the text, as a real job's would be.
        job.state = read_state(write_state(action.state))
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
