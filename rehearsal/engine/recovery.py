"""What a killed run leaves behind, and how the next one takes it up."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import cast

import psutil

from rehearsal.errors import RehearsalError
from rehearsal.json import Json, JsonValue

# Clock and process table round differently; a process this much younger than the lock is another one.
_CLOCK_SLACK_SECONDS = 2.0


@dataclass(frozen=True, kw_only=True)
class Lock:
    """A lock file of the file backend: the process that wrote it, the machine, and when (seconds, Unix time)."""

    file: Path
    pid: int
    hostname: str
    written: float


@dataclass(frozen=True, kw_only=True)
class PendingOperation:
    """An operation of which the engine did not learn the end; `resource` is what it had asked for."""

    kind: str
    urn: str
    resource: Json

    @property
    def name(self) -> str:
        """The operation as one says it: `creating vpc`."""
        return f"{self.kind} {self.urn.rsplit('::', 1)[-1]}"


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


def release_stale_locks(folder: Path, *, stack: str, hostname: str) -> int:
    """Remove the locks whose processes are dead and return how many there were.

    Raises RehearsalError where a living run holds one.
    """
    locks = read_locks(folder)
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


def pending_operations(checkpoint: Path) -> tuple[PendingOperation, ...]:
    """Return the operations of a stack's state of which the engine did not learn the end."""
    if not checkpoint.is_file():
        return ()
    latest = _at(_at(_read_json(checkpoint), "checkpoint"), "latest")
    found = latest.get("pending_operations")
    entries = cast("Iterable[Json]", found) if isinstance(found, list) else ()
    return tuple(
        PendingOperation(
            kind=str(entry["type"]), urn=str(_at(entry, "resource")["urn"]), resource=_at(entry, "resource")
        )
        for entry in entries
    )


def settling_flags(
    pending: Iterable[PendingOperation], made: Callable[[PendingOperation], str | None]
) -> list[str]:
    """Return the flags of the refresh that clears up pending operations.

    `made` returns the id of the object that an interrupted create did make: it is adopted. A create that made
    nothing is forgotten. Deletes and updates need no flag: the refresh reads what became of them.
    """
    flags = ["--clear-pending-creates"]
    for operation in pending:
        found = made(operation) if operation.kind == "creating" else None
        if found is not None:
            # The flag takes a list in which a URN is followed by its id; every entry is a flag of its own.
            flags += ["--import-pending-creates", operation.urn, "--import-pending-creates", found]
    return flags


def _read_lock(file: Path) -> Lock | None:
    try:
        entry = _read_json(file)
        return Lock(
            file=file,
            pid=int(str(entry["pid"])),
            hostname=str(entry["hostname"]),
            written=datetime.fromisoformat(str(entry["timestamp"])).timestamp(),
        )
    except (KeyError, ValueError, FileNotFoundError):
        return None


def _read_json(file: Path) -> Json:
    return cast("Json", json.loads(file.read_text(encoding="utf-8")))


def _at(mapping: Json, key: str) -> Json:
    value: JsonValue = mapping.get(key)
    return value if isinstance(value, Mapping) else {}
