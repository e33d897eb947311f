"""Each controller gets ports and files that replace those of its container."""

import json
from base64 import b64encode
from dataclasses import replace
from pathlib import Path

from pulumi_holdfast.kubernetes.fallback_controller.clusters import kubeconfig
from pulumi_holdfast.rehearsal.control_plane.configuration import KubeconfigCluster
from pulumi_holdfast.rehearsal.operator_runner.controllers import CONTROLLERS, controller_of
from tests.support.builders.operator_pods import pod, resolved_container


def test_controller_is_found_by_label_and_namespace() -> None:
    for app, namespace in (
        ("jobset", "jobset-system"),
        ("kuberay-operator", "kuberay-system"),
        ("karpenter", "karpenter"),
        ("fallback-controller", "holdfast-system"),
    ):
        found = controller_of(pod(labels={"app.kubernetes.io/name": app}, namespace=namespace))
        assert found is CONTROLLERS[app]
    another = pod(labels={"app.kubernetes.io/name": "trainer"})
    for other in (pod(namespace="vision"), another, pod(metadata={"labels": {}})):
        assert controller_of(other) is None, "the pod of a user must never run as a local process"


def test_fallback_controller_runs_from_its_archives_alone() -> None:
    controller = CONTROLLERS["fallback-controller"]
    assert controller.module == "pulumi_holdfast.controller"
    mounted = {"PYTHONPATH": "/pods/one/volumes/program/program.zip"}
    invocation = controller.adapt(resolved_container(args=("--lease=l", "--port=8080"), variables=mounted))
    given, local = ("--lease=l", "--port=8080"), ("--address=127.0.0.1", "--port=18080")
    assert invocation.args == ("-S", "-m", "pulumi_holdfast.controller", *given, *local)
    assert invocation.variables["PYTHONPATH"] == mounted["PYTHONPATH"]


def test_fallback_controller_reaches_other_clusters_that_run_on_this_machine() -> None:
    mounts = {"/etc/clusters": Path("/pods/one/clusters"), "/var/tokens": Path("/pods/one/tokens")}
    files = {
        mounts["/etc/clusters"] / name: kubeconfig(f"https://{name}.example.com", "", f"/var/tokens/{name}")
        for name in ("there", "far")
    }
    args = ("--lease=l", *(f"--cluster={path.name}={path}" for path in files))
    here = KubeconfigCluster(server="https://127.0.0.1:1", authority=b"PEM")
    invocation = CONTROLLERS["fallback-controller"].adapt(
        replace(
            resolved_container(args=args, files=files, mounts=mounts),
            cluster_at={"https://there.example.com": here}.get,
        )
    )
    adapted = {name: Path(f"/pods/one/adapted/clusters/{name}") for name in ("there", "far")}
    assert {f"--cluster={name}={path}" for name, path in adapted.items()} < {*invocation.args}
    assert "--lease=l" in invocation.args
    found = {name: json.loads(invocation.files[path]) for name, path in adapted.items()}
    assert found["there"]["clusters"][0]["cluster"] == {
        "server": here.server,
        "certificate-authority-data": b64encode(here.authority).decode(),
    }
    assert found["far"]["clusters"][0]["cluster"] == {"server": "https://far.example.com"}
    assert found["there"]["users"][0]["user"]["tokenFile"] == "/pods/one/tokens/there"
