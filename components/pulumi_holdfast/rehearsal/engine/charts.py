"""The Helm charts on this machine, in place of the registries and repositories that a program names."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

from google.protobuf import struct_pb2

from pulumi_holdfast.rehearsal.engine.settings import read_yaml
from pulumi_holdfast.rehearsal.engine.values import UNKNOWN_STRINGS
from pulumi_holdfast.rehearsal.errors import RehearsalError

RELEASE: Final = "kubernetes:helm.sh/v3:Release"
# The fields of a release that say where its chart is.
_OPTIONS: Final = "repositoryOpts"
_ADDRESS: Final = ("chart", _OPTIONS)
_OLD_INPUTS: Final = "__inputs"

ChartAddress: TypeAlias = Mapping[str, struct_pb2.Value]


@dataclass(frozen=True)
class ChartMirror:
    """A directory with one chart per subdirectory; relative chart paths are relative to the program's working directory."""

    directory: Path

    def find(self, chart: str, *, version: str | None, repo: str | None) -> Path:
        """Return a chart by its directory, its oci:// reference or its name in `repo`.

        The last two come from the mirror. Raises RehearsalError if the mirror does not have this chart and version.
        """
        if not repo and not chart.startswith("oci://"):
            return self._local(chart)
        name = chart.rstrip("/").rpartition("/")[2]
        path = self.directory / name
        if not path.is_dir():
            raise RehearsalError(
                f"chart {chart!r} is not in the mirror: {self.directory} has {self._names()}. Add {name} to it, or "
                "set chart to a directory"
            )
        found = str(read_yaml(path / "Chart.yaml").get("version"))
        if version and version.removeprefix("v") != found.removeprefix("v"):
            raise RehearsalError(
                f"chart {chart!r}: the program sets version {version}, but {path} has version {found}; set "
                "that version, or mirror the other one"
            )
        return path

    def _local(self, chart: str) -> Path:
        path = Path(chart)
        if not path.is_dir():
            raise RehearsalError(
                f"chart {chart!r} is neither a directory ({path} does not exist), nor an oci:// reference, nor a "
                f"name with a repo; set one of them. Charts in {self.directory}: {self._names()}"
            )
        return path

    def _names(self) -> str:
        found = sorted(each.name for each in self.directory.glob("*") if each.is_dir())
        return ", ".join(found) or "nothing: run `make tools`"

    def lend(self, token: str, release: struct_pb2.Struct) -> ChartAddress:
        """Put the chart's directory into the inputs of a release; return the address that it replaces.

        Leaves a chart that is not known yet, and resources of other types. Raises RehearsalError if the mirror does not have the chart.
        """
        chart = _text(release, "chart")
        repo = _text(release.fields[_OPTIONS].struct_value, "repo") if _OPTIONS in release.fields else ""
        version = _text(release, "version")
        if token != RELEASE or not chart or {chart, repo, version} & UNKNOWN_STRINGS:
            return {}
        directory = self.find(chart, version=version or None, repo=repo or None)
        address: dict[str, struct_pb2.Value] = {}
        for name in _ADDRESS:
            if name in release.fields:
                address[name] = struct_pb2.Value()
                address[name].CopyFrom(release.fields.pop(name))
        release.fields["chart"].string_value = str(directory.resolve())
        return address


def _text(properties: struct_pb2.Struct, name: str) -> str:
    return properties.fields[name].string_value if name in properties.fields else ""


def give_back(release: struct_pb2.Struct, address: ChartAddress) -> None:
    """Restore the address of a chart in the inputs or outputs of a release."""
    if not address:
        return
    for name, value in address.items():
        release.fields[name].CopyFrom(value)
    if _OLD_INPUTS in release.fields:
        # A secret: its content is the field `value`.
        give_back(release.fields[_OLD_INPUTS].struct_value.fields["value"].struct_value, address)
