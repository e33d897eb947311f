"""Stacks on the real Kubernetes plugin, run by the real engine: what rehearsals depend on."""

import json
from collections.abc import Callable
from pathlib import Path

import pulumi
import pulumi_kubernetes as kubernetes
import pytest
from pulumi_kubernetes.core import v1 as core

from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.rehearsal.engine import EngineFailure
from pulumi_holdfast.rehearsal.engine.faults import Faults
from pulumi_holdfast.rehearsal.engine.kubeconfig import KubeconfigContext
from pulumi_holdfast.rehearsal.engine.kubernetes_plugin import everywhere
from pulumi_holdfast.rehearsal.kubernetes import KubeClient
from pulumi_holdfast.rehearsal.paths import Workspace
from tests.cluster.kubernetes_plugin.conftest import KubernetesStack
from tests.support.clusters.team_program import config_of, team

pytestmark = [pytest.mark.cluster, pytest.mark.engine]


def test_a_run_completes_a_create_that_was_killed(
    stack: KubernetesStack, client: KubeClient, name: str
) -> None:
    faults = Faults(on_crash=stack.process.kill)
    faults.crash_after_create(f"urn:pulumi:{name}::test::kubernetes:core/v1:ConfigMap::conf")
    with pytest.raises(EngineFailure):
        stack.up(team(name), faults=faults)
    assert config_of(client, name) == {"k": "1"}
    stack.up(team(name))
    assert stack.up(team(name)) == {}
    stack.destroy()
    assert client.get("v1", "Namespace", name) is None


def _elsewhere(name: str) -> Callable[[], None]:
    kubeconfig: Json = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": "https://cluster.example"}}],
        "users": [{"name": "u", "user": {}}],
    }

    def program() -> None:
        elsewhere = kubernetes.Provider("elsewhere", kubeconfig=json.dumps(kubeconfig))
        core.Namespace("team", metadata={"name": name}, opts=pulumi.ResourceOptions(provider=elsewhere))
        core.Namespace("here", metadata={"name": f"{name}-2"})

    return program


def test_objects_of_every_provider_go_to_the_control_plane(
    stack: KubernetesStack, client: KubeClient, name: str
) -> None:
    assert stack.up(_elsewhere(name), reach=everywhere) == {"create": 4}
    assert client.get("v1", "Namespace", name)
    assert client.get("v1", "Namespace", f"{name}-2")
    assert stack.destroy() == {"delete": 4}


def test_an_unreachable_cluster_is_planned_and_then_refused_with_the_reason(
    stack: KubernetesStack, client: KubeClient, name: str
) -> None:
    def refused(connection: KubeconfigContext) -> str | None:
        return "dial tcp: lookup cluster.example: no such host"

    assert stack.preview(_elsewhere(name), reach=refused) == {"create": 4}
    with pytest.raises(
        EngineFailure, match=r"cluster is unreachable: (.|\n)*lookup cluster.example: no such host"
    ):
        stack.up(_elsewhere(name), reach=refused)
    assert client.get("v1", "Namespace", name) is None
    stack.destroy()


def test_a_dead_control_plane_is_one_clear_error(tmp_path: Path, name: str) -> None:
    workspace = Workspace(project_root=tmp_path)
    dead = workspace.kubeconfig("local")
    dead.parent.mkdir(parents=True)
    dead.write_text(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
        "contexts: [{name: c, context: {cluster: c, user: u}}]\n"
        "clusters: [{name: c, cluster: {server: 'http://127.0.0.1:9'}}]\nusers: [{name: u, user: {}}]\n"
    )
    stack = KubernetesStack(name=name, workspace=workspace)
    with pytest.raises(EngineFailure) as failure:
        stack.preview(team(name))
    told = str(failure.value)
    assert "the control plane of stack local does not answer at http://127.0.0.1:9" in told
    assert "`make up`" in told
    assert told.count("does not answer") == 1
