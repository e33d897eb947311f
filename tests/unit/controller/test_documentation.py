"""docs/fallback.md explains every Event reason and every metric of the controller, and no others."""

import re
from pathlib import Path
from typing import Final

from pulumi_holdfast.controller.jobs.actions import EventReason
from pulumi_holdfast.controller.jobs.state import Phase
from pulumi_holdfast.controller.loop.metrics import MetricName

ROOT: Final = Path(__file__).parents[3]
PAGE: Final = (ROOT / "docs/fallback.md").read_text()


def first_column(heading: str) -> set[str]:
    """The code spans in the first column of the table below a heading."""
    table = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    cells = [row.split("|")[1] for row in table.splitlines() if row.startswith("| `")]
    return {span for cell in cells for span in re.findall(r"`(\w+)(?:\{[^`]*\})?`", cell)}


def test_documented_event_reasons_are_the_event_reasons() -> None:
    assert first_column("Events") == {reason.value for reason in EventReason}


def test_documented_metrics_are_the_metrics() -> None:
    assert first_column("Metrics") == {name.value for name in MetricName}


def test_each_phase_is_in_the_diagram_or_below_it() -> None:
    chapter = PAGE.partition("\n## Phases\n")[2].partition("\n## ")[0]
    assert set(re.findall(r"\b[A-Z][a-zA-Z]+\b", chapter)) - {"In"} == {each.value for each in Phase}


def test_event_reasons_are_written_as_constants() -> None:
    sources = "\n".join(
        path.read_text() for path in (ROOT / "components/pulumi_holdfast/controller").rglob("*.py")
    )
    assert not re.findall(r'\breason="[A-Z]\w+"', sources)
