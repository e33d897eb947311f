"""The second account of a fault run: ledgers that are right, and ledgers with one error each."""

import json
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final, cast

import pytest

from pulumi_holdfast.controller.jobs.patches import write_state
from pulumi_holdfast.controller.jobs.state import JobState, Ledger, Phase, PoolUse
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import POOL, CapacityType
from tests.soak.faults.ledgers import NodeUse, TierFacts, spans_of, wrong_bills
from tests.soak.faults.nodes import NodeTimeline, Reserved
from tests.soak.faults.observations import Record
from tests.support.builders.job_timelines import TimelineBuilder, after

TIERS: Final = {"spot-a": TierFacts(capacity=CapacityType.SPOT, price=0.5)}
SECOND: Final = timedelta(seconds=1)


def nodes() -> NodeTimeline:
    """Two nodes of `spot-a`."""
    timeline = NodeTimeline()
    for name in ("n1-0", "n1-1"):
        timeline.record_node(
            {"metadata": {"name": name, "labels": {POOL: "spot-a"}}}, after(0), is_deleted=False
        )
    return timeline


def record(kills: tuple[datetime, ...] = ()) -> Record:
    """A job whose two pods are bound to a node each at 1 s, and stay there."""
    watched = TimelineBuilder().job(0, phase="Waiting", pool="spot-a").gang(0)
    return Record(trace=watched.trace, pods=2, vanished={}, until=after(200), kills=kills)


def ledger(until: float, node_seconds: float, *, waited: float = 1.0) -> Ledger:
    """What the job has used until a time, at the declared price."""
    node_time = timedelta(seconds=node_seconds)
    ran = timedelta(seconds=until - waited)
    use = PoolUse(
        pool="spot-a",
        capacity=CapacityType.SPOT,
        node_time=node_time,
        ran=ran,
        cost=0.5 * node_seconds / 3600,
    )
    return Ledger(
        counted_from=after(0),
        counted_until=after(until),
        uses=(use,),
        worked=ran,
        waited=timedelta(seconds=waited),
    )


def states(*ledgers: Ledger) -> list[Json]:
    """The states that were written with them."""
    state = JobState(uid="train-uid", phase=Phase.RUNNING, pool="spot-a", rank=0, since=after(0))
    return [cast("Json", json.loads(write_state(replace(state, ledger=each)))) for each in ledgers]


def bills(*ledgers: Ledger, seen: Record | None = None) -> list[str]:
    return wrong_bills(seen or record(), states(*ledgers), NodeUse(nodes(), ()), TIERS)


def test_a_ledger_that_agrees_with_the_watched_nodes_is_right() -> None:
    assert bills(ledger(10, 18), ledger(110, 218)) == []
    assert bills(ledger(2, 0), ledger(10, 18)) == []


@pytest.mark.parametrize(("counted", "what"), [(318.0, "300.0"), (118.0, "100.0"), (18.0, "0.0")])
def test_node_time_that_no_node_had_or_that_is_missing_is_found(counted: float, what: str) -> None:
    (problem,) = bills(ledger(10, 18), ledger(110, counted))
    assert f"counts {what} s of nodes of spot-a, and it had 200.0 s" in problem


def test_a_killed_controller_may_miss_nodes_but_never_count_them_twice() -> None:
    seen = record(kills=(after(60),))
    assert bills(ledger(10, 18), ledger(110, 118), seen=seen) == []
    assert bills(ledger(10, 18), ledger(110, 418), seen=seen)


@pytest.mark.parametrize(
    "damage",
    [
        {"worked": timedelta(seconds=150)},
        {"waited": timedelta(seconds=30)},
        {"uses": (replace(ledger(110, 218).uses[0], cost=0.5),)},
        {"uses": (replace(ledger(110, 218).uses[0], capacity=CapacityType.ON_DEMAND),)},
        {"counted_from": after(5)},
    ],
    ids=["worked", "waited", "cost", "capacity", "begin"],
)
def test_parts_that_do_not_add_up_are_found(damage: dict[str, object]) -> None:
    broken = replace(ledger(110, 218), **damage)  # type: ignore[arg-type]  # each value is one of its field
    assert bills(ledger(10, 18), broken), f"{damage} is wrong"


def test_a_node_with_two_pods_or_a_reservation_counts_once_and_until_it_is_gone() -> None:
    timeline, seen = nodes(), record()
    for uid, pod in seen.trace.pods.items():
        seen.trace.pods[uid] = replace(pod, node="n1-0", ended_at=after(50))
    timeline.taints.append(Reserved(job="train-uid", node="n1-0", since=after(40), until=after(90)))
    timeline.record_node(
        {"metadata": {"name": "n1-0", "labels": {POOL: "spot-a"}}}, after(80), is_deleted=True
    )
    (span,) = spans_of(replace(seen, trace=replace(seen.trace, uid="train-uid")), NodeUse(timeline, ()))
    assert (span.pool, span.since, span.until) == ("spot-a", after(1), after(80))


def test_a_node_with_pods_of_two_jobs_is_divided_by_their_pods() -> None:
    neighbor = record()
    neighbor = replace(neighbor, trace=replace(neighbor.trace, uid="another"), until=after(61))
    own = replace(record(), trace=replace(record().trace, uid="train-uid"))
    jobs = NodeUse(nodes(), [own, neighbor])
    spans = spans_of(own, jobs)
    assert [(each.since, each.until, each.share) for each in spans[:2]] == [
        (after(1), after(61), 0.5),
        (after(61), after(200), 1.0),
    ]
    found = wrong_bills(own, states(ledger(10, 9), ledger(110, 9 + 51 + 98)), jobs, TIERS)
    assert found == []
