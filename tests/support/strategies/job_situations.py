"""Hypothesis strategies for states, observations and policies: independent of each other, and consistent."""

from dataclasses import replace
from datetime import timedelta
from typing import TypeAlias

from hypothesis import strategies as st

from pulumi_holdfast.controller.jobs.observation import (
    Cause,
    ContendingGang,
    CopyStatus,
    JobOutcome,
    Loss,
    MaxCost,
    NodeKind,
    Observation,
    Part,
    PoolStatus,
    Reservation,
)
from pulumi_holdfast.controller.jobs.pod_shapes import PodShape
from pulumi_holdfast.controller.jobs.state import (
    FailbackAttempt,
    FailbackStage,
    JobState,
    Ledger,
    OutageKind,
    Phase,
    PoolUse,
    Purpose,
    TimedFailure,
    UnreadableState,
)
from pulumi_holdfast.ladder.labels import CapacityType
from pulumi_holdfast.ladder.ladder import DeclaredFacts, Failures, MachineResources, NoPolicy, Policy, Tier
from tests.support.builders.job_states import T0, UID

POOLS = ("a-spot", "b-spot", "on-demand", "elsewhere", "west/a-spot")

pools = st.sampled_from(POOLS)
times = st.integers(-200_000, 200_000).map(lambda seconds: T0 + timedelta(seconds=seconds))
waits = st.integers(1, 90_000).map(lambda seconds: timedelta(seconds=seconds))
counts = st.integers(0, 12)
few = st.integers(0, 3)
amounts = st.sampled_from((0.5, 2.0, 3.0, 40.0))


def maybe(strategy: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    return st.none() | strategy


facts = st.builds(
    DeclaredFacts,
    capacity=maybe(st.sampled_from(CapacityType)),
    machine=maybe(
        st.builds(MachineResources, cpu=st.integers(0, 8000), memory=st.integers(0, 2**36), gpus=few)
    ),
    max_nodes=maybe(counts),
)
tiers = st.builds(
    Tier,
    pool=pools,
    max_failures=maybe(st.integers(-1, 5)),
    procurement_timeout=maybe(waits),
    facts=facts,
    price=maybe(amounts),
    max_price=maybe(amounts),
)
ladders = st.builds(
    Policy,
    tiers=st.lists(tiers, min_size=1, max_size=4, unique_by=lambda tier: tier.name).map(tuple),
    failures=st.sampled_from(Failures),
    outage_window=waits,
    give_up_after=maybe(waits),
    application_failures=st.integers(-1, 5),
    failure_window=maybe(waits),
    return_after=maybe(waits),
    hold_timeout=waits,
    start_timeout=waits,
    deadline=maybe(waits),
)
policies = ladders | st.builds(NoPolicy, problems=st.lists(st.text(), max_size=2).map(tuple))

attempts = st.builds(
    FailbackAttempt, pool=pools, stage=st.sampled_from(FailbackStage), since=times, requested_at=maybe(times)
)


def _ledger(number: int) -> Ledger:
    """A ledger from one number: drawing each of its fields would take most of the time of the tests."""
    time = timedelta(microseconds=number * 7919)
    use = PoolUse(
        pool=POOLS[number % 4],
        capacity=(None, *CapacityType)[number % 3],
        node_time=4 * time,
        ran=time,
        cost=None if number % 5 == 0 else number / 7,
    )
    until = T0 + timedelta(seconds=number % 20_000 - 10_000)
    return Ledger(
        counted_from=until - 3 * time,
        counted_until=until,
        uses=(use,) * (number % 3 > 0),
        worked=time,
        lost=time / 3,
        waited=2 * time,
        starting=time / 5,
        gang_time=4 * time,
    )


ledgers = st.integers(0, 2**24).map(_ledger)
# Of a kind without such a text, and of three moments.
operator_statuses = st.sampled_from(("", "0", "1", "2"))
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
    failures=st.lists(st.builds(TimedFailure, kind=st.sampled_from(OutageKind), at=times), max_size=3).map(
        tuple
    ),
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
    operator_status=operator_statuses,
    resume_at=maybe(times),
    moves=counts,
    yields=counts,
    resuspensions=counts,
    failback=maybe(attempts),
    last_failback_at=maybe(times),
    short_failbacks=counts,
    entered_by_failback=st.booleans(),
    recreations=counts,
    ledger=maybe(ledgers),
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
NODES: tuple[dict[NodeKind, int], ...] = (
    {},
    {NodeKind(pool="a-spot", capacity=CapacityType.SPOT): 4},
    {NodeKind(pool="on-demand", capacity=CapacityType.ON_DEMAND, price=2.0): 4},
)
observations = st.builds(
    Observation,
    uid=st.just(UID),
    created=times,
    now=times,
    clock_jump=st.just(timedelta(0)) | waits | waits.map(lambda wait: -wait),
    follows=st.booleans(),
    stop_requested=st.sampled_from((False, False, False, True)),
    suspended=st.booleans(),
    is_suspension_complete=st.booleans(),
    children_create_no_pods=st.booleans(),
    operator_status=operator_statuses,
    can_be_suspended=st.booleans(),
    not_suspendable_reason=st.sampled_from((None, None, None, "it has a clusterSelector")),
    outcome=st.sampled_from((None, None, None, *JobOutcome)),
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
    is_elastic=st.booleans(),
    starting_since=maybe(times),
    pods_remaining=st.sampled_from((0, 0, 1, 4)),
    dead_pods=st.lists(st.text(max_size=3), max_size=2).map(tuple),
    outdated_children=st.sampled_from((0, 0, 2)),
    shapes=st.lists(shapes, max_size=2).map(tuple),
    last_yield_at=st.none() | times,
    contending_gang=st.none() | st.builds(ContendingGang, uid=st.text(max_size=3), created=times),
    pools=st.dictionaries(
        pools,
        st.builds(
            PoolStatus,
            exists=st.booleans(),
            missing_since=maybe(times),
            was_seen=st.booleans(),
            nodes_in_use=counts,
            max_nodes=maybe(counts),
            price=maybe(amounts),
        ),
    ),
    reservation=maybe(st.builds(Reservation, pool=pools, pods=counts, placed=counts, tainted=counts)),
    checkpoints_on_request=st.booleans(),
    checkpoint_requested_at=maybe(times),
    checkpointed_at=maybe(times),
    node_time=st.sampled_from(
        ({}, {NodeKind(pool="a-spot", capacity=CapacityType.SPOT): timedelta(minutes=90)})
    ),
    nodes=st.sampled_from(NODES),
    max_cost=maybe(st.builds(MaxCost, amount=amounts, gives_up=st.booleans())),
    work_done=maybe(waits),
    may_run_here=st.sampled_from((True, True, True, False)),
    copy=maybe(
        st.builds(
            CopyStatus,
            pods_expected=counts,
            pods_placed=counts,
            pool=st.sampled_from(("", "a-spot", "b-spot")),
            evictions=counts,
            is_given_up=st.booleans(),
        )
    ),
)


Situation: TypeAlias = tuple[JobState | UnreadableState | None, Observation, Policy | NoPolicy]

_SPENT = Tier(pool="a-spot", max_failures=1, procurement_timeout=timedelta(minutes=15))
_LADDER = Policy(
    tiers=(
        _SPENT,
        Tier(pool="b-spot", max_failures=2),
        Tier(pool="a-spot", cluster="west", max_failures=2),
        Tier(pool="on-demand"),
    ),
    return_after=timedelta(hours=1),
    give_up_after=timedelta(hours=2),
)
_GANG = (PodShape(count=4, requests={"cpu": "4"}),)


@st.composite
def _suspended_situations(draw: st.DrawFn) -> Situation:
    """A job that the controller has suspended, as its operator reports it."""
    state = replace(
        draw(job_states),
        uid=UID,
        phase=draw(
            st.sampled_from((Phase.SUSPENDING, Phase.SUSPENDING, Phase.PAUSED, Phase.AWAY, Phase.GIVEN_UP))
        ),
        pool=draw(st.sampled_from((*POOLS[:3], "west/a-spot"))),
    )
    observation = replace(
        draw(observations),
        # What the job waits for is there more often than not, so that most decisions do something.
        follows=draw(st.sampled_from((True, True, True, False))),
        suspended=draw(st.sampled_from((True, True, True, False))),
        is_suspension_complete=draw(st.sampled_from((True, True, False))),
        pods_remaining=draw(st.sampled_from((0, 0, 0, 0, 4))),
        outdated_children=draw(st.sampled_from((0, 0, 2))),
        may_run_here=draw(st.sampled_from((True, True, True, True, False))),
        is_managed_by_kueue=False,
        outcome=None,
        pool=draw(st.sampled_from((state.pool, state.pool, "b-spot"))),
        pools={},
    )
    return state, observation, draw(st.just(_LADDER) | policies)


@st.composite
def _failback_situations(draw: st.DrawFn) -> Situation:
    """A job that runs on the last tier, at any stage of a failback."""
    stages = (
        FailbackStage.RESERVING,
        FailbackStage.TAINTING,
        FailbackStage.CHECKPOINTING,
        FailbackStage.MOVING,
        FailbackStage.MOVING,  # placeholders are deleted here only
    )
    attempt = FailbackAttempt(
        pool=draw(st.sampled_from(POOLS[:2])), stage=draw(st.sampled_from(stages)), since=T0, requested_at=T0
    )
    state = JobState(
        uid=UID,
        phase=draw(st.sampled_from((Phase.RUNNING, Phase.WAITING))),
        pool="on-demand",
        rank=2,
        since=T0 - timedelta(hours=draw(few)),
        failback=draw(st.sampled_from((None, attempt, attempt, attempt))),
    )
    placed = draw(st.sampled_from((0, 3, 4, 4, 4)))
    reservation = Reservation(
        pool=attempt.pool,
        pods=draw(st.sampled_from((0, 4, 4))),
        placed=placed,
        tainted=draw(st.sampled_from((0, placed, placed))),
    )
    observation = Observation(
        uid=UID,
        created=T0 - timedelta(days=1),
        now=T0 + draw(st.sampled_from((timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)))),
        can_be_suspended=draw(st.sampled_from((True, True, True, True, False))),
        pool="on-demand",
        pods_expected=4,
        pods_placed=draw(st.sampled_from((4, 4, 4, 4, 2))),
        pods_started=4,
        pods_remaining=4,
        shapes=_GANG,
        losses=draw(st.just(()) | st.tuples(losses)),
        reservation=draw(st.sampled_from((None, reservation, reservation, reservation))),
        checkpoints_on_request=draw(st.booleans()),
        checkpoint_requested_at=draw(st.none() | st.just(T0)),
        checkpointed_at=draw(st.none() | st.just(T0)),
    )
    return state, observation, _LADDER


@st.composite
def _failed_situations(draw: st.DrawFn) -> Situation:
    """A RayJob that asks to be recreated and has failed."""
    state = replace(draw(job_states), uid=UID, recreations=draw(st.integers(0, 10)))
    observation = replace(
        draw(observations),
        follows=draw(st.sampled_from((True, True, False))),
        is_managed_by_kueue=draw(st.sampled_from((False, False, True))),
        outcome=JobOutcome.FAILED,
        failure_cause=draw(st.sampled_from(Cause)),
        can_be_recreated=True,
    )
    return state, observation, draw(st.just(_LADDER) | policies)


situations: st.SearchStrategy[Situation] = st.one_of(
    st.tuples(states, observations, policies),
    _suspended_situations(),
    _suspended_situations(),
    # Most actions are steps of a failback, and these situations are drawn in a third of the time.
    *(_failback_situations() for _ in range(6)),
    _failed_situations(),
)
