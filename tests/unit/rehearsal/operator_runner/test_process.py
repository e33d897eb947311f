"""A process writes a log, exits on request, and dies with the operator runner."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import psutil
from hypothesis import given
from hypothesis import strategies as st

from pulumi_holdfast.rehearsal.operator_runner import launch
from pulumi_holdfast.rehearsal.operator_runner.process import (
    LARGEST_LOG_BYTES,
    LONGEST_DELAY_SECONDS,
    Command,
    SupervisedProcess,
    delay_seconds,
    failures_after,
    keep_end,
    open_log,
)

STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(60)"


def python(code: str, folder: Path) -> Command:
    return Command(
        program=Path(sys.executable),
        args=("-S", "-c", code),
        variables={},
        folder=folder,
        log=folder / "logs" / "p.log",
    )


def test_process_writes_a_log_and_has_an_exit_code(tmp_path: Path) -> None:
    async def run() -> int:
        process = await SupervisedProcess.start(python("import sys; print('output'); sys.exit(3)", tmp_path))
        return await process.ended()

    assert asyncio.run(run()) == 3
    assert "output" in (tmp_path / "logs" / "p.log").read_text()


def test_process_that_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    async def run() -> int:
        process = await SupervisedProcess.start(python(STUBBORN, tmp_path))
        while "up" not in (tmp_path / "logs" / "p.log").read_text().splitlines():
            await asyncio.sleep(0.01)
        await process.end(grace_seconds=0.05)
        return await process.ended()

    assert asyncio.run(run()) == -signal.SIGKILL


def test_process_dies_with_a_killed_parent(tmp_path: Path) -> None:
    child = "import time; time.sleep(60)"
    host = (
        "import subprocess, sys, os, time\n"
        f"p = subprocess.Popen([sys.executable, '-S', {launch.__file__!r}, str(os.getpid()), sys.executable, '-S', '-c', {child!r}])\n"
        "print(p.pid, flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-S", "-c", host], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        orphan = psutil.Process(int(parent.stdout.readline()))
        while "time.sleep" not in " ".join(orphan.cmdline()) or "launch" in " ".join(orphan.cmdline()):
            threading.Event().wait(0.01)  # until launch.py has executed the program
        os.kill(parent.pid, signal.SIGKILL)
    gone, alive = psutil.wait_procs([orphan], timeout=10)
    assert (gone, alive) == ([orphan], [])


def test_large_log_is_rotated(tmp_path: Path) -> None:
    log = tmp_path / "logs" / "p.log"
    log.parent.mkdir()
    with log.open("wb") as file:
        file.truncate(LARGEST_LOG_BYTES + 1)
    open_log(log).close()
    assert log.stat().st_size == 0
    assert log.with_suffix(".log.1").exists()


@given(st.integers(min_value=1, max_value=10_000))
def test_delay_grows_up_to_its_maximum(failures: int) -> None:
    assert delay_seconds(failures) <= delay_seconds(failures + 1) <= LONGEST_DELAY_SECONDS


def test_steady_process_resets_the_failures() -> None:
    assert failures_after(7, ran_seconds=120) == 1
    assert failures_after(7, ran_seconds=3) == 8
    assert delay_seconds(1) == 1


def test_only_the_end_of_a_long_log_is_kept_while_its_process_writes_on(tmp_path: Path) -> None:
    log = tmp_path / "p.log"
    with log.open("a") as file:
        for number in range(400_000):
            file.write(f"line {number}\n")
        file.flush()
        keep_end(log)
        file.write("last\n")
    first, *_, before, last = log.read_text().splitlines()
    assert first.startswith("line ")
    assert (before, last) == ("line 399999", "last")
    assert log.stat().st_size <= 1_000_005
