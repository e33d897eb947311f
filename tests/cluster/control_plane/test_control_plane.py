"""A control plane comes up, comes back, and goes without a trace."""

import socket

import pytest

from holdfast.scheduling.json import Json
from holdfast.simulator.control_plane.configuration import COMPONENTS
from holdfast.simulator.errors import RehearsalError
from tests.support.clusters.control_plane import NODE, Watched, apply, run, trainer

pytestmark = pytest.mark.cluster

MARK: Json = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "mark", "namespace": "default"}}


def test_an_api_server_of_the_wanted_version_serves_mutating_policies(watched: Watched) -> None:
    assert watched.client.server_version().startswith("v1.36."), "the version that is pinned"
    assert watched.client.serves("admissionregistration.k8s.io/v1", "MutatingAdmissionPolicy"), (
        "admission in training namespaces is built on it"
    )


def test_a_control_plane_that_is_up_is_left_as_it_is(watched: Watched) -> None:
    before = watched.running()
    watched.control_plane.start()
    assert watched.running() == before, "the same processes run"
    assert set(before) == set(COMPONENTS), "all of them"


def test_the_kubeconfig_is_for_its_owner_alone(watched: Watched) -> None:
    kubeconfig = watched.workspace.kubeconfig("local")
    assert kubeconfig.stat().st_mode & 0o077 == 0, "it holds the administrator's key"


def test_data_and_tokens_outlive_a_stop(watched: Watched) -> None:
    apply(watched.client, MARK)
    apply(watched.client, NODE)
    watched.control_plane.stop()
    assert watched.running() == {}, "no process is left"
    assert not watched.control_plane.healthy(), "and nothing answers"
    watched.control_plane.stop()
    watched.control_plane.start()
    assert watched.client.get("v1", "ConfigMap", "mark") is not None, "what was stored is there"
    assert run(watched.client, trainer("after-a-stop")), "and pods run again at once"


@pytest.mark.parametrize("component", ["kube-scheduler", "etcd"])
def test_a_control_plane_of_which_a_part_died_is_started_again_on_its_data(
    watched: Watched, component: str
) -> None:
    apply(watched.client, MARK)
    watched.kill(component)
    watched.reports.clear()
    watched.control_plane.start()
    assert any(component in line for line in watched.reports), f"{watched.reports} should name {component}"
    assert watched.control_plane.healthy(), "all of it runs again"
    assert watched.client.get("v1", "ConfigMap", "mark") is not None, "nothing stored was lost"


def test_what_a_killed_run_left_behind_is_no_obstacle(watched: Watched) -> None:
    for component in COMPONENTS:
        watched.kill(component)
    port = watched.client.server.rpartition(":")[2]
    with socket.socket() as squatter:
        squatter.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        squatter.bind(("127.0.0.1", int(port)))
        squatter.listen()
        watched.control_plane.start()
        assert watched.client.server.rpartition(":")[2] != port, (
            "somebody else has its port now: it took another"
        )
    assert watched.control_plane.healthy(), "stale pid files and a taken port did not stop it"


def test_damaged_data_is_told_with_what_to_do(watched: Watched) -> None:
    watched.control_plane.stop()
    wal = next((watched.control_plane.layout.etcd_dir / "member" / "wal").glob("*.wal"))
    whole = wal.read_bytes()
    wal.write_bytes(b"\xff" * 4096)
    with pytest.raises(
        RehearsalError, match=r"etcd exited .*\n(?s:.*)remove .*control-plane and start again"
    ):
        watched.control_plane.start()
    assert watched.running() == {}, "a start that failed leaves no process"
    wal.write_bytes(whole)
    watched.control_plane.start()
    assert watched.control_plane.healthy(), "and the next one can use what is there"


def test_a_deleted_control_plane_leaves_nothing_and_may_be_deleted_again(watched: Watched) -> None:
    layout = watched.control_plane.layout
    watched.control_plane.delete()
    watched.control_plane.delete()
    assert watched.running() == {}, "no process"
    assert not layout.home.exists(), "no data"
    assert not layout.kubeconfig.exists(), "no key"
