"""The page's view model."""

from collections.abc import Mapping
from datetime import datetime

import pytest

from pulumi_holdfast.cli.kubectl.ui.board import (
    ELSEWHERE,
    MOST_SPANS,
    Reading,
    Span,
    board,
    views_of,
    with_spans,
)
from pulumi_holdfast.controller.jobs.patches import write_state
from pulumi_holdfast.controller.jobs.state import JobState, Phase
from pulumi_holdfast.ladder.labels import STATE
from pulumi_holdfast.ladder.ladder import NoPolicy, Policy
from tests.support.builders.fallback_objects import UID, jobset
from tests.support.builders.job_states import HOUR, MINUTE, SECOND, T0, policy, running, waiting
from tests.support.json_objects import obj, objects


def reading(*states: JobState, now: datetime = T0, ladder: Policy | NoPolicy | None = None) -> Reading:
    jobs = [jobset(annotations={STATE: write_state(state)}) for state in states]
    return Reading(
        namespace="vision", context="training", now=now, policy=ladder or policy(), jobs=jobs, events=()
    )


def test_lanes_are_the_tiers_and_jobs_are_on_the_lane_of_their_pool() -> None:
    found = board(reading(running(uid=UID, pool="b-spot", rank=1)), {})
    assert [each["pool"] for each in objects(found["lanes"])] == ["a-spot", "b-spot", "on-demand"]
    assert objects(found["lanes"])[0]["facts"] == ["3 failures move a job on", "waits 15m for nodes"]
    (job,) = objects(found["jobs"])
    assert (job["lane"], job["tone"]) == ("b-spot", "good")


def test_job_on_a_pool_of_no_tier_has_a_lane_of_its_own() -> None:
    found = board(reading(running(uid=UID, pool="gone")), {})
    assert objects(found["lanes"])[-1]["pool"] == ELSEWHERE, "it must not be lost from the page"
    assert objects(found["jobs"])[0]["lane"] == ELSEWHERE


def test_namespace_without_a_ladder_says_so() -> None:
    found = board(reading(ladder=NoPolicy(problems=("tiers: none",))), {})
    assert found["problems"] == ["tiers: none"], "what the user must fix"


@pytest.mark.parametrize(
    ("state", "tone"),
    [
        (waiting(uid=UID), "waiting"),
        (running(uid=UID, phase=Phase.GIVEN_UP), "bad"),
        (running(uid=UID, phase=Phase.STOPPED), "stopped"),
    ],
)
def test_phase_has_a_tone(state: JobState, tone: str) -> None:
    assert objects(board(reading(state), {})["jobs"])[0]["tone"] == tone


def test_timeline_has_a_span_for_each_pool_and_phase_without_gaps() -> None:
    course = [
        (T0, running(uid=UID)),
        (T0 + MINUTE, running(uid=UID)),
        (T0 + 2 * MINUTE, waiting(uid=UID, waiting_since=T0 + 2 * MINUTE)),
        (T0 + 3 * MINUTE, running(uid=UID, pool="b-spot", rank=1)),
    ]
    spans: Mapping[str, tuple[Span, ...]] = {}
    for now, state in course:
        spans = with_spans(spans, views_of(reading(state, now=now)), now)
    assert [(each.pool, each.phase) for each in spans[UID]] == [
        ("a-spot", "Running"),
        ("a-spot", "Waiting"),
        ("b-spot", "Running"),
    ]
    assert spans[UID][0].start == T0 - HOUR, "since when it was on its tier"
    assert [each.end for each in spans[UID]][:-1] == [each.start for each in spans[UID]][1:]
    shown = objects(objects(board(reading(course[-1][1], now=course[-1][0]), spans)["jobs"])[0]["spans"])
    assert obj(shown[-1])["end"] == (T0 + 3 * MINUTE).isoformat(), "the last one lasts until now"


def test_timeline_of_a_deleted_job_is_dropped_and_a_long_one_is_cut() -> None:
    spans: Mapping[str, tuple[Span, ...]] = {}
    for number in range(MOST_SPANS + 5):
        state = running(uid=UID) if number % 2 else waiting(uid=UID)
        spans = with_spans(spans, views_of(reading(state)), T0 + number * SECOND)
    assert len(spans[UID]) == MOST_SPANS
    assert with_spans(spans, [], T0) == {}
