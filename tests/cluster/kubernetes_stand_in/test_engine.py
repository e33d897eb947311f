"""Whole programs on the real engine: up, nothing to do, drift, interruption, failure, destroy."""

from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import psutil
import pulumi
import pulumi_kubernetes as kubernetes
import pytest
from pulumi import automation as auto

from rehearsal.json import Json
from rehearsal.kube.client import KubeClient
from rehearsal.kube.summary import mapping
from rehearsal.providers.faults import Faults
from tests.support.kubernetes_stack import kubernetes_stack

pytestmark = [pytest.mark.cluster, pytest.mark.engine]


def team(
    namespace: str, *, value: str = "1", extra: Callable[[], object] = lambda: None
) -> Callable[[], None]:
    """A program with an object of each sort: plain, secret, awaited, a new kind and an object of it."""

    def program() -> None:
        group = f"{namespace}.test"
        space = kubernetes.core.v1.Namespace("team", metadata={"name": namespace})
        here = {"namespace": space.metadata["name"]}
        kubernetes.core.v1.ConfigMap("conf", metadata={"name": "conf", **here}, data={"k": value})
        kubernetes.core.v1.Secret("sec", metadata=here, string_data={"p": pulumi.Output.secret("hunter2")})
        definition = kubernetes.apiextensions.v1.CustomResourceDefinition(
            "widgets", metadata={"name": f"widgets.{group}"}, spec=widget_spec(group)
        )
        kubernetes.apiextensions.CustomResource(
            "widget",
            api_version=f"{group}/v1",
            kind="Widget",
            metadata=here,
            spec={"size": 3},
            opts=pulumi.ResourceOptions(depends_on=[definition]),
        )
        service = kubernetes.core.v1.Service(
            "web", metadata=here, spec={"selector": {"app": "web"}, "ports": [{"port": 80}]}
        )
        kubernetes.apps.v1.Deployment("web", metadata=here, spec=web_spec())
        pulumi.export("address", service.spec.cluster_ip)
        extra()

    return program


def widget_spec(group: str) -> dict[str, object]:
    schema = {"openAPIV3Schema": {"type": "object", "x_kubernetes_preserve_unknown_fields": True}}
    return {
        "group": group,
        "scope": "Namespaced",
        "names": {"kind": "Widget", "plural": "widgets", "singular": "widget"},
        "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
    }


def web_spec(selector: dict[str, str] | None = None) -> dict[str, object]:
    requests = {"requests": {"cpu": "100m", "memory": "1024Mi"}}
    pod = {"containers": [{"name": "c", "image": "a", "resources": requests}], "nodeSelector": selector or {}}
    return {
        "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": pod},
    }


@pytest.fixture
def name() -> str:
    """A namespace's name that no other test has."""
    return f"team-{uuid4().hex[:8]}"


def data_of(client: KubeClient, namespace: str) -> Json:
    return mapping((client.get("v1", "ConfigMap", "conf", namespace) or {}).get("data"))


def test_a_program_comes_up_stays_changes_and_goes(
    tmp_path: Path, kubeconfig: Path, client: KubeClient, name: str
) -> None:
    with kubernetes_stack(tmp_path, kubeconfig) as stack:
        assert stack.preview(team(name)) == {"create": 8}, "the plan of an empty stack is wrong"
        assert client.get("v1", "Namespace", name) is None, "the preview made an object"
        assert stack.up(team(name)) == {"create": 8}, "something was not made"
        assert stack.outputs()["address"], "what the server gave is not seen by the program"
        assert stack.up(team(name)) == {}, "a second up changes something"
        assert stack.refresh() == {}, "a refresh sees drift where there is none"
        assert stack.preview(team(name)) == {}, "after a refresh there is something to do"
        assert stack.up(team(name, value="2")) == {"replace": 1}, "a ConfigMap is replaced, as by the plugin"
        assert data_of(client, name) == {"k": "2"}, "the change did not reach the API server"
        state = "".join(file.read_text() for file in tmp_path.rglob("state/.pulumi/stacks/**/*.json"))
        assert "hunter2" not in state, "a secret stands in the state"
        assert stack.destroy() == {"delete": 8}, "something is left in the state"
    assert client.get("v1", "Namespace", name) is None, "the namespace is left"


def test_what_was_changed_or_deleted_by_hand_is_brought_back(
    tmp_path: Path, kubeconfig: Path, client: KubeClient, name: str
) -> None:
    with kubernetes_stack(tmp_path, kubeconfig) as stack:
        stack.up(team(name))
        by_hand: Json = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "conf", "namespace": name},
            "data": {"k": "mine"},
        }
        client.apply(by_hand, field_manager="kubectl-edit", force=True)
        deployment = client.list("apps/v1", "Deployment", namespace=name)[0]
        deployed = str(mapping(deployment["metadata"])["name"])
        client.delete("apps/v1", "Deployment", deployed, namespace=name, propagation="Background")
        assert stack.refresh() == {"update": 1, "delete": 1}, "the refresh does not see what happened"
        assert stack.up(team(name)) == {"replace": 1, "create": 1}, "up does not bring back what was there"
        assert data_of(client, name) == {"k": "1"}, "the change by hand stays"
        assert stack.up(team(name)) == {}, "it does not settle"
        stack.destroy()


def test_a_run_killed_after_a_create_is_finished_by_the_next(
    tmp_path: Path, kubeconfig: Path, client: KubeClient, name: str
) -> None:
    faults = Faults(on_crash=kill_engine)
    faults.crash_after_create(f"urn:pulumi:test::test::kubernetes:core/v1:ConfigMap::conf")
    with kubernetes_stack(tmp_path, kubeconfig, faults=faults) as stack:
        with pytest.raises(auto.CommandError):
            stack.up(team(name))
        assert data_of(client, name) == {"k": "1"}, "the object was to be made before the engine died"
        stack.cancel()
        stack.up(team(name))
        assert stack.up(team(name)) == {}, "the second run did not finish the first"
        stack.destroy()
    assert client.get("v1", "Namespace", name) is None, "an object is left that no state knows"


def test_a_deployment_that_never_runs_says_why_and_is_mended_by_the_next_run(
    tmp_path: Path, kubeconfig: Path, name: str
) -> None:
    def program(selector: dict[str, str]) -> Callable[[], None]:
        def run() -> None:
            space = kubernetes.core.v1.Namespace("team", metadata={"name": name})
            kubernetes.apps.v1.Deployment(
                "web",
                metadata={"namespace": space.metadata["name"]},
                spec=web_spec(selector),
                opts=pulumi.ResourceOptions(
                    custom_timeouts=pulumi.CustomTimeouts(create="4s", update="60s"), depends_on=[space]
                ),
            )

        return run

    with kubernetes_stack(tmp_path, kubeconfig) as stack:
        with pytest.raises(auto.CommandError, match=r"0 of 1 pods are available(.|\n)*didn't match"):
            stack.up(program({"nobody": "has-this"}))
        assert stack.up(program({})) == {"update": 1}, "the failed object is in nobody's way"
        stack.destroy()


def test_a_dead_control_plane_is_one_clear_error(tmp_path: Path, name: str) -> None:
    dead = tmp_path / "local" / "kubeconfig"
    dead.parent.mkdir()
    dead.write_text(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
        "contexts: [{name: c, context: {cluster: c, user: u}}]\n"
        "clusters: [{name: c, cluster: {server: 'http://127.0.0.1:9'}}]\nusers: [{name: u, user: {}}]\n"
    )
    with kubernetes_stack(tmp_path, dead) as stack, pytest.raises(auto.CommandError) as failure:
        stack.preview(team(name))
    told = str(failure.value)
    assert "the control plane of stack local does not answer at http://127.0.0.1:9" in told, (
        "it does not say what"
    )
    assert "`make up`" in told, "it does not say what to do"
    assert "Traceback" not in told, "a traceback reaches the user"


def kill_engine() -> None:
    for process in psutil.Process().children(recursive=True):
        if process.name() == "pulumi":
            process.kill()
