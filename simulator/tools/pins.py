"""The one place versions come from: the go.mod of each module under tools/."""

import re
from dataclasses import dataclass
from pathlib import Path

from holdfast.simulator.errors import RehearsalError
from holdfast.simulator.tools.versions import Version, parse_version

_REQUIRE = re.compile(r"^(?:require )?\s*(?P<path>[\w.\-/~]+\.[\w.\-/~]+) (?P<version>v\S+)", re.MULTILINE)
_TOOL = re.compile(r"^(?:tool |\t)(?P<path>[\w.\-/~]+)$", re.MULTILINE)
_GO = re.compile(r"^go (\d+)\.(\d+)(?:\.(\d+))?$", re.MULTILINE)
_REPLACE = re.compile(r"^replace \(.*?^\)|^replace [^\n]*$", re.MULTILINE | re.DOTALL)


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
    pinned = _REPLACE.sub("", text)
    return GoModule(
        folder=folder,
        requires={match["path"]: match["version"] for match in _REQUIRE.finditer(pinned)},
        tools=frozenset(match["path"] for match in _TOOL.finditer(pinned)),
        go=Version(major=int(go[1]), minor=int(go[2]), patch=int(go[3] or 0)),
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


def pinned_text(project_root: Path, module: str, package: str) -> str:
    """Return the version, as it is written, at which tools/`module`/go.mod pins what `package` is in.

    Of a module without releases it is the one Go makes of a commit. Raises RehearsalError.
    """
    return read_go_module(project_root / "tools" / module).providing(package)[1]


def pinned_version(project_root: Path, module: str, package: str) -> Version:
    """Return the release at which tools/`module`/go.mod pins what `package` is in. Raises RehearsalError."""
    version = pinned_text(project_root, module, package)
    parsed = parse_version(version)
    if parsed is None:
        raise RehearsalError(
            f"tools/{module}/go.mod pins {package} at {version}, which is no release: choose one like v1.2.3"
        )
    return parsed
