"""The configuration page documents how jobs move along their ladder, shapes and quotas."""

import re

import pytest

from pulumi_holdfast.config.base import Section
from pulumi_holdfast.config.clusters import AcceptedClusterSection, OtherClusterSection
from pulumi_holdfast.config.ladder import ControllerSection, FallbackSection, MonitoringSection
from pulumi_holdfast.config.namespace import NamespaceSection, QuotaSection
from pulumi_holdfast.config.shape import ShapeSection
from pulumi_holdfast.controller.policy.policy import Policy
from pulumi_holdfast.ladder.quantities import format_cpu, format_duration, format_memory
from pulumi_holdfast.ladder.quotas import BESIDE
from pulumi_holdfast.ladder.reachability.shape import (
    LEAST,
    MAX_PODS_PER_NODE,
    MOST_GPUS,
    MOST_SHAPES,
    WIDEST_GANG,
)
from tests.support.doc_pages import ROOT, DocPage

PAGE = DocPage.read("docs/configuration.md")


def documented(heading: str) -> dict[str, list[str]]:
    """The rows of the tables under a heading, by the field they are about."""
    under = PAGE.text.partition(f"\n{heading}")[2].partition("\n#")[0]
    rows = DocPage(path=PAGE.path, text=f"\n{heading}{under}").rows(heading)
    return {row[0]: row[1:] for row in rows if row[0] not in {"field", "---"}}


@pytest.mark.parametrize(
    ("heading", "section"),
    [
        ("### How jobs move along their ladder", FallbackSection),
        ("## `fallback`", ControllerSection),
        ("### Monitoring", MonitoringSection),
        ("## `clusters`", OtherClusterSection),
        ("## `acceptsFrom`", AcceptedClusterSection),
        ("### Shapes", ShapeSection),
        ("### Quota", QuotaSection),
    ],
)
def test_the_tables_list_exactly_the_fields(heading: str, section: type[Section]) -> None:
    assert documented(heading).keys() == {*section.field_names()}, "an undocumented field is not used"
    namespaces = documented("## `namespaces`").keys()
    assert {*NamespaceSection.field_names()} <= namespaces, "the fields of a namespace are documented"


def test_no_stack_page_or_fix_proposes_the_time_in_which_karpenter_gives_a_machine_up() -> None:
    files = [*ROOT.glob("stacks/*.yaml"), *ROOT.glob("docs/*.md"), *ROOT.glob("examples/**/*.yaml")]
    files += [*ROOT.glob("components/pulumi_holdfast/ladder/*.py"), *ROOT.glob("policies/rules/*.py")]
    proposed = re.compile(r"procurementTimeout\W+(?:such as )?15m\b")
    found = [str(file) for file in files if proposed.search(file.read_text("utf-8"))]
    assert not found, "after 15 minutes Karpenter replaces the machine: a job would leave for one broken one"


def test_defaults_of_ladders_are_those_of_the_controller() -> None:
    rows, policy = documented("### How jobs move along their ladder"), Policy(tiers=())
    told = {name: row[0] for name, row in rows.items()}
    assert told["failures"] == policy.failures.value, "the default of the controller"
    assert told["outageWindow"] == format_duration(policy.outage_window), "it covers a notice and a restart"
    assert told["applicationFailures"] == str(policy.application_failures), "the default of the controller"
    assert told["holdTimeout"] == format_duration(policy.hold_timeout), "the default of the controller"
    assert told["startTimeout"] == format_duration(policy.start_timeout), "the default of the controller"
    assert policy.return_after is not None, "jobs return by default"
    assert told["returnAfter"] == format_duration(policy.return_after), "the default of the controller"
    for name in ("giveUpAfter", "failureWindow", "deadline"):
        assert told[name] in {"never", "none"}, f"{name} is off by default"
    assert (policy.give_up_after, policy.failure_window, policy.deadline) == (None, None, None), "off"


def test_defaults_and_bounds_of_shapes_are_those_of_the_parser() -> None:
    rows = documented("### Shapes")
    told = {name: row[0] for name, row in rows.items()}
    assert told["pods"] == str(ShapeSection(name="any").pods), "a job of one pod"
    assert told["cpu"] == format_cpu(LEAST.cpu_millis), "as small as can be"
    assert told["memory"] == format_memory(LEAST.memory_mib), "as small as can be"
    assert told["gpus"] == str(ShapeSection(name="any").gpus), "no GPU unless it is said"
    shapes = PAGE.text.partition("\n### Shapes")[2].partition("\n### ")[0]
    assert f"Up to {MOST_SHAPES}:" in shapes, "how many there may be"
    assert f"1 to {WIDEST_GANG}" in rows["pods"][1], "how wide a gang may be"
    assert f"0 to {MOST_GPUS}" in rows["gpus"][1], "and how large a pod"
    pods = documented("### Quota")["pods"][0]
    assert f"at most {MAX_PODS_PER_NODE} per node, plus {BESIDE}" in pods, "the derived default"
