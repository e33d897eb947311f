"""The documentation site: every page has a place, and messages are quoted as the program writes them."""

import re
from pathlib import Path
from typing import cast

import yaml

ROOT = Path(__file__).resolve().parents[3]
DOCS = ROOT / "docs"
SOURCES = ("fallback", "infra", "components", "policies", "rehearsal", "simulator", "Makefile")


def test_every_page_is_in_the_navigation_once() -> None:
    site = cast("dict[str, object]", yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8")))
    listed = pages(site["nav"])
    assert sorted(listed) == sorted([*(file.name for file in DOCS.glob("*.md")), "adr/README.md"]), (
        "a page without a place cannot be found"
    )


def test_the_troubleshooting_page_quotes_messages_exactly() -> None:
    written = " ".join(source_text(ROOT / source) for source in SOURCES)
    rows = re.findall(
        r"^\| `([^`]+)` \|", (DOCS / "troubleshooting.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert rows, "the tables have rows"
    for message in rows:
        assert message in written, f"no program writes {message!r}"


def pages(nav: object) -> list[str]:
    if isinstance(nav, str):
        return [nav]
    if isinstance(nav, dict):
        return pages(list(cast("dict[str, object]", nav).values()))
    return [page for each in cast("list[object]", nav) for page in pages(each)]


def source_text(path: Path) -> str:
    """The sources with adjacent string literals joined."""
    files = sorted(path.rglob("*.py")) if path.is_dir() else [path]
    text = " ".join(file.read_text(encoding="utf-8") for file in files)
    return re.sub(r'"\s*\n\s*f?"', "", text)
