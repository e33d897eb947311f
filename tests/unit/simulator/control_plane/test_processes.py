"""The control plane's processes are recognised and ended, and nobody else's."""

import os
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import psutil
import pytest

from holdfast.simulator.control_plane.configuration import Layout
from holdfast.simulator.control_plane.control_plane import Launcher, PortTakenError
from holdfast.simulator.control_plane.processes import (
    end_processes,
    exclusive_lock,
    processes_in,
    python_modules_in,
)
from holdfast.simulator.errors import RehearsalError

STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(60)"


@pytest.fixture
def component(tmp_path: Path) -> Generator["subprocess.Popen[str]"]:
    """A process named kwok-controller in a folder of its own that ignores SIGTERM."""
    program = tmp_path / "kwok-controller"
    program.symlink_to(sys.executable)
    with subprocess.Popen(
        [str(program), "-S", "-c", STUBBORN],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONHOME": sys.base_prefix},
    ) as process:
        assert process.stdout is not None, "it was asked for"
        assert process.stdout.readline() == "up\n", "it runs"
        yield process
        process.kill()


def pids_in(folder: Path, *names: str) -> list[int]:
    return [each.process.pid for each in processes_in(folder, names)]


def test_a_process_is_known_by_its_program_and_its_folder(
    component: "subprocess.Popen[str]", tmp_path: Path
) -> None:
    assert pids_in(tmp_path, "kwok-controller") == [component.pid], "no pid file is needed"
    assert pids_in(tmp_path, "etcd") == [], "another program in the folder is not it"
    assert pids_in(tmp_path.parent, "kwok-controller") == [], "nor is the same program in another folder"


def test_a_process_is_found_although_its_folder_was_deleted(
    component: "subprocess.Popen[str]", tmp_path: Path
) -> None:
    (tmp_path / "kwok-controller").unlink()
    tmp_path.rmdir()
    found = pids_in(tmp_path, "kwok-controller")
    tmp_path.mkdir()
    assert found == [component.pid], "a removed .rehearsal leaves no process behind that nobody can end"


def test_a_process_that_ignores_the_request_is_killed(
    component: "subprocess.Popen[str]", tmp_path: Path
) -> None:
    end_processes(processes_in(tmp_path, ["kwok-controller"]), grace_seconds=0.05)
    assert not psutil.pid_exists(component.pid) or component.poll() is not None, "it has ended"
    assert pids_in(tmp_path, "kwok-controller") == [], "and is not found again"


def test_a_module_is_known_by_its_name_and_its_folder(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "http.server", "0", "--bind", "127.0.0.1"],
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            found = [each.process.pid for each in python_modules_in(tmp_path, "http.server")]
            assert found == [process.pid], "python -m http.server runs there"
            assert python_modules_in(tmp_path, "holdfast.simulator.operator_runner") == [], (
                "no other module does"
            )
        finally:
            process.kill()


def test_a_second_run_is_refused_while_the_first_is_at_it(tmp_path: Path) -> None:
    with (
        exclusive_lock(tmp_path / "lock", doing="start it"),
        pytest.raises(RehearsalError, match="cannot stop it: another run"),
        exclusive_lock(tmp_path / "lock", doing="stop it"),
    ):
        pass
    with exclusive_lock(tmp_path / "lock", doing="stop it"):
        assert (tmp_path / "lock").exists(), "the file stays, the lock does not"


def launcher(stack_dir: Path) -> Launcher:
    return Launcher(
        kwokctl=Path("/tools/kwokctl"),
        layout=Layout(stack="local", stack_dir=stack_dir, kubeconfig=stack_dir / "kubeconfig"),
    )


def ended(stack_dir: Path, *, saying: str) -> Launcher:
    """A launcher whose etcd was started, said something and ended."""
    found = launcher(stack_dir)
    for folder in (found.layout.pids_dir, found.layout.logs_dir):
        folder.mkdir(parents=True)
    # The largest pid Linux can be set to give is 2^22; this one is nobody's.
    (found.layout.pids_dir / "etcd.pid").write_text(str(2**22 + 1))
    (found.layout.logs_dir / "etcd.log").write_text(saying)
    return found


def test_a_process_that_was_not_started_yet_is_no_failure(tmp_path: Path) -> None:
    launcher(tmp_path).refuse_if_ended("etcd")
    assert not (tmp_path / "control-plane").exists(), "looking changes nothing"


def test_a_port_that_was_taken_is_told_from_other_ends(tmp_path: Path) -> None:
    with pytest.raises(PortTakenError, match="etcd"):
        ended(tmp_path, saying="listen tcp 127.0.0.1:2: bind: address already in use").refuse_if_ended("etcd")


def test_a_process_that_ends_is_named_with_its_last_words(tmp_path: Path) -> None:
    with pytest.raises(RehearsalError) as caught:
        ended(tmp_path, saying="line\n" * 50 + "panic: data is damaged").refuse_if_ended("etcd")
    message = str(caught.value)
    assert "etcd ended as soon as it was started" in message, "what happened"
    assert "panic: data is damaged" in message, "why, in its own words"
    assert message.count("line\n") < 10, "and not its whole log"
    assert f"remove {tmp_path / 'control-plane'} and start again" in message, "what to do"
