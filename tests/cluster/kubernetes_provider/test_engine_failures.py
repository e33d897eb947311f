"""Whole programs on the real engine that fail or are interrupted, and what the next run makes of it."""

from collections.abc import Callable
from pathlib import Path

import pulumi
import pytest
from pulumi_kubernetes.apps import v1 as apps
from pulumi_kubernetes.core import v1 as core

from holdfast.simulator.kubernetes_client.client import KubeClient
from holdfast.simulator.paths import Workspace
from holdfast.simulator.pulumi import EngineFailure
from holdfast.simulator.pulumi.faults import Faults
from tests.support.clusters.kubernetes_provider import KubernetesStack
from tests.support.clusters.team_program import config_of, team, web_spec

pytestmark = [pytest.mark.cluster, pytest.mark.engine]


def test_a_run_killed_after_a_create_is_finished_by_the_next(
    stack: KubernetesStack, client: KubeClient, name: str
) -> None:
    faults = Faults(on_crash=stack.process.kill)
    faults.crash_after_create(f"urn:pulumi:{name}::test::kubernetes:core/v1:ConfigMap::conf")
    with pytest.raises(EngineFailure):
        stack.up(team(name), faults=faults)
    assert config_of(client, name) == {"k": "1"}, "the object was to be made before the engine died"
    stack.up(team(name))
    assert stack.up(team(name)) == {}, "the second run did not finish the first"
    stack.destroy()
    assert client.get("v1", "Namespace", name) is None, "an object is left that no state knows"


def test_a_deployment_that_never_runs_says_why_and_is_mended_by_the_next_run(
    stack: KubernetesStack, name: str
) -> None:
    def program(selector: dict[str, str]) -> Callable[[], None]:
        def run() -> None:
            space = core.Namespace("team", metadata={"name": name})
            apps.Deployment(
                "web",
                metadata={"namespace": space.metadata["name"]},
                spec=web_spec(selector),
                opts=pulumi.ResourceOptions(custom_timeouts=pulumi.CustomTimeouts(create="4s", update="60s")),
            )

        return run

    with pytest.raises(EngineFailure, match=r"0 of 1 pods are available(.|\n)*didn't match"):
        stack.up(program({"nobody": "has-this"}))
    assert stack.up(program({})) == {"update": 1}, "the failed object is in nobody's way"
    stack.destroy()


def test_a_dead_control_plane_is_one_clear_error(workspace: Workspace, tmp_path: Path, name: str) -> None:
    dead = tmp_path / "local" / "kubeconfig"
    dead.parent.mkdir()
    dead.write_text(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
        "contexts: [{name: c, context: {cluster: c, user: u}}]\n"
        "clusters: [{name: c, cluster: {server: 'http://127.0.0.1:9'}}]\nusers: [{name: u, user: {}}]\n"
    )
    stack = KubernetesStack(name=name, workspace=workspace, kubeconfig=dead)
    with pytest.raises(EngineFailure) as failure:
        stack.preview(team(name))
    told = str(failure.value)
    assert "the control plane of stack local does not answer at http://127.0.0.1:9" in told, "what is wrong?"
    assert "`make up`" in told, "it does not say what to do"
    assert told.count("does not answer") == 1, "one cause is one message"
