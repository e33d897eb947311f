"""Finds a tool: on PATH with an accepted version, otherwise in .tools/bin."""

import os
import shutil
import subprocess
import sysconfig
from functools import lru_cache
from pathlib import Path

from pulumi_holdfast.rehearsal.errors import RehearsalError
from pulumi_holdfast.rehearsal.paths import Workspace
from pulumi_holdfast.rehearsal.tools.build import PIECES, Piece, is_current
from pulumi_holdfast.rehearsal.tools.catalog import KUBECTL, Accepts, Tool, Version, parse_version, tool_named

#: A tool prints its version in less than a second; a program that hangs is another one.
_ANSWER_SECONDS = 20.0


def find_tool(name: str, workspace: Workspace) -> Path:
    """Return the program with this name: on PATH with an accepted version, otherwise in .tools.

    Raises RehearsalError with the tool, the accepted version, the found version and the fix.
    """
    if name == KUBECTL:
        return _find_kubectl(workspace)
    tool = tool_named(name)
    built = workspace.tools_bin / tool.name
    if mine := on_path(tool, workspace):
        return mine
    if is_current(tool, workspace):
        return built
    stale = f"; {built} was built from other pins" if built.exists() else ""
    in_checkout = workspace.project_root == workspace.tools_root
    how = (
        "`make tools`"
        if in_checkout
        else "`holdfast tools --archive FILE` with the archive of a release, or `holdfast tools`"
    )
    wanted = tool.accepts.wanted(tool.pin(workspace.tools_root))
    raise RehearsalError(
        f"{name} is missing: the accepted version is {wanted}; {_seen(name, tool.asks, workspace)}{stale}. Run {how}"
    )


def on_path(tool: Tool, workspace: Workspace) -> Path | None:
    """Return the tool on PATH if its version is accepted; a program that cannot print its version is never used."""
    return _accepted(tool.name, tool.asks, tool.accepts, tool.pin(workspace.tools_root), workspace)


def missing_pieces(workspace: Workspace) -> list[Piece]:
    """Return the tools and charts to make. Raises RehearsalError if a go.mod cannot be read."""
    return [
        piece
        for piece in PIECES
        if not (isinstance(piece, Tool) and on_path(piece, workspace)) and not is_current(piece, workspace)
    ]


def _accepted(
    name: str, asks: tuple[str, ...] | None, accepts: Accepts, pin: Version, workspace: Workspace
) -> Path | None:
    found = _which(name, workspace)
    version = _version_of(found, asks) if found and asks is not None else None
    return found if version and accepts.good(version, pin) else None


def _which(name: str, workspace: Workspace) -> Path | None:
    """The program with this name on PATH, outside .tools/bin."""
    ours = workspace.tools_bin.resolve()
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    others = os.pathsep.join(folder for folder in folders if folder and Path(folder).resolve() != ours)
    found = shutil.which(name, path=others)
    return Path(found) if found else None


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


def _seen(name: str, asks: tuple[str, ...] | None, workspace: Workspace) -> str:
    found = _which(name, workspace)
    if found is None:
        return "none is on PATH"
    if asks is None:
        return f"{found} cannot print its version"
    version = _version_of(found, asks)
    return f"{found} on PATH has {f'version {version}' if version else 'no readable version'}"


def _find_kubectl(workspace: Workspace) -> Path:
    pin, asks, accepts = (
        tool_named("kube-apiserver").pin(workspace.tools_root),
        ("version", "--client"),
        Accepts.NEIGHBOR_MINOR,
    )
    if mine := _accepted(KUBECTL, asks, accepts, pin, workspace):
        return mine
    packaged = Path(sysconfig.get_path("scripts")) / KUBECTL
    if packaged.is_file():
        return packaged
    raise RehearsalError(
        f"kubectl is missing: the accepted version is {accepts.wanted(pin)}; {_seen(KUBECTL, asks, workspace)}, and "
        f"{packaged} does not exist. Run `make venv` to install it, or add an accepted version to PATH"
    )
