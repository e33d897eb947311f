"""Builds the missing tools and copies the missing charts, in parallel chains.

Each piece is created in a partial folder, moved into place atomically, and stamped. One failure ends all chains.
"""

import json
import os
import shutil
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import cast

from pulumi_holdfast.rehearsal.errors import RehearsalError
from pulumi_holdfast.rehearsal.paths import Workspace
from pulumi_holdfast.rehearsal.tools.catalog import CHAINS, Tool, read_go_module
from pulumi_holdfast.rehearsal.tools.charts import ChartSource, chart_fingerprint, gather
from pulumi_holdfast.rehearsal.tools.locate import Piece, Survey, chains
from pulumi_holdfast.rehearsal.tools.progress import Progress
from pulumi_holdfast.rehearsal.tools.stamps import (
    binary_fingerprint,
    empty_partial_dir,
    partial_dir,
    replace_file,
    replace_folder,
    replace_stamped,
)
from pulumi_holdfast.rehearsal.tools.toolchain import GoRunner, Stopped, diagnose, find_go, require_go


def build_tool(tool: Tool, workspace: Workspace, runner: GoRunner, on_line: Callable[[str], None]) -> None:
    """Build one tool into .tools/bin.

    Raises RehearsalError if the build fails, and Stopped if it is ended; the old program then remains.
    """
    made = partial_dir(workspace) / tool.name
    place = workspace.tools_bin / tool.name
    if place.is_file():
        # `go build` does not relink a current program: a changed pin relinks only the affected tools.
        shutil.copy2(place, made)
    flags = tool.build_flags(tool.pin(workspace.tools_root))
    wanted = binary_fingerprint(tool, workspace)
    folder = workspace.tools_root / "tools" / tool.module
    if tool.embeds is not None and tool.version_of is not None:
        there = _download(tool.title, tool.version_of, folder, runner, on_line) / tool.embeds
        # An overlay: the pins of an installed package may be read-only, and a copy in a checkout would be committed.
        overlay = partial_dir(workspace) / f"{tool.name}.json"
        replaced = {os.fspath(folder / tool.package / tool.embeds.name): os.fspath(there)}
        overlay.write_text(json.dumps({"Replace": replaced}), encoding="utf-8")
        flags = (*flags, f"-overlay={overlay}")
    runner.run(tool.title, ("build", "-v", *flags, "-o", os.fspath(made), tool.package), folder, on_line)
    replace_stamped("bin", tool.name, workspace, wanted, lambda: replace_file(made, place))


def gather_chart(
    source: ChartSource, workspace: Workspace, runner: GoRunner, on_line: Callable[[str], None]
) -> None:
    """Copy one chart of its pinned module into .tools/charts.

    Raises RehearsalError if the module cannot be downloaded or does not contain the chart.
    """
    folder = workspace.tools_root / "tools" / source.module
    module = _download(source.title, source.go_module, folder, runner, on_line)
    wanted = chart_fingerprint(source, workspace)
    made = partial_dir(workspace) / source.title
    gather(source, module, made, workspace.tools_root)
    place = workspace.charts_dir / source.name
    replace_stamped("charts", source.name, workspace, wanted, lambda: replace_folder(made, place))


def _download(
    title: str, module: str, folder: Path, runner: GoRunner, on_line: Callable[[str], None]
) -> Path:
    output = runner.run(title, ("mod", "download", "-x", "-json", module), folder, on_line)
    found = cast("dict[str, str]", json.loads(output))
    if "Dir" not in found:
        raise RehearsalError(f"{title}: `go mod download` printed no folder for {module}: {output}")
    return Path(found["Dir"])


def make_missing(survey: Survey, workspace: Workspace, progress: Progress) -> None:
    """Create every missing piece of the survey in .tools.

    Raises RehearsalError if Go is missing or too old, or if a piece fails, which ends the others. Finished pieces
    remain, and the cache of Go keeps most of the unfinished work.
    """
    toolchain = find_go(survey.missing)
    tools = workspace.tools_root / "tools"
    require_go(toolchain, [read_go_module(tools / module) for module in sorted(survey.modules)])
    empty_partial_dir(workspace)
    runner = GoRunner(toolchain)

    def make(piece: Piece) -> None:
        progress.started(piece.title)
        try:
            _make(piece, workspace, runner, lambda line: progress.line(piece.title, line))
        except OSError as error:
            message = diagnose(piece.title, [str(error)], proxy=toolchain.proxy, cache=toolchain.cache)
            raise RehearsalError(message) from error
        progress.finished(piece.title)

    _side_by_side(chains(survey, CHAINS), make, stop=runner.stop, tick=progress.tick)


def _make(piece: Piece, workspace: Workspace, runner: GoRunner, on_line: Callable[[str], None]) -> None:
    if isinstance(piece, Tool):
        build_tool(piece, workspace, runner, on_line)
    else:
        gather_chart(piece, workspace, runner, on_line)


def _side_by_side(
    work: Sequence[Sequence[Piece]],
    make: Callable[[Piece], None],
    *,
    stop: Callable[[], None],
    tick: Callable[[], None],
) -> None:
    def follow(chain: Sequence[Piece]) -> None:
        for piece in chain:
            make(piece)

    with ThreadPoolExecutor(max_workers=max(1, len(work))) as pool:
        running: set[Future[None]] = set()
        try:
            # Inside `try`: otherwise Ctrl-C between two submissions would wait for the first builds.
            running.update(pool.submit(follow, chain) for chain in work)
            _await(running, tick)
        finally:
            # A failure or Ctrl-C ends the other chains; after a success nothing runs.
            stop()
    failures = [error for chain in running if (error := chain.exception()) is not None]
    causes = [error for error in failures if not isinstance(error, Stopped)]
    if causes:
        raise causes[0]


def _await(running: set[Future[None]], tick: Callable[[], None]) -> None:
    pending = running
    while pending:
        done, pending = wait(pending, timeout=1.0, return_when=FIRST_EXCEPTION)
        if any(chain.exception() is not None for chain in done):
            return
        tick()
