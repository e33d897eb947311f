"""Runs one process with a log; the process dies with the operator runner. Also computes restart delays."""

import asyncio
import contextlib
import os
import re
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pulumi_holdfast.rehearsal.objects import now
from pulumi_holdfast.rehearsal.operator_runner import launch

LONGEST_DELAY_SECONDS = 30.0
# A process that ran this long failed for another reason than the previous one.
STEADY_SECONDS = 60.0


def failures_after(failures: int, *, ran_seconds: float) -> int:
    """The number of consecutive failures, including the one after `ran_seconds`."""
    return 1 if ran_seconds >= STEADY_SECONDS else failures + 1


def delay_seconds(failures: int) -> float:
    """The delay after consecutive failures: 1, 2, 4 … seconds, at most 30."""
    return min(2.0 ** min(failures - 1, 10), LONGEST_DELAY_SECONDS)


LARGEST_LOG_BYTES = 20_000_000
_KEPT_LOG_BYTES = 1_000_000


@dataclass(frozen=True, kw_only=True)
class Command:
    """A program with its arguments, environment, folder and log; `headed`: the log has a line for each start."""

    program: Path
    args: Sequence[str]
    variables: Mapping[str, str]
    folder: Path
    log: Path
    headed: bool = True


class SupervisedProcess:
    """A running process of the operator runner."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @classmethod
    async def start(cls, command: Command) -> "SupervisedProcess":
        """Start `command` with only its own environment variables."""
        with open_log(command.log) as log:
            if command.headed:
                log.write(f"--- {now()} {command.program.name} {' '.join(command.args)}\n")
                log.flush()
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-S",
                launch.__file__,
                str(os.getpid()),
                str(command.program),
                *command.args,
                cwd=command.folder,
                env=command.variables,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                # Ctrl-C in the terminal that started the runner must not reach the controllers.
                start_new_session=True,
            )
        return cls(process)

    async def ended(self) -> int:
        """Wait until the process exits; returns the exit code, negative for a signal."""
        return await self._process.wait()

    def terminate(self) -> bool:
        """Send SIGTERM; returns False for a process without a handler, which ignores it as PID 1 of a container does."""
        if not _handles_sigterm(self._process.pid):
            return False
        with contextlib.suppress(ProcessLookupError):
            self._process.terminate()
        return True

    def kill_all(self) -> None:
        """Kill the process and all that it started."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)

    async def end(self, *, grace_seconds: float) -> None:
        """Terminate the process, and kill it after the grace period. Does nothing if it has exited."""
        with contextlib.suppress(ProcessLookupError):
            self._process.terminate()
        try:
            await asyncio.wait_for(self._process.wait(), timeout=grace_seconds)
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()


def _handles_sigterm(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return True
    caught = re.search(r"^SigCgt:\s*([0-9a-f]+)", status, re.MULTILINE)
    return caught is None or bool(int(caught[1], 16) >> (signal.SIGTERM - 1) & 1)


def open_log(log: Path):
    """Open a log for appending; rotate a large log first."""
    log.parent.mkdir(parents=True, exist_ok=True)
    if log.exists() and log.stat().st_size > LARGEST_LOG_BYTES:
        log.replace(log.with_suffix(".log.1"))
    return log.open("a", encoding="utf-8")


def keep_end(log: Path) -> None:
    """Cut a log that a process appends to: its last part stays. Blocks."""
    with log.open("rb") as file:
        file.seek(-min(_KEPT_LOG_BYTES, log.stat().st_size), os.SEEK_END)
        kept = file.read()
    os.truncate(log, 0)
    with log.open("ab") as file:
        file.write(kept[kept.find(b"\n") + 1 :])
