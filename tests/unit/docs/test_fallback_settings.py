"""The configuration page documents how jobs move along their ladder."""

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


def test_the_table_lists_exactly_the_settings() -> None:
    assert documented("### How jobs move along their ladder").keys() == {*FallbackSection.field_names()}, (
        "an undocumented field is not used"
    )
    assert documented("## `fallback`").keys() == {*ControllerSection.field_names()}, (
        "an undocumented field is not used"
    )


def test_defaults_are_those_of_the_controller() -> None:
    told, policy = documented("### How jobs move along their ladder"), Policy(tiers=())
    assert told["failures"] == policy.failures.value, "the default of the controller"
    assert told["outageWindow"] == format_duration(policy.outage_window), (
        "the default covers a notice and a restart"
    )
    assert told["applicationFailures"] == str(policy.application_failures), "the default of the controller"
    assert told["holdTimeout"] == format_duration(policy.hold_timeout), "the default of the controller"
    assert told["startTimeout"] == format_duration(policy.start_timeout), "the default of the controller"
    for name in ("giveUpAfter", "returnAfter", "deadline"):
        assert told[name] in {"never", "none"}, f"{name} is off by default"
    assert (policy.give_up_after, policy.return_after, policy.deadline) == (None, None, None), (
        "the controller sets none by itself"
    )
