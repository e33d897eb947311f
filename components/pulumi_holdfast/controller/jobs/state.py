"""The state that is recorded for a job between two reconciliations, in the annotation `fallback.holdfast.dev/state`."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from pulumi_holdfast.ladder.labels import CapacityType
from pulumi_holdfast.ladder.ladder import cluster_of, home_pool

#: The longest text of a refusal: an Event's message has at most 1,024 characters.
LONGEST_REFUSAL: Final = 800


class Phase(StrEnum):
    """The phase of a job.

    The controller has suspended it in SUSPENDING, PAUSED, AWAY, GIVEN_UP and REFUSED, and in no other phase.
    """

    WAITING = "Waiting"  #: for nodes: not every expected pod has one, and the tier's timeout runs
    RUNNING = "Running"  #: every expected pod has had a node
    SUSPENDING = "Suspending"  #: moving to another tier, or restarting on the same one; its pods terminate
    PAUSED = "Paused"  #: suspended until `resume_at`, since it yielded nodes to another gang
    AWAY = "Away"  #: on a tier in another cluster, where a copy of it runs or waits for nodes
    STOPPED = "Stopped"  #: suspended by another client, which must resume it
    GIVEN_UP = "GivenUp"  #: suspended permanently because the policy's limit for the last tier is spent
    REFUSED = "Refused"  #: suspended until it is judged again, because it could not run to its end
    FINISHED = "Finished"  #: completed or failed


class Purpose(StrEnum):
    """Why a job is being suspended."""

    FAILOVER = "Failover"  #: the tier's limits are spent, or its capacity does not come
    FAILBACK = "Failback"  #: a better tier's capacity is reserved for the job
    YIELD = "Yield"  #: two half-placed gangs blocked each other
    RESTART = "Restart"  #: its head is lost, and its operator would wait for it forever


class OutageKind(StrEnum):
    """The cause that an outage is counted under."""

    EVICTION = "Eviction"
    APPLICATION = "Application"
    UNEXPLAINED = "Unexplained"


class FailbackStage(StrEnum):
    """The stage of a failback."""

    RESERVING = "Reserving"  #: placeholders are being created on the better tier
    TAINTING = "Tainting"  #: all placeholders have nodes, which are being tainted
    CHECKPOINTING = "Checkpointing"  #: the job was asked to checkpoint
    MOVING = "Moving"  #: the job is moving onto the reserved nodes


@dataclass(frozen=True, kw_only=True)
class FailbackAttempt:
    """A failback under way: its target pool, its stage, when it started, when a checkpoint was requested."""

    pool: str
    stage: FailbackStage
    since: datetime
    requested_at: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class TimedFailure:
    """A counted outage and when it was counted, by the controller's clock; recorded on a ladder with a `failureWindow`."""

    kind: OutageKind
    at: datetime


@dataclass(frozen=True, kw_only=True)
class Pace:
    """How far a job with a deadline has come.

    `work_done`: without the current run, or up to the last recorded report. `counts_from`: from this time the current run
    adds to it; None while no gang runs. `progress`: the last recorded report, a share of the work. `interruptions` of the
    job so far, on any tier. `is_late`: the deadline cannot be kept any more.
    """

    work_done: timedelta = timedelta(0)
    counts_from: datetime | None = None
    progress: float | None = None
    interruptions: int = 0
    is_late: bool = False


@dataclass(frozen=True, kw_only=True)
class PoolUse:
    """What a job has used of one pool.

    `node_time`: the time of its nodes, added up over the nodes, with those that were reserved or whose pods terminated.
    `ran`: for how long all of its pods had nodes there. `cost`: in the unit of the tiers' prices; None if no price is known.
    """

    pool: str
    capacity: CapacityType | None = None
    node_time: timedelta = timedelta(0)
    ran: timedelta = timedelta(0)
    cost: float | None = None

    @property
    def is_elsewhere(self) -> bool:
        """Whether the pool is in another cluster, whose controller counts its use."""
        return bool(cluster_of(self.pool))


@dataclass(frozen=True, kw_only=True)
class Ledger:
    """What a job has used and spent so far, from `counted_from` until `counted_until`.

    `uses`: of each pool. `worked`: the work that is done. `lost`: the rest of the time in which all of its pods had nodes:
    restarts and repeated work. `waited`: without all of its nodes, including moves. Time in which its user or the controller
    has stopped the job is in none of them. `starting`: what remains of the cost of the current start. `gang_time`: the
    node time of whole gangs, without reservations and partly placed gangs. `copied`: what it includes of the ledger of `copy`.
    """

    counted_from: datetime
    counted_until: datetime
    uses: tuple[PoolUse, ...] = ()
    worked: timedelta = timedelta(0)
    lost: timedelta = timedelta(0)
    waited: timedelta = timedelta(0)
    starting: timedelta = timedelta(0)
    gang_time: timedelta = timedelta(0)
    copy: str = ""
    copied: Ledger | None = None

    @property
    def cost(self) -> float | None:
        """What the job has cost; None if no price is known."""
        costs = [use.cost for use in self.uses if use.cost is not None]
        return sum(costs) if costs else None

    def ran_on(self, capacity: CapacityType) -> timedelta:
        """For how long the whole job had nodes of a capacity type."""
        return sum((use.ran for use in self.uses if use.capacity is capacity), timedelta(0))

    def cost_of(self, capacity: CapacityType) -> float:
        """What nodes of a capacity type have cost, as far as their prices are known."""
        return sum(use.cost or 0.0 for use in self.uses if use.capacity is capacity)


@dataclass(frozen=True, kw_only=True)
class JobState:
    """Everything that is recorded for one job.

    `uid`: the job that the state belongs to: a manifest that was exported and applied again carries its old annotation.
    `pool`, `rank`: the tier the job is on, or will be resumed on, by its pool; and the tier's rank in the ladder when it
    was entered, to continue from if the tier is removed.
    `since`: when this tier visit began. `waiting_since`: since when a pod has no node, None if all have one; `waited`: the
    length of the wait before that, when a pause interrupted it.
    `evictions`, `application_failures`, `unexplained`: outages counted in this visit, by cause; unexplained ones are
    restarts whose cause no replica observed. `failures`: when each of them was counted, on a ladder with a `failureWindow`:
    older ones are removed and count no more. `outage_kind`: the cause of the last outage; `outage_at`: its first loss, by
    the clock that reported it, None if no loss was observed; `outage_counted_at`: when it was counted, by the controller's
    clock; `outage_pod_created_at`: when the pod of that loss was created. `eviction_at`: the first loss of the last wave
    of evictions, by the clock of losses. `losses_counted_until`: losses up to this time, by the same clock, are done.
    `restarts`, `disrupted_restarts`: the operator's counters as far as they are accounted for; `restart_expected`: the
    last outage's own restart is not in them yet.
    `resumed_at`: when the controller last resumed it. `head_restarts`: how many of this visit's resumptions were for a
    lost head.
    `purpose`: why it is being suspended; `suspended_at`: since when, kept until its pods have nodes again; `operator_status`:
    what its operator had reported when the update that suspends it was made, see Observation; empty if that is not known.
    `resume_at`: when a pause ends. `moves`: tiers entered so far. `yields`: pauses in this wait. `resuspensions`: how many
    times another client resumed the job during the current move. `failback`: the failback under way. `last_failback_at`: when the last one
    ended without a move. `short_failbacks`: how many failbacks in a row did not last; each doubles the wait for the next.
    `entered_by_failback`: this visit began with a failback. `recreations`: how many times the job was recreated. `refusal`: why
    it is refused. `pace`: of
    a job with a deadline. `ledger`: what the job has used. It grows with the clock, so it is written with other changes, and
    states that differ only in it are equal.
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
    failures: tuple[TimedFailure, ...] = ()
    outage_kind: OutageKind | None = None
    outage_at: datetime | None = None
    outage_counted_at: datetime | None = None
    outage_pod_created_at: datetime | None = None
    eviction_at: datetime | None = None
    losses_counted_until: datetime | None = None
    restarts: int = 0
    disrupted_restarts: int = 0
    restart_expected: bool = False
    resumed_at: datetime | None = None
    head_restarts: int = 0
    purpose: Purpose | None = None
    suspended_at: datetime | None = None
    operator_status: str = ""
    resume_at: datetime | None = None
    moves: int = 0
    yields: int = 0
    resuspensions: int = 0
    failback: FailbackAttempt | None = None
    last_failback_at: datetime | None = None
    short_failbacks: int = 0
    entered_by_failback: bool = False
    recreations: int = 0
    refusal: str = ""
    pace: Pace | None = None
    ledger: Ledger | None = field(default=None, compare=False)

    @property
    def is_elsewhere(self) -> bool:
        """Whether the tier's pool is in another cluster."""
        return bool(cluster_of(self.pool))

    @property
    def template_pool(self) -> str:
        """The tier's pool as the job's own template selects it; empty for a pool in another cluster."""
        return home_pool(self.pool)

    @property
    def has_all_nodes(self) -> bool:
        """Whether every expected pod of the job, or of its copy, has had a node."""
        return self.phase is Phase.RUNNING or (self.phase is Phase.AWAY and self.waiting_since is None)

    @property
    def suspended_by_us(self) -> bool:
        """Whether the controller made the job's suspension and must end it."""
        return self.phase in {Phase.SUSPENDING, Phase.PAUSED, Phase.AWAY, Phase.GIVEN_UP, Phase.REFUSED}


@dataclass(frozen=True, kw_only=True)
class UnreadableState:
    """An annotation that is not a state: `problem` says why.

    `resume_on`: the controller has suspended the job, and resumes it on this pool; empty for the pool that the job selects.
    None: the job's suspension counts as another client's.
    """

    problem: str
    resume_on: str | None = None
