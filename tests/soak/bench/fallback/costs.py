"""What two processes cost while something goes on: CPU seconds, and memory at the end."""

from dataclasses import dataclass
from typing import Final

import psutil

from holdfast.simulator.control_plane.processes import processes_in, python_modules_in
from holdfast.simulator.errors import RehearsalError
from holdfast.simulator.operator_runner.adaptation import FALLBACK
from holdfast.simulator.operator_runner.layout import HostLayout

JOBSET: Final = "jobset-controller"


@dataclass(frozen=True, kw_only=True)
class Cost:
    """CPU seconds of a process, and the bytes it holds."""

    cpu_seconds: float
    bytes: int


@dataclass(frozen=True, kw_only=True)
class Meter:
    """The fallback controller and the JobSet controller of a stack's operator host."""

    fallback: psutil.Process
    jobset: psutil.Process

    @classmethod
    def of(cls, layout: HostLayout) -> "Meter":
        """Return the meter of a host that runs both. Raises RehearsalError where it does not."""
        fallback = python_modules_in(layout.folder, FALLBACK)
        jobset = processes_in(layout.folder, [JOBSET])
        if len(fallback) != 1 or len(jobset) != 1:
            raise RehearsalError(
                f"{len(fallback)} fallback and {len(jobset)} JobSet controllers run, and one of each is to be measured"
            )
        return cls(fallback=fallback[0].process, jobset=jobset[0].process)

    def read(self) -> tuple[Cost, Cost]:
        """Return what the fallback controller and the JobSet controller have cost so far."""
        return _read(self.fallback), _read(self.jobset)


def between(before: Cost, after: Cost) -> Cost:
    """Return what was spent between two readings, and what was held at the second."""
    return Cost(cpu_seconds=after.cpu_seconds - before.cpu_seconds, bytes=after.bytes)


def _read(process: psutil.Process) -> Cost:
    times = process.cpu_times()
    return Cost(cpu_seconds=times.user + times.system, bytes=process.memory_info().rss)
