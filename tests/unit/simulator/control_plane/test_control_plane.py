"""The launcher reports why a process of the control plane exited."""

from pathlib import Path

import pytest

from holdfast.simulator.control_plane.configuration import Layout
from holdfast.simulator.control_plane.control_plane import Launcher, PortTakenError
from holdfast.simulator.errors import RehearsalError


def launcher(stack_dir: Path) -> Launcher:
    paths = Layout(stack="local", stack_dir=stack_dir, kubeconfig=stack_dir / "kubeconfig")
    return Launcher(kwokctl=Path("/tools/kwokctl"), layout=paths)


def launcher_of_exited_etcd(stack_dir: Path, log: str) -> Launcher:
    found = launcher(stack_dir)
    for folder in (found.layout.pids_dir, found.layout.logs_dir):
        folder.mkdir(parents=True)
    # The largest possible pid on Linux is 2^22, so no process has this one.
    (found.layout.pids_dir / "etcd.pid").write_text(str(2**22 + 1))
    (found.layout.logs_dir / "etcd.log").write_text(log)
    return found


def test_process_that_has_not_started_is_no_failure(tmp_path: Path) -> None:
    launcher(tmp_path).raise_if_exited("etcd")
    assert not (tmp_path / "control-plane").exists(), "the check changes nothing"


def test_taken_port_has_its_own_error(tmp_path: Path) -> None:
    log = "listen tcp 127.0.0.1:2: bind: address already in use"
    with pytest.raises(PortTakenError, match="etcd"):
        launcher_of_exited_etcd(tmp_path, log).raise_if_exited("etcd")


def test_exited_process_is_reported_with_the_end_of_its_log(tmp_path: Path) -> None:
    with pytest.raises(RehearsalError) as caught:
        launcher_of_exited_etcd(tmp_path, "line\n" * 50 + "panic: data is damaged").raise_if_exited("etcd")
    message = str(caught.value)
    assert "etcd exited right after its start" in message, "it names the process"
    assert "panic: data is damaged" in message, "it quotes the log"
    assert message.count("line\n") < 10, "it does not quote the whole log"
    assert f"remove {tmp_path / 'control-plane'} and start again" in message, "it says what to do"
