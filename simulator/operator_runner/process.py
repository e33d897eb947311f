"""One process, with its log, that dies with the host."""

import asyncio
import contextlib
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from holdfast.simulator.operator_runner import launch

LONGEST_DELAY_SECONDS = 30.0
# A process that held out so long did not fail for the reason the one before it failed for.
STEADY_SECONDS = 60.0


def failures_after(failures: int, *, ran_seconds: float) -> int:
    """How many failures in a row there are, counting the one after `ran_seconds`."""
    return 1 if ran_seconds >= STEADY_SECONDS else failures + 1


def delay_seconds(failures: int) -> float:
    """The wait after so many failures in a row: 1, 2, 4 … seconds, 30 at most."""
    return min(2.0 ** min(failures - 1, 10), LONGEST_DELAY_SECONDS)


LARGEST_LOG_BYTES = 20_000_000


@dataclass(frozen=True, kw_only=True)
class Command:
    """What to run, and where."""

    program: Path
    args: Sequence[str]
    variables: Mapping[str, str]
    folder: Path
    log: Path


class SupervisedProcess:
    """A running process of the host."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @classmethod
    async def start(cls, command: Command) -> "SupervisedProcess":
        """Start `command`, with nothing of the host's own environment but its time zone and locale."""
        with open_log(command.log) as log:
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
                # A Ctrl-C in the terminal that started the host is not for the controllers.
                start_new_session=True,
            )
        return cls(process)

    async def ended(self) -> int:
        """Wait for the end; returns the exit code, negative for a signal."""
        return await self._process.wait()

    async def end(self, *, grace_seconds: float) -> None:
        """Ask the process to end, and kill it when the grace is over. Harmless when it has ended."""
        with contextlib.suppress(ProcessLookupError):
            self._process.terminate()
        try:
            await asyncio.wait_for(self._process.wait(), timeout=grace_seconds)
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()


def open_log(log: Path):
    """Open a log for appending; one that has grown large is put aside first."""
    log.parent.mkdir(parents=True, exist_ok=True)
    if log.exists() and log.stat().st_size > LARGEST_LOG_BYTES:
        log.replace(log.with_suffix(".log.1"))
    return log.open("a", encoding="utf-8")


def now() -> str:
    """The time, as Kubernetes writes it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
