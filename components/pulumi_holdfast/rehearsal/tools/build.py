"""Builds the missing tools and copies the missing charts into .tools, in parallel chains of `go` commands.

A piece is current while its stamp is the fingerprint of its pins, checksums, sources and flags. Each piece is made in a
partial folder and moved into place: an interruption costs one unnecessary build, but never leaves a stale piece.
"""

import fcntl
import hashlib
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, TypeAlias

from pulumi_holdfast.rehearsal.errors import RehearsalError
from pulumi_holdfast.rehearsal.paths import Workspace
from pulumi_holdfast.rehearsal.tools.catalog import CHAINS, TOOLS, Tool, pinned_text
from pulumi_holdfast.rehearsal.tools.charts import CHARTS, ChartSource, gather

Piece: TypeAlias = Tool | ChartSource
Say: TypeAlias = Callable[[str], None]

#: All that .tools contains.
PIECES: Final[tuple[Piece, ...]] = (*TOOLS, *CHARTS)


def title_of(piece: Piece) -> str:
    """The displayed name: a chart may have the name of its program."""
    return piece.name if isinstance(piece, Tool) else f"{piece.name} chart"


def kind_of(piece: Piece) -> str:
    """The folder of a piece in .tools, and of its stamp."""
    return "bin" if isinstance(piece, Tool) else "charts"


def fingerprint(*parts: bytes | str) -> str:
    """Return a digest of the parts in order; ("ab", "c") differs from ("a", "bc")."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(f"{len(data)}:".encode() + data)
    return digest.hexdigest()


def fingerprint_of(piece: Piece, workspace: Workspace) -> str:
    """Return what the stamp of a current piece is. Raises RehearsalError for a go.mod or go.sum without the piece."""
    root = workspace.tools_root
    folder = root / "tools" / piece.module
    sums = folder / "go.sum"
    if isinstance(piece, Tool):
        return fingerprint(
            (folder / "go.mod").read_bytes(),
            sums.read_bytes() if sums.is_file() else b"",
            piece.package,
            *piece.build_flags(piece.pin(root)),
            sys.platform,
            platform.machine(),
            *(part for path in piece.own_sources(root) for part in (path.name, path.read_bytes())),
        )
    pin = pinned_text(root, piece.module, piece.go_module)
    line = re.search(
        rf"^{re.escape(piece.go_module)} {re.escape(pin)} h1:\S+$", sums.read_text(), re.MULTILINE
    )
    if line is None:
        raise RehearsalError(
            f"tools/{piece.module}/go.sum has no hash of {piece.go_module} {pin}: "
            f"run `go mod download {piece.go_module}` in tools/{piece.module}"
        )
    folders = (piece.folder, *piece.more_crds)
    return fingerprint(line[0], *(str(folder) for folder in folders), str(piece.numbered_late))


def is_current(piece: Piece, workspace: Workspace) -> bool:
    """Whether .tools contains a piece, made from the current pins."""
    place, stamp = workspace.tools_dir / kind_of(piece) / piece.name, stamp_file(piece, workspace)
    made = place if isinstance(piece, Tool) else place / "Chart.yaml"
    return made.is_file() and stamp.is_file() and stamp.read_text() == fingerprint_of(piece, workspace)


def stamp_file(piece: Piece, workspace: Workspace) -> Path:
    """The file with the fingerprint of a finished piece."""
    return workspace.tools_dir / "stamps" / kind_of(piece) / piece.name


def put_in_place(piece: Piece, made: Path, workspace: Workspace, stamp: str) -> None:
    """Replace a piece by `made`, a file or folder on the file system of .tools, and stamp it."""
    place, stamped = workspace.tools_dir / kind_of(piece) / piece.name, stamp_file(piece, workspace)
    stamped.unlink(missing_ok=True)
    replace(made, place)
    stamped.parent.mkdir(parents=True, exist_ok=True)
    stamped.write_text(stamp, encoding="utf-8")


def replace(made: Path, place: Path) -> None:
    """Move a file or folder to `place` on the same file system, in place of what is there."""
    place.parent.mkdir(parents=True, exist_ok=True)
    if made.is_dir():
        shutil.rmtree(place, ignore_errors=True)
    made.replace(place)


@contextmanager
def partial_dir(workspace: Workspace) -> Generator[Path]:
    """Provide an empty folder for unfinished pieces, on the file system of .tools; remove it afterwards."""
    folder = workspace.tools_dir / "partial"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def exclusive(workspace: Workspace, say: Say) -> Generator[None]:
    """Hold the lock of .tools; wait where another build holds it."""
    workspace.tools_dir.mkdir(parents=True, exist_ok=True)
    with (workspace.tools_dir / "lock").open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("tools: another build runs in this checkout; waiting for it")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


#: The environment of the user must not change target, flags or workspace. GOGC is the garbage collection of the
#: compiler: with 400, it takes 26 % less CPU (72 s instead of 94 s for the core types of client-go) and 0.7 GB instead of
#: 0.45 GB per process.
_FIXED: Final = {"CGO_ENABLED": "0", "GOWORK": "off", "GOFLAGS": "-mod=readonly", "GOGC": "400"}
_DROPPED: Final = ("GOOS", "GOARCH", "GOAMD64", "GOARM64")
#: Lines about progress: the path of a compiled package, or a download.
_PROGRESS: Final = re.compile(r"^(?:\S+|go: downloading .*|# get \S+)$")
_LAST_LINES: Final = 12
_HINTS: Final = (
    (
        r"no space left|quota exceeded",
        "the disk is full: free about 10 GB; `go clean -cache` empties Go's cache",
    ),
    (r"checksum mismatch|SECURITY ERROR", "a downloaded module does not match go.sum: do not use it"),
    (
        r"dial tcp|no such host|i/o timeout|x509: |: (?:40[37]|429|5\d\d) |GOPROXY=off",
        "check the network and GOPROXY",
    ),
    (r"signal: killed|cannot allocate memory", "the compiler was killed: free about 4 GB of memory"),
)


class Go:
    """Runs `go` commands from several threads until `stop`. Raises RehearsalError if Go is missing."""

    def __init__(self) -> None:
        found = shutil.which("go")
        if found is None:
            raise RehearsalError(
                "go is not on PATH; install it from https://go.dev/dl or your package manager"
            )
        self._go = found
        self._environment = {key: value for key, value in os.environ.items() if key not in _DROPPED} | _FIXED
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[str]] = set()
        self._stopped = False

    def run(self, title: str, arguments: Sequence[str], folder: Path) -> str:
        """Run `go arguments` in `folder` for the piece `title`, and return its standard output.

        Raises RehearsalError with the last lines of its output if it fails, or is stopped.
        """
        said: deque[str] = deque(maxlen=400)
        with self._started(arguments, folder) as process:
            said.extend(process.stderr or ())
            output = process.stdout.read() if process.stdout else ""
        if process.returncode:
            raise RehearsalError(explain(title, [*said, *output.splitlines()]))
        return output

    def stop(self) -> None:
        """End every running command and refuse new ones."""
        with self._lock:
            self._stopped = True
            for process in self._running:
                # The whole group: the compilers are child processes.
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGTERM)

    @contextmanager
    def _started(self, arguments: Sequence[str], folder: Path) -> Generator[subprocess.Popen[str]]:
        with self._lock:
            if self._stopped:
                raise RehearsalError("stopped")
            process = subprocess.Popen(
                (self._go, *arguments),
                cwd=folder,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
                start_new_session=True,
            )
            self._running.add(process)
        try:
            with process:
                yield process
        finally:
            with self._lock:
                self._running.discard(process)


def explain(title: str, lines: Sequence[str]) -> str:
    """Return the message for a failed `go` command: a known cause with its fix, and the last lines about the failure."""
    output = "\n".join(lines)
    hint = next((f": {text}" for pattern, text in _HINTS if re.search(pattern, output, re.IGNORECASE)), "")
    relevant = [line.rstrip() for line in lines if line.strip() and not _PROGRESS.match(line.strip())]
    return "\n".join(
        (f"the build of {title} failed{hint}", *(f"  | {line}" for line in relevant[-_LAST_LINES:]))
    )


#: Short enough to show that a long compilation does not hang, long enough not to fill a log.
_HEARTBEAT_SECONDS: Final = 30.0


def make(missing: Sequence[Piece], workspace: Workspace, say: Say) -> None:
    """Make pieces in parallel chains.

    Raises RehearsalError if one fails, which ends the others. Finished pieces remain, and Go's cache keeps most of the
    unfinished work.
    """
    go, began, at_work = Go(), time.monotonic(), dict[str, float]()
    done = list[str]()

    def follow(chain: Sequence[Piece], folder: Path) -> None:
        for piece in chain:
            title = title_of(piece)
            at_work[title] = time.monotonic()
            say(f"tools: {title}: started")
            made = _made(piece, go, folder, workspace)
            put_in_place(piece, made, workspace, fingerprint_of(piece, workspace))
            done.append(title)
            took = time.monotonic() - at_work.pop(title)
            say(f"tools: {title}: done in {_clock(took)}  ({len(done)} of {len(missing)})")

    with partial_dir(workspace) as folder, ThreadPoolExecutor() as pool:
        try:
            running = [pool.submit(follow, chain, folder) for chain in chains(missing)]
            while wait(running, _HEARTBEAT_SECONDS, FIRST_EXCEPTION).not_done:
                if failed := [each for each in running if each.done() and each.exception()]:
                    running = failed
                    break
                say(f"tools: {_clock(time.monotonic() - began)} so far: {', '.join(at_work)}")
            for each in running:
                each.result()
        finally:
            # A failure or Ctrl-C ends the other chains; after a success nothing runs.
            go.stop()


def chains(missing: Sequence[Piece]) -> list[list[Piece]]:
    """Order pieces into chains that can run in parallel.

    The charts are the first, because they need downloads, but no compiler. Programs of one module, and of the modules of
    one of CHAINS, run in the order of the catalog, because each uses packages that the previous one compiled.
    """
    charts: list[Piece] = [piece for piece in missing if not isinstance(piece, Tool)]
    built: list[list[Piece]] = [
        [
            piece
            for module in modules
            for piece in missing
            if isinstance(piece, Tool) and piece.module == module
        ]
        for modules in CHAINS
    ]
    return [chain for chain in (charts, *built) if chain]


def _made(piece: Piece, go: Go, partial: Path, workspace: Workspace) -> Path:
    if isinstance(piece, Tool):
        return _built(piece, go, partial, workspace)
    made, folder = partial / title_of(piece), workspace.tools_root / "tools" / piece.module
    gather(piece, _downloaded(title_of(piece), piece.go_module, folder, go), made, workspace.tools_root)
    return made


def _built(tool: Tool, go: Go, partial: Path, workspace: Workspace) -> Path:
    made, place = partial / tool.name, workspace.tools_bin / tool.name
    if place.is_file():
        # `go build` does not relink a current program: a changed pin relinks only the affected tools.
        shutil.copy2(place, made)
    folder = workspace.tools_root / "tools" / tool.module
    flags = tool.build_flags(tool.pin(workspace.tools_root))
    if tool.embeds is not None and tool.version_of is not None:
        # An overlay: the pins of an installed package may be read-only, and a copy in a checkout would be committed.
        overlay = partial / f"{tool.name}.json"
        embedded = _downloaded(tool.name, tool.version_of, folder, go) / tool.embeds
        replaced = {os.fspath(folder / tool.package / tool.embeds.name): os.fspath(embedded)}
        overlay.write_text(json.dumps({"Replace": replaced}), encoding="utf-8")
        flags = (*flags, f"-overlay={overlay}")
    go.run(tool.name, ("build", *flags, "-o", os.fspath(made), tool.package), folder)
    return made


def _downloaded(title: str, module: str, folder: Path, go: Go) -> Path:
    found: dict[str, str] = json.loads(go.run(title, ("mod", "download", "-json", module), folder))
    if "Dir" not in found:
        raise RehearsalError(f"{title}: `go mod download` printed no folder for {module}: {found}")
    return Path(found["Dir"])


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes}:{rest:02d}"
