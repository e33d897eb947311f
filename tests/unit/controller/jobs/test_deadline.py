"""A job's deadline: read from annotations, and a warning with the fix for one that cannot be read."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulumi_holdfast.controller.jobs.deadline import deadline_events, deadline_of
from pulumi_holdfast.controller.state_machine.events import EventReason
from pulumi_holdfast.controller.state_machine.observation import Deadline
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import FINISH_BY, PROGRESS, WORK

BY = "2030-05-03T18:00:00Z"


def annotated(**annotations: str) -> Json:
    return {"metadata": {"annotations": annotations}}


def job(finish_by: str | None = BY, work: str | None = "48h", progress: str | None = None) -> Json:
    written = {FINISH_BY: finish_by, WORK: work, PROGRESS: progress}
    return annotated(**{name: value for name, value in written.items() if value is not None})


def test_a_deadline_is_a_time_and_the_work() -> None:
    expected = Deadline(finish_by=datetime(2030, 5, 3, 18, tzinfo=UTC), work=timedelta(hours=48))
    assert deadline_of(job(), []) == expected, "as its author wrote them"
    assert deadline_of(job("2030-05-03T20:00:00+02:00"), []) == expected, "in any zone"
    assert deadline_events(job()) == (), "and nothing is wrong"
    assert (deadline_of({}, []), deadline_events({})) == (None, ()), "most jobs have none"


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
    found = deadline_of(job(), [annotated(**{PROGRESS: written})])
    assert found is not None, "the deadline is readable"
    assert found.progress == share, "anything else is not a report"


def test_the_farthest_pod_reports_for_the_gang() -> None:
    pods = [annotated(**{PROGRESS: "0.2"}), annotated(**{PROGRESS: "0.3"}), annotated()]
    found = deadline_of(job(progress="0.9"), pods)
    assert found is not None, "the deadline is readable"
    assert found.progress == 0.3, "an annotation of the job is used where no pod reports"
    leaving: Json = {"metadata": {"annotations": {PROGRESS: "0.4"}, "deletionTimestamp": BY}}
    alone = deadline_of(job(progress="0.1"), [leaving])
    assert alone is not None, "the deadline is readable"
    assert alone.progress == 0.1, "a terminating pod belongs to the gang before"


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
    broken = job(finish_by, work)
    assert deadline_of(broken, []) is None, "half a deadline is none"
    (event,) = deadline_events(broken)
    assert (event.reason, event.is_standing) == (EventReason.DEADLINE_UNUSABLE, True), "until it is corrected"
    assert part in event.message, "with the annotation, its value and what is allowed"


@given(st.text(max_size=40), st.text(max_size=40), st.text(max_size=40))
def test_every_text_is_read_or_reported(finish_by: str, work: str, progress: str) -> None:
    broken = job(finish_by, work, progress)
    assert (deadline_of(broken, []) is None) == bool(deadline_events(broken)), "one of the two"
