"""Releases are made, changed and removed by helm, and seen to drift."""

import subprocess
from pathlib import Path

import pytest
import yaml

from holdfast.simulator.errors import RehearsalError
from holdfast.simulator.kubernetes_client.client import KubeClient
from holdfast.simulator.kubernetes_provider.helm import ChartMirror
from holdfast.simulator.kubernetes_provider.inputs import fields
from holdfast.simulator.kubernetes_provider.operation import GONE
from holdfast.simulator.pulumi.values import UNKNOWN
from tests.support.clusters.kubernetes_provider import TOOLS, Resource, label, statuses, web

pytestmark = pytest.mark.cluster


def test_a_release_is_made_changed_and_removed(
    client: KubeClient, namespace: str, resource: Resource
) -> None:
    outcome = resource.create(web(namespace))
    assert outcome.id == f"{namespace}/web", "the plugin's ids have this form"
    assert fields(outcome.outputs, "status")["status"] == "deployed", "programs read the status"
    assert fields(outcome.outputs, "resourceNames")["Deployment.apps/apps/v1"] == ["web"], (
        "programs look up objects by name"
    )
    resource.update(web(namespace, size="big"))
    assert label(client, namespace) == "big", "the values did not reach the chart"
    resource.delete()
    assert client.get("apps/v1", "Deployment", "web", namespace) is None, "the objects outlive the release"


def test_a_preview_renders_the_chart_and_makes_nothing(
    client: KubeClient, namespace: str, resource: Resource
) -> None:
    assert resource.plan(web(namespace))["status"] is UNKNOWN, "there is no status before there is a release"
    with pytest.raises(RehearsalError, match="size is not set"):
        resource.plan(web(namespace, size=""))
    assert not statuses(client, namespace), "a preview made a release"


def test_an_unchanged_release_is_left_alone_even_after_a_refresh(namespace: str, resource: Resource) -> None:
    resource.create(web(namespace, size="big"))
    resource.refresh()
    assert resource.changed_paths(web(namespace, size="big")) == set(), "a second up would upgrade it"


def test_values_changed_by_hand_are_seen(
    kubeconfig: Path, charts: ChartMirror, namespace: str, resource: Resource
) -> None:
    resource.create(web(namespace, size="big"))
    helm = ["upgrade", "web", str(charts.directory / "web"), "--namespace", namespace, "--set", "size=mine"]
    subprocess.run([TOOLS / "helm", *helm, "--kubeconfig", kubeconfig], check=True, capture_output=True)
    resource.refresh()
    assert resource.changed_paths(web(namespace, size="big")) == {"values.size"}, "the change stays unseen"


def test_a_release_uninstalled_by_hand_is_gone_after_a_refresh(
    kubeconfig: Path, namespace: str, resource: Resource
) -> None:
    resource.create(web(namespace))
    helm = ["uninstall", "web", "--namespace", namespace, "--kubeconfig", str(kubeconfig)]
    subprocess.run([TOOLS / "helm", *helm], check=True, capture_output=True)
    assert resource.refresh() == GONE, "the next up would not bring it back"


def test_an_edited_chart_is_a_change(charts: ChartMirror, namespace: str, resource: Resource) -> None:
    resource.create(web(namespace))
    description = charts.directory / "web" / "Chart.yaml"
    description.write_text(
        yaml.safe_dump({**yaml.safe_load(description.read_text()), "description": "edited"})
    )
    assert resource.changed_paths(web(namespace)) == {"chart"}, "an edited chart would never be upgraded"
