"""The page on jobs that fall back explains everything that the controller says and measures."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[3]
PAGE: Final = (ROOT / "docs/fallback.md").read_text()
SAID: Final = re.compile(r'(?:\breason=|_?standing\(\s*)"([A-Z]\w+)"|reason="(\w+)" if')
MEASURED: Final = re.compile(r'(?:Counter|Gauge|Histogram)\(\s*"(holdfast_\w+)"')


def sources() -> str:
    """All of the controller's sources."""
    return "\n".join(path.read_text() for path in sorted((ROOT / "fallback").rglob("*.py")))


def test_every_reason_is_explained() -> None:
    reasons = {reason for found in SAID.findall(sources()) for reason in found if reason}
    assert len(reasons) > 25, f"so many are said, found {sorted(reasons)}"
    missing = {reason for reason in reasons if f"`{reason}`" not in PAGE}
    assert not missing, "whoever reads an Event looks its reason up"


def test_no_reason_is_explained_that_is_never_given() -> None:
    table = PAGE.partition("## What it says")[2].partition("## Metrics")[0]
    named = {each for row in table.splitlines() for each in re.findall(r"`([A-Z][a-z]+[A-Z]\w+)`", row[:120])}
    counted = {f"{cause}Counted" for cause in ("Eviction", "Application", "Unexplained")}
    assert {each for each in named - counted if f'"{each}"' not in sources()} == set(), "an old name misleads"


def test_the_metrics_that_the_page_names_are_there() -> None:
    named = set(re.findall(r"`(holdfast_fallback_\w+?)(?:_total)?[{`]", PAGE))
    assert named <= set(MEASURED.findall(sources())), "a dashboard is made from the page"
