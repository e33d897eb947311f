"""The one place versions come from: the go.mod of each module under tools/."""

import re
from dataclasses import dataclass
from pathlib import Path

from rehearsal.errors import RehearsalError
from rehearsal.tools.versions import Version, parse_version

_REQUIRE = re.compile(r"^(?:require )?\s*(?P<path>[\w.\-/~]+\.[\w.\-/~]+) (?P<version>v\S+)", re.MULTILINE)
_TOOL = re.compile(r"^(?:tool |\t)(?P<path>[\w.\-/~]+)$", re.MULTILINE)
_GO = re.compile(r"^go (?P<version>\d+\.\d+(?:\.\d+)?)$", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class GoModule:
    """What one go.mod pins: module path → version (`v1.36.3`), the packages built from it, the Go it needs."""

    folder: Path
    requires: dict[str, str]
    tools: frozenset[str]
    go: Version

    def providing(self, package: str) -> tuple[str, str]:
        """Return path and version of the required module that `package` is in: the longest matching path.

        Raises RehearsalError where go.mod requires none.
        """
        candidates = [path for path in self.requires if package == path or package.startswith(f"{path}/")]
        if not candidates:
            raise RehearsalError(
                f"{self.folder / 'go.mod'} requires no module for {package}: add it with "
                f"`go get -tool {package}@VERSION` in {self.folder}"
            )
        path = max(candidates, key=len)
        return path, self.requires[path]


def parse_go_mod(folder: Path, text: str) -> GoModule:
    """Read the text of a go.mod. Raises RehearsalError where it lacks the `go` line."""
    go = _GO.search(text)
    if go is None:
        raise RehearsalError(f"{folder / 'go.mod'} has no line `go 1.x.y`: restore the file")
    numbers = go["version"]
    version = parse_version(numbers if numbers.count(".") == 2 else f"{numbers}.0")
    assert version is not None, "the pattern admits nothing else"  # noqa: S101
    pinned = re.sub(r"^replace \(.*?^\)|^replace .*?$", "", text, flags=re.MULTILINE | re.DOTALL)
    return GoModule(
        folder=folder,
        requires={match["path"]: match["version"] for match in _REQUIRE.finditer(pinned)},
        tools=frozenset(match["path"] for match in _TOOL.finditer(pinned)),
        go=version,
    )


def read_go_module(folder: Path) -> GoModule:
    """Read `folder`/go.mod. Raises RehearsalError where the file is missing."""
    try:
        text = (folder / "go.mod").read_text(encoding="utf-8")
    except OSError as error:
        raise RehearsalError(
            f"{folder / 'go.mod'} cannot be read ({error.strerror}): restore the folder"
        ) from error
    return parse_go_mod(folder, text)
