"""The Go toolchain: found, new enough, and run in one fixed environment."""

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

from holdfast.simulator.errors import RehearsalError
from holdfast.simulator.tools.catalog import GoModule, Version, parse_version

_INSTALL = "install it from https://go.dev/dl or your package manager"

#: What a user's environment must not change: the target machine, the flags, a workspace around the checkout.
#: GOGC is the compiler's own garbage collection: at 400 it takes 26 % less CPU (72 s against 94 s for client-go's
#: core types) and 0.7 GB instead of 0.45 GB a process; the programs it makes are the same.
_FIXED = {"CGO_ENABLED": "0", "GOWORK": "off", "GOFLAGS": "-mod=readonly", "GOGC": "400"}
_DROPPED = ("GOOS", "GOARCH", "GOAMD64", "GOARM64")


@dataclass(frozen=True, kw_only=True)
class GoToolchain:
    """The `go` command that builds; `proxy` and `cache` are named in messages."""

    go: Path
    version: Version
    switches: bool
    proxy: str
    cache: str
    environment: dict[str, str] = field(repr=False)


def go_environment(outer: dict[str, str]) -> dict[str, str]:
    """The environment every `go` runs in."""
    return {key: value for key, value in outer.items() if key not in _DROPPED} | _FIXED


def find_go(missing: Iterable[str], outer: dict[str, str] | None = None) -> GoToolchain:
    """Return the Go toolchain on PATH.

    `missing` are the things that need it, named where there is none. Raises RehearsalError.
    """
    environment = go_environment(dict(os.environ) if outer is None else outer)
    found = shutil.which("go", path=environment.get("PATH", os.defpath))
    if found is None:
        raise RehearsalError(
            f"go is not on PATH, and these have to be built with it: {', '.join(missing)}. Go itself is missing: {_INSTALL}"
        )
    asked = ("GOVERSION", "GOTOOLCHAIN", "GOPROXY", "GOCACHE")
    # Outside every module: inside one, an old Go would fetch a newer one before it answers.
    answer = subprocess.run(
        (found, "env", "-json", *asked), capture_output=True, text=True, env=environment, cwd="/", check=False
    )
    if answer.returncode != 0:
        raise RehearsalError(f"{found} does not work: `go env` says {answer.stderr.strip()!r}; {_INSTALL}")
    told = cast("dict[str, str]", json.loads(answer.stdout))
    return GoToolchain(
        go=Path(found),
        version=parse_go_version(told["GOVERSION"]),
        switches=told["GOTOOLCHAIN"] != "local",
        proxy=told["GOPROXY"],
        cache=told["GOCACHE"],
        environment=environment,
    )


def parse_go_version(text: str) -> Version:
    """Read `go1.26.8` or `go1.26`; a toolchain of no release counts as the oldest."""
    numbers = text.removeprefix("go").split(" ")[0].split("-")[0]
    padded = numbers if numbers.count(".") >= 2 else f"{numbers}.0"
    return parse_version(padded) or Version(major=0, minor=0, patch=0)


def require_go(toolchain: GoToolchain, modules: Iterable[GoModule]) -> None:
    """Raise RehearsalError where the toolchain is older than a module asks for and will not fetch a newer one."""
    for module in modules:
        if toolchain.version < module.go and not toolchain.switches:
            raise RehearsalError(
                f"{toolchain.go} is Go {toolchain.version}, and {module.folder / 'go.mod'} needs {module.go} or newer: "
                f"{_INSTALL}, or set GOTOOLCHAIN=auto to let go fetch it"
            )


#: Lines that say what is being done, not what went wrong: the path of a compiled package, a download.
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
    """The last lines that speak of the failure, oldest first."""
    told = [line.rstrip() for line in lines if line.strip() and not _PROGRESS.match(line.strip())]
    return told[-_TAIL_LINES:]


def diagnose(name: str, lines: Sequence[str], *, proxy: str, cache: str) -> str:
    """Return one message for the user about a `go` command that failed while making `name`.

    `lines` is its output, `proxy` the GOPROXY in force and `cache` the folder of Go's build cache.
    """
    output = "\n".join(lines)
    if _DISK_FULL.search(output):
        return (
            f"the disk is full: {name} could not be made. Free about 10 GB for the build (Go's cache is {cache}, "
            f"`go clean -cache` empties it), then run `make tools` again: what is finished stays"
        )
    if _ALTERED.search(output):
        return _with_tail(
            f"{name}: a downloaded module is not the one that go.sum names; do not use it", lines
        )
    if _LOOKUP_OFF.search(output):
        return f"{name} needs modules that are not on this machine, and GOPROXY=off forbids to fetch them: set GOPROXY"
    if _NO_NETWORK.search(output):
        fix = f"GOPROXY is {proxy}: check the network or name a reachable proxy in GOPROXY, then run `make tools` again"
        return _with_tail(f"{name}: Go modules could not be fetched. {fix}", lines)
    if _NO_MEMORY.search(output):
        return _with_tail(
            f"{name}: the compiler was killed, most likely for want of memory (about 4 GB needed)", lines
        )
    return _with_tail(f"{name} could not be built", lines)


def _with_tail(message: str, lines: Sequence[str]) -> str:
    return "\n".join((message, *(f"  | {line}" for line in tail(lines))))


#: Enough for every compiler error of one package; progress lines of thousands of packages roll out.
_KEPT_LINES = 400


class Stopped(Exception):  # noqa: N818 - not a failure: another one, or the user, ended the work
    """The command was ended before it was done."""


class GoRunner:
    """Runs `go` commands from several threads until it is told to stop."""

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
        """Run `go arguments` in `folder` for the sake of `name`, and return its standard output.

        Each line on its standard error goes to `on_line` as it comes.
        Raises RehearsalError with the fix where it fails, Stopped after `stop`.
        """
        kept: deque[str] = deque(maxlen=_KEPT_LINES)
        with self._started(arguments, folder) as process:
            for line in process.stderr or ():
                kept.append(line)
                on_line(line.rstrip())
            stdout = process.stdout.read() if process.stdout else ""
        if process.returncode == 0:
            return stdout
        if self._stopped:
            raise Stopped(name)
        toolchain = self._toolchain
        lines = [*kept, *stdout.splitlines()]
        raise RehearsalError(diagnose(name, lines, proxy=toolchain.proxy, cache=toolchain.cache))

    def stop(self) -> None:
        """End every running command, and let none start."""
        with self._lock:
            self._stopped = True
            for process in self._running:
                # The compilers are its children: the whole group, or they go on eating both cores.
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
