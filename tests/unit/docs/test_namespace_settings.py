"""The configuration page documents shapes and quotas."""

from __future__ import annotations

from holdfast.infra.config.namespace import NamespaceSection, QuotaSection, ShapeSection
from holdfast.scheduling.quantities import format_cpu, format_memory
from holdfast.scheduling.quotas import BESIDE
from holdfast.scheduling.reachability.shape import (
    LEAST,
    MAX_PODS_PER_NODE,
    MOST_GPUS,
    MOST_SHAPES,
    WIDEST_GANG,
)
from tests.support.doc_pages import DocPage

PAGE = DocPage.read("docs/configuration.md")


def documented(heading: str) -> dict[str, list[str]]:
    """The rows of the tables under a heading, by the field they are about."""
    under = PAGE.text.partition(f"\n{heading}")[2].partition("\n#")[0]
    rows = DocPage(path=PAGE.path, text=f"\n{heading}{under}").rows(heading)
    return {row[0]: row[1:] for row in rows if row[0] not in {"field", "---"}}


def test_the_tables_list_exactly_the_fields() -> None:
    assert documented("### Shapes").keys() == {*ShapeSection.field_names()}, (
        "an undocumented field is not used"
    )
    assert documented("### Quota").keys() == {*QuotaSection.field_names()}, (
        "an undocumented field is not used"
    )
    tabled = documented("## `namespaces`").keys()
    assert {*NamespaceSection.field_names()} <= tabled, "the fields of a namespace are documented"


def test_defaults_are_those_of_the_parser() -> None:
    told = {name: row[0] for name, row in documented("### Shapes").items()}
    assert told["pods"] == str(ShapeSection(name="any").pods), "a job of one pod"
    assert told["cpu"] == format_cpu(LEAST.cpu_millis), "as small as can be"
    assert told["memory"] == format_memory(LEAST.memory_mib), "as small as can be"
    assert told["gpus"] == str(ShapeSection(name="any").gpus), "no GPU unless it is said"


def test_bounds_are_those_of_the_parser() -> None:
    shapes = PAGE.text.partition("\n### Shapes")[2].partition("\n### ")[0]
    assert f"Up to {MOST_SHAPES}:" in shapes, "how many there may be"
    told = {name: row[1] for name, row in documented("### Shapes").items()}
    assert f"1 to {WIDEST_GANG}" in told["pods"], "how wide a gang may be"
    assert f"0 to {MOST_GPUS}" in told["gpus"], "and how large a pod"
    pods = documented("### Quota")["pods"][0]
    assert f"at most {MAX_PODS_PER_NODE} per node, plus {BESIDE}" in pods, "the derived default"
