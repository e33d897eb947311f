"""The configuration page: what its prose and its generated tables say beside the models."""

import re

from pulumi_holdfast.ladder.ladder import Policy
from pulumi_holdfast.ladder.quantities import format_duration
from pulumi_holdfast.ladder.quotas import BESIDE
from pulumi_holdfast.ladder.reachability.shape import MAX_PODS_PER_NODE, MOST_SHAPES
from tests.support.doc_pages import ROOT, DocPage

PAGE = DocPage.read("docs/configuration.md")


def documented(heading: str) -> dict[str, list[str]]:
    """The rows of the tables under a heading, by the field they are about: value, default and meaning."""
    under = PAGE.text.partition(f"\n{heading}")[2].partition("\n#")[0]
    rows = DocPage(path=PAGE.path, text=f"\n{heading}{under}").rows(heading)
    return {row[0]: row[1:] for row in rows if row[0] not in {"field", "---"}}


def test_no_stack_page_or_fix_proposes_the_time_in_which_karpenter_gives_a_machine_up() -> None:
    files = [*ROOT.glob("stacks/*.yaml"), *ROOT.glob("docs/*.md"), *ROOT.glob("examples/**/*.yaml")]
    files += [*ROOT.glob("components/pulumi_holdfast/ladder/*.py"), *ROOT.glob("policies/rules/*.py")]
    proposed = re.compile(r"procurementTimeout\W+(?:such as )?15m\b")
    found = [str(file) for file in files if proposed.search(file.read_text("utf-8"))]
    assert not found, "after 15 minutes Karpenter replaces the machine: a job would leave for one broken one"


def test_defaults_of_ladders_are_those_of_the_controller() -> None:
    policy = Policy(tiers=())
    told = {name: row[-1] for name, row in documented("### How jobs move along their ladder").items()}
    assert f"`{policy.failures.value}` failure, the default" in told["failures"]
    assert policy.return_after is not None
    for name, time in (
        ("outageWindow", policy.outage_window),
        ("holdTimeout", policy.hold_timeout),
        ("startTimeout", policy.start_timeout),
    ):
        assert f"`{format_duration(time)}` by default" in told[name]
    assert f"`{policy.application_failures}` by default" in told["applicationFailures"]
    assert f"`{format_duration(policy.return_after)}` by default" in told["returnAfter"]
    for name in ("giveUpAfter", "failureWindow", "deadline"):
        assert "by default" in told[name], f"{name} is off by default"
    assert (policy.give_up_after, policy.failure_window, policy.deadline) == (None, None, None)


def test_number_of_shapes_and_the_derived_quota_are_those_of_the_parser() -> None:
    shapes = PAGE.text.partition("\n### Shapes")[2].partition("\n### ")[0]
    assert f"Up to {MOST_SHAPES}:" in shapes
    assert (
        f"at most {MAX_PODS_PER_NODE} per node, plus {BESIDE}" in documented("## `namespaces`")["quota"][-1]
    )
