"""Helm releases of the simulated kubernetes provider."""

import subprocess
from pathlib import Path

import pytest
import yaml

from pulumi_holdfast.rehearsal.engine.plugin import InitFailedError
from pulumi_holdfast.rehearsal.engine.values import UNKNOWN, Secret
from pulumi_holdfast.rehearsal.errors import RehearsalError
from pulumi_holdfast.rehearsal.kubernetes_client.client import KubeClient
from pulumi_holdfast.rehearsal.kubernetes_provider.helm import ChartMirror
from pulumi_holdfast.rehearsal.kubernetes_provider.inputs import fields
from pulumi_holdfast.rehearsal.kubernetes_provider.operation import GONE
from tests.support.clusters.kubernetes_provider import (
    NOWHERE,
    TOOLS,
    Resource,
    kill_helm_at_work,
    label,
    release,
    statuses,
    web,
)

pytestmark = pytest.mark.cluster


def test_a_release_is_created_changed_and_deleted(
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


def test_a_preview_renders_the_chart_and_creates_nothing(
    client: KubeClient, namespace: str, resource: Resource
) -> None:
    assert resource.plan(web(namespace))["status"] is UNKNOWN, "there is no status before there is a release"
    with pytest.raises(RehearsalError, match="size is not set"):
        resource.plan(web(namespace, size=""))
    assert not statuses(client, namespace), "a preview made a release"


def test_an_unchanged_release_has_no_diff_after_a_refresh(namespace: str, resource: Resource) -> None:
    resource.create(web(namespace, size="big"))
    resource.refresh()
    assert resource.changed_paths(web(namespace, size="big")) == set(), "a second up would upgrade it"


def test_values_changed_by_hand_are_drift(
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


def test_a_failed_install_names_the_reason_of_the_pod_and_the_next_run_repairs_it(
    client: KubeClient, namespace: str, resource: Resource
) -> None:
    with pytest.raises(InitFailedError, match=r"web is failed.*pod web-.*didn't match"):
        resource.create(web(namespace, timeout=4, nodeSelector=NOWHERE))
    resource.id = f"{namespace}/web"
    # Some value must be given: helm goes on with the last ones when an upgrade brings none.
    outcome = resource.update(web(namespace, size="big"))
    assert fields(outcome.outputs, "status")["status"] == "deployed", "a failed release stays failed"


def test_a_failed_atomic_install_leaves_nothing(
    client: KubeClient, namespace: str, resource: Resource
) -> None:
    with pytest.raises(RehearsalError):
        resource.create({**web(namespace, timeout=4, nodeSelector=NOWHERE), "atomic": True})
    assert not statuses(client, namespace), "the next run would meet half a release"
    assert client.get("apps/v1", "Deployment", "web", namespace) is None, "an object of the release is left"


@pytest.mark.parametrize("first", [True, False], ids=["install", "upgrade"])
def test_a_release_of_a_killed_helm_is_adopted(
    client: KubeClient, kubeconfig: Path, charts: ChartMirror, namespace: str, resource: Resource, first: bool
) -> None:
    if not first:
        resource.create(web(namespace))
    kill_helm_at_work(client, kubeconfig, charts, namespace, resource, first=first)
    outcome = (
        resource.create(web(namespace, size="big")) if first else resource.update(web(namespace, size="big"))
    )
    assert fields(outcome.outputs, "status")["status"] == "deployed", (
        "helm would say: another operation is in progress"
    )
    assert label(client, namespace) == "big", "the release is not what the program says"


def test_a_release_of_a_killed_helm_can_be_deleted(
    client: KubeClient, kubeconfig: Path, charts: ChartMirror, namespace: str, resource: Resource
) -> None:
    resource.create(web(namespace))
    kill_helm_at_work(client, kubeconfig, charts, namespace, resource, first=False)
    resource.delete()
    assert not statuses(client, namespace), "the release is left"
    assert client.get("apps/v1", "Deployment", "web", namespace) is None, "its objects are left"


def test_a_release_of_another_owner_is_rejected(
    client: KubeClient, kubeconfig: Path, charts: ChartMirror, namespace: str, resource: Resource
) -> None:
    resource.create(web(namespace))
    with pytest.raises(RehearsalError, match=r"/web already exists"):
        release(client, kubeconfig, charts, name="two").create(web(namespace))


def test_an_interrupted_create_is_adopted(
    client: KubeClient, kubeconfig: Path, charts: ChartMirror, namespace: str, resource: Resource
) -> None:
    resource.create(web(namespace))
    again = release(client, kubeconfig, charts)
    assert again.resources.made(again.operation, web(namespace)) == f"{namespace}/web", "recovery forgets it"
    assert again.create(web(namespace)).id == f"{namespace}/web", "the second run could not go on"


def test_no_secret_value_reaches_a_message(namespace: str, resource: Resource) -> None:
    # No label may have a space: the API server quotes it in its refusal.
    with pytest.raises(RehearsalError, match=r"\[secret\]") as failure:
        resource.create(web(namespace, size=Secret("hunter 2")))
    assert "hunter 2" not in str(failure.value), "the password would stand in the log"
