"""The ledger: adds a job's use since the last write to its state, with current prices.

The time since then belongs to the phase and the pool that the state had: each change of them is written. The ledger of a job
that does not change is written once an hour, so the next replica can restore what a replica that died had not written.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from pulumi_holdfast.controller.jobs.observation import CopyStatus, Observation, PoolStatus
from pulumi_holdfast.controller.jobs.state import JobState, Ledger, Phase, PoolUse
from pulumi_holdfast.ladder.frozen import replace
from pulumi_holdfast.ladder.labels import CapacityType
from pulumi_holdfast.ladder.ladder import (
    DEFAULT_RESTART_COST,
    NoPolicy,
    Policy,
    capacity_of,
    pool_in,
    tier_of,
)

#: How much of a ledger is not written yet at most.
LEDGER_INTERVAL: Final = timedelta(hours=1)

_HOUR: Final = timedelta(hours=1)
_NOTHING: Final = timedelta(0)

# The phases in which a job has work to do and does not do it.
_WITHOUT_NODES: Final = frozenset({Phase.WAITING, Phase.SUSPENDING, Phase.PAUSED})


def with_ledger(state: JobState, observation: Observation, policy: Policy | NoPolicy) -> JobState:
    """Return the state with everything counted until now; a state without a ledger gets an empty one."""
    now = observation.now
    cost = policy.restart_cost if isinstance(policy, Policy) else DEFAULT_RESTART_COST
    if state.ledger is None:
        starting = _NOTHING if state.phase is Phase.RUNNING else cost
        return replace(state, ledger=Ledger(counted_from=now, counted_until=now, starting=starting))
    counted = _with_node_time(state.ledger, observation, policy)
    time = max(_NOTHING, now - counted.counted_until)
    if state.phase is Phase.RUNNING:
        counted = _with_run(counted, state, observation, policy, time)
    elif state.phase in _WITHOUT_NODES or (state.phase is Phase.AWAY and not state.has_all_nodes):
        counted = replace(counted, waited=counted.waited + time)
    if state.phase is not Phase.RUNNING or observation.restarts != state.restarts:
        counted = replace(counted, starting=cost)
    counted = replace(_with_report(counted, observation), counted_until=now)
    return replace(state, ledger=_with_copy(counted, observation.copy))


def ledger_due_at(state: JobState, observation: Observation) -> datetime | None:
    """When the ledger must be written although nothing else changes; None for a job that uses nothing."""
    if state.ledger is None:
        return None
    if not includes_copy(state.ledger, observation.copy):
        return observation.now
    if not any(observation.node_time.values()):
        return None
    if not observation.uses_nodes and state.phase not in {Phase.RUNNING, *_WITHOUT_NODES}:
        return observation.now
    return state.ledger.counted_until + LEDGER_INTERVAL


def includes_copy(ledger: Ledger | None, copy: CopyStatus | None) -> bool:
    """Whether the ledger of a job includes everything that its copy's ledger says."""
    if ledger is None or copy is None or copy.ledger is None:
        return True
    known = _included(ledger, copy)
    return known is not None and known.counted_until >= copy.ledger.counted_until


def price_of(pool: str, observation: Observation, policy: Policy | NoPolicy) -> float | None:
    """Return the price of a node of a pool per hour now: the observed one, else the tier's; None if unknown."""
    tier, observed = tier_of(pool, policy), observation.pools.get(pool, PoolStatus()).price
    return tier.price if observed is None and tier is not None else observed


def of_on_demand(ledger: Ledger, price: float | None) -> float | None:
    """Return what a job has cost, as a share of what its work alone costs on on-demand nodes at a price.

    None if a price is not known, or no work is done yet.
    """
    ran = ledger.worked + ledger.lost
    if ledger.cost is None or not price or not ledger.worked or not ledger.gang_time:
        return None
    return ledger.cost / (price * (ledger.gang_time / _HOUR) * (ledger.worked / ran))


def use_of(ledger: Ledger | None, pool: str) -> PoolUse:
    """Return what a job has used of a pool."""
    uses = () if ledger is None else ledger.uses
    return next((use for use in uses if use.pool == pool), PoolUse(pool=pool))


def spending_text(ledger: Ledger, on_demand_price: float | None) -> str:
    """Return the times of a job by capacity type and what it has cost: `31 h spot, 17 h on-demand: 0.55 of on-demand`."""
    ran = {capacity: ledger.ran_on(capacity) for capacity in CapacityType}
    parts = [f"{_rounded(time)} {capacity.value}" for capacity, time in ran.items() if time]
    share = of_on_demand(ledger, on_demand_price)
    return ", ".join(parts) + (f": {share:.2f} of on-demand" if parts and share is not None else "")


def on_demand_price(observation: Observation, policy: Policy | NoPolicy) -> float | None:
    """Return the price of the ladder's lowest on-demand tier; None if it has none, or no price is known."""
    tiers = policy.tiers if isinstance(policy, Policy) else ()
    pools = [tier.name for tier in tiers if tier.facts.capacity is CapacityType.ON_DEMAND]
    return price_of(pools[-1], observation, policy) if pools else None


def _rounded(time: timedelta) -> str:
    for unit, name in ((_HOUR, "h"), (timedelta(minutes=1), "min")):
        if time >= unit:
            return f"{time / unit:.0f} {name}" if time >= 10 * unit else f"{time / unit:.1f} {name}"
    return f"{time.total_seconds():.0f} s"


def _with_capacity(use: PoolUse, capacity: CapacityType | None) -> PoolUse:
    return replace(use, capacity=capacity or use.capacity)


def _with_node_time(ledger: Ledger, observation: Observation, policy: Policy | NoPolicy) -> Ledger:
    for kind, time in observation.node_time.items():
        price = price_of(kind.pool, observation, policy) if kind.price is None else kind.price
        use = _with_capacity(use_of(ledger, kind.pool), kind.capacity)
        more = None if price is None else price * (time / _HOUR)
        cost = use.cost if more is None else (use.cost or 0.0) + more
        ledger = _with_use(ledger, replace(use, node_time=use.node_time + time, cost=cost))
    return ledger


def _with_run(
    ledger: Ledger, state: JobState, observation: Observation, policy: Policy | NoPolicy, time: timedelta
) -> Ledger:
    """Count a time in which all pods had nodes. The first part of it makes up for the restart, as far as is known."""
    use = _with_capacity(use_of(ledger, state.pool), _capacity_of(state.pool, observation, policy))
    own = [spent for kind, spent in observation.node_time.items() if kind.pool == state.pool]
    started = min(time, ledger.starting)
    return replace(
        _with_use(ledger, replace(use, ran=use.ran + time)),
        lost=ledger.lost + started,
        worked=ledger.worked + time - started,
        starting=ledger.starting - started,
        gang_time=ledger.gang_time + sum(own, _NOTHING),
    )


def _with_copy(ledger: Ledger, copy: CopyStatus | None) -> Ledger:
    """Return the ledger with what the job's copy has used since its ledger was last included, at the prices there.

    Time in which the copy ran does not count as a wait, although home learns later that the copy has its nodes.
    """
    if copy is None or copy.ledger is None or includes_copy(ledger, copy):
        return ledger
    there = copy.ledger
    known = _included(ledger, copy) or Ledger(
        counted_from=there.counted_from, counted_until=there.counted_from
    )
    for use in there.uses:
        before, own = use_of(known, use.pool), use_of(ledger, pool_in(copy.cluster, use.pool))
        more = None if use.cost is None else use.cost - (before.cost or 0.0)
        added = replace(
            own,
            capacity=use.capacity or own.capacity,
            node_time=own.node_time + use.node_time - before.node_time,
            ran=own.ran + use.ran - before.ran,
            cost=own.cost if more is None else (own.cost or 0.0) + more,
        )
        ledger = _with_use(ledger, added)
    worked, lost = (ledger.worked + there.worked - known.worked, ledger.lost + there.lost - known.lost)
    most = ledger.counted_until - ledger.counted_from - worked - lost
    return replace(
        ledger,
        worked=worked,
        lost=lost,
        waited=max(_NOTHING, min(ledger.waited, most)),
        gang_time=ledger.gang_time + there.gang_time - known.gang_time,
        copy=copy.uid,
        copied=there,
    )


def _included(ledger: Ledger, copy: CopyStatus) -> Ledger | None:
    """Return the copy's ledger as it is included; None for another copy's, and for one that has begun again."""
    known = ledger.copied if ledger.copy == copy.uid else None
    is_same = known is not None and copy.ledger is not None and known.counted_from == copy.ledger.counted_from
    return known if is_same else None


def _with_report(ledger: Ledger, observation: Observation) -> Ledger:
    """Return the ledger with the work that the program reports, instead of what was assumed."""
    if observation.work_done is None:
        return ledger
    ran = ledger.worked + ledger.lost
    worked = min(ran, observation.work_done)
    return replace(ledger, worked=worked, lost=ran - worked)


def _with_use(ledger: Ledger, use: PoolUse) -> Ledger:
    others = (each for each in ledger.uses if each.pool != use.pool)
    return replace(ledger, uses=tuple(sorted((*others, use), key=lambda each: each.pool)))


def _capacity_of(pool: str, observation: Observation, policy: Policy | NoPolicy) -> CapacityType | None:
    observed = (kind.capacity for kind in observation.node_time if kind.pool == pool)
    return capacity_of(pool, policy) or next(observed, None)
