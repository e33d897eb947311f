"""What a control plane is started from says what it must, and can be read again."""

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from holdfast.scheduling.json import Json
from holdfast.simulator.control_plane.configuration import (
    LONGEST_SOCKET_PATH,
    TOOLS,
    Cluster,
    ControlPlaneFiles,
    Layout,
    Ports,
    administrator,
    ports_of,
    read_cluster,
    render_configuration,
    render_egress,
    render_kubeconfig,
)
from holdfast.simulator.control_plane.processes import free_ports
from holdfast.simulator.errors import RehearsalError
from holdfast.simulator.kubernetes_client.summary import mapping, sequence
from holdfast.simulator.operator_runner.adaptation import CONTROLLERS
from holdfast.simulator.paths import Workspace

PROGRAMS = {tool: Path("/tools") / tool for tool in TOOLS}
PORTS = Ports.of([1, 2, 3, 4, 5, 6])


def configuration(ports: Ports = PORTS) -> str:
    return render_configuration(
        programs=PROGRAMS, ports=ports, etcd_dir=Path("/data/etcd"), egress_configuration=Path("/egress.yaml")
    )


def test_admission_plugins_are_on_beside_the_api_servers_own() -> None:
    text = render_configuration(
        programs=PROGRAMS,
        ports=PORTS,
        etcd_dir=Path("/data/etcd"),
        egress_configuration=Path("/egress.yaml"),
        admission_plugins=("ExtendedResourceToleration",),
    )
    patches = sequence(mapping(next(yaml.safe_load_all(text)))["componentsPatches"])
    told = [each for patch in map(mapping, patches) for each in map(mapping, sequence(patch["extraArgs"]))]
    plugins = [each["value"] for each in told if each["key"] == "enable-admission-plugins"]
    assert plugins == ["ExtendedResourceToleration"], "a pod that asks for GPUs could not be placed as on GKE"
    assert "enable-admission-plugins" not in configuration(), "without any the API server's own are on"


def documents() -> list[Json]:
    return [mapping(each) for each in yaml.safe_load_all(configuration())]


def stages() -> dict[str, Json]:
    found = [each for each in documents() if each.get("kind") == "Stage"]
    return {str(mapping(each["metadata"])["name"]): each for each in found}


def layout(stack_dir: Path) -> Layout:
    return Layout(stack="local", stack_dir=stack_dir, kubeconfig=stack_dir / "kubeconfig")


@given(st.lists(st.integers(min_value=1, max_value=65_535), min_size=6, max_size=6))
def test_the_ports_can_be_read_from_what_was_written(numbers: list[int]) -> None:
    ports = Ports.of(numbers)
    assert ports_of(configuration(ports)) == ports, "the address of the API server is found through this"


@given(st.text())
def test_no_ports_are_read_from_another_text(text: str) -> None:
    assert ports_of(text) is None, "a file that was cut short or edited means a new start, not a crash"


def test_the_control_plane_listens_on_the_loopback_alone() -> None:
    assert mapping(documents()[0]["options"])["bindAddress"] == "127.0.0.1", "its admin key lies in a file"


def test_etcds_data_is_not_in_the_folder_that_a_failed_creation_removes() -> None:
    patches = {
        str(mapping(each)["name"]): mapping(sequence(mapping(each)["extraArgs"])[0])
        for each in sequence(documents()[0]["componentsPatches"])
    }
    assert patches["etcd"] == {"key": "data-dir", "value": "/data/etcd", "override": True}, (
        "in place of kwokctl's"
    )
    where = layout(Path("/stack"))
    assert not where.etcd_dir.is_relative_to(where.cluster_dir), "kwokctl removes its own folder"


def test_services_are_reached_through_the_socket() -> None:
    selection = mapping(sequence(mapping(yaml.safe_load(render_egress(Path("/s"))))["egressSelections"])[0])
    assert selection == {
        "name": "cluster",
        "connection": {"proxyProtocol": "HTTPConnect", "transport": {"uds": {"udsName": "/s"}}},
    }, "webhooks are of the kind `cluster`"


def test_every_stage_of_a_pods_life_is_ours() -> None:
    assert set(stages()) == {
        "node-ready",
        "node-heartbeat",
        "pod-runs",
        "pod-completes",
        "pod-is-terminated",
        "pod-is-removed",
    }, "naming one stage of a kind switches kwok's own off, so all that is needed must be here"


def test_a_pod_completes_only_when_its_author_says_so() -> None:
    selector = mapping(mapping(stages()["pod-completes"]["spec"])["selector"])
    assert selector["matchAnnotations"] == {"holdfast.dev/complete": "true"}, (
        "training takes as long as it takes"
    )


def test_a_deleted_pod_fails_before_it_goes() -> None:
    terminated = str(stages()["pod-is-terminated"])
    assert "phase: Failed" in terminated, "a pod failure policy waits for this"
    assert "exitCode: 143" in terminated, "what a process that SIGTERM ends leaves"
    removed = str(mapping(mapping(stages()["pod-is-removed"]["spec"])["selector"])["matchExpressions"])
    assert "Running" not in removed, "a pod that vanished while Running would never be seen to fail"


def test_a_node_may_be_told_to_say_no_more() -> None:
    for stage in ("node-ready", "node-heartbeat"):
        selector = str(mapping(mapping(stages()[stage])["spec"])["selector"])
        assert "holdfast.dev/silent" in selector, f"{stage} would put right what the node controller finds"


def test_a_pod_may_take_its_time_to_end() -> None:
    delay = mapping(mapping(mapping(stages()["pod-is-terminated"])["spec"])["delay"])
    assert delay["durationMilliseconds"] == 0, "by itself it ends at once"
    assert "terminates-in" in str(delay["durationFrom"]), "a real one writes its checkpoint first"


def test_a_pod_that_has_ended_may_stay_for_a_while() -> None:
    delay = mapping(mapping(mapping(stages()["pod-is-removed"])["spec"])["delay"])
    assert delay["durationMilliseconds"] == 0, "by itself it goes at once"
    assert "removed-in" in str(delay["durationFrom"]), "a kubelet unmounts its volumes first"


def test_a_hosted_pod_is_not_said_to_run_by_anyone_but_its_host() -> None:
    selector = mapping(mapping(stages()["pod-runs"]["spec"])["selector"])
    rules = [mapping(mapping(each)["jq"]) for each in sequence(selector["matchExpressions"])]
    (apart,) = [rule for rule in rules if "namespace" in str(rule["key"])]
    assert apart["operator"] == "NotIn", "these are left alone"
    assert set(sequence(apart["values"])) == {
        f"{controller.namespace}/{app}" for app, controller in CONTROLLERS.items()
    }, "Ready must mean that the process behind it is"


def test_a_socket_in_a_deep_folder_gets_a_short_path(tmp_path: Path) -> None:
    near = layout(Path("/home/me/holdfast/.rehearsal/local"))
    assert near.egress_socket == near.stack_dir / "egress.sock", "beside the other files where it fits"
    deep = layout(tmp_path / ("x" * 60) / ("y" * 60))
    assert len(str(deep.egress_socket)) <= LONGEST_SOCKET_PATH, "the kernel refuses longer ones"
    other = layout(tmp_path / ("x" * 60) / ("z" * 60))
    assert deep.egress_socket != other.egress_socket, "and two stacks never share one"


def test_a_layout_is_absolute_wherever_the_workspace_was_named_from(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    where = Layout.of("local", Workspace(project_root=Path()))
    assert where.cluster_dir.is_absolute(), "processes are recognised by it"


def test_a_kubeconfig_names_its_cluster_again(tmp_path: Path) -> None:
    cluster = Cluster(server="https://127.0.0.1:6443", authority=b"PEM")
    path = tmp_path / "kubeconfig"
    path.write_text(render_kubeconfig("local", cluster, administrator(b"cert", b"key")))
    assert read_cluster(path) == cluster, "hosted controllers get theirs from it"


def test_a_kubeconfig_that_is_missing_or_another_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    for text in (
        None,
        "",
        "clusters: []",
        "clusters: [{cluster: {server: x}}]",
        "a: [",
        "clusters: [{cluster: {server: x, certificate-authority-data: '!'}}]",
    ):
        if text is not None:
            path.write_text(text)
        with pytest.raises(RehearsalError, match="is not the kubeconfig of a local control plane"):
            read_cluster(path)


def test_files_of_other_tools_are_not_those_wanted(tmp_path: Path) -> None:
    files = ControlPlaneFiles(layout(tmp_path))
    assert not files.are_of(PROGRAMS), "there are none yet"
    assert files.server() is None, "so nothing listens"
    files.write(PROGRAMS, PORTS)
    assert files.are_of(PROGRAMS), "they were written for these"
    assert files.server() == "https://127.0.0.1:3", "the API server's port"
    assert not files.are_of({**PROGRAMS, "etcd": Path("/newer/etcd")}), "another etcd must be taken up"


def test_writing_anew_forgets_what_ran_and_keeps_the_data(tmp_path: Path) -> None:
    where = layout(tmp_path)
    for path in (
        where.pids_dir / "etcd.pid",
        where.saved_configuration,
        where.etcd_dir / "member",
        where.pki_dir / "ca.key",
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    ControlPlaneFiles(where).write(PROGRAMS, PORTS)
    assert not (where.pids_dir / "etcd.pid").exists(), (
        "after a reboot the pid is another's, whom kwokctl would kill"
    )
    assert not where.saved_configuration.exists(), "kwokctl would take the old ports"
    assert (where.etcd_dir / "member").exists(), "the cluster's data stays"
    assert (where.pki_dir / "ca.key").exists(), "and the keys its tokens are signed with"


def test_free_ports_differ_from_each_other() -> None:
    ports = free_ports(6)
    assert len(set(ports)) == 6, "two listeners cannot share one"
