"""Charts from a local mirror: a rehearsal reaches no chart repository."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

import yaml

from holdfast.simulator.errors import RehearsalError

if TYPE_CHECKING:
    from holdfast.scheduling.json import Json


@dataclass(frozen=True, kw_only=True)
class Chart:
    """A chart in a directory."""

    path: Path
    name: str
    version: str

    @classmethod
    def at(cls, path: Path) -> "Chart":
        """Read a chart's own description. Raises RehearsalError for a directory that is no chart."""
        try:
            described = cast("Json", yaml.safe_load((path / "Chart.yaml").read_text(encoding="utf-8")))
            return cls(path=path, name=str(described["name"]), version=str(described["version"]))
        except (OSError, yaml.YAMLError, KeyError, TypeError) as error:
            raise RehearsalError(f"{path} is no chart: its Chart.yaml cannot be read ({error})") from error

    def digest(self) -> str:
        """Return a hash of the chart's files, which tells an edited chart from the one installed."""
        digest = hashlib.sha256()
        for file in sorted(each for each in self.path.rglob("*") if each.is_file()):
            content = file.read_bytes()
            digest.update(f"{file.relative_to(self.path)}\0{len(content)}\0".encode())
            digest.update(content)
        return digest.hexdigest()


@dataclass(frozen=True)
class ChartMirror:
    """A directory with one chart per subdirectory.

    `base` is what a program's relative chart paths are relative to; by default the current directory.
    """

    directory: Path
    base: Path = Path()

    def find(self, chart: str, *, version: str | None, repo: str | None) -> Chart:
        """Return the chart that `chart` names: a directory, an oci:// reference, or a name in `repo`.

        The latter two are taken from the mirror. Raises RehearsalError when the mirror has no such chart, or
        another version of it.
        """
        if not repo and not chart.startswith("oci://"):
            return self._local(chart)
        name = chart.rstrip("/").rpartition("/")[2]
        path = self.directory / name
        if not path.is_dir():
            raise RehearsalError(
                f"chart {chart!r} is not mirrored: {self.directory} has {self._names()}. Add {name} to it, or "
                "name a directory"
            )
        found = Chart.at(path)
        if version and version.removeprefix("v") != found.version.removeprefix("v"):
            raise RehearsalError(
                f"chart {chart!r}: version {version} is asked for, and {path} is version {found.version}; ask "
                "for that one, or mirror the other"
            )
        return found

    def _local(self, chart: str) -> Chart:
        path = self.base / chart
        if not path.is_dir():
            raise RehearsalError(
                f"chart {chart!r} is neither a directory (looked for {path}), nor an oci:// reference, nor a "
                f"name beside a repo; mirrored in {self.directory}: {self._names()}"
            )
        return Chart.at(path)

    def _names(self) -> str:
        found = sorted(each.name for each in self.directory.glob("*") if each.is_dir())
        return ", ".join(found) or "nothing: run `make tools`"
