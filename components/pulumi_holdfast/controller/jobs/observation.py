"""The observation: all inputs of the state machine about a job and its surroundings at one moment."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from pulumi_holdfast.controller.jobs.state import LONGEST_REFUSAL

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from pulumi_holdfast.controller.jobs.actions import JobEvent
    from pulumi_holdfast.controller.jobs.pod_shapes import PodShape
    from pulumi_holdfast.controller.jobs.state import Ledger, Pace
from pulumi_holdfast.ladder.frozen import replace
from pulumi_holdfast.ladder.labels import CapacityType

NO_JUMP: Final = timedelta(0)

#: The permit with which a copy from another cluster may run.
GRANTED: Final = "Granted"


class Cause(StrEnum):
    """Why a pod was lost. All causes but APPLICATION are evictions."""

    EVICTION = "Eviction"  #: `DisruptionTarget`, a drain, a reclaim notice
    NODE_GONE = "NodeGone"  #: its node, NodeClaim or instance is not there any more
    UNREACHABLE = (
        "Unreachable"  #: its node has stopped answering; counts once that has lasted, see `counting`
    )
    APPLICATION = (
        "Application"  #: it failed on a healthy node, with no loss of another pod of the gang around it
    )


class NodeKind(NamedTuple):
    """The pool of a node, its capacity type and what it costs per hour, if those are known."""

    pool: str
    capacity: CapacityType | None
    price: float | None = None


class Part(StrEnum):
    """Which part of the job a pod is. A JobSet has workers only."""

    WORKER = "Worker"
    HEAD = "Head"


class JobOutcome(StrEnum):
    """How a job ended. The controller never touches a job that has ended, unless it may be recreated."""

    COMPLETED = "Completed"
    FAILED = "Failed"


@dataclass(frozen=True, kw_only=True)
class Loss:
    """One pod that was lost, but not one that the controller's suspension or the operator deleted.

    `at` is when it was lost, by the API server's clock if known. `pool` is what the pod selected: a loss on another pool
    than the job's current one is not counted. `pod_created_at`: a pod that was created after an outage belongs to the
    gang that was started after it. `grace`: how long an evicted pod of its gang may take to end. The same loss may be
    observed any number of times.
    """

    pod: str
    at: datetime
    cause: Cause
    part: Part = Part.WORKER
    pool: str | None = None
    pod_created_at: datetime | None = None
    grace: timedelta = timedelta(0)


@dataclass(frozen=True, kw_only=True)
class Reservation:
    """The placeholders and taints that exist for this job, in any pool, including those that are being deleted.

    `pods` exist, `placed` of them are bound to a ready node, and `tainted` of those are on a node with the taint that only
    this job tolerates. `nodes` have the taint or a placeholder.
    """

    pool: str
    pods: int
    placed: int
    tainted: int
    nodes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, order=True)
class ContendingGang:
    """A gang among those that want nodes of one pool; the greater one gets them last.

    `share`: how many nodes of the pool the jobs of its namespace have. Between namespaces with as many the younger gang is greater.
    """

    share: int = 0
    created: datetime
    uid: str


@dataclass(frozen=True, kw_only=True)
class Deadline:
    """When a job must have finished, and how much work it is: the duration of its training without interruptions.

    `progress`: the share of the work that the program last reported as done, 0 to 1; None if it reports nothing.
    `done_before`: the part of the work that a copy's job has done elsewhere before it.
    """

    finish_by: datetime
    work: timedelta
    progress: float | None = None
    done_before: timedelta = timedelta(0)


@dataclass(frozen=True, kw_only=True)
class MaxCost:
    """How much a job may spend on on-demand nodes, and whether it is then given up or waits on the other tiers."""

    amount: float
    gives_up: bool = False


@dataclass(frozen=True, kw_only=True)
class PoolStatus:
    """The status of one tier's pool.

    `missing_since`: since when it does not exist, if that is known: a pool that is replaced is missing for a moment. Unless
    `was_seen`, it may never have existed: the job on it waits that moment, and no other job moves there.
    `nodes_in_use`: its nodes with any training pod or placeholder. `max_nodes`: the pool's own limit, if it has one.
    `reserving`: the first in turn of the other jobs that reserve capacity there and do not have all of it yet. `price`: what one of
    its nodes costs per hour now, if that is known. `share`: how many of its nodes the jobs of the job's namespace have.
    """

    exists: bool = True
    missing_since: datetime | None = None
    was_seen: bool = True
    nodes_in_use: int = 0
    max_nodes: int | None = None
    reserving: ContendingGang | None = None
    price: float | None = None
    share: int = 0


@dataclass(frozen=True, kw_only=True)
class CopyStatus:
    """The job's copy in another cluster, by its pods and by the state that the controller there has recorded.

    `pods_expected` to run at once, `pods_placed` of them have a node. `pool`: the one it is on there, empty if that is not
    known; `capacity`: that pool's, as far as the copy has had nodes there; `evictions`, `application_failures`, `unexplained`: its outages on that pool. `is_given_up`: its ladder there has
    no tier left for it. `uid`, `cluster`: the copy's. `ledger`: what it has used, None if that is not known; `is_closed`: it has
    ended or is stopped, and the ledger includes its run. `pace`: how far it has come with the whole work of its job, None if
    that is not known; `progress`: the share that its program reports, as in Deadline.
    """

    pods_expected: int = 1
    pods_placed: int = 0
    pool: str = ""
    capacity: CapacityType | None = None
    evictions: int = 0
    application_failures: int = 0
    unexplained: int = 0
    is_given_up: bool = False
    uid: str = ""
    cluster: str = ""
    ledger: Ledger | None = None
    is_closed: bool = False
    pace: Pace | None = None
    progress: float | None = None


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """Whether a job's pods can be created and reach on-demand capacity: each problem is a sentence with its fix.

    `not_judged` names what could not be asked. `on_spot` says of a job that does not follow its ladder why nothing moves it from
    spot; empty for others.
    """

    problems: tuple[str, ...] = ()
    not_judged: tuple[str, ...] = ()
    on_spot: str = ""

    @property
    def refusal(self) -> str:
        """The problems as one text, empty without any."""
        said = " ".join(self.problems)
        return said if len(said) <= LONGEST_REFUSAL else f"{said[: LONGEST_REFUSAL - 1]}…"


@dataclass(frozen=True, kw_only=True)
class Observation:
    """A job and its surroundings. The defaults describe a job without problems.

    Identity and time
        `uid`, `created`: the job's; `created_here`: when the API server created this object, which no annotation changes. `now`: the controller's clock, UTC. `clock_jump`: how far `now` has moved beyond the
        monotonic clock since this process last recorded the job (zero at first): all recorded times of the job are
        shifted by it, and the shifted state is recorded.
    The job's spec and status
        `follows`: it follows the ladder; one that `is_deleted` does not. `stop_requested`: its user asks to stop it, or
        `awaits_permit`: it is a copy that its home cluster does not permit to run. `suspended`: `spec.suspend`.
        `is_suspension_complete`: its operator has carried the suspension out (JobSet: condition Suspended, of each child Job
        too; RayJob: status Suspended). `children_create_no_pods`: those that exist are suspended, have ended or are being deleted,
        and the operator has counted each failure. `operator_status`: an opaque text of what the operator has reported, which
        changes when it observes a suspension; empty if no such text is known. `can_be_suspended`: a suspension would be honored now. `not_suspendable_reason`: why it
        never can be, with the fix, or None. `outcome`: terminal, or None; `failure_cause`: why a FAILED job failed, if known.
        `can_be_recreated`: the job asks to be created again when it has FAILED by an eviction (RayJob). `is_managed_by_kueue`.
        `pool`: what its template selects now, None for none or several.
    Losses
        `restarts`: the operator's own counter, to notice what no replica observed. `disrupted_restarts`: how many of
        those the operator attributes to evictions (JobSet: `restarts − restartsCountTowardsMax`). `losses`: all known
        losses, including old ones. `head_unready_since`: since when a RayJob's head is lost or not ready.
        `own_limit`: how many failures its author allows (`maxRestarts`, `backoffLimit`), where admission has raised the limit.
    Pods
        `pods_expected` to run at once, without completed ones; `pods_missing` of them do not exist; `pods_placed` of them
        are on a live node; `pods_started` of them have running containers. `is_elastic`: the pods are independent workers, and those that
        have nodes work without the others. `starting_since`: when the pod that has waited
        longest between its node and its start got its node, None if all have started. `pods_remaining`: all that exist
        and have not ended, including terminating ones. `dead_pods`: names of those whose machine is gone permanently and
        which therefore never finish terminating. `outdated_children`: child Jobs whose pod template (selectors,
        tolerations) differs from the job's current one. `shapes`: the gang's resource requests.
    Surroundings
        `unseen`: how much of the current wait the API server was away, when no capacity could come. `contending_gang`: the
        last in turn of all, see ContendingGang. `last_yield_at`: when a gang last yielded its nodes in the pool. `pools`: by name;
        a missing one is assumed to exist. `reservation`: see Reservation; None for none. `checkpoints_on_request`: the job
        answers checkpoint requests; `checkpoint_requested_at`: the request it was sent; `checkpointed_at`: its last answer.
        `deadline`: see Deadline; None for a job without one. `max_cost`: likewise. `notices`: standing events that the job kind
        found, passed on.
    Usage
        `node_time`: the time of the job's nodes since its ledger was last written, added up over the nodes, also of those that
        are reserved for it or whose pods terminate. `nodes`: how many of each kind it has now; of a node with other jobs, a
        part. `work_done`: the work that its program reports as done since the job's creation; None if it reports nothing.
    Judgement
        `judgement`: whether its pods can be created and reach on-demand capacity; None if that is not judged yet.
    Other clusters
        `may_run_here`: no copy of the job can run elsewhere. `copy`: its copy; None if nothing is known of one.
    """

    uid: str
    created: datetime
    now: datetime
    clock_jump: timedelta = NO_JUMP

    follows: bool = True
    is_deleted: bool = False
    stop_requested: bool = False
    awaits_permit: bool = False
    suspended: bool = False
    is_suspension_complete: bool = False
    children_create_no_pods: bool = False
    operator_status: str = ""
    can_be_suspended: bool = True
    not_suspendable_reason: str | None = None
    outcome: JobOutcome | None = None
    failure_cause: Cause | None = None
    can_be_recreated: bool = False
    created_here: datetime | None = None
    is_managed_by_kueue: bool = False
    pool: str | None = None

    restarts: int = 0
    disrupted_restarts: int = 0
    losses: tuple[Loss, ...] = ()
    head_unready_since: datetime | None = None
    own_limit: int | None = None

    pods_expected: int = 0
    pods_missing: int = 0
    pods_placed: int = 0
    pods_started: int = 0
    is_elastic: bool = False
    starting_since: datetime | None = None
    pods_remaining: int = 0
    dead_pods: tuple[str, ...] = ()
    outdated_children: int = 0
    shapes: tuple[PodShape, ...] = ()

    unseen: timedelta = timedelta(0)
    contending_gang: ContendingGang | None = None
    last_yield_at: datetime | None = None
    pools: Mapping[str, PoolStatus] = field(default_factory=dict[str, PoolStatus])
    reservation: Reservation | None = None
    checkpoints_on_request: bool = False
    checkpoint_requested_at: datetime | None = None
    checkpointed_at: datetime | None = None
    deadline: Deadline | None = None
    max_cost: MaxCost | None = None
    notices: tuple[JobEvent, ...] = ()

    node_time: Mapping[NodeKind, timedelta] = field(default_factory=dict[NodeKind, timedelta])
    nodes: Mapping[NodeKind, float] = field(default_factory=dict[NodeKind, float])
    work_done: timedelta | None = None

    judgement: Judgement | None = None

    may_run_here: bool = True
    copy: CopyStatus | None = None

    @property
    def uses_nodes(self) -> bool:
        """Whether the job has nodes now."""
        return any(self.nodes.values())

    @property
    def is_placed(self) -> bool:
        """Whether every expected pod has a live node; the capacity wait is measured by this, never by readiness."""
        return self.pods_placed >= self.pods_expected

    @property
    def by_age(self) -> ContendingGang:
        """The job among those of its namespace, by an age that its author cannot choose."""
        return ContendingGang(created=self.created_here or self.created, uid=self.uid)

    def gang_in(self, pool: str | None) -> ContendingGang:
        """Return the job among those that want nodes of a pool."""
        known = None if pool is None else self.pools.get(pool)
        return self.by_age if known is None else replace(self.by_age, share=known.share)

    @property
    def is_half_placed(self) -> bool:
        """Whether the gang has some of its nodes and waits for the others. Independent workers are not a gang."""
        return not self.is_elastic and 0 < self.pods_placed < self.pods_expected
