"""The ledger of a simulated job equals the simulation's own account: node by node, second by second."""

from dataclasses import replace
from datetime import datetime, timedelta
from math import isclose

from hypothesis import given, settings
from hypothesis import strategies as st

from pulumi_holdfast.analysis.simulation.job import JobPlan
from pulumi_holdfast.analysis.simulation.run import Simulation, Steps, simulate
from pulumi_holdfast.controller.jobs.state import JobState, Ledger
from pulumi_holdfast.controller.state_machine.ledger import of_on_demand, with_ledger
from pulumi_holdfast.ladder.labels import CapacityType
from pulumi_holdfast.ladder.ladder import DeclaredFacts, Tier
from tests.support.builders.job_states import HOUR, LAST, LOWER, MINUTE, SPOT, T0, policy
from tests.support.soak import sized

PRICES = {"a-spot": 0.75, "b-spot": 1.25, "on-demand": 2.5}
SPOT_FACTS, LAST_FACTS = (
    DeclaredFacts(capacity=CapacityType.SPOT),
    DeclaredFacts(capacity=CapacityType.ON_DEMAND),
)
NOTHING = timedelta(0)


def priced(tier: Tier, facts: DeclaredFacts = SPOT_FACTS) -> Tier:
    return replace(tier, facts=facts, price=PRICES[tier.name])


LADDER = policy(
    tiers=(priced(SPOT), priced(LOWER), priced(LAST, LAST_FACTS)), return_after=HOUR, hold_timeout=10 * MINUTE
)
JOB = JobPlan(uid="job", created=T0, pool="a-spot", pods=4, work=10 * HOUR)


def minutes(most: int) -> st.SearchStrategy[timedelta]:
    return st.integers(0, most).map(lambda number: number * MINUTE)


def ledger_of(run: Simulation) -> Ledger:
    """The ledger with everything until the end of the simulation, of a job that has finished or not."""
    (job,) = run.jobs
    assert isinstance(job.state, JobState)
    seen = run.observed(job)
    state = with_ledger(job.state, seen, run.policy)
    assert state.ledger is not None
    return state.ledger


def spent(run: Simulation, pool: str) -> timedelta:
    return sum((use.nodes * (use.end - use.start) for use in run.uses if use.pool == pool), NOTHING)


@settings(max_examples=sized(40, soak=2000), deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(("a-spot", "b-spot")),
        st.lists(st.tuples(minutes(90), st.integers(0, 4)), max_size=12),
    ),
    st.builds(
        JobPlan,
        uid=st.just("job"),
        created=st.just(T0),
        pool=st.just("a-spot"),
        pods=st.integers(1, 4),
        work=st.integers(1, 20).map(lambda hours: hours * HOUR),
        boot=minutes(9),
        restart=minutes(29),
        grace=minutes(9),
        checkpoint_every=st.sampled_from((None, 7 * MINUTE, HOUR)),
        finish_by=st.sampled_from((None, T0 + 15 * HOUR)),
    ),
)
def test_the_ledger_of_a_job_equals_the_account_of_its_simulation(
    drawn: dict[str, list[tuple[timedelta, int]]], plan: JobPlan
) -> None:
    pools = {
        pool: list(zip(_times([gap for gap, _ in gaps]), [n for _, n in gaps], strict=True))
        for pool, gaps in drawn.items()
    }
    run = simulate([plan], LADDER, Steps(pools=pools), start=T0, until=T0 + 60 * HOUR)
    (job,), ledger = run.jobs, ledger_of(run)
    used = {use.pool: use.node_time for use in ledger.uses if use.node_time}
    assert used == {pool: time for pool in PRICES if (time := spent(run, pool))}
    ran = ledger.worked + ledger.lost
    took = (job.finished_at or run.now) - T0
    assert ran == job.placed_for
    assert ledger.waited == took - job.placed_for
    assert ledger.worked == job.progress
    assert sum((use.ran for use in ledger.uses), NOTHING) == ran
    assert ledger.gang_time >= plan.pods * ran
    cost = sum(PRICES[pool] * (time / HOUR) for pool, time in used.items())
    assert isclose(ledger.cost or 0.0, cost, abs_tol=1e-6)


def _times(gaps: list[timedelta]) -> list[datetime]:
    found: list[datetime] = []
    at = T0
    for gap in gaps:
        at += gap
        found.append(at)
    return found


def test_a_program_that_reports_nothing_loses_the_cost_of_each_start() -> None:
    plan = replace(JOB, restart=12 * MINUTE, reports=False)
    market = Steps(pools={"a-spot": [(T0, 4), (T0 + 3 * HOUR, 0), (T0 + 4 * HOUR, 4)]})
    run = simulate([plan], replace(LADDER, restart_cost=12 * MINUTE), market, start=T0, until=T0 + 60 * HOUR)
    ledger = ledger_of(run)
    assert (ledger.worked, ledger.lost) == (10 * HOUR, job_lost(run))


def job_lost(run: Simulation) -> timedelta:
    (job,) = run.jobs
    return job.placed_for - job.progress


def test_a_job_that_ran_on_on_demand_alone_has_cost_as_much_as_on_demand() -> None:
    ladder = replace(LADDER, tiers=LADDER.tiers[-1:])
    run = simulate([replace(JOB, pool="on-demand")], ladder, Steps(pools={}), start=T0, until=T0 + 60 * HOUR)
    assert of_on_demand(ledger_of(run), PRICES["on-demand"]) == 1.0
