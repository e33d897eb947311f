"""Pages of the documentation, read so that a test can hold them to the code."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, kw_only=True)
class DocPage:
    """A page: `path` is where it lies, `text` what it says."""

    path: Path
    text: str

    @classmethod
    def read(cls, name: str) -> DocPage:
        """Read a page by its path in the project."""
        path = ROOT / name
        return cls(path=path, text=path.read_text("utf-8"))

    def section(self, begin: str) -> str:
        """What follows a line that begins so, up to the next chapter."""
        return self.text.partition(f"\n{begin}")[2].partition("\n## ")[0]

    def rows(self, begin: str) -> list[list[str]]:
        """The cells of the table rows of a section, without what marks them up."""
        lines = [
            line.strip("|").split("|") for line in self.section(begin).splitlines() if line.startswith("|")
        ]
        return [[cell.strip().strip("`") for cell in line] for line in lines]

    def charts(self, begin: str) -> dict[str, list[str]]:
        """The charts of a section, each with its version and its upstream."""
        return {row[0].split("`")[0]: row[1:] for row in self.rows(begin) if len(row) == 3}

    def dead_links(self) -> list[str]:
        """The links to files, and to chapters of pages, that are not there."""
        targets = re.findall(r"\]\((?!https?:)([^)\s]+)\)", self.text)
        return sorted({target for target in targets if not self._is_there(target)})

    def _is_there(self, target: str) -> bool:
        file, _, anchor = target.partition("#")
        path = self.path.parent / file if file else self.path
        return path.exists() and (not anchor or anchor in anchors_of(path.read_text("utf-8")))


def anchors_of(text: str) -> set[str]:
    """The anchors of a page's headings, as they are made of their words."""
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
