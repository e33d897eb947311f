"""Hypothesis strategies for any state, observation and policy, sensible or not."""

from __future__ import annotations

from datetime import timedelta

from hypothesis import strategies as st

from holdfast.fallback.policy.policy import Machine, NoPolicy, Policy, PolicyTier, TierFacts
from holdfast.fallback.reservations.pod_shapes import PodShape
from holdfast.fallback.state_machine.observation import (
    Cause,
    ContendingGang,
    Loss,
    Observation,
    Outcome,
    Part,
    PoolStatus,
    Reservation,
)
from holdfast.fallback.state_machine.state import (
    FailbackAttempt,
    FailbackStage,
    JobState,
    OutageKind,
    Phase,
    Purpose,
    UnreadableState,
)
from holdfast.scheduling.ladder import Failures
from tests.support.ladder import T0, UID

POOLS = ("a-spot", "b-spot", "on-demand", "elsewhere")

pools = st.sampled_from(POOLS)
times = st.integers(-200_000, 200_000).map(lambda seconds: T0 + timedelta(seconds=seconds))
waits = st.integers(1, 90_000).map(lambda seconds: timedelta(seconds=seconds))
counts = st.integers(0, 12)
few = st.integers(0, 3)


def maybe(strategy: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    return st.none() | strategy


facts = st.builds(
    TierFacts,
    machine=maybe(st.builds(Machine, cpu=st.integers(0, 8000), memory=st.integers(0, 2**36), gpus=few)),
    max_nodes=maybe(counts),
)
tiers = st.builds(
    PolicyTier,
    pool=pools,
    max_failures=maybe(st.integers(-1, 5)),
    procurement_timeout=maybe(waits),
    facts=facts,
)
ladders = st.builds(
    Policy,
    tiers=st.lists(tiers, min_size=1, max_size=4, unique_by=lambda tier: tier.pool).map(tuple),
    failures=st.sampled_from(Failures),
    outage_window=waits,
    give_up_after=maybe(waits),
    application_failures=st.integers(-1, 5),
    return_after=maybe(waits),
    hold_timeout=waits,
    start_timeout=waits,
    deadline=maybe(waits),
)
policies = ladders | st.builds(NoPolicy, problems=st.lists(st.text(), max_size=2).map(tuple))

attempts = st.builds(
    FailbackAttempt, pool=pools, stage=st.sampled_from(FailbackStage), since=times, requested_at=maybe(times)
)
job_states = st.builds(
    JobState,
    uid=st.sampled_from((UID, UID, UID, "", "another")),
    phase=st.sampled_from(Phase),
    pool=pools,
    rank=few,
    since=times,
    waiting_since=maybe(times),
    waited=waits,
    evictions=counts,
    application_failures=counts,
    unexplained=counts,
    outage_kind=maybe(st.sampled_from(OutageKind)),
    outage_at=maybe(times),
    outage_counted_at=maybe(times),
    outage_pod_created_at=maybe(times),
    eviction_at=maybe(times),
    losses_counted_until=maybe(times),
    restarts=counts,
    disrupted_restarts=counts,
    restart_expected=st.booleans(),
    resumed_at=maybe(times),
    head_restarts=counts,
    purpose=maybe(st.sampled_from(Purpose)),
    suspended_at=maybe(times),
    resume_at=maybe(times),
    moves=counts,
    yields=counts,
    resuspensions=counts,
    failback=maybe(attempts),
    last_failback_at=maybe(times),
    short_failbacks=counts,
    entered_by_failback=st.booleans(),
    recreations=counts,
)
states = st.none() | job_states | st.builds(UnreadableState, problem=st.text())

shapes = st.builds(
    PodShape,
    count=counts,
    requests=st.dictionaries(
        st.sampled_from(("cpu", "memory", "nvidia.com/gpu", "example.com/x")),
        st.sampled_from(("1", "500m", "2Gi", "nonsense", "")),
    ),
)
losses = st.builds(
    Loss,
    pod=st.text(max_size=3),
    at=times,
    cause=st.sampled_from(Cause),
    part=st.sampled_from(Part),
    pool=maybe(pools),
    pod_created_at=maybe(times),
)
observations = st.builds(
    Observation,
    uid=st.just(UID),
    created=times,
    now=times,
    clock_jump=st.just(timedelta(0)) | waits | waits.map(lambda wait: -wait),
    follows=st.booleans(),
    suspended=st.booleans(),
    is_suspension_complete=st.booleans(),
    can_be_suspended=st.booleans(),
    not_suspendable_reason=st.sampled_from((None, None, None, "it has a clusterSelector")),
    outcome=st.sampled_from((None, None, None, *Outcome)),
    failure_cause=maybe(st.sampled_from(Cause)),
    can_be_recreated=st.booleans(),
    is_managed_by_kueue=st.sampled_from((False, False, False, True)),
    pool=maybe(pools),
    restarts=counts,
    disrupted_restarts=counts,
    losses=st.lists(losses, max_size=4).map(tuple),
    head_unready_since=maybe(times),
    pods_expected=counts,
    pods_missing=counts,
    pods_placed=counts,
    pods_started=counts,
    starting_since=maybe(times),
    pods_remaining=st.sampled_from((0, 0, 1, 4)),
    dead_pods=st.lists(st.text(max_size=3), max_size=2).map(tuple),
    outdated_children=st.sampled_from((0, 0, 2)),
    shapes=st.lists(shapes, max_size=2).map(tuple),
    last_yield_at=st.none() | times,
    contending_gang=st.none() | st.builds(ContendingGang, uid=st.text(max_size=3), created=times),
    pools=st.dictionaries(
        pools, st.builds(PoolStatus, exists=st.booleans(), nodes_in_use=counts, max_nodes=maybe(counts))
    ),
    reservation=maybe(st.builds(Reservation, pool=pools, pods=counts, placed=counts, tainted=counts)),
    checkpoints_on_request=st.booleans(),
    checkpoint_requested_at=maybe(times),
    checkpointed_at=maybe(times),
)
