"""The time and memory of a command and its child processes, and the table that compares commands."""

import resource
import subprocess
import threading
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Final

import psutil

from pulumi_holdfast.rehearsal.errors import RehearsalError

#: How often each subject is measured: enough for a median.
REPETITIONS: Final = 3

# Short compared with a preview of two seconds; reading the process tree takes 2 ms.
_SAMPLE_SECONDS = 0.05


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """The cost of a command: wall-clock seconds, and the peak of the resident memory of its processes in bytes.

    `cpu_seconds` is the CPU time of its processes in user and system mode, on which other load has little effect.
    """

    seconds: float
    peak_bytes: int
    cpu_seconds: float = 0.0


def measure(command: Sequence[str], *, cwd: Path) -> Measurement:
    """Run a command and return its cost. Raises RehearsalError if it fails."""
    began, before = time.monotonic(), _of_ended_children()
    with psutil.Popen(
        list(command), cwd=cwd, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        peak = _Peak(process)
        peak.start()
        _, errors = process.communicate()
        seconds = time.monotonic() - began
        peak.stop()
    if process.returncode != 0:
        last_line = errors.strip().rpartition("\n")[2]
        raise RehearsalError(f"{' '.join(command)} failed: {last_line}")
    # The kernel counts each process to its end, the samples also those that nothing has waited for.
    spent = max(_of_ended_children() - before, peak.cpu_seconds)
    return Measurement(seconds=seconds, peak_bytes=peak.bytes, cpu_seconds=spent)


def _of_ended_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def median_of(measurements: Iterable[Measurement]) -> Measurement:
    """Return the median of each figure."""
    kept = list(measurements)
    return Measurement(
        seconds=median(one.seconds for one in kept),
        peak_bytes=int(median(one.peak_bytes for one in kept)),
        cpu_seconds=median(one.cpu_seconds for one in kept),
    )


class _Peak(threading.Thread):
    """Samples the memory and the CPU time of a process tree until `stop`."""

    def __init__(self, root: psutil.Process) -> None:
        super().__init__(daemon=True)
        self._root = root
        self._done = threading.Event()
        self.bytes = 0
        self._computed: dict[int, float] = {}

    def run(self) -> None:
        while not self._done.wait(_SAMPLE_SECONDS):
            with suppress(psutil.NoSuchProcess):
                self.bytes = max(self.bytes, self._now())

    def stop(self) -> None:
        """End the sampling."""
        self._done.set()
        self.join()

    def _now(self) -> int:
        total = 0
        for process in (self._root, *self._root.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):
                total += process.memory_info().rss
                spent = process.cpu_times()
                self._computed[process.pid] = spent.user + spent.system
        return total

    @property
    def cpu_seconds(self) -> float:
        """The CPU time of all sampled processes, each until its last sample."""
        return sum(self._computed.values())


def render(table: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table; the first column is left-aligned, figures are right-aligned."""
    widths = [max(len(row[column]) for row in table) for column in range(len(table[0]))]
    return [
        "  ".join(
            [
                row[0].ljust(widths[0]),
                *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)),
            ]
        )
        for row in table
    ]
