"""Whole programs on the real engine: up, nothing to do, drift, destroy."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import pulumi_kubernetes as kubernetes
import pytest

from holdfast.simulator.kubernetes_client.client import KubeClient
from holdfast.simulator.kubernetes_client.objects import mapping
from tests.support.clusters.kubernetes_provider import KubernetesStack
from tests.support.clusters.team_program import config_of, team

if TYPE_CHECKING:
    from holdfast.scheduling.json import Json

pytestmark = [pytest.mark.cluster, pytest.mark.engine]


def test_a_program_comes_up_stays_changes_and_goes(
    stack: KubernetesStack, client: KubeClient, name: str
) -> None:
    assert stack.preview(team(name)) == {"create": 8}, "the plan of an empty stack is wrong"
    assert client.get("v1", "Namespace", name) is None, "the preview made an object"
    addresses: list[str] = []
    assert stack.up(team(name, learn=addresses.append)) == {"create": 8}, "something was not made"
    assert addresses, "what the server gave is not seen by the program"
    assert stack.up(team(name)) == {}, "a second up changes something"
    assert stack.refresh() == {}, "a refresh sees drift where there is none"
    assert stack.preview(team(name)) == {}, "after a refresh there is something to do"
    assert stack.up(team(name, value="2")) == {"replace": 1}, "a ConfigMap is replaced, as by the plugin"
    assert config_of(client, name) == {"k": "2"}, "the change did not reach the API server"
    assert "hunter2" not in stack.state(), "a secret stands in the state"
    assert "aHVudGVyMg" not in stack.state(), "a secret stands in the state in another writing"
    assert stack.destroy() == {"delete": 8}, "something is left in the state"
    assert client.get("v1", "Namespace", name) is None, "the namespace is left"


def test_what_was_changed_or_deleted_by_hand_is_brought_back(
    stack: KubernetesStack, client: KubeClient, name: str
) -> None:
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
    assert config_of(client, name) == {"k": "1"}, "the change by hand stays"
    assert stack.up(team(name)) == {}, "it does not settle"
    stack.destroy()


def test_a_chart_of_an_operator_comes_up_stays_changes_and_goes(
    stack: KubernetesStack, client: KubeClient, name: str
) -> None:
    def program(cpu: str) -> Callable[[], None]:
        def run() -> None:
            kubernetes.helm.v3.Release(
                "jobset",
                kubernetes.helm.v3.ReleaseArgs(
                    name=name,
                    namespace=name,
                    create_namespace=True,
                    chart="oci://registry.k8s.io/jobset/charts/jobset",
                    version="0.12.0",
                    skip_crds=True,
                    values={"controller": {"resources": {"requests": {"cpu": cpu}}}},
                ),
            )

        return run

    assert stack.preview(program("100m")) == {"create": 2}, "the plan of an empty stack is wrong"
    assert stack.up(program("100m")) == {"create": 2}, "the release was not made"
    assert client.list("apps/v1", "Deployment", namespace=name), "the chart's controller is not there"
    assert stack.up(program("100m")) == {}, "a second up changes something"
    assert stack.refresh() == {}, "a refresh sees drift where there is none"
    assert stack.up(program("200m")) == {"update": 1}, "another value does not upgrade the release"
    assert stack.destroy() == {"delete": 2}, "something is left in the state"
    assert not client.list("apps/v1", "Deployment", namespace=name), "the chart's controller is left"
