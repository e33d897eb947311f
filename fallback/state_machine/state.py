"""What is kept of a job between two looks at it: the annotation `fallback.holdfast.dev/state`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime


class Phase(StrEnum):
    """Where a job stands. It is suspended by us in SUSPENDING, PAUSED and GIVEN_UP, and in no other phase."""

    WAITING = "Waiting"  #: for nodes: not every expected pod has one, and the tier's clock runs
    RUNNING = "Running"  #: every expected pod has had a node
    SUSPENDING = "Suspending"  #: on its way to another tier, or back to its own; its pods go
    PAUSED = "Paused"  #: suspended until `resume_at`, since it yielded nodes to another gang
    STOPPED = "Stopped"  #: suspended by somebody else, who alone resumes it
    GIVEN_UP = "GivenUp"  #: suspended for good because the policy's limit for the last tier is spent
    FINISHED = "Finished"  #: completed or failed


class Purpose(StrEnum):
    """Why a job is being suspended."""

    DOWN = "Down"  #: its tier has cost too much, or gave no capacity
    UP = "Up"  #: a better tier's capacity is held for it
    YIELD = "Yield"  #: two half-placed gangs blocked each other
    RESTART = "Restart"  #: its head is lost, and its operator would wait for it for ever


class OutageKind(StrEnum):
    """What an outage counts as."""

    EVICTION = "Eviction"
    APPLICATION = "Application"
    UNEXPLAINED = "Unexplained"


class ReturnStage(StrEnum):
    """How far a way back up has come."""

    HOLDING = "Holding"  #: placeholders are wanted on the better tier
    TAINTING = "Tainting"  #: they all have nodes, which are to be tainted
    ASKED = "Asked"  #: the job was asked to checkpoint
    MOVING = "Moving"  #: the job is being moved onto the held nodes


@dataclass(frozen=True, kw_only=True)
class ReturnAttempt:
    """A way back up under way: to which pool, how far it is, since when it is tried, when a checkpoint was asked for."""

    pool: str
    stage: ReturnStage
    since: datetime
    asked_at: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class JobState:
    """All that is kept for one job.

    `uid`: whose state this is: a manifest that was exported and applied again brings its old annotation along.
    `pool`, `rank`: the tier the job is on, or will be resumed on, by its pool; and the tier's place in the ladder
    when it was entered, to go on from if the tier has been taken out since.
    `since`: when this stay on the tier began. `waiting_since`: since when a pod lacks a node, None when none does;
    `waited`: how long before that, when the wait was broken by a pause.
    `evictions`, `application_failures`, `unexplained`: outages counted in this stay, by what they were; the last are
    restarts that nobody saw the reason of. `outage_kind`: which of the three the outage counted last is among;
    `outage_at`: its first loss, by the clock of what reported it, None where no loss was seen; `outage_seen_at`: when
    it was counted, by ours; `outage_born`: when the pod of that loss was created. `eviction_at`: the first loss of the
    last wave of evictions, by the clock of losses. `losses_until`: losses up to this time, by the same clock as theirs, belong to the past.
    `restarts`, `disrupted_restarts`: how far the operator's counters are accounted for; `restart_due`: the last
    outage's own restart has not shown in them yet.
    `resumed_at`: when it was last resumed by us. `head_restarts`: how often in this stay that was for a lost head.
    `purpose`: why it is being suspended; `suspended_at`: since when, kept until its pods have nodes again. `resume_at`: when a pause ends. `moves`: tiers
    entered so far. `yields`: pauses in this wait. `reasserted`: how often somebody resumed the job in the middle of
    the present move.
    `returning`: the way back up under way. `tried_return_at`: when the last one ended without a move. `bounces`:
    returns that did not last, one after another; each doubles the wait for the next. `returned`: this stay began with
    a return. `recreated`: times the job was made anew.
    """

    uid: str
    phase: Phase
    pool: str
    rank: int
    since: datetime
    waiting_since: datetime | None = None
    waited: timedelta = timedelta(0)
    evictions: int = 0
    application_failures: int = 0
    unexplained: int = 0
    outage_kind: OutageKind | None = None
    outage_at: datetime | None = None
    outage_seen_at: datetime | None = None
    outage_born: datetime | None = None
    eviction_at: datetime | None = None
    losses_until: datetime | None = None
    restarts: int = 0
    disrupted_restarts: int = 0
    restart_due: bool = False
    resumed_at: datetime | None = None
    head_restarts: int = 0
    purpose: Purpose | None = None
    suspended_at: datetime | None = None
    resume_at: datetime | None = None
    moves: int = 0
    yields: int = 0
    reasserted: int = 0
    returning: ReturnAttempt | None = None
    tried_return_at: datetime | None = None
    bounces: int = 0
    returned: bool = False
    recreated: int = 0

    @property
    def suspended_by_us(self) -> bool:
        """Whether the suspension that comes with this state is ours to end."""
        return self.phase in {Phase.SUSPENDING, Phase.PAUSED, Phase.GIVEN_UP}


@dataclass(frozen=True, kw_only=True)
class UnreadableState:
    """An annotation that is no state: `problem` says why. A suspension that comes with it is taken for not ours."""

    problem: str
