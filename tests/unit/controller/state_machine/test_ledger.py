"""The ledger of a job: what is counted, at which prices, when it is written, and how it is said."""

from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Final

import pytest

from pulumi_holdfast.controller.jobs.actions import WriteState
from pulumi_holdfast.controller.jobs.observation import (
    CopyStatus,
    JobOutcome,
    NodeKind,
    Observation,
    PoolStatus,
)
from pulumi_holdfast.controller.jobs.patches import read_state, write_state
from pulumi_holdfast.controller.jobs.state import JobState, Ledger, Phase, PoolUse
from pulumi_holdfast.controller.state_machine.decision import decide
from pulumi_holdfast.controller.state_machine.ledger import of_on_demand, spending_text, with_ledger
from pulumi_holdfast.ladder.labels import CapacityType
from pulumi_holdfast.ladder.ladder import DeclaredFacts
from tests.support.builders.job_states import (
    HOUR,
    LAST,
    MINUTE,
    SPOT,
    T0,
    kinds,
    observed,
    policy,
    running,
    state_of,
    suspending,
    waiting,
)

NODES = NodeKind(pool="a-spot", capacity=CapacityType.SPOT)
LADDER = policy(
    tiers=(
        replace(SPOT, price=0.5, facts=DeclaredFacts(capacity=CapacityType.SPOT)),
        replace(LAST, price=2.0, facts=DeclaredFacts(capacity=CapacityType.ON_DEMAND)),
    )
)
EMPTY = Ledger(counted_from=T0 - 9 * HOUR, counted_until=T0 - HOUR)
FULL = Ledger(
    counted_from=T0 - 60 * HOUR,
    counted_until=T0,
    uses=(
        PoolUse(pool="a-spot", capacity=CapacityType.SPOT, node_time=31 * HOUR, ran=31 * HOUR, cost=9.3),
        PoolUse(pool="od", capacity=CapacityType.ON_DEMAND, node_time=17 * HOUR, ran=17 * HOUR, cost=17.0),
    ),
    worked=48 * HOUR,
    gang_time=48 * HOUR,
)


#: An observation an hour after the state was last written, with two nodes on the spot tier since then.
with_nodes = partial(observed, node_time={NODES: 2 * HOUR}, nodes={NODES: 2})


def counted(state: JobState, seen: Observation | None = None) -> Ledger:
    """The ledger of a state that was last written an hour ago."""
    ledger = with_ledger(replace(state, ledger=state.ledger or EMPTY), seen or with_nodes(), LADDER).ledger
    assert ledger is not None
    return ledger


def test_an_hour_of_a_job_that_runs_is_work_at_the_price_of_its_tier() -> None:
    ledger = counted(running())
    use = PoolUse(pool="a-spot", capacity=CapacityType.SPOT, node_time=2 * HOUR, ran=HOUR, cost=1.0)
    assert ledger.uses == (use,)
    assert (ledger.worked, ledger.lost, ledger.waited) == (HOUR, 0 * HOUR, 0 * HOUR)
    assert ledger.counted_until == T0


def test_a_price_that_is_observed_counts_more_than_the_declared_one() -> None:
    assert counted(running(), with_nodes(pools={"a-spot": PoolStatus(price=0.25)})).cost == 0.5


@pytest.mark.parametrize(
    "state", [waiting(), suspending(), suspending(phase=Phase.PAUSED)], ids=lambda each: each.phase
)
def test_an_hour_without_all_nodes_is_waited(state: JobState) -> None:
    ledger = counted(state)
    assert (ledger.waited, ledger.worked + ledger.lost) == (HOUR, 0 * HOUR)
    assert ledger.cost == 1.0
    assert ledger.starting == LADDER.restart_cost


@pytest.mark.parametrize("phase", [Phase.STOPPED, Phase.GIVEN_UP, Phase.FINISHED])
def test_an_hour_of_a_job_at_rest_is_nothing_it_waited_for(phase: Phase) -> None:
    ledger = counted(running(phase=phase), with_nodes(node_time={}))
    assert (ledger.waited, ledger.worked, ledger.lost) == (0 * HOUR,) * 3


def test_the_first_of_a_run_is_lost_until_the_program_reports_otherwise() -> None:
    started = replace(EMPTY, starting=15 * MINUTE)
    ledger = counted(running(ledger=started))
    assert (ledger.lost, ledger.worked, ledger.starting) == (15 * MINUTE, 45 * MINUTE, 0 * HOUR)
    ledger = counted(running(ledger=started), with_nodes(work_done=50 * MINUTE))
    assert (ledger.lost, ledger.worked) == (10 * MINUTE, 50 * MINUTE)
    assert counted(running(), with_nodes(restarts=1)).starting == LADDER.restart_cost


def test_the_ledger_is_written_with_another_change_or_after_an_hour() -> None:
    state = running(ledger=replace(EMPTY, counted_until=T0 - 59 * MINUTE))
    seen = observed(node_time={NODES: HOUR}, nodes={NODES: 2})
    decision = decide(state, seen, LADDER)
    assert (decision.actions, decision.state) == ((), state)
    assert state_of(decision).ledger == state.ledger
    assert decision.requeue_at == T0 + MINUTE
    later = decide(state, replace(seen, now=T0 + MINUTE), LADDER)
    assert kinds(later) == [WriteState]
    moved = state_of(decide(state, replace(seen, pods_placed=0), LADDER))
    assert moved.ledger == counted(state, with_nodes(node_time=seen.node_time))


def test_a_job_at_rest_is_written_once_its_last_node_is_free() -> None:
    state = running(phase=Phase.FINISHED, ledger=replace(EMPTY, counted_until=T0 - MINUTE))
    seen = observed(outcome=JobOutcome.FAILED, node_time={NODES: HOUR}, nodes={NODES: 2})
    assert kinds(decide(state, seen, LADDER)) == []
    assert kinds(decide(state, replace(seen, nodes={}), LADDER)) == [WriteState]


def test_a_completed_job_says_what_it_cost() -> None:
    assert spending_text(FULL, 1.0) == "31 h spot, 17 h on-demand: 0.55 of on-demand"
    assert spending_text(FULL, None) == "31 h spot, 17 h on-demand"
    assert spending_text(EMPTY, 1.0) == ""
    decision = decide(running(ledger=FULL), observed(outcome=JobOutcome.COMPLETED), LADDER)
    assert decision.events[0].message == (
        "The job has completed, on a-spot. It ran 31 h spot, 17 h on-demand: 0.27 of on-demand."
    )


THERE: Final = PoolUse(pool="b-spot", capacity=CapacityType.SPOT, node_time=4 * HOUR, ran=2 * HOUR, cost=1.2)
COPY: Final = CopyStatus(
    uid="copy-1",
    cluster="west",
    ledger=Ledger(
        counted_from=T0 - 3 * HOUR,
        counted_until=T0 - HOUR,
        uses=(THERE,),
        worked=HOUR,
        lost=HOUR,
        gang_time=4 * HOUR,
    ),
)
AWAY: Final = running(phase=Phase.AWAY, pool="west/b-spot", ledger=replace(EMPTY, waited=8 * HOUR))


def test_what_a_copy_uses_is_in_the_ledger_of_its_job_once() -> None:
    first = counted(AWAY, with_nodes(node_time={}, copy=COPY))
    assert first.uses == (replace(THERE, pool="west/b-spot"),)
    assert (first.worked, first.lost, first.gang_time) == (HOUR, HOUR, 4 * HOUR)
    assert first.waited == 7 * HOUR
    state = replace(AWAY, ledger=first)
    assert counted(state, with_nodes(node_time={}, copy=COPY)) == first

    there = COPY.ledger
    assert there is not None
    grown = replace(there, counted_until=T0, uses=(replace(THERE, node_time=5 * HOUR, cost=1.5),))
    later = counted(state, with_nodes(node_time={}, copy=replace(COPY, ledger=grown)))
    assert (later.uses[0].node_time, later.cost) == (5 * HOUR, pytest.approx(1.5))
    next_copy = counted(
        replace(state, ledger=later), with_nodes(node_time={}, copy=replace(COPY, uid="copy-2"))
    )
    assert next_copy.uses[0].node_time == 9 * HOUR
    written = read_state(write_state(replace(state, ledger=next_copy)))
    assert isinstance(written, JobState)
    assert written.ledger == next_copy


def test_the_ledger_of_a_copy_is_written_as_soon_as_it_is_read() -> None:
    fresh = replace(AWAY, ledger=replace(EMPTY, counted_until=T0))
    seen = observed(suspended=True, copy=replace(COPY, pods_placed=2, pods_expected=2))
    written = decide(fresh, seen, LADDER)
    assert WriteState in kinds(written)
    assert WriteState not in kinds(decide(state_of(written), seen, LADDER))


def test_lost_time_makes_a_job_dearer_than_on_demand() -> None:
    lost = replace(FULL, worked=24 * HOUR, lost=24 * HOUR)
    assert of_on_demand(lost, 0.5) == pytest.approx(26.3 / 12)
    assert of_on_demand(replace(FULL, worked=timedelta(0)), 1.0) is None
