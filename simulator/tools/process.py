"""One `go` command: its lines as they come, and an end on demand."""

import os
import signal
import subprocess
import threading
from collections import deque
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from holdfast.simulator.errors import RehearsalError
from holdfast.simulator.tools.failures import diagnose
from holdfast.simulator.tools.toolchain import GoToolchain

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
