"""What the page on configuration says of how jobs walk their ladder."""

from __future__ import annotations

from holdfast.fallback.policy.policy import Policy
from holdfast.infra.config.ladder import ControllerSection, FallbackSection
from holdfast.scheduling.quantities import format_duration
from tests.support.doc_pages import DocPage

PAGE = DocPage.read("docs/configuration.md")


def documented(chapter: str) -> dict[str, str]:
    """The fields of a chapter's table, each with its default."""
    rows = [row for row in PAGE.rows(chapter) if len(row) == 3 and row[0] not in {"field", "---"}]
    return {row[0]: row[1] for row in rows}


def test_every_setting_is_there_and_no_other() -> None:
    assert documented("### How jobs move along their ladder").keys() == {*FallbackSection.field_names()}, (
        "what nobody finds nobody uses"
    )
    assert documented("## `fallback`").keys() == {*ControllerSection.field_names()}, "nor this"


def test_defaults_are_those_of_the_controller() -> None:
    told, policy = documented("### How jobs move along their ladder"), Policy(tiers=())
    assert told["failures"] == policy.failures.value, "the one that the source has"
    assert told["outageWindow"] == format_duration(policy.outage_window), "notice and restart"
    assert told["applicationFailures"] == str(policy.application_failures), "as many as a bad day has"
    assert told["holdTimeout"] == format_duration(policy.hold_timeout), "before the job is touched"
    assert told["startTimeout"] == format_duration(policy.start_timeout), "before anybody is warned"
    for name in ("giveUpAfter", "returnAfter", "deadline"):
        assert told[name] in {"never", "none"}, f"{name} is asked for or does not happen"
    assert (policy.give_up_after, policy.return_after, policy.deadline) == (None, None, None), (
        "by nobody else"
    )
