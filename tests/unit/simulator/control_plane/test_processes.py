"""Processes are identified by program and folder, and only those are ended."""

import os
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import psutil
import pytest

from holdfast.simulator.control_plane.processes import (
    end_processes,
    exclusive_lock,
    free_ports,
    processes_in,
    python_modules_in,
)
from holdfast.simulator.errors import RehearsalError

STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(60)"


@pytest.fixture
def component(tmp_path: Path) -> Generator["subprocess.Popen[str]"]:
    """A process named kwok-controller in its own folder that ignores SIGTERM."""
    program = tmp_path / "kwok-controller"
    program.symlink_to(sys.executable)
    with subprocess.Popen(
        [str(program), "-S", "-c", STUBBORN],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONHOME": sys.base_prefix},
    ) as process:
        assert process.stdout is not None, "stdout is a pipe"
        assert process.stdout.readline() == "up\n", "the process runs"
        yield process
        process.kill()


def pids_in(folder: Path, *names: str) -> list[int]:
    return [each.process.pid for each in processes_in(folder, names)]


def test_process_is_found_in_its_folder_and_killed(
    component: "subprocess.Popen[str]", tmp_path: Path
) -> None:
    assert pids_in(tmp_path, "kwok-controller") == [component.pid], "no pid file is needed"
    assert pids_in(tmp_path, "etcd") == [], "another program in the folder is not found"
    assert pids_in(tmp_path.parent, "kwok-controller") == [], "another folder is not searched"
    end_processes(processes_in(tmp_path, ["kwok-controller"]), grace_seconds=0.05)
    assert not psutil.pid_exists(component.pid) or component.poll() is not None, "it has exited"
    assert pids_in(tmp_path, "kwok-controller") == [], "it is not found again"


def test_process_in_a_deleted_folder_is_found(component: "subprocess.Popen[str]", tmp_path: Path) -> None:
    (tmp_path / "kwok-controller").unlink()
    tmp_path.rmdir()
    found = pids_in(tmp_path, "kwok-controller")
    tmp_path.mkdir()
    assert found == [component.pid], "a process in a removed .rehearsal can still be ended"


def test_module_is_identified_by_its_name_and_its_folder(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "http.server", "0", "--bind", "127.0.0.1"],
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            found = [each.process.pid for each in python_modules_in(tmp_path, "http.server")]
            assert found == [process.pid], "python -m http.server runs there"
            assert python_modules_in(tmp_path, "holdfast.simulator.operator_runner") == [], "another module"
        finally:
            process.kill()


def test_second_run_is_refused_while_the_first_holds_the_lock(tmp_path: Path) -> None:
    with (
        exclusive_lock(tmp_path / "lock", doing="start it"),
        pytest.raises(RehearsalError, match="cannot stop it: another run"),
        exclusive_lock(tmp_path / "lock", doing="stop it"),
    ):
        pass
    with exclusive_lock(tmp_path / "lock", doing="stop it"):
        assert (tmp_path / "lock").exists(), "the file remains, the lock is released"


def test_free_ports_differ_from_each_other() -> None:
    assert len(set(free_ports(6))) == 6, "two listeners cannot share a port"
