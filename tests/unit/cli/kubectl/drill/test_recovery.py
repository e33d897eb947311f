"""The drill's record of a recovery: stages, steps lost, node time."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulumi_holdfast.cli.kubectl.drill.recovery import (
    Progress,
    Recovery,
    Sighting,
    Stage,
    advance,
    begin,
    parse_progress,
)
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import PROGRESS
from tests.support.builders.fallback_objects import NOW, worker
from tests.support.json_objects import obj


def pod(name: str, steps: int | None = None, *, node: str | None = "n1", ends: bool = False) -> Json:
    notes = {} if steps is None else {PROGRESS: f"{steps}/1000"}
    placed = worker(name, annotations=notes, node=node) if node else worker(name, annotations=notes)
    if not ends:
        return placed
    return {**placed, "metadata": {**obj(placed["metadata"]), "deletionTimestamp": NOW.isoformat()}}


def steps(done: int) -> Progress:
    return Progress(share=done / 1000, done=done, total=1000)


def followed(record: Recovery, *seen: tuple[float, list[Json]]) -> Recovery:
    for at, pods in seen:
        record = advance(record, Sighting(at=at, pods=pods))
    return record


OLD = [pod("a", 190), pod("b", node="n2")]


def test_gang_is_followed_through_every_stage_and_the_steps_since_its_checkpoint_are_lost() -> None:
    found = followed(
        begin(OLD, steps(190), "a-spot"),
        (1, [pod("a", 197), pod("b", node="n2", ends=True)]),
        (3, [pod("c", node=None), pod("d", node=None)]),
        (5, [pod("c"), pod("d", node="n3")]),
        (8, [pod("c", 160), pod("d", node="n3")]),
        (20, [pod("c", 197), pod("d", node="n3")]),
        (21, [pod("c", 198), pod("d", node="n3")]),
    )
    assert found.steps_lost == 37
    assert found.stages == {
        Stage.LOST: 1,
        Stage.REPLACED: 3,
        Stage.PLACED: 5,
        Stage.STARTED: 5,
        Stage.REPORTED: 8,
        Stage.RECOVERED: 21,
    }
    assert found.node_seconds == pytest.approx(1 * 2 + 2 * 1 + 2 * 0 + 16 * 2)


def test_program_with_a_checkpoint_on_notice_loses_nothing() -> None:
    found = followed(
        begin(OLD, steps(190), None),
        (1, [pod("a", 195, ends=True), pod("b", node="n2")]),
        (2, [pod("c", 195), pod("d", node="n3")]),
        (3, [pod("c", 196), pod("d", node="n3")]),
    )
    assert found.steps_lost == 0
    assert found.is_complete


def test_surviving_driver_whose_report_falls_has_lost_the_difference() -> None:
    found = followed(
        begin([pod("driver", 500), pod("w1", node="n2")], steps(500), None),
        (1, [pod("driver", 510), pod("w1", node="n2", ends=True)]),
        (4, [pod("driver", 480), pod("w2", node="n3")]),
        (9, [pod("driver", 511), pod("w2", node="n3")]),
    )
    assert found.steps_lost == 30
    assert found.stages[Stage.RECOVERED] == 9


def test_report_on_the_job_counts_once_no_old_pod_runs() -> None:
    record = begin([pod("a"), pod("b", node="n2")], steps(100), None)
    seen = [
        Sighting(at=1, pods=[pod("a"), pod("b", node="n2", ends=True)], own_progress=steps(105)),
        Sighting(at=2, pods=[pod("c"), pod("d")], own_progress=steps(105)),
        Sighting(at=3, pods=[pod("c"), pod("d")], own_progress=steps(90)),
        Sighting(at=4, pods=[pod("c"), pod("d")], own_progress=steps(106)),
    ]
    for each in seen:
        record = advance(record, each)
    assert record.steps_lost == 15, "the old report stays on the job until the new gang writes another"
    assert record.stages[Stage.RECOVERED] == 4


def test_job_that_completes_has_recovered() -> None:
    found = advance(begin(OLD, steps(999), None), Sighting(at=2, pods=[], has_completed=True))
    assert Stage.LOST in found.stages
    assert found.is_complete


@given(
    st.lists(
        st.tuples(
            st.integers(0, 5),
            st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(0, 1000), st.booleans())),
            st.booleans(),
        ),
        max_size=12,
    )
)
def test_whatever_is_seen_stages_are_in_order_and_losses_are_not_negative(
    course: list[tuple[int, list[tuple[str, int, bool]], bool]],
) -> None:
    record, at = begin(OLD, steps(190), None), 0.0
    for later, pods, completes in course:
        at += later
        named = {name: pod(name, done, ends=ends) for name, done, ends in pods}
        record = advance(record, Sighting(at=at, pods=list(named.values()), has_completed=completes))
        reached = [record.stages[stage] for stage in Stage if stage in record.stages]
        assert reached == sorted(reached)
        assert [stage for stage in Stage if stage in record.stages] == list(Stage)[: len(reached)]
        assert record.steps_lost is None or 0 <= record.steps_lost <= 1000
        assert record.node_seconds >= 0


@pytest.mark.parametrize(
    ("written", "share"), [("0.42", 0.42), ("4200/10000", 0.42), (" 1/2 ", 0.5), ("1", 1.0), ("0", 0.0)]
)
def test_progress_is_read_as_the_controller_reads_it(written: str, share: float) -> None:
    found = parse_progress(written)
    assert found is not None
    assert found.share == pytest.approx(share)


@pytest.mark.parametrize("written", ["", "half", "2", "-0.1", "3/0", "5/4", "nan", "inf/inf", "1/2/3"])
def test_anything_else_is_no_progress(written: str) -> None:
    assert parse_progress(written) is None, "a guess would be a wrong loss"
