"""What a command tells at its end."""

from holdfast.rehearsal.commands import changes, summary, verdict_lines
from tests.support.builders.engine_records import a_verdict, an_outcome


def test_changes_are_told_in_the_past_after_a_run_and_as_a_plan_after_a_preview() -> None:
    done = {"create": 3, "same": 4}
    assert changes(an_outcome(changes=done)) == "3 created, 4 unchanged", "the run is over"
    assert changes(an_outcome(changes=done, command="preview")) == "3 to create, 4 unchanged", (
        "nothing was made"
    )


def test_a_run_that_counted_nothing_says_so() -> None:
    assert changes(an_outcome(changes={})) == "nothing to do", "an empty line tells nothing"


def test_a_summary_holds_changes_policies_and_time() -> None:
    assert summary(an_outcome()) == [
        "up of local: 3 created",
        "             policies holdfast 0.1.0: 0 mandatory, 0 advisory violations",
        "             12 s",
    ], "at a glance"


def test_a_run_that_no_pack_judged_says_nothing_of_policies() -> None:
    assert len(summary(an_outcome(packs={}))) == 2, "a destroy is judged by no policy"


def test_verdicts_that_stop_the_run_come_first_with_policy_place_and_message() -> None:
    lines = verdict_lines(
        an_outcome(
            verdicts=(
                a_verdict(level="advisory", policy="soft"),
                a_verdict(message="ends on spot\n\nmend it"),
            )
        )
    )
    assert lines[:3] == [
        "  MANDATORY  training-ladder-ends-on-demand  (ladder)",
        "      ends on spot",
        "      fix it",
    ], "what stops the run is read first"


def test_a_verdict_on_the_whole_stack_says_so() -> None:
    (head, *_) = verdict_lines(an_outcome(verdicts=(a_verdict(urn=""),)))
    assert head.endswith("(the stack)"), "there is no resource to name"


def test_no_verdict_is_told_as_well() -> None:
    assert verdict_lines(an_outcome()) == ["  policies holdfast 0.1.0: 0 mandatory, 0 advisory violations"], (
        "silence could mean that no pack was run"
    )
