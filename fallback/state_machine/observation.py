"""What is seen of a job and its surroundings at one moment: everything the ladder decides by."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from holdfast.fallback.reservations.pod_shapes import PodShape
    from holdfast.fallback.state_machine.events import JobEvent

NO_JUMP: Final = timedelta(0)


class Cause(StrEnum):
    """Why a pod was lost. All but APPLICATION are evictions."""

    EVICTION = "Eviction"  #: `DisruptionTarget`, a drain, a reclaim notice
    NODE_GONE = "NodeGone"  #: its node, NodeClaim or instance is not there any more
    UNREACHABLE = (
        "Unreachable"  #: its node has stopped answering; counts once that has lasted, see `counting`
    )
    APPLICATION = (
        "Application"  #: it failed on a healthy node, with no loss of another pod of the gang around it
    )


class Part(StrEnum):
    """Which part of the job a pod is. JobSet has workers only."""

    WORKER = "Worker"
    HEAD = "Head"


class Outcome(StrEnum):
    """How a job ended. A job that has ended is never touched again, unless it may be recreated."""

    COMPLETED = "Completed"
    FAILED = "Failed"


@dataclass(frozen=True, kw_only=True)
class Loss:
    """One pod that was lost, for a reason of its own: never one that our suspension or its operator deleted.

    `at` is when it was lost, by the API server's clock where it says so. `pool` is what the pod selected: a loss on
    another pool than the job's present one is over and is not counted. `pod_created_at` is when the pod was created: one that is
    younger than an outage belongs to the gang that was started after it. The same loss may be shown any number of times.
    """

    pod: str
    at: datetime
    cause: Cause
    part: Part = Part.WORKER
    pool: str | None = None
    pod_created_at: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class Reservation:
    """The placeholders and taints that now exist for this job, in any pool, deleted ones included until they are gone.

    `pods` exist, `placed` of them are bound to a ready node, and `tainted` of those stand on a node which bears the
    taint that only this job tolerates. `nodes` bear the taint or carry a placeholder.
    """

    pool: str
    pods: int
    placed: int
    tainted: int
    nodes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, order=True)
class ContendingGang:
    """Another job's gang that waits in the same pool with some of its pods placed and some not; the younger is greater."""

    created: datetime
    uid: str


@dataclass(frozen=True, kw_only=True)
class PoolStatus:
    """What is known of one tier's pool.

    `nodes_in_use`: its nodes with somebody's training pods or placeholders on them. `max_nodes`: what the pool's own
    limit says, where it says it.
    """

    exists: bool = True
    nodes_in_use: int = 0
    max_nodes: int | None = None


@dataclass(frozen=True, kw_only=True)
class Observation:
    """A job as it stands, with what stands around it. Defaults are those of an ordinary job that has no trouble.

    Identity and time
        `uid`, `created`: the job's. `now`: this machine's clock, UTC. `clock_jump`: how far `now` has moved beyond the
        monotonic clock since this process last recorded a look at this job (zero on the first look): all times kept
        for the job are shifted by it, and the shifted state is recorded.
    What the job says
        `follows`: it is to follow the ladder. `suspended`: its spec says so. `is_suspension_complete`: its operator has carried the
        suspension out (JobSet: condition Suspended; RayJob: status Suspended). `can_be_suspended`: a suspension
        would be honoured now. `not_suspendable_reason`: why it can never be, with the fix, or None. `outcome`: terminal,
        or None; `failure_cause`: what a FAILED one fell to, as far as is known. `can_be_recreated`: the job opts in
        to be made again when it has FAILED by an eviction (RayJob). `is_managed_by_kueue`: Kueue manages it. `pool`: what its
        template selects now, None for nothing or for several.
    What became of it
        `restarts`: its operator's own counter, to notice what happened while nobody watched. `disrupted_restarts`:
        how many of those its operator surely put down to evictions (JobSet: `restarts − restartsCountTowardsMax`).
        `losses`: all that are known, old ones included. `head_unready_since`: since when a RayJob's head is lost or
        its dashboard silent.
    Its pods
        `pods_expected` to run at once, those that completed not among them; `pods_missing` of them do not exist;
        `pods_placed` of them on a live node;
        `pods_started` of them with their containers running. `starting_since`: when the one that has a node and
        has not started for the longest got it, None when all have started. `pods_remaining`: all that exist and have not ended,
        terminating ones included. `dead_pods`: names of those whose machine is known to be gone for good, and which
        therefore will never finish terminating. `outdated_children`: child Jobs made from another pod template
        (selectors, tolerations) than the job has now. `shapes`: what the gang asks for.
    Around it
        `contending_gang`: the youngest of all, see Rival. `last_yield_at`: when a gang was last seen to have let go of its nodes there. `pools`: by name; one that is absent is not judged. `reservation`: see HeldCapacity; None for
        nothing. `checkpoints_on_request`: the job says that it answers a request to checkpoint; `checkpoint_requested_at`: the request
        that it has been sent; `checkpointed_at`: its last answer.
        `notices`: standing reports of the adapter (a script that ends 0 on SIGTERM), passed on.
    """

    uid: str
    created: datetime
    now: datetime
    clock_jump: timedelta = NO_JUMP

    follows: bool = True
    suspended: bool = False
    is_suspension_complete: bool = False
    can_be_suspended: bool = True
    not_suspendable_reason: str | None = None
    outcome: Outcome | None = None
    failure_cause: Cause | None = None
    can_be_recreated: bool = False
    is_managed_by_kueue: bool = False
    pool: str | None = None

    restarts: int = 0
    disrupted_restarts: int = 0
    losses: tuple[Loss, ...] = ()
    head_unready_since: datetime | None = None

    pods_expected: int = 0
    pods_missing: int = 0
    pods_placed: int = 0
    pods_started: int = 0
    starting_since: datetime | None = None
    pods_remaining: int = 0
    dead_pods: tuple[str, ...] = ()
    outdated_children: int = 0
    shapes: tuple[PodShape, ...] = ()

    contending_gang: ContendingGang | None = None
    last_yield_at: datetime | None = None
    pools: Mapping[str, PoolStatus] = field(default_factory=dict[str, PoolStatus])
    reservation: Reservation | None = None
    checkpoints_on_request: bool = False
    checkpoint_requested_at: datetime | None = None
    checkpointed_at: datetime | None = None
    notices: tuple[JobEvent, ...] = ()

    @property
    def is_placed(self) -> bool:
        """Whether every expected pod has a live node: what procurement is measured by, never readiness."""
        return self.pods_placed >= self.pods_expected

    @property
    def is_half_placed(self) -> bool:
        """Whether the gang sits on some of the nodes it needs and waits for the others."""
        return 0 < self.pods_placed < self.pods_expected
