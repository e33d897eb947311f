"""The locks of the file backend: a killed run leaves its own behind."""

import json
import socket
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import cast

import psutil

from holdfast.simulator.errors import RehearsalError

# Clock and process table round differently; a process this much younger than the lock is another one.
_CLOCK_SLACK_SECONDS = 2.0


@dataclass(frozen=True, kw_only=True)
class Lock:
    """A lock file of the file backend: the process that wrote it, the machine, and when (seconds, Unix time)."""

    file: Path
    pid: int
    hostname: str
    written: float


def read_locks(folder: Path) -> tuple[Lock, ...]:
    """Return the locks in a folder; one that is no lock file, or not yet written in full, is left out."""
    return tuple(lock for lock in map(_read_lock, sorted(folder.glob("*.json"))) if lock is not None)


def is_held(lock: Lock, *, hostname: str, started: Callable[[int], float | None]) -> bool:
    """Whether the process behind a lock may still run.

    `started` returns when the engine process with that id was started, None where there is none. What
    another machine wrote cannot be judged from here, and counts as held.
    """
    if lock.hostname != hostname:
        return True
    since = started(lock.pid)
    return since is not None and since <= lock.written + _CLOCK_SLACK_SECONDS


def engine_started(pid: int) -> float | None:
    """Return when the engine with this process id was started, in Unix time; None where it does not run."""
    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE or not process.name().startswith("pulumi"):
            return None
        return process.create_time()
    except psutil.NoSuchProcess:
        return None


def release_stale_locks(folder: Path, *, stack: str) -> int:
    """Remove the locks whose processes are dead and return how many there were.

    Raises RehearsalError where a living run holds one.
    """
    locks, hostname = read_locks(folder), socket.gethostname()
    for lock in locks:
        if is_held(lock, hostname=hostname, started=engine_started):
            raise RehearsalError(
                f"stack {stack} is locked: process {lock.pid} on {lock.hostname} is at work on it; "
                f"wait for it, or end it, then try again (lock: {lock.file})"
            )
    for lock in locks:
        lock.file.unlink(missing_ok=True)
        lock.file.with_name(lock.file.name + ".attrs").unlink(missing_ok=True)
    return len(locks)


def _read_lock(file: Path) -> Lock | None:
    try:
        entry = cast("dict[str, object]", json.loads(file.read_text(encoding="utf-8")))
        return Lock(
            file=file,
            pid=int(str(entry["pid"])),
            hostname=str(entry["hostname"]),
            written=datetime.fromisoformat(str(entry["timestamp"])).timestamp(),
        )
    except (KeyError, ValueError, FileNotFoundError):
        return None
