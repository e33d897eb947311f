"""The user's view of a job's position on the ladder: tier, failures, wait, next limit, last reason. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from pulumi_holdfast.controller.jobs.base_observation import finish_by_of, max_cost_of
from pulumi_holdfast.controller.jobs.jobset import replicated_jobs
from pulumi_holdfast.controller.jobs.kinds import KINDS
from pulumi_holdfast.controller.jobs.patches import read_state
from pulumi_holdfast.controller.jobs.pod_history import PodHistory
from pulumi_holdfast.controller.jobs.pod_templates import pool_of
from pulumi_holdfast.controller.jobs.pods_and_nodes import Snapshot
from pulumi_holdfast.controller.jobs.rayjob import worker_groups
from pulumi_holdfast.controller.jobs.state import JobState, Ledger, Phase, Purpose
from pulumi_holdfast.controller.kube.objects import annotations_of, metadata_of, moment, name_of, text, uid_of
from pulumi_holdfast.controller.state_machine.failback import failback_due_at
from pulumi_holdfast.controller.state_machine.outages import counted_failures
from pulumi_holdfast.controller.state_machine.spending_limits import spent_on_demand
from pulumi_holdfast.ladder.json import Json, mapping
from pulumi_holdfast.ladder.labels import FOLLOWS, FOLLOWS_VALUE, STATE, STOP, CapacityType
from pulumi_holdfast.ladder.ladder import NoPolicy, Policy, Tier
from pulumi_holdfast.ladder.quantities import format_duration

#: What is shown where there is nothing to show.
NOTHING: Final = "-"
_SECOND: Final = timedelta(seconds=1)
_HOUR: Final = timedelta(hours=1)


@dataclass(frozen=True, kw_only=True)
class JobView:
    """One job as its user sees it.

    `tier`, `tiers`: its place on the ladder from 1, None where the job is on no tier. `failures`, `max_failures`: counted
    against this tier, and how many move the job on (None: no number does). `cost`: so far, in the unit of the tiers' prices,
    None without prices; `saved`: what its work would have cost on on-demand nodes, without an interruption, beyond that cost;
    `node_hours`: of its nodes, None if not recorded. `max_cost`: what it may spend on on-demand nodes,
    None for any amount; `on_demand_cost`: what it has spent there. `next_limit`: what happens next by time, and `next_limit_at`
    when. `reason`, `reason_at`: the last Event that is about it. `note`: why the ladder does nothing for it, or why it is refused.
    """

    reference: str
    uid: str
    phase: str
    pool: str | None = None
    tier: int | None = None
    tiers: int = 0
    failures: int = 0
    max_failures: int | None = None
    since: datetime | None = None
    waiting_since: datetime | None = None
    next_limit: str | None = None
    next_limit_at: datetime | None = None
    reason: str | None = None
    reason_at: datetime | None = None
    message: str | None = None
    moves: int = 0
    cost: float | None = None
    saved: float | None = None
    node_hours: float | None = None
    max_cost: float | None = None
    on_demand_cost: float = 0.0
    is_late: bool = False
    note: str | None = None


@dataclass(frozen=True, kw_only=True)
class Limit:
    """A timeout: its time, and what happens then unless another change comes first."""

    what: str
    at: datetime


def reference_of(job: Json) -> str:
    """Return a job's name as `kubectl` takes it: `jobset/train`."""
    return f"{text(job.get('kind')).lower()}/{name_of(job)}"


def selected_pool(job: Json) -> str | None:
    """Return the pool that the pods of a job which follow the ladder select; None for none, or for several."""
    if text(job.get("kind")) == "RayJob":
        return pool_of(each.pod_spec for each in worker_groups(job) if each.follows)
    return pool_of(each.pod_spec for each in replicated_jobs(job) if each.follows)


def state_of(job: Json) -> JobState | None:
    """Return the recorded state of a job; None if it is missing, unreadable or of another job."""
    written = annotations_of(job).get(STATE)
    found = read_state(text(written) or None)
    return found if isinstance(found, JobState) and found.uid == uid_of(job) else None


def job_view(job: Json, policy: Policy | NoPolicy, events: Sequence[Json]) -> JobView:
    """Return the view of a job; `events` are the controller's, of any job."""
    state = state_of(job)
    last = last_event(job, events)
    basic = JobView(
        reference=reference_of(job),
        uid=uid_of(job),
        phase=phase_without_state(job),
        reason=text(last.get("reason")) or None,
        message=text(last.get("message")) or None,
        reason_at=event_time(last),
        note=note_of(job, state, policy, last),
    )
    if state is None:
        return basic
    ladder = policy if isinstance(policy, Policy) else None
    tier = tier_of(state, ladder)
    rank = None if ladder is None else ladder.rank_of(state.pool)
    limit = next_limit(state, ladder, job)
    return JobView(
        reference=basic.reference,
        uid=basic.uid,
        phase=state.phase.value,
        pool=state.pool,
        tier=None if rank is None else rank + 1,
        tiers=len(ladder.tiers) if ladder else 0,
        failures=0 if ladder is None else counted_failures(state, ladder.failures),
        max_failures=limit_of(tier),
        since=state.since,
        waiting_since=state.waiting_since,
        next_limit=limit.what if limit else None,
        next_limit_at=limit.at if limit else None,
        reason=basic.reason,
        reason_at=basic.reason_at,
        message=basic.message,
        moves=state.moves,
        cost=None if state.ledger is None else state.ledger.cost,
        saved=None if state.ledger is None else saved_by(state.ledger, ladder),
        node_hours=None if state.ledger is None else _node_hours(state.ledger),
        max_cost=None if (limit_of_cost := max_cost_of(job)) is None else limit_of_cost.amount,
        on_demand_cost=spent_on_demand(state),
        is_late=state.pace is not None and state.pace.is_late,
        note=basic.note,
    )


def _node_hours(ledger: Ledger) -> float:
    return sum(use.node_time.total_seconds() for use in ledger.uses) / 3600


def saved_by(ledger: Ledger, policy: Policy | None) -> float | None:
    """Return what a job has saved against as many on-demand nodes for its work alone; negative if it has cost more.

    None without prices: that of an on-demand node is what the job paid for one, otherwise that of the ladder's last tier.
    """
    placed = ledger.worked + ledger.lost
    price = _on_demand_price(ledger, policy)
    if ledger.cost is None or price is None or not placed:
        return None
    return price * (ledger.gang_time / _HOUR) * (ledger.worked / placed) - ledger.cost


def _on_demand_price(ledger: Ledger, policy: Policy | None) -> float | None:
    paid = [each for each in ledger.uses if each.capacity is CapacityType.ON_DEMAND and each.cost]
    hours = sum((each.node_time for each in paid), timedelta(0)) / _HOUR
    if hours:
        return ledger.cost_of(CapacityType.ON_DEMAND) / hours
    return policy.tiers[-1].price if policy is not None else None


def tier_of(state: JobState, policy: Policy | None) -> Tier | None:
    """Return the tier that a job is on; None if the ladder has none of its pool."""
    rank = None if policy is None else policy.rank_of(state.pool)
    return None if policy is None or rank is None else policy.tiers[rank]


def limit_of(tier: Tier | None) -> int | None:
    """Return how many failures move a job on from a tier; None if no number does."""
    if tier is None or tier.max_failures is None or tier.max_failures < 0:
        return None
    return max(1, tier.max_failures)


def has_finished(job: Json) -> bool:
    """Whether a job has completed or failed."""
    snapshot = Snapshot(job=job, now=datetime.now(UTC))
    return KINDS[text(job.get("kind"))].observe(snapshot, PodHistory())[0].outcome is not None


def phase_without_state(job: Json) -> str:
    """Return the phase of a job without a record of the controller's, from its own status."""
    if has_finished(job):
        return Phase.FINISHED.value
    return "Suspended" if mapping(job.get("spec")).get("suspend") is True else "Unmanaged"


def note_of(job: Json, state: JobState | None, policy: Policy | NoPolicy, last: Json) -> str | None:
    """Return why a job does not follow the ladder; None if it does."""
    metadata = metadata_of(job)
    if mapping(metadata.get("labels")).get(FOLLOWS) != FOLLOWS_VALUE:
        return f'does not follow the ladder: it has no label {FOLLOWS}: "{FOLLOWS_VALUE}"'
    if not isinstance(policy, Policy):
        return "; ".join(policy.problems) or "its namespace has no FallbackPolicy"
    if mapping(metadata.get("annotations")).get(STOP) == "true":
        return f"stopped by its annotation {STOP}"
    if state is not None and state.phase is Phase.REFUSED:
        return state.refusal
    if state is None:
        return text(last.get("message")) or "the fallback controller has not recorded it yet"
    return None


def next_limit(state: JobState, policy: Policy | None, job: Json) -> Limit | None:
    """Return the next timeout of a job; None if there is none."""
    found = [*_limits_of_ladder(state, policy), *_deadline(job)]
    return min(found, key=lambda limit: limit.at, default=None)


def _limits_of_ladder(state: JobState, policy: Policy | None) -> Iterable[Limit]:
    if state.phase is Phase.PAUSED and state.resume_at is not None:
        # A job that yielded its nodes is paused for that; any other waits for a price to fall.
        is_yielding = state.purpose in {None, Purpose.YIELD}
        yield Limit(what="is resumed" if is_yielding else "compares prices again", at=state.resume_at)
    if policy is None or state.phase not in {Phase.WAITING, Phase.RUNNING}:
        return
    rank = policy.rank_of(state.pool)
    tier = tier_of(state, policy)
    below = None if rank is None or rank + 1 >= len(policy.tiers) else policy.tiers[rank + 1].name
    if state.waiting_since is not None:
        begun = state.waiting_since - state.waited
        if tier is not None and tier.procurement_timeout is not None and below is not None:
            yield Limit(what=f"moves to {below} without nodes", at=begun + tier.procurement_timeout)
        if below is None and policy.give_up_after is not None:
            yield Limit(what="is given up without nodes", at=begun + policy.give_up_after)
    elif rank and state.failback is None:
        due = failback_due_at(state, policy)
        if due is not None:
            yield Limit(what=f"may return to {policy.tiers[0].name}", at=due)


def _deadline(job: Json) -> Iterable[Limit]:
    at = finish_by_of(job)
    if at is not None:
        yield Limit(what="must have finished", at=at)


def last_event(job: Json, events: Sequence[Json]) -> Json:
    """Return the latest of the controller's Events about a job; empty if there is none."""
    uid = uid_of(job)
    own = [each for each in events if mapping(each.get("involvedObject")).get("uid") == uid]
    dated = [(event_time(each), each) for each in own]
    known = [(at, place) for place, (at, _) in enumerate(dated) if at is not None]
    return dated[max(known)[1]][1] if known else mapping(None)


def event_time(event: Json) -> datetime | None:
    """Return when an Event happened last."""
    return (
        moment(event.get("lastTimestamp"))
        or moment(event.get("eventTime"))
        or moment(event.get("firstTimestamp"))
    )


def ago(at: datetime | None, now: datetime) -> str:
    """Return how long ago a time is, in two units at most."""
    return NOTHING if at is None else duration_text(now - at)


def duration_text(duration: timedelta) -> str:
    """Return a duration in two units at most: `3d4h`, `2h5m`, `45s`."""
    if duration < _SECOND:
        return "0s"
    days, rest = divmod(int(duration.total_seconds()), 86400)
    if days:
        return f"{days}d{rest // 3600}h"
    seconds = rest - rest % 60 if rest >= 3600 else rest
    return format_duration(timedelta(seconds=seconds))


ROW_HEADS: Final = (
    "JOB",
    "TIER",
    "POOL",
    "PHASE",
    "FAILURES",
    "WAITING",
    "NEXT LIMIT",
    "COST",
    "LAST REASON",
)


def job_row(view: JobView, now: datetime) -> tuple[str, ...]:
    """Return a job as the cells of ROW_HEADS."""
    if view.pool is None:
        why = view.note or NOTHING
        return (view.reference, NOTHING, NOTHING, view.phase, NOTHING, NOTHING, NOTHING, NOTHING, why)
    failures = str(view.failures) if view.max_failures is None else f"{view.failures} of {view.max_failures}"
    tier = NOTHING if view.tier is None else f"{view.tier} of {view.tiers}"
    limit = NOTHING
    if view.next_limit is not None and view.next_limit_at is not None:
        until = view.next_limit_at - now
        when = f"in {duration_text(until)}" if until > timedelta(0) else "now"
        limit = f"{view.next_limit} {when}"
    reason = f"{view.reason} ({ago(view.reason_at, now)} ago)" if view.reason else view.note or NOTHING
    if view.phase == Phase.REFUSED and view.note:
        reason = f"{view.phase}: {view.note}"
    phase = f"{view.phase}, late" if view.is_late else view.phase
    waiting = ago(view.waiting_since, now)
    return (view.reference, tier, view.pool, phase, failures, waiting, limit, cost_text(view), reason)


def cost_text(view: JobView) -> str:
    """Return what a job has cost so far: an amount where prices are known, and the hours of its nodes."""
    if view.node_hours is None:
        return NOTHING
    hours = f"{view.node_hours:.1f} node-hours"
    if view.max_cost is not None:
        hours += f", {view.on_demand_cost:.2f} of max-cost {view.max_cost:g}"
    if view.saved is not None and view.saved >= 0:
        hours += f", saved {view.saved:.2f}"
    return hours if view.cost is None else f"{view.cost:.2f} ({hours})"


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table as kubectl prints one: columns with three spaces between them."""
    columns = list(zip(heads, *rows, strict=True))
    widths = [max(map(len, column)) for column in columns]
    return "\n".join(
        "   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in (heads, *rows)
    )
