"""Finds, and ends, the processes that belong to a folder."""

import fcntl
import socket
from collections.abc import Collection, Generator, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from holdfast.simulator.errors import RehearsalError


def free_ports(count: int) -> list[int]:
    """Choose `count` different ports that nobody uses at this moment."""
    with ExitStack() as stack:
        # All are held open until the last one is chosen: they differ from each other.
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [int(each.getsockname()[1]) for each in sockets]


@contextmanager
def exclusive_lock(lock: Path, *, doing: str) -> Generator[None]:
    """Hold the lock file `lock` for the length of the block. It frees itself when its holder dies.

    Raises RehearsalError where another run holds it; `doing` says what this one wanted.
    """
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RehearsalError(
                f"cannot {doing}: another run is starting or stopping it right now ({lock} is held); "
                "wait until that one has ended, then try again"
            ) from None
        yield


# A process that was killed is gone as soon as the kernel has taken back its memory.
KILLED_SECONDS = 10


@dataclass(frozen=True, kw_only=True)
class RunningProcess:
    """A process, under the name of the program it runs."""

    name: str
    process: psutil.Process


def processes_in(folder: Path, names: Collection[str]) -> list[RunningProcess]:
    """The processes that run one of the programs `names` in `folder`.

    A process is known by what it runs and where, not by a number in a file: after a reboot that number
    belongs to somebody else. It is found although its pid file, or the folder itself, was deleted.
    """
    return [each for each in _all_in(folder) if each.name in names]


def python_modules_in(folder: Path, module: str) -> list[RunningProcess]:
    """The processes that run a Python module (`python -m module`) in `folder`, known in the same way."""
    return [each for each in _all_in(folder) if module in _command_line(each.process)[1:3]]


def _all_in(folder: Path) -> Iterator[RunningProcess]:
    here = (str(folder), f"{folder} (deleted)")
    for process in psutil.process_iter():
        try:
            if process.cwd() in here and process.status() != psutil.STATUS_ZOMBIE:
                yield RunningProcess(name=process.name(), process=process)
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue


def _command_line(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return []


def end_processes(running: Iterable[RunningProcess], *, grace_seconds: float) -> None:
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
