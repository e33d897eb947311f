"""What a command prints at its end."""

from pathlib import Path

import pytest

from pulumi_holdfast.rehearsal.commands import changes, say_plan, summary, verdict_lines
from pulumi_holdfast.rehearsal.output import logged
from tests.support.builders.engine_records import a_verdict, an_outcome


def test_changes_are_reported_as_done_as_a_plan_or_as_nothing() -> None:
    done = {"create": 3, "same": 4}
    assert changes(an_outcome(changes=done)) == "3 created, 4 unchanged"
    assert changes(an_outcome(changes=done, command="preview")) == "3 to create, 4 unchanged"
    assert changes(an_outcome(changes={})) == "nothing to do"


def test_a_summary_holds_changes_policies_and_time() -> None:
    assert summary(an_outcome()) == [
        "up of local: 3 created",
        "             policies holdfast 0.1.0: no violations, no advisory messages",
        "             12 s",
    ]
    assert len(summary(an_outcome(packs={}))) == 2


def test_an_advisory_message_is_no_violation() -> None:
    proved = a_verdict(level="advisory", policy="training-verdicts", message="namespace 'vision': proved")
    assert an_outcome(verdicts=(proved,)).judgement == "no violations, 1 advisory message"
    found = an_outcome(verdicts=(proved, proved, a_verdict()))
    assert found.judgement == "1 violation, 2 advisory messages"


def test_mandatory_verdicts_come_first_with_policy_resource_and_message() -> None:
    lines = verdict_lines(
        an_outcome(
            verdicts=(a_verdict(level="advisory", policy="soft"), a_verdict(message="ends on spot\n\nfix it"))
        )
    )
    assert lines[:3] == [
        "  MANDATORY  training-ladder-ends-on-demand  (ladder)",
        "      ends on spot",
        "      fix it",
    ]
    (head, *_) = verdict_lines(an_outcome(verdicts=(a_verdict(urn=""),)))
    assert head.endswith("(the stack)")
    assert verdict_lines(an_outcome()) == ["  policies holdfast 0.1.0: no violations, no advisory messages"]


def test_a_rehearsal_prints_warnings_and_the_verdicts_that_stop_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with logged(Path("/dev/null")):
        say_plan(
            an_outcome(
                warnings=("warning: the quota\n  is not checked",),
                verdicts=(a_verdict(level="advisory", message="proved"), a_verdict(message="ends on spot")),
            )
        )
    assert capsys.readouterr().out.splitlines()[:3] == [
        "warning: the quota is not checked",
        "  MANDATORY  training-ladder-ends-on-demand  (ladder)",
        "      ends on spot",
    ]
