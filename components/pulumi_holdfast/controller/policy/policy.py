"""A FallbackPolicy as the state machine uses it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from pulumi_holdfast.ladder.labels import CapacityType
from pulumi_holdfast.ladder.ladder import DEFAULT_RESTART_COST, UNLIMITED, Failures
from pulumi_holdfast.ladder.taints import Taint
from pulumi_holdfast.ladder.windows import ALWAYS, CapacityWindow

# A reclaim notice is 30 s (Azure, GCP) to 2 min (AWS), and the surviving pods need a restart after it.
DEFAULT_OUTAGE_WINDOW: Final = timedelta(minutes=4)
DEFAULT_HOLD_TIMEOUT: Final = timedelta(minutes=15)
# On published traces a ladder whose jobs return after an hour costs 0.63 of on-demand, and one whose jobs stay costs 0.80.
DEFAULT_RETURN_AFTER: Final = timedelta(hours=1)
DEFAULT_START_TIMEOUT: Final = timedelta(minutes=15)
# The value of Determined's `max_restarts`: enough for temporary problems, few enough for a broken script.
DEFAULT_APPLICATION_FAILURES: Final = 5


@dataclass(frozen=True, kw_only=True)
class MachineResources:
    """The smallest machine of a pool: CPU in millicores, memory in bytes, GPUs."""

    cpu: int
    memory: int
    gpus: int = 0


@dataclass(frozen=True, kw_only=True)
class DeclaredFacts:
    """The stack's facts about a tier's pool; any of them may be missing in a policy that is written by hand.

    `window` is when the pool has its capacity.
    """

    capacity: CapacityType | None = None
    labels: tuple[tuple[str, str], ...] = ()
    taints: tuple[Taint, ...] = ()
    machine: MachineResources | None = None
    max_nodes: int | None = None
    window: CapacityWindow = ALWAYS


@dataclass(frozen=True, kw_only=True)
class PolicyTier:
    """One tier. `max_failures` 0 means 1: the first failure moves the job. FOREVER or None: no failure does.

    `pool`: by this name the tier is recorded and reported. A pool of another cluster has the cluster in front: `us-east-2/a100-spot`.
    `procurement_timeout` None: wait indefinitely. `price`: what one of its nodes costs per hour, in any currency; None if it
    is not declared. `max_price`: while a node costs more, the tier has no capacity; None for no limit. `is_open`: the job may
    buy nodes there now; the state machine's own, see `spending_limits`.
    """

    pool: str
    max_failures: int | None = None
    procurement_timeout: timedelta | None = None
    facts: DeclaredFacts = DeclaredFacts()
    price: float | None = None
    max_price: float | None = None
    is_open: bool = True

    @property
    def cluster(self) -> str:
        """The cluster of the tier's pool, empty for the job's own."""
        return cluster_of(self.pool)

    def is_spent(self, failures: int) -> bool:
        """Whether this many failures end a visit of this tier."""
        return self.max_failures not in {None, UNLIMITED} and failures >= max(1, self.max_failures or 0)


@dataclass(frozen=True, kw_only=True)
class Policy:
    """A namespace's ladder. Field names are those of the object's `spec`, in snake case.

    `outage_window`: losses this close to an outage's first one belong to the same outage. `give_up_after`: how long a job
    waits for capacity on the last tier before it is given up; None for indefinitely. `application_failures`: how many
    failures of the program a job may have on the last tier before it is given up, under `failures: any` (under
    `evictions` they do not count); FOREVER for no limit. `failure_window`: older failures do not count any
    more; None for no limit. `return_after`: how long a job stays on a tier before better tiers
    are tried; None for never. `hold_timeout`: how long to wait for a better tier's capacity. `start_timeout`: how long
    pods with nodes may take to start before a warning. `deadline`: time from a job's creation after which it fails over
    directly to the last tier, without failback; None for none. `restart_cost`: the longest time from the loss of a job's
    machines until it has its earlier progress again, if capacity is available; for jobs with a deadline of their own.
    """

    tiers: tuple[PolicyTier, ...]
    failures: Failures = Failures.ANY
    outage_window: timedelta = DEFAULT_OUTAGE_WINDOW
    give_up_after: timedelta | None = None
    application_failures: int = DEFAULT_APPLICATION_FAILURES
    failure_window: timedelta | None = None
    return_after: timedelta | None = DEFAULT_RETURN_AFTER
    hold_timeout: timedelta = DEFAULT_HOLD_TIMEOUT
    start_timeout: timedelta = DEFAULT_START_TIMEOUT
    deadline: timedelta | None = None
    restart_cost: timedelta = DEFAULT_RESTART_COST

    def rank_of(self, pool: str) -> int | None:
        """The rank of a pool's tier in the ladder, 0 for the best; None if the ladder has no such tier."""
        for rank, tier in enumerate(self.tiers):
            if tier.pool == pool:
                return rank
        return None


@dataclass(frozen=True, kw_only=True)
class NoPolicy:
    """There is no usable ladder: none in the namespace (no problems), or an invalid one."""

    problems: tuple[str, ...] = ()


_IN: Final = "/"
_DNS_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", re.ASCII)


def is_dns_label(text: str) -> bool:
    """Whether a text can be the name of a pool or cluster."""
    return _DNS_LABEL.fullmatch(text) is not None


def pool_in(cluster: str, pool: str) -> str:
    """Return the name of a pool, with its cluster unless that is the job's own (empty)."""
    return f"{cluster}{_IN}{pool}" if cluster else pool


def cluster_of(pool: str) -> str:
    """Return the cluster of a pool, empty for the job's own."""
    return pool.rpartition(_IN)[0]


def home_pool(pool: str) -> str:
    """Return a pool that the job's own template can select, empty for one in another cluster."""
    return "" if cluster_of(pool) else pool


def pool_there(pool: str) -> str:
    """Return the name that a pool has in its own cluster."""
    return pool.rpartition(_IN)[2]


def tier_of(pool: str, policy: Policy | NoPolicy) -> PolicyTier | None:
    """Return the tier of a pool; None without one."""
    for tier in policy.tiers if isinstance(policy, Policy) else ():
        if tier.pool == pool:
            return tier
    return None


def capacity_of(pool: str, policy: Policy | NoPolicy) -> CapacityType | None:
    """Return the capacity type of a pool, as its tier says; None if that is not known."""
    tier = tier_of(pool, policy)
    return None if tier is None else tier.facts.capacity
