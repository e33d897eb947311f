"""Locks of dead runs are released, those of living ones respected."""

import os
import socket
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.simulator.errors import RehearsalError
from holdfast.simulator.pulumi.workspace import Lock, engine_started, is_held, read_locks, release_stale_locks
from tests.support.builders.engine_records import write_lock

_HERE = "here"


def _lock(**overrides: object) -> Lock:
    lock = Lock(file=Path("lock.json"), pid=7, hostname=_HERE, written=1000.0)
    return replace(lock, **overrides)


def _held(lock: Lock, started: float | None) -> bool:
    return is_held(lock, hostname=_HERE, started=lambda _: started)


def test_a_lock_whose_process_is_gone_is_not_held() -> None:
    assert not _held(_lock(), started=None), "a killed run would lock the stack for ever"


def test_a_lock_whose_process_runs_is_held() -> None:
    assert _held(_lock(), started=990.0), "two runs at once would spoil the state"


def test_a_process_that_only_has_the_same_number_does_not_hold_a_lock() -> None:
    assert not _held(_lock(), started=1500.0), (
        "process numbers are given again: this one is younger than the lock"
    )


def test_a_lock_of_another_machine_counts_as_held() -> None:
    assert _held(_lock(hostname="elsewhere"), started=None), "its processes cannot be seen from here"


def test_a_process_that_is_no_engine_does_not_hold_a_lock() -> None:
    assert engine_started(os.getpid()) is None, "this test is no engine"


def test_the_lock_of_a_dead_run_is_removed(tmp_path: Path) -> None:
    file = write_lock(tmp_path, pid=2**22 + 1, hostname=socket.gethostname(), written=1000.0)
    released = release_stale_locks(tmp_path, stack="dev")
    assert released == 1, "the lock was not counted"
    assert not file.exists(), "the lock is still there"


def test_a_held_lock_is_refused_by_process_and_file_and_stays(tmp_path: Path) -> None:
    file = write_lock(tmp_path, pid=7, hostname="elsewhere", written=1000.0)
    with pytest.raises(RehearsalError, match=r"process 7 on elsewhere.*lock\.json"):
        release_stale_locks(tmp_path, stack="dev")
    assert file.exists(), "a lock that is held was removed"


def test_a_lock_that_is_being_written_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "half.json").write_text('{"pid": 7, "host')
    assert read_locks(tmp_path) == (), "half a file was read as a lock"


def test_a_stack_without_locks_is_free(tmp_path: Path) -> None:
    assert release_stale_locks(tmp_path / "none", stack="dev") == 0, "there is no lock"
