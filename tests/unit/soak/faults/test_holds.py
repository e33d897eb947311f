"""The rules of reservations, from the placeholders that were watched."""

from datetime import datetime, timedelta
from typing import Final

from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import POOL, RESERVED_FOR
from tests.soak.faults.holds import broken_holds
from tests.soak.faults.nodes import NodeTimeline, Placeholder
from tests.support.builders.job_timelines import after

NEEDS: Final = {"one": 2, "other": 2}


def timeline(*found: Placeholder) -> NodeTimeline:
    return NodeTimeline(placeholders={str(number): each for number, each in enumerate(found)})


def hold(
    job: str, since: float, until: float, *, bound: float | None = None, pods: int = 2
) -> list[Placeholder]:
    """The placeholders of one hold; without `bound` they never get nodes."""
    at = None if bound is None else after(bound)
    return [
        Placeholder(job=job, pool="spot-a", born_at=after(since), bound_at=at, ended_at=after(until))
        for _ in range(pods)
    ]


def problems(*found: Placeholder, kills: tuple[datetime, ...] = ()) -> list[str]:
    return broken_holds(
        timeline(*found),
        NEEDS,
        hold_timeout=timedelta(seconds=40),
        late=timedelta(seconds=3),
        kills=kills,
        until=after(900),
    )


def test_one_incomplete_hold_after_the_other_is_right() -> None:
    assert problems(*hold("one", 0, 40), *hold("other", 44, 84)) == []
    assert problems(*hold("one", 0, 60, bound=5), *hold("other", 6, 46)) == []
    assert problems(*hold("one", 0, 40), *hold("other", 36, 76)) == []


def test_two_incomplete_holds_of_one_pool_are_found() -> None:
    (problem,) = problems(*hold("one", 0, 40), *hold("other", 10, 45))
    assert "one and other both held a part of spot-a" in problem, "neither could use its half"
    assert problems(*hold("one", 0, 40), *hold("other", 10, 45), kills=(after(12),)) == []


def test_a_hold_beyond_its_timeout_is_found() -> None:
    (problem,) = problems(*hold("one", 0, 200))
    assert "one held capacity in spot-a" in problem
    assert problems(*hold("one", 0, 40), *hold("one", 120, 160)) == []


def test_the_timeline_follows_taints_placeholders_and_nodes() -> None:
    seen = NodeTimeline()

    def node(job: str | None) -> Json:
        taints: list[Json] = (
            [] if job is None else [{"key": RESERVED_FOR, "value": job, "effect": "NoSchedule"}]
        )
        return {"metadata": {"name": "n", "labels": {POOL: "spot-a"}}, "spec": {"taints": taints}}

    for at, job in ((0, None), (1, "one"), (2, "one"), (3, None), (4, "other")):
        seen.record_node(node(job), after(at), is_deleted=False)
    seen.end_missing("Node", set(), after(9))
    assert [(each.job, each.since, each.until) for each in seen.taints] == [
        ("one", after(1), after(3)),
        ("other", after(4), after(9)),
    ]
    pod: Json = {
        "metadata": {"uid": "p", "labels": {RESERVED_FOR: "one", POOL: "spot-a"}},
        "spec": {"nodeName": "n"},
    }
    seen.record_placeholder(pod, after(5), is_deleted=False)
    seen.end_missing("Pod", set(), after(7))
    held = [each for each in seen.held("one") if each.since == after(5)]
    assert [(each.node, each.until) for each in held] == [("n", after(7))]
