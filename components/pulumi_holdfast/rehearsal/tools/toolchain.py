"""Finds the Go toolchain, runs `go` commands in a fixed environment, and explains their failures."""

import json
import os
import re
import shutil
import signal
import subprocess
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from pulumi_holdfast.rehearsal.errors import RehearsalError
from pulumi_holdfast.rehearsal.tools.catalog import GoModule, Version, parse_version

_INSTALL = "install it from https://go.dev/dl or your package manager"

#: The environment of the user must not change target, flags or workspace. GOGC is the garbage collection of the
#: compiler: with 400, it takes 26 % less CPU (72 s instead of 94 s for the core types of client-go) and 0.7 GB instead of
#: 0.45 GB per process.
_FIXED = {"CGO_ENABLED": "0", "GOWORK": "off", "GOFLAGS": "-mod=readonly", "GOGC": "400"}
_DROPPED = ("GOOS", "GOARCH", "GOAMD64", "GOARM64")


@dataclass(frozen=True, kw_only=True)
class GoToolchain:
    """The `go` command of the builds; messages contain `proxy` and `cache`."""

    go: Path
    version: Version
    switches: bool
    proxy: str
    cache: str
    environment: dict[str, str] = field(repr=False)


def go_environment(outer: dict[str, str]) -> dict[str, str]:
    """The environment of every `go` command."""
    return {key: value for key, value in outer.items() if key not in _DROPPED} | _FIXED


def find_go(missing: Iterable[str], outer: dict[str, str] | None = None) -> GoToolchain:
    """Return the Go toolchain on PATH. Raises RehearsalError, which names the `missing` pieces, if there is none."""
    environment = go_environment(dict(os.environ) if outer is None else outer)
    found = shutil.which("go", path=environment.get("PATH", os.defpath))
    if found is None:
        raise RehearsalError(f"go is not on PATH, but is required to build {', '.join(missing)}; {_INSTALL}")
    asked = ("GOVERSION", "GOTOOLCHAIN", "GOPROXY", "GOCACHE")
    # Outside of modules: inside one, an old Go would first download a newer one.
    answer = subprocess.run(
        (found, "env", "-json", *asked), capture_output=True, text=True, env=environment, cwd="/", check=False
    )
    if answer.returncode != 0:
        raise RehearsalError(
            f"{found} does not work: `go env` failed with {answer.stderr.strip()!r}; {_INSTALL}"
        )
    settings = cast("dict[str, str]", json.loads(answer.stdout))
    return GoToolchain(
        go=Path(found),
        version=parse_go_version(settings["GOVERSION"]),
        switches=settings["GOTOOLCHAIN"] != "local",
        proxy=settings["GOPROXY"],
        cache=settings["GOCACHE"],
        environment=environment,
    )


def parse_go_version(text: str) -> Version:
    """Parse `go1.26.8` or `go1.26`; an unreleased toolchain is the oldest version."""
    numbers = text.removeprefix("go").split(" ")[0].split("-")[0]
    padded = numbers if numbers.count(".") >= 2 else f"{numbers}.0"
    return parse_version(padded) or Version(major=0, minor=0, patch=0)


def require_go(toolchain: GoToolchain, modules: Iterable[GoModule]) -> None:
    """Raise RehearsalError if the toolchain is too old for a module and does not download a newer one."""
    for module in modules:
        if toolchain.version < module.go and not toolchain.switches:
            raise RehearsalError(
                f"{toolchain.go} is Go {toolchain.version}, but {module.folder / 'go.mod'} needs {module.go} or newer; "
                f"{_INSTALL}, or set GOTOOLCHAIN=auto to download it"
            )


#: Lines about progress: the path of a compiled package, or a download.
_PROGRESS = re.compile(r"^(?:\S+|go: downloading .*|# get \S+)$")
_TAIL_LINES = 12

_DISK_FULL = re.compile(r"no space left on device|disk quota exceeded", re.IGNORECASE)
_NO_MEMORY = re.compile(r"signal: killed|cannot allocate memory|out of memory", re.IGNORECASE)
_ALTERED = re.compile(r"checksum mismatch|SECURITY ERROR")
_LOOKUP_OFF = re.compile(r"module lookup disabled by GOPROXY=off")
_NO_NETWORK = re.compile(
    r"dial tcp|no such host|i/o timeout|connection re(?:fused|set)|network is unreachable|TLS handshake"
    r"|proxyconnect|x509: |unexpected EOF|: (?:40[37]|429|5\d\d) |server misbehaving"
)


def tail(lines: Sequence[str]) -> list[str]:
    """The last lines about the failure, oldest first."""
    relevant = [line.rstrip() for line in lines if line.strip() and not _PROGRESS.match(line.strip())]
    return relevant[-_TAIL_LINES:]


def diagnose(name: str, lines: Sequence[str], *, proxy: str, cache: str) -> str:
    """Return the message for a `go` command for `name` that failed.

    `lines` is its output, `proxy` is GOPROXY, and `cache` is the build cache of Go.
    """
    output = "\n".join(lines)
    if _DISK_FULL.search(output):
        return (
            f"the disk is full: {name} was not created. Free about 10 GB for the build (`go clean -cache` empties the "
            f"cache {cache}), then run the command again; finished pieces remain"
        )
    if _ALTERED.search(output):
        return _with_tail(f"{name}: a downloaded module does not match go.sum; do not use it", lines)
    if _LOOKUP_OFF.search(output):
        return f"{name} needs modules that are not on this machine, and GOPROXY=off forbids downloads; set GOPROXY"
    if _NO_NETWORK.search(output):
        fix = f"GOPROXY is {proxy}; check the network or set GOPROXY to a reachable proxy, then run the command again"
        return _with_tail(f"{name}: cannot download Go modules. {fix}", lines)
    if _NO_MEMORY.search(output):
        return _with_tail(
            f"{name}: the compiler was killed, probably because of low memory; free about 4 GB", lines
        )
    return _with_tail(f"the build of {name} failed", lines)


def _with_tail(message: str, lines: Sequence[str]) -> str:
    return "\n".join((message, *(f"  | {line}" for line in tail(lines))))


#: Enough for all compiler errors of one package; earlier progress lines are dropped.
_LAST_LINES = 400


class Stopped(Exception):  # noqa: N818 - no failure: the user, or another failure, ended the command
    """The command was stopped before its end."""


class GoRunner:
    """Runs `go` commands from several threads until `stop`."""

    def __init__(self, toolchain: GoToolchain) -> None:
        self._toolchain = toolchain
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[str]] = set()
        self._stopped = False

    def run(
        self,
        name: str,
        arguments: Sequence[str],
        folder: Path,
        on_line: Callable[[str], None] = lambda _: None,
    ) -> str:
        """Run `go arguments` in `folder` for the piece `name`, and return the standard output.

        `on_line` receives each line of standard error. Raises RehearsalError with the fix if the command fails, and
        Stopped after `stop`.
        """
        output: deque[str] = deque(maxlen=_LAST_LINES)
        with self._started(arguments, folder) as process:
            for line in process.stderr or ():
                output.append(line)
                on_line(line.rstrip())
            stdout = process.stdout.read() if process.stdout else ""
        if process.returncode == 0:
            return stdout
        if self._stopped:
            raise Stopped(name)
        toolchain = self._toolchain
        lines = [*output, *stdout.splitlines()]
        raise RehearsalError(diagnose(name, lines, proxy=toolchain.proxy, cache=toolchain.cache))

    def stop(self) -> None:
        """End every running command and refuse new ones."""
        with self._lock:
            self._stopped = True
            for process in self._running:
                # Signal the whole group, because the compilers are child processes.
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGTERM)

    @contextmanager
    def _started(
        self, arguments: Sequence[str], folder: Path
    ) -> Generator[subprocess.Popen[str], None, None]:
        with self._lock:
            if self._stopped:
                raise Stopped
            process = subprocess.Popen(
                (self._toolchain.go, *arguments),
                cwd=folder,
                env=self._toolchain.environment,
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
