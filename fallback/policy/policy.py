"""A FallbackPolicy as the ladder follows it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from holdfast.scheduling.ladder import UNLIMITED, Failures

if TYPE_CHECKING:
    from holdfast.scheduling.labels import CapacityType
    from holdfast.scheduling.taints import Taint

# A reclaim notice is 30 s (Azure, GCP) to 2 min (AWS), and the pods that survive it need a restart after it.
DEFAULT_OUTAGE_WINDOW: Final = timedelta(minutes=4)
DEFAULT_HOLD_TIMEOUT: Final = timedelta(minutes=15)
DEFAULT_START_TIMEOUT: Final = timedelta(minutes=15)
# As many as Determined's `max_restarts`: enough for a bad day, few enough for a broken script.
DEFAULT_APPLICATION_FAILURES: Final = 5


@dataclass(frozen=True, kw_only=True)
class Machine:
    """The smallest machine of a pool: CPU in millicores, memory in bytes, GPUs."""

    cpu: int
    memory: int
    gpus: int = 0


@dataclass(frozen=True, kw_only=True)
class TierFacts:
    """What the stack knows of a tier's pool; all of it may be absent where a policy is written by hand."""

    capacity: CapacityType | None = None
    labels: tuple[tuple[str, str], ...] = ()
    taints: tuple[Taint, ...] = ()
    machine: Machine | None = None
    max_nodes: int | None = None


@dataclass(frozen=True, kw_only=True)
class PolicyTier:
    """One rung. `max_failures` of 0 means the same as 1: the first failure moves on. UNLIMITED or None: none does.

    `procurement_timeout` None: wait without end.
    """

    pool: str
    max_failures: int | None = None
    procurement_timeout: timedelta | None = None
    facts: TierFacts = TierFacts()

    def is_spent(self, failures: int) -> bool:
        """Whether so many failures end a stay on this tier."""
        return self.max_failures not in {None, UNLIMITED} and failures >= max(1, self.max_failures or 0)


@dataclass(frozen=True, kw_only=True)
class Policy:
    """A namespace's ladder. Field names are those of the object's `spec`, in snake case.

    `outage_window`: losses this close to an outage's first one are the same outage. `give_up_after`: how long the
    last tier may go without capacity before its job is given up; None for never. `application_failures`: how many
    failures of the program itself the last tier may cost before its job is given up, under `failures: any` (under
    `evictions` they are the job's own business); UNLIMITED for no limit. `return_after`: how long a job stays before better tiers are tried again; None for never.
    `hold_timeout`: how long to hold out for a better tier's capacity. `start_timeout`: how long pods with nodes may
    take to start before that is said. `deadline`: time from a job's creation after which trouble leads straight to
    the last tier, and there is no way back up; None for none.
    """

    tiers: tuple[PolicyTier, ...]
    failures: Failures = Failures.ANY
    outage_window: timedelta = DEFAULT_OUTAGE_WINDOW
    give_up_after: timedelta | None = None
    application_failures: int = DEFAULT_APPLICATION_FAILURES
    return_after: timedelta | None = None
    hold_timeout: timedelta = DEFAULT_HOLD_TIMEOUT
    start_timeout: timedelta = DEFAULT_START_TIMEOUT
    deadline: timedelta | None = None

    def rank_of(self, pool: str) -> int | None:
        """The place of a pool's tier in the ladder, 0 for the best; None where it has none."""
        return next((rank for rank, tier in enumerate(self.tiers) if tier.pool == pool), None)


@dataclass(frozen=True, kw_only=True)
class NoPolicy:
    """There is no ladder to follow: none in the namespace (no problems), or one that cannot be used."""

    problems: tuple[str, ...] = ()
