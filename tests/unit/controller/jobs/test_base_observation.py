"""A job's deadline: read from annotations, and a warning with the fix for one that cannot be read."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulumi_holdfast.controller.jobs.actions import EventReason
from pulumi_holdfast.controller.jobs.base_observation import (
    deadline_events,
    deadline_of,
    max_cost_events,
    max_cost_of,
)
from pulumi_holdfast.controller.jobs.observation import Deadline, MaxCost
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import AFTER_MAX_COST, FINISH_BY, MAX_COST, PROGRESS, WORK

BY = "2030-05-03T18:00:00Z"


def annotated(**annotations: str) -> Json:
    return {"metadata": {"annotations": annotations}}


def due_job(finish_by: str | None = BY, work: str | None = "48h", progress: str | None = None) -> Json:
    written = {FINISH_BY: finish_by, WORK: work, PROGRESS: progress}
    return annotated(**{name: value for name, value in written.items() if value is not None})


def test_a_deadline_is_a_time_and_the_work() -> None:
    expected = Deadline(finish_by=datetime(2030, 5, 3, 18, tzinfo=UTC), work=timedelta(hours=48))
    assert deadline_of(due_job(), []) == expected
    assert deadline_of(due_job("2030-05-03T20:00:00+02:00"), []) == expected
    assert deadline_events(due_job()) == ()
    assert (deadline_of({}, []), deadline_events({})) == (None, ())


@pytest.mark.parametrize(
    ("written", "share"),
    [
        ("0.42", 0.42),
        ("4200/10000", 0.42),
        ("1", 1.0),
        ("0", 0.0),
        ("1.5", None),
        ("3/0", None),
        ("nan", None),
        ("x", None),
    ],
)
def test_progress_is_a_share_or_steps(written: str, share: float | None) -> None:
    found = deadline_of(due_job(), [annotated(**{PROGRESS: written})])
    assert found is not None
    assert found.progress == share


def test_the_farthest_pod_reports_for_the_gang() -> None:
    pods = [annotated(**{PROGRESS: "0.2"}), annotated(**{PROGRESS: "0.3"}), annotated()]
    found = deadline_of(due_job(progress="0.9"), pods)
    assert found is not None
    assert found.progress == 0.3
    leaving: Json = {"metadata": {"annotations": {PROGRESS: "0.4"}, "deletionTimestamp": BY}}
    alone = deadline_of(due_job(progress="0.1"), [leaving])
    assert alone is not None
    assert alone.progress == 0.1


@pytest.mark.parametrize(
    ("finish_by", "work", "part"),
    [
        (None, "48h", f"its annotation {WORK} needs {FINISH_BY}"),
        (BY, None, f"its annotation {FINISH_BY} needs {WORK}"),
        ("tomorrow", "48h", 'is "tomorrow"; allowed: a time with its zone'),
        ("2030-05-03T18:00:00", "48h", "a time with its zone"),
        ("2030-05-03", "48h", 'is "2030-05-03"; allowed: a time with its zone'),
        ("20300503T1800-0", "48h", "a time with its zone"),
        ("1999-01-01T00:00:00Z", "48h", "between 2000 and 2200"),
        (BY, "48", 'is "48"; allowed: a time with its units'),
        (BY, "0h", "1s to 720h"),
    ],
)
def test_a_deadline_that_cannot_be_read_is_reported_and_not_used(
    finish_by: str | None, work: str | None, part: str
) -> None:
    broken = due_job(finish_by, work)
    assert deadline_of(broken, []) is None
    (event,) = deadline_events(broken)
    assert (event.reason, event.is_standing) == (EventReason.ANNOTATION_UNUSABLE, True)
    assert part in event.message


@given(st.text(max_size=40), st.text(max_size=40), st.text(max_size=40))
def test_every_text_is_read_or_reported(finish_by: str, work: str, progress: str) -> None:
    broken = due_job(finish_by, work, progress)
    assert (deadline_of(broken, []) is None) == bool(deadline_events(broken))


def limited_job(most: str | None = "250", after: str | None = None) -> Json:
    written = {MAX_COST: most, AFTER_MAX_COST: after}
    return {
        "metadata": {"annotations": {name: value for name, value in written.items() if value is not None}}
    }


def test_a_limit_is_an_amount_and_what_follows_it() -> None:
    assert max_cost_of(limited_job("99.50")) == MaxCost(amount=99.5), "by default the job waits on spot"
    assert max_cost_of(limited_job("250", "give-up")) == MaxCost(amount=250, gives_up=True)
    assert (max_cost_of({}), max_cost_events({})) == (None, ())
    assert max_cost_events(limited_job("250", "wait")) == ()


@pytest.mark.parametrize(
    ("most", "after", "why"),
    [
        ("0", None, "allowed: a number above 0"),
        ("-5", None, "allowed: a number above 0"),
        ("1e9", None, "allowed: a number above 0"),
        ("$250", None, 'is "$250"'),
        (None, "wait", f"needs {MAX_COST}"),
        ("250", "stop", "allowed: wait or give-up"),
    ],
)
def test_annotations_that_cannot_be_read_are_said(most: str | None, after: str | None, why: str) -> None:
    (event,) = max_cost_events(limited_job(most, after))
    assert why in event.message
    assert event.is_standing


@given(st.text(max_size=12) | st.decimals(0, 10**10).map(str))
def test_every_text_is_a_limit_or_a_warning(text: str) -> None:
    assert (max_cost_of(limited_job(text)) is None) == bool(max_cost_events(limited_job(text)))
