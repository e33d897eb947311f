"""`holdfast tools`: finds or builds the tools, and regenerates the files that come from pinned sources."""

import argparse
import os
import platform
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from pulumi_holdfast.rehearsal.errors import RehearsalError
from pulumi_holdfast.rehearsal.output import say as say_line
from pulumi_holdfast.rehearsal.paths import Workspace
from pulumi_holdfast.rehearsal.tools.archive import VARIABLE, pack, unpack
from pulumi_holdfast.rehearsal.tools.build import PIECES, exclusive, make, partial_dir, replace, title_of
from pulumi_holdfast.rehearsal.tools.charts import CRD_CHARTS, crd_chart_files
from pulumi_holdfast.rehearsal.tools.locate import find_tool, missing_pieces
from pulumi_holdfast.rehearsal.tools.machine_table.aws import machine_table, read_sources
from pulumi_holdfast.rehearsal.tools.machine_table.azure import azure_machine_table, read_azure_sources

_PACKAGE = Path("components/pulumi_holdfast")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the subcommands."""
    parser.add_argument(
        "--archive",
        dest="taken",
        type=Path,
        metavar="FILE",
        help=f"take the tools from the archive of a release; default: the variable {VARIABLE}",
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    commands.add_parser("build", help="build the tools that are not on PATH (the default)")
    which = commands.add_parser("which", help="print the path of a tool")
    which.add_argument("name")
    packed = commands.add_parser(
        "archive", help=f"pack the tools into a file that {VARIABLE} may name elsewhere"
    )
    packed.add_argument("folder", type=Path)
    commands.add_parser(
        "crd-charts", help="regenerate the CRD charts in components/pulumi_holdfast/kubernetes/charts"
    )
    commands.add_parser("machine-tables", help="regenerate the machine tables of AWS and Azure")


def run(parsed: argparse.Namespace) -> int:
    """Run a subcommand and return its exit code. Raises RehearsalError."""
    workspace = Workspace.find()
    try:
        if parsed.command == "which":
            print(find_tool(parsed.name, workspace))
        elif parsed.command == "archive":
            print(archive(parsed.folder, workspace))
        elif parsed.command == "crd-charts":
            for folder in write_crd_charts(workspace):
                print(f"wrote {folder.relative_to(workspace.project_root)}")
        elif parsed.command == "machine-tables":
            write_machine_tables(workspace)
        else:
            build(workspace, taken=parsed.taken)
    except OSError as error:
        print(f"error: {error.strerror or error}: {error.filename or 'the tools folder'}", file=sys.stderr)
        return 1
    return 0


def write_machine_tables(workspace: Workspace) -> None:
    """Regenerate the tables from their pinned sources. Raises RehearsalError."""
    root = workspace.project_root
    tables = {
        "aws.json": machine_table(*read_sources(root)),
        "azure.json": azure_machine_table(read_azure_sources(root)),
    }
    for name, text in tables.items():
        (root / _PACKAGE / "ladder" / "machines" / name).write_text(text, encoding="utf-8")
        print(f"wrote {name}: {text.count(chr(10))} lines")


def archive(folder: Path, workspace: Workspace) -> Path:
    """Pack the tools into a folder, twice; return the file. Raises RehearsalError, also if the bytes differ."""
    file = folder / f"holdfast-tools-{sys.platform}-{platform.machine()}.tar.gz"
    with tempfile.TemporaryDirectory(dir=workspace.tools_dir) as other:
        sums = {pack(workspace, each) for each in (file, Path(other) / "other")}
    if len(sums) > 1:
        raise RehearsalError(
            f"{file}: two archives of the same tools differ; remove what depends on time or order"
        )
    return file


def write_crd_charts(workspace: Workspace) -> list[Path]:
    """Write all CRD charts and return their folders. Raises RehearsalError if an upstream chart is not current."""
    late = {title_of(piece) for piece in missing_pieces(workspace)}
    written: list[Path] = []
    for chart in CRD_CHARTS:
        if title_of(chart.source) in late:
            raise RehearsalError(
                f"{title_of(chart.source)} is missing or from another version; run `make tools` first"
            )
        place = workspace.project_root / _PACKAGE / "kubernetes" / "charts" / chart.name
        with partial_dir(workspace) as folder:
            for path, contents in crd_chart_files(chart, workspace).items():
                made = folder / chart.name / path
                made.parent.mkdir(parents=True, exist_ok=True)
                made.write_bytes(contents)
            replace(folder / chart.name, place)
        written.append(place)
    return written


def build(workspace: Workspace, say: Callable[[str], None] = say_line, *, taken: Path | None = None) -> None:
    """Make what is missing and say what is made; `taken` is an archive of a release. Raises RehearsalError."""
    with exclusive(workspace, say):
        missing = missing_pieces(workspace)
        if missing and (archive := str(taken or "") or os.environ.get(VARIABLE)):
            unpacked = unpack(Path(archive), missing, workspace)
            say(f"tools: {len(unpacked)} of {len(missing)} from {archive}")
            missing = missing_pieces(workspace)
        if not missing:
            say(f"tools: nothing to make: all {len(PIECES)} are on PATH or in {workspace.tools_dir}")
            return
        say(f"tools: {len(missing)} to make: {', '.join(map(title_of, missing))}")
        make(missing, workspace, say)
