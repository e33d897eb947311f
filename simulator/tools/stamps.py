"""Whether what stands in .tools is what the pins ask for."""

import fcntl
import hashlib
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

from holdfast.simulator.paths import Workspace
from holdfast.simulator.tools.catalog import Tool


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


def partial_dir(workspace: Workspace) -> Path:
    """Where half-made things lie: on the same file system as their places, so that a rename is enough."""
    folder = workspace.tools_bin.parent / "partial"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def empty_partial_dir(workspace: Workspace) -> None:
    """Remove what an interrupted run left half made."""
    shutil.rmtree(partial_dir(workspace))
    partial_dir(workspace)


def replace_text(path: Path, text: str) -> None:
    """Write a file so that a reader sees the old text or the new, never a part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(
        "w", encoding="utf-8", dir=path.parent, prefix=".", delete=False
    ) as file:
        file.write(text)
    Path(file.name).replace(path)


def replace_folder(made: Path, place: Path) -> None:
    """Put the folder `made` where `place` is; what was there goes. Both on one file system."""
    place.parent.mkdir(parents=True, exist_ok=True)
    old = made.with_name(f"{made.name}.old")
    shutil.rmtree(old, ignore_errors=True)
    if place.exists():
        place.rename(old)
    made.rename(place)
    shutil.rmtree(old, ignore_errors=True)


@contextmanager
def exclusive(path: Path, on_wait: Callable[[str], None]) -> Generator[None, None, None]:
    """Hold the lock file; where another process holds it, call `on_wait` with its process id and wait.

    The kernel lets go of the lock when its holder dies, however it dies: no stale lock is ever in the way.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            on_wait(file.read().strip() or "unknown")
            fcntl.flock(file, fcntl.LOCK_EX)
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield
