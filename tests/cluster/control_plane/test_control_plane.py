"""A control plane on this machine, and the pods that it simulates."""

import socket
from datetime import UTC, datetime, timedelta

import pytest

from pulumi_holdfast.config import versions
from pulumi_holdfast.ladder.json import Json, mapping, sequence
from pulumi_holdfast.rehearsal.control_plane.configuration import COMPONENTS
from pulumi_holdfast.rehearsal.control_plane.processes import python_modules_in
from pulumi_holdfast.rehearsal.errors import RehearsalError
from pulumi_holdfast.rehearsal.operator_runner import OperatorRunner
from pulumi_holdfast.rehearsal.watches import ObjectSelector
from tests.support.clusters.control_plane import NODE, Watched, apply, phase, run, trainer

pytestmark = pytest.mark.cluster


MARK: Json = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "mark", "namespace": "default"}}


def test_an_api_server_of_the_wanted_version_serves_mutating_policies(watched: Watched) -> None:
    assert watched.client.server_version().startswith(f"v{versions.KUBERNETES}.")
    watched.client.list("admissionregistration.k8s.io/v1", "MutatingAdmissionPolicy")


def test_a_running_control_plane_is_unchanged(watched: Watched) -> None:
    before = watched.running()
    watched.control_plane.start()
    assert watched.running() == before
    assert set(before) == set(COMPONENTS)


def test_only_the_owner_can_read_the_kubeconfig(watched: Watched) -> None:
    kubeconfig = watched.workspace.kubeconfig("local")
    assert kubeconfig.stat().st_mode & 0o077 == 0


def test_data_and_tokens_survive_a_stop(watched: Watched) -> None:
    apply(watched.client, MARK)
    apply(watched.client, NODE)
    watched.control_plane.stop()
    assert watched.running() == {}
    assert not watched.control_plane.healthy()
    watched.control_plane.stop()
    watched.control_plane.start()
    assert watched.client.get("v1", "ConfigMap", "mark") is not None
    assert run(watched.client, trainer("after-a-stop"))


@pytest.mark.parametrize("component", ["kube-scheduler", "etcd"])
def test_a_control_plane_with_a_dead_process_is_restarted_on_its_data(
    watched: Watched, component: str
) -> None:
    apply(watched.client, MARK)
    watched.kill(component)
    watched.reports.clear()
    watched.control_plane.start()
    assert any(component in line for line in watched.reports)
    assert watched.control_plane.healthy()
    assert watched.client.get("v1", "ConfigMap", "mark") is not None


def test_leftovers_of_a_killed_run_do_not_block_a_start(watched: Watched) -> None:
    for component in COMPONENTS:
        watched.kill(component)
    port = watched.client.server.rpartition(":")[2]
    with socket.socket() as squatter:
        squatter.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        squatter.bind(("127.0.0.1", int(port)))
        squatter.listen()
        watched.control_plane.start()
        assert watched.client.server.rpartition(":")[2] != port
    assert watched.control_plane.healthy()


def test_damaged_data_is_reported_with_the_fix(watched: Watched) -> None:
    watched.control_plane.stop()
    wal = next((watched.control_plane.layout.etcd_dir / "member" / "wal").glob("*.wal"))
    whole = wal.read_bytes()
    wal.write_bytes(b"\xff" * 4096)
    with pytest.raises(
        RehearsalError, match=r"etcd exited .*\n(?s:.*)remove .*control-plane and start again"
    ):
        watched.control_plane.start()
    assert watched.running() == {}
    wal.write_bytes(whole)
    watched.control_plane.start()
    assert watched.control_plane.healthy()


def test_a_deleted_control_plane_leaves_nothing_and_can_be_deleted_again(watched: Watched) -> None:
    layout = watched.control_plane.layout
    watched.control_plane.delete()
    watched.control_plane.delete()
    assert watched.running() == {}
    assert not layout.home.exists()
    assert not layout.kubeconfig.exists()


@pytest.fixture(autouse=True)
def node(watched: Watched) -> None:
    """The node the pods are on."""
    apply(watched.client, NODE)


def test_a_node_keeps_its_gpus_and_a_pod_on_it_runs(watched: Watched) -> None:
    node = watched.client.wait_for(
        "v1",
        "Node",
        "node-1",
        timeout_seconds=180,
        condition=lambda node: bool(mapping((node or {}).get("status")).get("conditions")),
        what="the node reports",
    )
    assert mapping(mapping((node or {})["status"])["allocatable"])["nvidia.com/gpu"] == "8"
    statuses = mapping(run(watched.client, trainer("runs"))["status"])
    sidecar = mapping(sequence(statuses["initContainerStatuses"])[1])
    assert "running" in mapping(sidecar["state"])


def test_a_node_that_changes_often_still_sends_heartbeats(watched: Watched) -> None:
    long_ago = (datetime.now(UTC) - timedelta(seconds=61)).strftime("%Y-%m-%dT%H:%M:%SZ")
    ready = {"type": "Ready", "status": "True", "lastHeartbeatTime": long_ago}
    watched.client.merge_patch(
        "v1", "Node", "node-1", {"status": {"conditions": [ready]}}, subresource="status"
    )
    heard = watched.client.wait_for(
        "v1",
        "Node",
        "node-1",
        timeout_seconds=30,
        condition=lambda node: last_heartbeat(node) > long_ago,
        what="the node's next heartbeat",
    )
    assert last_heartbeat(heard) > long_ago


def last_heartbeat(node: Json | None) -> str:
    """When the Ready condition was last said; empty if it was not."""
    conditions = map(mapping, sequence(mapping((node or {}).get("status")).get("conditions")))
    return next(
        (str(each.get("lastHeartbeatTime")) for each in conditions if each.get("type") == "Ready"), ""
    )


def test_a_deleted_pod_fails_with_sigterm_before_it_is_removed(watched: Watched) -> None:
    run(watched.client, trainer("evicted"))
    seen: list[tuple[str, Json]] = []
    selection = ObjectSelector(namespace="default", name="evicted")
    for what, pod in watched.client.follow("v1", "Pod", selection, seconds=180):
        if not seen:
            watched.client.evict("default", "evicted")
        seen.append((what, pod))
        if what == "DELETED":
            break
    failed = [pod for what, pod in seen if what == "MODIFIED" and phase(pod) == "Failed"]
    assert failed
    status = mapping(failed[0]["status"])
    terminated = mapping(mapping(mapping(sequence(status["containerStatuses"])[0])["state"])["terminated"])
    assert terminated["exitCode"] == 143
    conditions = {str(mapping(each)["type"]) for each in sequence(status["conditions"])}
    assert "DisruptionTarget" in conditions
    assert seen[-1][0] == "DELETED"


def test_a_pod_succeeds_only_by_annotation(watched: Watched) -> None:
    run(watched.client, trainer("trains"))
    watched.client.merge_patch(
        "v1", "Pod", "trains", {"metadata": {"annotations": {"holdfast.dev/complete": "true"}}}
    )
    done = watched.client.wait_for(
        "v1",
        "Pod",
        "trains",
        timeout_seconds=180,
        condition=lambda pod: phase(pod) == "Succeeded",
        what="the training ends",
    )
    assert phase(done) == "Succeeded"


def test_a_pod_of_an_operator_waits_for_the_operator_runner(watched: Watched) -> None:
    labels = {"app.kubernetes.io/name": "karpenter"}
    apply(watched.client, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "karpenter"}})
    apply(watched.client, trainer("of-operator", namespace="karpenter", labels=labels))
    run(watched.client, trainer("of-no-operator", labels=labels))
    pending = watched.client.get("v1", "Pod", "of-operator", "karpenter")
    assert phase(pending) == "Pending"
    watched.client.delete("v1", "Pod", "of-operator", namespace="karpenter")


def test_the_operator_runner_starts_once_restarts_after_a_kill_and_stops(watched: Watched) -> None:
    runner = OperatorRunner(watched.workspace, "local", report=lambda _: None)
    module = "pulumi_holdfast.rehearsal.stacks.run_operators"
    runner.stop()
    assert not runner.running()
    runner.start()
    (first,) = python_modules_in(runner.layout.folder, module)
    runner.start()
    (process,) = python_modules_in(runner.layout.folder, module)
    assert process.process == first.process
    process.process.kill()
    process.process.wait(timeout=10)
    assert not runner.running()
    runner.start()
    assert runner.running()
    runner.stop()
    runner.stop()
    assert python_modules_in(runner.layout.folder, module) == []
