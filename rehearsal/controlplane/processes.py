"""Finds, and ends, the processes that belong to a folder."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

import psutil


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
    here = (str(folder), f"{folder} (deleted)")
    found: list[Running] = []
    for process in psutil.process_iter():
        try:
            name = process.name()
            if name in names and process.cwd() in here and process.status() != psutil.STATUS_ZOMBIE:
                found.append(Running(name=name, process=process))
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return found


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
    psutil.wait_procs(alive, timeout=grace_seconds)


def _send(process: psutil.Process, *, kill: bool) -> None:
    try:
        if kill:
            process.kill()
        else:
            process.terminate()
    except psutil.NoSuchProcess:
        return
