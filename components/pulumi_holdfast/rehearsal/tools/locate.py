"""Finds tools: on PATH with an accepted version, otherwise in .tools/bin. Also surveys what is missing."""

import os
import shutil
import subprocess
import sysconfig
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from pathlib import Path

from pulumi_holdfast.rehearsal.errors import RehearsalError
from pulumi_holdfast.rehearsal.paths import Workspace
from pulumi_holdfast.rehearsal.tools.catalog import (
    KUBECTL,
    TOOLS,
    Accepts,
    Tool,
    Version,
    parse_version,
    tool_named,
)
from pulumi_holdfast.rehearsal.tools.charts import CHARTS, ChartSource, chart_current
from pulumi_holdfast.rehearsal.tools.stamps import built_and_current

#: A tool prints its version in less than a second; a program that hangs is another one.
_ANSWER_SECONDS = 20.0


@dataclass(frozen=True, kw_only=True)
class OnPath:
    """A program on PATH with the name of a tool; `version` is None if it printed none."""

    path: Path
    version: Version | None


@lru_cache(maxsize=64)
def _version_of(path: Path, asks: tuple[str, ...]) -> Version | None:
    quiet = {**os.environ, "PULUMI_SKIP_UPDATE_CHECK": "true"}
    try:
        answer = subprocess.run(
            (path, *asks), capture_output=True, text=True, timeout=_ANSWER_SECONDS, env=quiet, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return parse_version(answer.stdout + answer.stderr) if answer.returncode == 0 else None


def look_on_path(name: str, asks: tuple[str, ...] | None, workspace: Workspace) -> OnPath | None:
    """Return the program with this name on PATH, outside .tools/bin, or None."""
    ours = workspace.tools_bin.resolve()
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    elsewhere = os.pathsep.join(folder for folder in folders if folder and Path(folder).resolve() != ours)
    found = shutil.which(name, path=elsewhere)
    if found is None:
        return None
    return OnPath(path=Path(found), version=None if asks is None else _version_of(Path(found), asks))


def good_on_path(tool: Tool, workspace: Workspace) -> OnPath | None:
    """Return the tool on PATH if its version is accepted, otherwise None.

    A program that cannot print its version is never used from PATH.
    """
    if tool.asks is None:
        return None
    found = look_on_path(tool.name, tool.asks, workspace)
    if found is None or found.version is None:
        return None
    return found if tool.accepts.good(found.version, tool.pin(workspace.tools_root)) else None


def find_tool(name: str, workspace: Workspace) -> Path:
    """Return the program with this name: on PATH with an accepted version, otherwise in .tools.

    Raises RehearsalError with the tool, the accepted version, the found version and the fix.
    """
    if name == KUBECTL:
        return _find_kubectl(workspace)
    tool = tool_named(name)
    on_path = good_on_path(tool, workspace)
    if on_path is not None:
        return on_path.path
    if built_and_current(tool, workspace):
        return workspace.tools_bin / tool.name
    raise RehearsalError(_missing(tool, workspace))


def _missing(tool: Tool, workspace: Workspace) -> str:
    wanted = tool.accepts.wanted(tool.pin(workspace.tools_root))
    seen = _seen(look_on_path(tool.name, tool.asks, workspace), knows_version=tool.asks is not None)
    built = workspace.tools_bin / tool.name
    stale = f"; {built} was built from other pins" if built.exists() else ""
    in_checkout = workspace.project_root == workspace.tools_root
    how = (
        "`make tools`"
        if in_checkout
        else "`holdfast tools`, with HOLDFAST_TOOLS=FILE for the archive of a release"
    )
    return f"{tool.name} is missing: the accepted version is {wanted}; {seen}{stale}. Run {how}"


def _seen(found: OnPath | None, *, knows_version: bool) -> str:
    if found is None:
        return "none is on PATH"
    if not knows_version:
        return f"{found.path} cannot print its version"
    return (
        f"{found.path} on PATH has {f'version {found.version}' if found.version else 'no readable version'}"
    )


def _find_kubectl(workspace: Workspace) -> Path:
    pin = tool_named("kube-apiserver").pin(workspace.tools_root)
    on_path = look_on_path(KUBECTL, ("version", "--client"), workspace)
    if (
        on_path is not None
        and on_path.version is not None
        and Accepts.NEIGHBOR_MINOR.good(on_path.version, pin)
    ):
        return on_path.path
    packaged = Path(sysconfig.get_path("scripts")) / KUBECTL
    if packaged.is_file():
        return packaged
    wanted = Accepts.NEIGHBOR_MINOR.wanted(pin)
    seen = _seen(on_path, knows_version=True)
    raise RehearsalError(
        f"kubectl is missing: the accepted version is {wanted}; {seen}, and {packaged} does not exist. "
        f"Run `make venv` to install it, or add an accepted version to PATH"
    )


class State(Enum):
    """The state of a piece before the build."""

    ON_PATH = "from PATH"
    THERE = "already there"
    MISSING = "to be made"


@dataclass(frozen=True, kw_only=True)
class Survey:
    """The state of every tool and every chart."""

    tools: dict[Tool, State]
    charts: dict[ChartSource, State]

    @property
    def missing(self) -> list[str]:
        """The titles of the missing pieces."""
        return [
            piece.title
            for piece, state in (*self.tools.items(), *self.charts.items())
            if state is State.MISSING
        ]

    @property
    def modules(self) -> set[str]:
        """The folders in tools/ of the missing pieces."""
        both = (*self.tools.items(), *self.charts.items())
        return {piece.module for piece, state in both if state is State.MISSING}


Piece = Tool | ChartSource


def chains(survey: Survey, module_chains: Sequence[Sequence[str]]) -> list[list[Piece]]:
    """Order the missing pieces into chains that can run in parallel.

    The charts are the first chain, because they need downloads, but no compiler. Tools of one module, and of the modules
    of one chain, run in the order of the catalog, because a tool uses packages that the previous one compiled. Empty
    chains are omitted.
    """
    gathered: list[Piece] = [chart for chart, state in survey.charts.items() if state is State.MISSING]
    built = [_chain_tools(survey, modules) for modules in module_chains]
    return [chain for chain in (gathered, *built) if chain]


def _chain_tools(survey: Survey, modules: Collection[str]) -> list[Piece]:
    missing = [tool for tool, state in survey.tools.items() if state is State.MISSING]
    return [tool for module in modules for tool in missing if tool.module == module]


def take_survey(workspace: Workspace) -> Survey:
    """Return the state of every tool and chart. Raises RehearsalError if a go.mod cannot be read."""
    return Survey(
        tools={tool: _state(tool, workspace) for tool in TOOLS},
        charts={chart: State.THERE if chart_current(chart, workspace) else State.MISSING for chart in CHARTS},
    )


def _state(tool: Tool, workspace: Workspace) -> State:
    if good_on_path(tool, workspace) is not None:
        return State.ON_PATH
    return State.THERE if built_and_current(tool, workspace) else State.MISSING
