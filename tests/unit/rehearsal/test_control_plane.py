"""The local control plane: its configuration, its processes and its ports."""

import os
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import psutil
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from pulumi_holdfast.ladder.json import Json, mapping, sequence
from pulumi_holdfast.rehearsal.control_plane.configuration import (
    LONGEST_SOCKET_PATH,
    PORT_OPTIONS,
    TOOLS,
    ControlPlaneFiles,
    KubeconfigCluster,
    Layout,
    Ports,
    administrator,
    ports_of,
    read_cluster,
    render_configuration,
    render_egress,
    render_kubeconfig,
)
from pulumi_holdfast.rehearsal.control_plane.control_plane import Launcher, PortTakenError
from pulumi_holdfast.rehearsal.control_plane.processes import (
    end_processes,
    exclusive_lock,
    free_ports,
    processes_in,
    python_modules_in,
)
from pulumi_holdfast.rehearsal.errors import RehearsalError
from pulumi_holdfast.rehearsal.operator_runner.controllers import CONTROLLERS
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


def documents() -> list[Json]:
    return [mapping(each) for each in yaml.safe_load_all(configuration())]


def stage_spec(name: str) -> Json:
    (found,) = [each for each in documents() if mapping(each.get("metadata")).get("name") == name]
    return mapping(found["spec"])


def layout(stack_dir: Path) -> Layout:
    return Layout(stack="local", stack_dir=stack_dir, kubeconfig=stack_dir / "kubeconfig")


def test_arguments_of_the_api_server_are_added_to_the_defaults() -> None:
    issuer = ("service-account-issuer", "https://home.example.com")
    text = configuration(arguments=(("enable-admission-plugins", "ExtendedResourceToleration"), issuer))
    patches = map(mapping, sequence(mapping(next(yaml.safe_load_all(text)))["componentsPatches"]))
    arguments = [each for patch in patches for each in map(mapping, sequence(patch["extraArgs"]))]
    plugins = [each["value"] for each in arguments if each["key"] == "enable-admission-plugins"]
    assert plugins == ["ExtendedResourceToleration"]
    assert [each["override"] for each in arguments if each["key"] == issuer[0]] == [True]
    assert "enable-admission-plugins" not in configuration()


@given(st.lists(st.integers(min_value=1, max_value=65_535), min_size=6, max_size=6))
def test_ports_are_read_back_from_the_configuration(numbers: list[int]) -> None:
    ports = dict(zip(PORT_OPTIONS, numbers, strict=True))
    assert ports_of(configuration(ports)) == ports


@given(st.text())
def test_no_ports_are_read_from_another_text(text: str) -> None:
    assert ports_of(text) is None


def test_control_plane_is_local_and_its_data_outside_the_folder_of_kwokctl() -> None:
    assert mapping(documents()[0]["options"])["bindAddress"] == "127.0.0.1"
    (selection,) = yaml.safe_load(render_egress(Path("/s")))["egressSelections"]
    connection = {"proxyProtocol": "HTTPConnect", "transport": {"uds": {"udsName": "/s"}}}
    assert selection == {"name": "cluster", "connection": connection}
    patches = {
        str(mapping(each)["name"]): mapping(sequence(mapping(each)["extraArgs"])[0])
        for each in sequence(documents()[0]["componentsPatches"])
    }
    assert patches["etcd"] == {"key": "data-dir", "value": "/data/etcd", "override": True}
    paths = layout(Path("/stack"))
    assert not paths.etcd_dir.is_relative_to(paths.cluster_dir)


def test_stages_replace_the_default_stages_and_leave_operators_alone() -> None:
    found = {str(mapping(each["metadata"])["name"]) for each in documents() if each.get("kind") == "Stage"}
    pods = {"pod-runs", "pod-completes", "pod-is-terminated", "pod-is-removed"}
    assert found == {"node-ready", "node-heartbeat", "node-mounts-ebs", *pods}
    for stage in ("node-ready", "node-heartbeat"):
        assert "holdfast.dev/silent" in str(stage_spec(stage)["selector"])
    selector = mapping(stage_spec("pod-completes")["selector"])
    assert selector["matchAnnotations"] == {"holdfast.dev/complete": "true"}
    terminated = str(stage_spec("pod-is-terminated"))
    assert "phase: Failed" in terminated
    assert "exitCode: 143" in terminated
    removed = str(mapping(stage_spec("pod-is-removed")["selector"])["matchExpressions"])
    assert "Running" not in removed, "a pod removed while Running would never be seen to fail"
    selector = mapping(stage_spec("pod-runs")["selector"])
    rules = [mapping(mapping(each)["jq"]) for each in sequence(selector["matchExpressions"])]
    (excluded,) = [rule for rule in rules if "namespace" in str(rule["key"])]
    assert excluded["operator"] == "NotIn"
    operators = {f"{controller.namespace}/{app}" for app, controller in CONTROLLERS.items()}
    assert set(sequence(excluded["values"])) == operators, "Ready must mean that the process is ready"


@pytest.mark.parametrize(
    ("stage", "annotation"), [("pod-is-terminated", "terminates-in"), ("pod-is-removed", "removed-in")]
)
def test_annotation_delays_termination_and_removal(stage: str, annotation: str) -> None:
    delay = mapping(stage_spec(stage)["delay"])
    assert delay["durationMilliseconds"] == 0
    assert annotation in str(delay["durationFrom"])


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


def test_files_for_other_tools_are_not_current(tmp_path: Path) -> None:
    files = ControlPlaneFiles(layout(tmp_path))
    assert not files.are_current(PROGRAMS)
    assert files.server() is None
    files.write(PROGRAMS, PORTS)
    assert files.are_current(PROGRAMS)
    assert files.server() == "https://127.0.0.1:3"
    assert not files.are_current({**PROGRAMS, "etcd": Path("/newer/etcd")})


def test_second_write_removes_pid_files_and_keeps_the_data(tmp_path: Path) -> None:
    paths = layout(tmp_path)
    pid, data, key = paths.pids_dir / "etcd.pid", paths.etcd_dir / "member", paths.pki_dir / "ca.key"
    for path in (pid, paths.saved_configuration, data, key):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    ControlPlaneFiles(paths).write(PROGRAMS, PORTS)
    assert not pid.exists(), "after a reboot, kwokctl would kill another process with this pid"
    assert not paths.saved_configuration.exists(), "kwokctl would use the old ports"
    assert data.exists()
    assert key.exists()


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
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        yield process
        process.kill()


def pids_in(folder: Path, *names: str) -> list[int]:
    return [each.process.pid for each in processes_in(folder, names)]


def test_process_is_found_in_its_folder_and_killed(
    component: "subprocess.Popen[str]", tmp_path: Path
) -> None:
    assert pids_in(tmp_path, "kwok-controller") == [component.pid]
    assert pids_in(tmp_path, "etcd") == []
    assert pids_in(tmp_path.parent, "kwok-controller") == []
    end_processes(processes_in(tmp_path, ["kwok-controller"]), grace_seconds=0.05)
    assert not psutil.pid_exists(component.pid) or component.poll() is not None
    assert pids_in(tmp_path, "kwok-controller") == []


def test_process_in_a_deleted_folder_is_found(component: "subprocess.Popen[str]", tmp_path: Path) -> None:
    (tmp_path / "kwok-controller").unlink()
    tmp_path.rmdir()
    found = pids_in(tmp_path, "kwok-controller")
    tmp_path.mkdir()
    assert found == [component.pid]


def test_module_is_identified_by_its_name_and_its_folder(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "http.server", "0", "--bind", "127.0.0.1"],
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            found = [each.process.pid for each in python_modules_in(tmp_path, "http.server")]
            assert found == [process.pid]
            assert python_modules_in(tmp_path, "pulumi_holdfast.rehearsal.stacks.run_operators") == []
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
        assert (tmp_path / "lock").exists()


def test_free_ports_differ_from_each_other() -> None:
    assert len(set(free_ports(6))) == 6, "two listeners cannot share a port"


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
    assert not (tmp_path / "control-plane").exists()


def test_process_whose_pid_is_being_written_has_not_exited(tmp_path: Path) -> None:
    found = launcher_of_exited_etcd(tmp_path, "")
    pid = found.layout.pids_dir / "etcd.pid"
    pid.write_text("")
    found.raise_if_exited("etcd")
    assert pid.exists()


def test_taken_port_has_its_own_error(tmp_path: Path) -> None:
    log = "listen tcp 127.0.0.1:2: bind: address already in use"
    with pytest.raises(PortTakenError, match="etcd"):
        launcher_of_exited_etcd(tmp_path, log).raise_if_exited("etcd")


def test_exited_process_is_reported_with_the_end_of_its_log(tmp_path: Path) -> None:
    with pytest.raises(RehearsalError) as caught:
        launcher_of_exited_etcd(tmp_path, "line\n" * 50 + "panic: data is damaged").raise_if_exited("etcd")
    message = str(caught.value)
    assert "etcd exited right after its start" in message
    assert "panic: data is damaged" in message
    assert message.count("line\n") < 10
    assert f"remove {tmp_path / 'control-plane'} and start again" in message
