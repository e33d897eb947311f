"""The local control plane: its configuration, its processes and its ports."""

from pathlib import Path

import pytest

from pulumi_holdfast.rehearsal.control_plane.configuration import (
    LONGEST_SOCKET_PATH,
    PORT_OPTIONS,
    TOOLS,
    KubeconfigCluster,
    Layout,
    Ports,
    administrator,
    read_cluster,
    render_configuration,
    render_kubeconfig,
)
from pulumi_holdfast.rehearsal.control_plane.control_plane import Launcher, PortTakenError
from pulumi_holdfast.rehearsal.control_plane.processes import exclusive_lock
from pulumi_holdfast.rehearsal.errors import RehearsalError
from pulumi_holdfast.rehearsal.paths import Workspace

PROGRAMS = {tool: Path("/tools") / tool for tool in TOOLS}


PORTS = {option: number for number, option in enumerate(PORT_OPTIONS, start=1)}


def configuration(ports: Ports = PORTS, *, arguments: tuple[tuple[str, str], ...] = ()) -> str:
    return render_configuration(
        programs=PROGRAMS,
        ports=ports,
        etcd_dir=Path("/data/etcd"),
        egress_configuration=Path("/egress.yaml"),
        arguments=arguments,
    )


def layout(stack_dir: Path) -> Layout:
    return Layout(stack="local", stack_dir=stack_dir, kubeconfig=stack_dir / "kubeconfig")


def test_paths_are_absolute_and_the_socket_path_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    near = layout(Path("/home/me/holdfast/.rehearsal/local"))
    assert near.egress_socket == near.stack_dir / "egress.sock"
    deep = layout(tmp_path / ("x" * 60) / ("y" * 60))
    assert len(str(deep.egress_socket)) <= LONGEST_SOCKET_PATH
    other = layout(tmp_path / ("x" * 60) / ("z" * 60))
    assert deep.egress_socket != other.egress_socket
    monkeypatch.chdir(tmp_path)
    paths = Layout.of("local", Workspace(project_root=Path()))
    assert paths.cluster_dir.is_absolute()


def test_only_the_kubeconfig_of_a_control_plane_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    invalid_authority = "clusters: [{cluster: {server: x, certificate-authority-data: '!'}}]"
    for text in (None, "", "clusters: []", "clusters: [{cluster: {server: x}}]", "a: [", invalid_authority):
        if text is not None:
            path.write_text(text)
        with pytest.raises(RehearsalError, match="is not the kubeconfig of a local control plane"):
            read_cluster(path)
    cluster = KubeconfigCluster(server="https://127.0.0.1:6443", authority=b"PEM")
    path.write_text(render_kubeconfig("local", cluster, administrator(b"cert", b"key")))
    assert read_cluster(path) == cluster


def test_second_run_is_refused_while_the_first_holds_the_lock(tmp_path: Path) -> None:
    with (
        exclusive_lock(tmp_path / "lock", doing="start it"),
        pytest.raises(RehearsalError, match="cannot stop it: another run"),
        exclusive_lock(tmp_path / "lock", doing="stop it"),
    ):
        pass
    with exclusive_lock(tmp_path / "lock", doing="stop it"):
        assert (tmp_path / "lock").exists()


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


def test_taken_port_has_its_own_error(tmp_path: Path) -> None:
    log = "listen tcp 127.0.0.1:2: bind: address already in use"
    with pytest.raises(PortTakenError, match="etcd"):
        launcher_of_exited_etcd(tmp_path, log).raise_if_exited("etcd")
