"""A node of Ray whose peers share its machine has the address of its head, and ports of its own."""

import pytest

from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.rehearsal.control_plane.configuration import RUNS
from pulumi_holdfast.rehearsal.operator_runner.training.ray_node import (
    dashboard_of,
    is_ray_node,
    on_shared_machine,
    temporary_folder,
)
from pulumi_holdfast.rehearsal.operator_runner.training.surroundings import address_of, own_address

START = "ulimit -n 65536; ray start {} --dashboard-agent-listen-port=52365 --dashboard-host=0.0.0.0 --metrics-export-port=8080 --block"


def node(uid: str, kind: str) -> Json:
    labels: Json = {"ray.io/cluster": "c", "ray.io/node-type": kind}
    return {"metadata": {"name": uid, "namespace": "vision", "uid": uid, "labels": labels}}


def test_all_nodes_of_a_cluster_have_the_address_of_its_head() -> None:
    head, worker = node("h", "head"), node("w", "worker")
    assert own_address(head, []) == own_address(worker, []) == address_of("c-head-svc.vision")
    assert not is_ray_node({"metadata": {"name": "submitter"}})


def test_a_node_starts_with_its_own_ports_and_is_probed_there() -> None:
    head, worker = node("h", "head"), node("w", "worker")
    probe = "wget -q -O- http://localhost:52365/api/local_raylet_healthz && wget http://localhost:8265/api/gcs_healthz"
    started = on_shared_machine(START.format("--head"), head, "127.1.2.3")
    port = started.partition("--dashboard-agent-listen-port=")[2].split()[0]
    assert f"--metrics-export-port={int(port) + 1} " in started
    assert f"--temp-dir={temporary_folder(head)} " in started
    assert "--dashboard-host=127.1.2.3 " in started
    assert "--node-ip-address=127.1.2.3 " in started
    probed = on_shared_machine(probe, head, "127.1.2.3")
    assert f"http://127.0.0.1:{port}/api" in probed
    assert "http://127.1.2.3:8265/api" in probed
    other = on_shared_machine(START.format("--address=127.1.2.3:6379"), worker, "127.1.2.3")
    assert f"--dashboard-agent-listen-port={port} " not in other
    assert "--temp-dir" not in other


@pytest.mark.parametrize(
    ("labels", "address", "expected"),
    [
        ({RUNS.key: RUNS.value}, "10.200.1.2", "127.200.1.2"),
        ({RUNS.key: RUNS.value}, "", None),
        ({}, "10.200.1.2", None),
    ],
)
def test_only_a_head_that_runs_as_processes_has_a_dashboard(
    labels: Json, address: str, expected: str | None
) -> None:
    assert dashboard_of({"metadata": {"labels": labels}, "status": {"podIP": address}}) == expected
