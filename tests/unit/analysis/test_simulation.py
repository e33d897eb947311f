"""Simulated jobs walk their ladder by the controller's own decisions, and the same run twice is the same run."""

from dataclasses import replace
from datetime import datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from pulumi_holdfast.analysis.simulation.job import JobPlan
from pulumi_holdfast.analysis.simulation.run import ENDLESS, Simulation, Steps, simulate
from pulumi_holdfast.controller.jobs.observation import JobOutcome
from pulumi_holdfast.ladder.ladder import NoPolicy, Policy
from tests.support.builders.job_states import HOUR, LAST, MINUTE, SECOND, T0, policy, tier

JOB = JobPlan(
    uid="job", created=T0, pool="a-spot", pods=4, work=10 * HOUR, boot=2 * MINUTE, grace=30 * SECOND
)
LADDER = policy(return_after=HOUR, hold_timeout=10 * MINUTE)
CALM = Steps(pools={})


def run(room: Steps, ladder: Policy | NoPolicy = LADDER, plan: JobPlan = JOB) -> Simulation:
    return simulate([plan], ladder, room, start=T0, until=T0 + 100 * HOUR)


def events(simulation: Simulation) -> list[str]:
    return [each.report.reason for each in simulation.events]


def reclaims(*minutes: int) -> list[tuple[datetime, int]]:
    """A pool that takes a node back at each of these minutes and offers it again five minutes later."""
    steps = [(T0, 4)]
    for minute in minutes:
        steps += [(T0 + minute * MINUTE, 3), (T0 + (minute + 5) * MINUTE, 4)]
    return steps


def test_on_a_calm_market_a_job_runs_where_it_began() -> None:
    job = run(CALM).jobs[0]
    assert (job.outcome, job.finished_at) == (JobOutcome.COMPLETED, T0 + 10 * HOUR + 2 * MINUTE)


def test_a_pool_that_takes_its_nodes_back_three_times_is_left_and_returned_to() -> None:
    market = Steps(pools={"a-spot": reclaims(20, 40, 60), "b-spot": [(T0, 2)]})
    story = events(run(market))
    assert story == [
        "Placed",
        *("OutageCounted", "Placed") * 2,
        "OutageCounted",
        "MaxFailuresReached",
        "Moved",
        "NoCapacity",
        "Moved",
        "Placed",
        "FailbackStarted",
        "FailbackMoving",
        "Moved",
        "Placed",
        "Completed",
    ]


def test_nodes_are_paid_for_from_when_they_are_bought_until_they_are_let_go() -> None:
    simulation = run(CALM)
    paid = sum(((use.end - use.start) * use.nodes for use in simulation.uses), timedelta(0))
    assert paid == 4 * (10 * HOUR + 2 * MINUTE)
    assert {use.pool for use in simulation.uses} == {"a-spot"}


def test_what_is_held_in_vain_is_paid_for_no_longer_than_the_hold_lasts() -> None:
    market = Steps(pools={"a-spot": [(T0, 0), (T0 + HOUR, 3)], "b-spot": [(T0, 0)]})
    simulation = run(market)
    held = [use for use in simulation.uses if use.pool == "a-spot"]
    tried = events(simulation).count("FailbackEnded")
    assert tried >= 1
    assert sum(((use.end - use.start) for use in held), timedelta(0)) <= tried * 10 * MINUTE


def test_work_since_the_last_checkpoint_is_done_again() -> None:
    plan = replace(JOB, checkpoint_every=30 * MINUTE, boot=timedelta(0))
    job = run(Steps(pools={"a-spot": reclaims(40)}), plan=plan).jobs[0]
    assert job.lost == 10 * MINUTE
    assert job.finished_at == T0 + 10 * HOUR + 10 * MINUTE + 5 * MINUTE


def test_a_job_without_a_ladder_stays_on_spot_however_long_it_takes() -> None:
    market = Steps(pools={"a-spot": [(T0, 4), (T0 + HOUR, 0), (T0 + 90 * HOUR, 4)]})
    job = run(market, NoPolicy()).jobs[0]
    assert job.finished_at == T0 + 99 * HOUR + 4 * MINUTE


def test_jobs_share_what_a_pool_has() -> None:
    plans = [replace(JOB, uid=f"job-{number}", created=T0 + number * SECOND) for number in range(3)]
    crowd = simulate(
        plans,
        policy(tiers=(tier(), LAST)),
        Steps(pools={"a-spot": [(T0, 8)]}),
        start=T0,
        until=T0 + 50 * HOUR,
    )
    ended_on = sorted(job.nodes.pool for job in crowd.jobs)
    assert ended_on == ["a-spot", "a-spot", "on-demand"]


def test_a_pool_that_is_not_named_has_no_end() -> None:
    assert CALM.nodes("anything", T0) == ENDLESS
    assert Steps(pools={"a": [(T0, 3)]}).nodes("a", T0 - SECOND) == 0


@settings(max_examples=20, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 40 * 60), st.integers(0, 6)), max_size=20),
    st.lists(st.tuples(st.integers(1, 40 * 60), st.integers(0, 6)), max_size=20),
    st.integers(1, 4),
)
def test_whatever_the_market_does_every_job_ends_and_the_same_run_is_the_same(
    a: list[tuple[int, int]], b: list[tuple[int, int]], jobs: int
) -> None:
    market = Steps(
        pools={
            pool: [(T0, 4), *((T0 + minute * MINUTE, nodes) for minute, nodes in sorted(steps))]
            for pool, steps in (("a-spot", a), ("b-spot", b))
        }
    )
    plans = [
        replace(JOB, uid=f"job-{number}", pods=1 + number, created=T0 + number * SECOND)
        for number in range(jobs)
    ]
    one, other = (simulate(plans, LADDER, market, start=T0, until=T0 + 500 * HOUR) for _ in range(2))
    assert one == other
    assert all(job.outcome is JobOutcome.COMPLETED for job in one.jobs)
    assert not any(job.held for job in one.jobs)
