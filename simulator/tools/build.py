"""One tool built, one chart gathered: made aside, put in place at once, then stamped."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import cast

from holdfast.simulator.errors import RehearsalError
from holdfast.simulator.paths import Workspace
from holdfast.simulator.tools.catalogue import Tool
from holdfast.simulator.tools.charts import ChartSource, chart_fingerprint, gather
from holdfast.simulator.tools.files import partial_dir, replace_folder
from holdfast.simulator.tools.process import GoRunner
from holdfast.simulator.tools.stamps import binary_fingerprint, stamp_file, write_stamp


def build_tool(tool: Tool, workspace: Workspace, runner: GoRunner, on_line: Callable[[str], None]) -> None:
    """Build one tool into .tools/bin.

    Raises RehearsalError where the build fails, Stopped where it is ended; the old program then stays.
    """
    made = partial_dir(workspace) / tool.name
    place = workspace.tools_bin / tool.name
    if place.is_file():
        # `go build` leaves alone what is up to date: a changed pin relinks only the tools it reaches.
        shutil.copy2(place, made)
    flags = tool.build_flags(tool.pin(workspace.project_root))
    wanted = binary_fingerprint(tool, workspace)
    folder = workspace.project_root / "tools" / tool.module
    runner.run(tool.title, ("build", "-v", *flags, "-o", os.fspath(made), tool.package), folder, on_line)
    _replace_stamped("bin", tool.name, workspace, wanted, lambda: _put_file(made, place))


def gather_chart(
    source: ChartSource, workspace: Workspace, runner: GoRunner, on_line: Callable[[str], None]
) -> None:
    """Copy one chart out of its pinned module into .tools/charts.

    Raises RehearsalError where the module cannot be fetched or lacks the chart.
    """
    folder = workspace.project_root / "tools" / source.module
    answer = runner.run(source.title, ("mod", "download", "-x", "-json", source.go_module), folder, on_line)
    told = cast("dict[str, str]", json.loads(answer))
    if "Dir" not in told:
        raise RehearsalError(
            f"{source.title}: `go mod download` names no folder for {source.go_module}: {answer}"
        )
    wanted = chart_fingerprint(source, workspace)
    made = partial_dir(workspace) / source.title
    gather(source, Path(told["Dir"]), made, workspace.project_root)
    place = workspace.charts_dir / source.name
    _replace_stamped("charts", source.name, workspace, wanted, lambda: replace_folder(made, place))


def _put_file(made: Path, place: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    made.replace(place)


def _replace_stamped(
    kind: str, name: str, workspace: Workspace, wanted: str, put: Callable[[], None]
) -> None:
    # Unstamped in between: an interruption here means one needless build, never a stale tool taken for a new one.
    stamp_file(kind, name, workspace).unlink(missing_ok=True)
    put()
    write_stamp(kind, name, workspace, wanted)
