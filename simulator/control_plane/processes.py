"""Finds, and ends, the processes that belong to a folder."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

# A process that was killed is gone as soon as the kernel has taken back its memory.
KILLED_SECONDS = 10


@dataclass(frozen=True, kw_only=True)
class Running:
    """A process, under the name of the program it runs."""

    name: str
    process: psutil.Process


def processes_in(folder: Path, names: Collection[str]) -> list[Running]:
    """The processes that run one of the programs `names` in `folder`.

    A process is known by what it runs and where, not by a number in a file: after a reboot that number
    belongs to somebody else. It is found although its pid file, or the folder itself, was deleted.
    """
    return [each for each in _all_in(folder) if each.name in names]


def python_modules_in(folder: Path, module: str) -> list[Running]:
    """The processes that run a Python module (`python -m module`) in `folder`, known in the same way."""
    return [each for each in _all_in(folder) if module in _command_line(each.process)[1:3]]


def _all_in(folder: Path) -> Iterator[Running]:
    here = (str(folder), f"{folder} (deleted)")
    for process in psutil.process_iter():
        try:
            if process.cwd() in here and process.status() != psutil.STATUS_ZOMBIE:
                yield Running(name=process.name(), process=process)
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue


def _command_line(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return []


def end(running: Iterable[Running], *, grace_seconds: float) -> None:
    """Ask each process to end, wait up to `grace_seconds` for all of them, and kill what is left.

    Returns when none of them runs. psutil compares start times, so that a number used again is never hit.
    """
    processes = [each.process for each in running]
    for process in processes:
        _send(process, kill=False)
    _, alive = psutil.wait_procs(processes, timeout=grace_seconds)
    for process in alive:
        _send(process, kill=True)
    psutil.wait_procs(alive, timeout=KILLED_SECONDS)


def _send(process: psutil.Process, *, kill: bool) -> None:
    try:
        if kill:
            process.kill()
        else:
            process.terminate()
    except psutil.NoSuchProcess:
        return
