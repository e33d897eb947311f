"""What a command prints at its end."""

from pulumi_holdfast.rehearsal.commands import changes, summary, verdict_lines
from tests.support.builders.engine_records import a_verdict, an_outcome


def test_changes_are_reported_as_done_as_a_plan_or_as_nothing() -> None:
    done = {"create": 3, "same": 4}
    assert changes(an_outcome(changes=done)) == "3 created, 4 unchanged", "a run has made the changes"
    assert changes(an_outcome(changes=done, command="preview")) == "3 to create, 4 unchanged", (
        "a preview makes no changes"
    )
    assert changes(an_outcome(changes={})) == "nothing to do", "the line is never empty"


def test_a_summary_holds_changes_policies_and_time() -> None:
    assert summary(an_outcome()) == [
        "up of local: 3 created",
        "             policies holdfast 0.1.0: no violations, no advisory messages",
        "             12 s",
    ], "changes, policies, seconds"
    assert len(summary(an_outcome(packs={}))) == 2, "a destroy runs no policies"


def test_an_advisory_message_is_no_violation() -> None:
    proved = a_verdict(level="advisory", policy="training-verdicts", message="namespace 'vision': proved")
    assert an_outcome(verdicts=(proved,)).judgement == "no violations, 1 advisory message", "all is well"
    found = an_outcome(verdicts=(proved, proved, a_verdict()))
    assert found.judgement == "1 violation, 2 advisory messages", "only the mandatory one stops the run"


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
    ], "the user reads first what stops the run"
    (head, *_) = verdict_lines(an_outcome(verdicts=(a_verdict(urn=""),)))
    assert head.endswith("(the stack)"), "there is no resource to name"
    assert verdict_lines(an_outcome()) == [
        "  policies holdfast 0.1.0: no violations, no advisory messages"
    ], "silence could mean that no pack ran"
