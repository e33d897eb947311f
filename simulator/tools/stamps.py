"""Whether what stands in .tools is what the pins ask for."""

import hashlib
import platform
import sys
from pathlib import Path

from holdfast.simulator.paths import Workspace
from holdfast.simulator.tools.catalogue import Tool
from holdfast.simulator.tools.files import replace_text


def fingerprint(*parts: bytes | str) -> str:
    """One digest over the parts in order; where one ends counts, so ("ab", "c") is not ("a", "bc")."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(f"{len(data)}:".encode() + data)
    return digest.hexdigest()


def binary_fingerprint(tool: Tool, workspace: Workspace) -> str:
    """What decides a built program: its pins with their checksums, our own sources, its flags, the machine's kind."""
    folder = workspace.project_root / "tools" / tool.module
    flags = tool.build_flags(tool.pin(workspace.project_root))
    sums = folder / "go.sum"
    sources = tool.own_sources(workspace.project_root)
    return fingerprint(
        (folder / "go.mod").read_bytes(),
        sums.read_bytes() if sums.is_file() else b"",
        tool.package,
        *flags,
        sys.platform,
        platform.machine(),
        *(part for path in sources for part in (path.name, path.read_bytes())),
    )


def stamp_file(kind: str, name: str, workspace: Workspace) -> Path:
    """Where the fingerprint of a finished piece is kept; `kind` is `bin` or `charts`."""
    return workspace.tools_bin.parent / "stamps" / kind / name


def stamped(kind: str, name: str, workspace: Workspace) -> str | None:
    """The fingerprint the finished piece was made with, or None."""
    try:
        return stamp_file(kind, name, workspace).read_text(encoding="utf-8")
    except FileNotFoundError:
        return None


def write_stamp(kind: str, name: str, workspace: Workspace, value: str) -> None:
    """Record what the piece, now in its place, was made with."""
    replace_text(stamp_file(kind, name, workspace), value)


def built_and_current(tool: Tool, workspace: Workspace) -> bool:
    """Whether .tools/bin holds this tool as its pins ask for it."""
    binary = workspace.tools_bin / tool.name
    return binary.is_file() and stamped("bin", tool.name, workspace) == binary_fingerprint(tool, workspace)
