"""The folder .tools: stamps that show whether a piece is current, atomic replacement, and the lock of a build."""

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

from pulumi_holdfast.rehearsal.paths import Workspace
from pulumi_holdfast.rehearsal.tools.catalog import Tool


def fingerprint(*parts: bytes | str) -> str:
    """Return a digest of the parts in order; ("ab", "c") differs from ("a", "bc")."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(f"{len(data)}:".encode() + data)
    return digest.hexdigest()


def binary_fingerprint(tool: Tool, workspace: Workspace) -> str:
    """Return the fingerprint of a program: its pins, checksums, own sources and flags, and the platform."""
    folder = workspace.tools_root / "tools" / tool.module
    flags = tool.build_flags(tool.pin(workspace.tools_root))
    sums = folder / "go.sum"
    sources = tool.own_sources(workspace.tools_root)
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
    """The file with the fingerprint of a finished piece; `kind` is `bin` or `charts`."""
    return workspace.tools_dir / "stamps" / kind / name


def stamped(kind: str, name: str, workspace: Workspace) -> str | None:
    """The fingerprint of a finished piece, None if there is none."""
    try:
        return stamp_file(kind, name, workspace).read_text(encoding="utf-8")
    except FileNotFoundError:
        return None


def write_stamp(kind: str, name: str, workspace: Workspace, value: str) -> None:
    """Record the fingerprint of a finished piece."""
    replace_text(stamp_file(kind, name, workspace), value)


def built_and_current(tool: Tool, workspace: Workspace) -> bool:
    """Whether .tools/bin contains this tool, built from the current pins."""
    binary = workspace.tools_bin / tool.name
    return binary.is_file() and stamped("bin", tool.name, workspace) == binary_fingerprint(tool, workspace)


def partial_dir(workspace: Workspace) -> Path:
    """The folder for unfinished pieces, on the same file system as .tools, so that a rename moves them."""
    folder = workspace.tools_dir / "partial"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def empty_partial_dir(workspace: Workspace) -> None:
    """Remove unfinished pieces of an interrupted run."""
    shutil.rmtree(partial_dir(workspace))
    partial_dir(workspace)


def replace_text(path: Path, text: str) -> None:
    """Replace the text of a file atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(
        "w", encoding="utf-8", dir=path.parent, prefix=".", delete=False
    ) as file:
        file.write(text)
    Path(file.name).replace(path)


def replace_folder(made: Path, place: Path) -> None:
    """Replace the folder `place` with the folder `made` on the same file system."""
    place.parent.mkdir(parents=True, exist_ok=True)
    old = made.with_name(f"{made.name}.old")
    shutil.rmtree(old, ignore_errors=True)
    if place.exists():
        place.rename(old)
    made.rename(place)
    shutil.rmtree(old, ignore_errors=True)


def replace_file(made: Path, place: Path) -> None:
    """Replace the file `place` with the file `made` on the same file system."""
    place.parent.mkdir(parents=True, exist_ok=True)
    made.replace(place)


def replace_stamped(kind: str, name: str, workspace: Workspace, wanted: str, put: Callable[[], None]) -> None:
    """Replace a piece by `put`, and record its fingerprint."""
    # Without a stamp, an interruption here causes one unnecessary build, but never leaves a stale tool.
    stamp_file(kind, name, workspace).unlink(missing_ok=True)
    put()
    write_stamp(kind, name, workspace, wanted)


@contextmanager
def exclusive(path: Path, on_wait: Callable[[str], None]) -> Generator[None, None, None]:
    """Hold the lock file; if another process holds it, call `on_wait` with its pid and wait.

    The kernel releases the lock when its holder dies.
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
