"""Fallback ladders: the tiers that a job moves down, as they are declared, and the policy that the controller follows."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from datetime import timedelta
from enum import StrEnum
from typing import Any, Final

from pulumi_holdfast.ladder.fields import NEVER as NEVER
from pulumi_holdfast.ladder.labels import CapacityType
from pulumi_holdfast.ladder.taints import Taint
from pulumi_holdfast.ladder.windows import ALWAYS, CapacityWindow

#: `maxFailures` of a tier that no number of failures ends.
UNLIMITED: Final = -1

#: The largest `maxFailures` beside a `failureWindow`: the time of each failure is recorded in the job.
MOST_TIMED_FAILURES: Final = 100

#: The largest `maxFailures`: a larger number is a mistake for UNLIMITED.
MOST_FAILURES: Final = 10_000

#: The most tiers of a ladder: the API server's checks read all of them within its limit of cost.
MOST_TIERS: Final = 16

#: The largest `price` of a node per hour: a larger one is a mistake.
HIGHEST_PRICE: Final = 100_000

#: A machine's boot, the image, the training framework, and the work since the last checkpoint.
DEFAULT_RESTART_COST: Final = timedelta(minutes=15)

#: The syntax of `max-cost` of a job: a decimal number. The API server's rules and Python read it alike.
MAX_COST_PATTERN: Final = r"^[0-9]{1,9}(\.[0-9]{1,6})?$"

#: What a job does when its `max-cost` is spent: it waits on the tiers that are not on-demand, or is given up.
WAIT_AFTER_MAX_COST: Final = "wait"
GIVE_UP_AFTER_MAX_COST: Final = "give-up"
AFTER_MAX_COST_VALUES: Final = (WAIT_AFTER_MAX_COST, GIVE_UP_AFTER_MAX_COST)

#: Which tiers need a time limit, and the fix: in the errors of the configuration, of the policy pack and of the API server.
NEEDS_TIMEOUT: Final = (
    "every tier that may be spot or reserved, except the last, needs a procurementTimeout: maxFailures counts the failures of "
    "pods that run, and without capacity none run, so the job waits there indefinitely"
)
SET_TIMEOUT: Final = "set procurementTimeout, such as 20m, on the tier"
#: The same, at the start of a sentence.
SET_TIMEOUT_FIX: Final = f"{SET_TIMEOUT[0].upper()}{SET_TIMEOUT[1:]}"
#: The least `giveUpAfter`, and why: in the errors of the configuration, of the policy pack and of the API server. Karpenter
#: (v1.14.1, its liveness controller) and the cluster autoscalers (`--max-node-provision-time`) wait this long for a node.
LEAST_GIVE_UP_AFTER: Final = timedelta(minutes=15)
GIVES_UP_TOO_SOON: Final = "giveUpAfter is 15m or more: a node of the last tier may take so long to start, and the controller would give up jobs that are about to run"
SET_GIVE_UP_AFTER: Final = "set giveUpAfter to 15m or more, such as 24h, or remove it"
ELSEWHERE_NEEDS_TIMEOUT: Final = "a tier in another cluster needs a procurementTimeout: while that cluster does not answer, nothing else moves a job on"
ELSEWHERE_BETWEEN: Final = "another cluster on tiers between the first and the last"

# A reclaim notice is 30 s (Azure, GCP) to 2 min (AWS), and the surviving pods need a restart after it.
DEFAULT_OUTAGE_WINDOW: Final = timedelta(minutes=4)
DEFAULT_HOLD_TIMEOUT: Final = timedelta(minutes=15)
# On published traces a ladder whose jobs return after an hour costs 0.63 of on-demand, and one whose jobs stay costs 0.80.
DEFAULT_RETURN_AFTER: Final = timedelta(hours=1)
DEFAULT_START_TIMEOUT: Final = timedelta(minutes=15)
# The value of Determined's `max_restarts`: enough for temporary problems, few enough for a broken script.
DEFAULT_APPLICATION_FAILURES: Final = 5


def parse_max_cost(text: str) -> float | None:
    """Parse the `max-cost` of a job; None for anything but a number above 0."""
    return float(text) or None if re.fullmatch(MAX_COST_PATTERN, text, re.ASCII) else None


class Failures(StrEnum):
    """Which failures count towards `maxFailures`."""

    ANY = "any"
    EVICTIONS = "evictions"


_IN: Final = "/"
_DNS_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", re.ASCII)


def is_dns_label(text: str) -> bool:
    """Whether a text can be the name of a pool, a cluster or a namespace, and a label value."""
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
class Tier:
    """One tier: a pool, how many failures move a job on, and how long it waits for capacity.

    `max_failures` is UNLIMITED or None if failures never move a job on; 0 means 1: the first failure does. `procurement_timeout` is
    None if it waits without limit. `price`: what a node costs per hour, in any currency; None if it is not declared. `max_price`:
    while a node costs more, the tier has no capacity; None for no limit. `cluster` is the other cluster that has the pool, empty
    for the ladder's own. `is_open`: the job may buy nodes there now; the state machine's own, see `spending_limits`.
    """

    pool: str
    cluster: str = ""
    max_failures: int | None = None
    procurement_timeout: timedelta | None = None
    price: float | None = None
    max_price: float | None = None
    facts: DeclaredFacts = DeclaredFacts()
    is_open: bool = True

    @property
    def name(self) -> str:
        """The name by which the tier is recorded and reported: `us-east-2/a100-spot` of a pool in another cluster."""
        return pool_in(self.cluster, self.pool)

    def is_spent(self, failures: int) -> bool:
        """Whether this many failures end a visit of this tier."""
        return self.max_failures not in {None, UNLIMITED} and failures >= max(1, self.max_failures or 0)

    def is_left_for_certain(self, *, is_on_demand: bool) -> bool:
        """Whether a job moves on from this tier: unless it is on-demand, only `procurementTimeout` does for certain."""
        counts = self.max_failures is not None and self.max_failures != UNLIMITED
        return self.procurement_timeout is not None or (counts and is_on_demand)


@dataclass(frozen=True, kw_only=True)
class Policy:
    """A Ladder with the controller's defaults. `return_after` None: jobs never return to a better tier."""

    tiers: tuple[Tier, ...]
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
            if tier.name == pool:
                return rank
        return None

    def rank(self, tier: Tier) -> int:
        """The rank of one of its tiers, whatever limits have changed of it since."""
        return next(rank for rank, each in enumerate(self.tiers) if each.name == tier.name)


@dataclass(frozen=True, kw_only=True)
class Ladder:
    """An ordered list of tiers, best first, and how jobs move on them. None: the controller's default.

    `outage_window`: losses within this time count as one failure. On the last tier the controller gives a job up after
    `application_failures` of its own program (UNLIMITED: never), or after it has waited for capacity for `give_up_after`.
    `return_after` on a tier, it tries a better one, if capacity comes within `hold_timeout`; NEVER: it stays. Failures that are
    older than `failure_window` do not count any more; None: all of a tier visit count. From `deadline`
    after its creation, a failure moves a job straight to the last tier, and it does not return. A Warning event is emitted
    for pods that are placed but do not start within `start_timeout`. `restart_cost`: the longest time from the loss of a
    job's machines until it has its earlier progress again.
    """

    tiers: tuple[Tier, ...]
    failures: Failures | None = None
    outage_window: timedelta | None = None
    give_up_after: timedelta | None = None
    application_failures: int | None = None
    failure_window: timedelta | None = None
    return_after: timedelta | None = None
    hold_timeout: timedelta | None = None
    start_timeout: timedelta | None = None
    deadline: timedelta | None = None
    restart_cost: timedelta | None = None

    def with_defaults(self) -> Policy:
        """The policy that the controller follows."""
        given: dict[str, Any] = {
            each.name: value for each in fields(self) if (value := getattr(self, each.name)) is not None
        }
        if self.return_after == NEVER:
            given["return_after"] = None
        return Policy(**given)


@dataclass(frozen=True, kw_only=True)
class NoPolicy:
    """There is no usable ladder: none in the namespace (no problems), or an invalid one."""

    problems: tuple[str, ...] = ()


def tier_of(pool: str, policy: Policy | NoPolicy) -> Tier | None:
    """Return the tier of a pool; None without one."""
    for tier in policy.tiers if isinstance(policy, Policy) else ():
        if tier.name == pool:
            return tier
    return None


def capacity_of(pool: str, policy: Policy | NoPolicy) -> CapacityType | None:
    """Return the capacity type of a pool, as its tier says; None if that is not known."""
    tier = tier_of(pool, policy)
    return None if tier is None else tier.facts.capacity
