"""The check of a run over two clusters: a run as it should be, and runs with one error each."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Final

import pytest

from pulumi_holdfast.controller.jobs.patches import write_state
from pulumi_holdfast.controller.jobs.state import JobState, Ledger, Phase, PoolUse
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import POOL, STATE, CapacityType
from pulumi_holdfast.rehearsal.timeline.traces import JobTrace
from tests.soak.faults.both_sides import BothSides, check_both
from tests.soak.faults.manifests import POOLS, TIERS
from tests.soak.faults.nodes import NodeTimeline
from tests.soak.faults.plan import Link, Side, draw_two_clusters
from tests.support.builders.job_timelines import TimelineBuilder, after

SECOND: Final = timedelta(seconds=1)
AWAY: Final = f"west/{POOLS[1]}"


def used(pool: str, seconds: float) -> PoolUse:
    """Two nodes of a pool for some seconds."""
    price = TIERS[pool.rpartition("/")[2]].price
    return PoolUse(
        pool=pool,
        capacity=CapacityType.SPOT,
        node_time=2 * seconds * SECOND,
        ran=seconds * SECOND,
        cost=price * 2 * seconds / 3600,
    )


def job(uid: str, phase: Phase, pool: str, *uses: PoolUse, until: float, suspended: bool = False) -> Json:
    """A job whose ledger began with the run."""
    ran = sum((each.ran for each in uses), 0 * SECOND)
    ledger = Ledger(
        counted_from=after(0), counted_until=after(until), uses=uses, worked=ran, waited=until * SECOND - ran
    )
    state = JobState(uid=uid, phase=phase, pool=pool, rank=0, since=after(0), ledger=ledger)
    annotations: Json = {STATE: write_state(state)}
    return {
        "metadata": {"name": "train", "uid": uid, "annotations": annotations},
        "spec": {"suspend": suspended},
    }


def nodes(pool: str) -> NodeTimeline:
    """Two nodes of a pool."""
    timeline = NodeTimeline()
    for name in ("n1-0", "n1-1"):
        timeline.record_node({"metadata": {"name": name, "labels": {POOL: pool}}}, after(0), is_deleted=False)
    return timeline


def run(*, told: float = 100, left_there_at: float = 220, ended: JobTrace | None = None) -> BothSides:
    """A job that runs at home for 100 s, there for 100 s, and at home again; `told`: what home says of its copy."""
    home = TimelineBuilder().gang(0, pool=POOLS[0]).evicted(101, pool=POOLS[0])
    first = used(POOLS[0], 101)
    home.trace.record_job(job("home", Phase.RUNNING, POOLS[0], until=0), after(0))
    home.trace.record_job(job("home", Phase.SUSPENDING, AWAY, first, until=101, suspended=True), after(101))
    home.trace.record_job(job("home", Phase.AWAY, AWAY, first, until=110, suspended=True), after(110))
    home.gang(230, pool=POOLS[0], attempt=1)
    back = used(AWAY, told)
    home.trace.record_job(
        job("home", Phase.SUSPENDING, POOLS[0], first, back, until=220, suspended=True), after(220)
    )
    home.trace.record_job(job("home", Phase.RUNNING, POOLS[0], first, back, until=231), after(231))
    there = TimelineBuilder().gang(119, pool=POOLS[1]).evicted(left_there_at, pool=POOLS[1])
    copy = job("copy", Phase.STOPPED, POOLS[1], used(POOLS[1], 100), until=220, suspended=True)
    there.trace.record_job(copy, after(221))
    there.trace.is_there = False
    return BothSides(
        cluster="west",
        home={"train": ended or home.trace},
        there={"train": there.trace},
        home_nodes=nodes(POOLS[0]),
        there_nodes=nodes(POOLS[1]),
        vanished={side: {} for side in Side},
        kills=dict.fromkeys(Side, ()),
        lag=3 * SECOND,
        until=after(240),
    )


def problems(both: BothSides) -> tuple[str, ...]:
    return check_both(both, others=[], looks=1, deaths=0, requests={}).problems


def test_a_job_that_ran_in_one_cluster_after_the_other_with_one_account_is_right() -> None:
    result = check_both(run(), others=[], looks=1, deaths=0, requests={})
    assert result.problems == ()
    assert (result.transfers, result.returns) == (1, 1)


def suspended(both: BothSides) -> JobTrace:
    trace = both.home["train"]
    trace.changes.append(replace(trace.last, suspended=True))
    return trace


def lost(both: BothSides) -> JobTrace:
    return replace(both.home["train"], is_there=False)


def failed(both: BothSides) -> JobTrace:
    trace = both.home["train"]
    trace.changes.append(replace(trace.last, outcome="Failed"))
    return trace


@pytest.mark.parametrize(
    ("ending", "what"), [(suspended, "it is suspended"), (lost, "it is lost"), (failed, "it is Failed")]
)
def test_a_job_that_is_lost_suspended_or_failed_is_found(
    ending: Callable[[BothSides], JobTrace], what: str
) -> None:
    assert any(what in each for each in problems(run(ended=ending(run()))))


@pytest.mark.parametrize("told", [0.0, 90.0, 110.0, 200.0])
def test_a_ledger_at_home_that_does_not_say_what_the_copy_used_is_found(told: float) -> None:
    assert any("those of its copies" in each for each in problems(run(told=told)))


def test_pods_in_both_clusters_at_once_and_nodes_that_no_ledger_has_are_found() -> None:
    found = problems(run(left_there_at=239))
    assert any("ran at home and" in each for each in found)
    assert any("and the nodes" in each for each in found)


def test_a_plan_has_as_many_faults_as_asked_for_and_is_drawn_again_from_its_seed() -> None:
    plan = draw_two_clusters(7, jobs=[0, 1, 2, 5], faults=60)
    assert 60 <= plan.faults < 70
    assert plan == draw_two_clusters(7, jobs=[0, 1, 2, 5], faults=60)
    assert {Link.CUT, Link.DISTURBED} <= {
        step for each in plan.rounds for step in each if isinstance(step, Link)
    }
