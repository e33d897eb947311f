"""The processes that run in a folder, an exclusive lock for one run, and free loopback ports."""

import fcntl
import socket
from collections.abc import Collection, Generator, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from pulumi_holdfast.rehearsal.errors import RehearsalError


def free_ports(count: int) -> list[int]:
    """Choose `count` different ports that no process uses now."""
    with ExitStack() as stack:
        # All sockets stay open until the last port is chosen, so the ports differ.
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [int(each.getsockname()[1]) for each in sockets]


@contextmanager
def exclusive_lock(lock: Path, *, doing: str) -> Generator[None]:
    """Hold the lock file `lock` during the block; the kernel releases it when the process dies.

    Raises RehearsalError if another run holds it; the message names the action `doing`.
    """
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RehearsalError(
                f"cannot {doing}: another run starts or stops it now ({lock} is locked); "
                "wait until that run has finished, then try again"
            ) from None
        yield


# A killed process exits as soon as the kernel has released its memory.
KILLED_SECONDS = 10


@dataclass(frozen=True, kw_only=True)
class RunningProcess:
    """A process and the name of its program."""

    name: str
    process: psutil.Process


def processes_in(folder: Path, names: Collection[str]) -> list[RunningProcess]:
    """The processes that run one of the programs `names` in `folder`.

    A process is identified by its program and its working directory. A pid file would name another process after a
    reboot, and would be missing after the folder was deleted.
    """
    return [each for each in _all_in(folder) if each.name in names]


def python_modules_in(folder: Path, module: str) -> list[RunningProcess]:
    """The processes that run a Python module (`python -m module`, or `python -S -m module`) in `folder`."""
    return [each for each in _all_in(folder) if module in _command_line(each.process)[1:4]]


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
    """Send SIGTERM to each process, wait up to `grace_seconds` for all of them, and kill the rest.

    Returns when all have exited. psutil compares start times, so a reused pid is never signaled.
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
