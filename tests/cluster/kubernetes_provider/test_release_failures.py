"""Releases that failed or were interrupted are taken up by the next run; others' are left alone."""

from pathlib import Path

import pytest

from holdfast.simulator.errors import RehearsalError
from holdfast.simulator.kubernetes_client.client import KubeClient
from holdfast.simulator.kubernetes_provider.helm import ChartMirror
from holdfast.simulator.kubernetes_provider.inputs import fields
from holdfast.simulator.pulumi.plugin import InitFailedError
from holdfast.simulator.pulumi.values import Secret
from tests.support.clusters.kubernetes_provider import (
    NOWHERE,
    Resource,
    kill_helm_at_work,
    label,
    release,
    statuses,
    web,
)

pytestmark = pytest.mark.cluster


def test_a_failed_install_names_the_pods_trouble_and_the_next_run_mends_it(
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
def test_a_release_in_which_helm_was_killed_is_taken_up(
    client: KubeClient,
    kubeconfig: Path,
    charts: ChartMirror,
    namespace: str,
    resource: Resource,
    first: bool,
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


def test_a_release_in_which_helm_was_killed_can_be_removed(
    client: KubeClient, kubeconfig: Path, charts: ChartMirror, namespace: str, resource: Resource
) -> None:
    resource.create(web(namespace))
    kill_helm_at_work(client, kubeconfig, charts, namespace, resource, first=False)
    resource.delete()
    assert not statuses(client, namespace), "the release is left"
    assert client.get("apps/v1", "Deployment", "web", namespace) is None, "its objects are left"


def test_a_release_that_somebody_else_made_is_refused(
    client: KubeClient, kubeconfig: Path, charts: ChartMirror, namespace: str, resource: Resource
) -> None:
    resource.create(web(namespace))
    with pytest.raises(RehearsalError, match=r"/web already exists"):
        release(client, kubeconfig, charts, name="two").create(web(namespace))


def test_an_interrupted_create_is_taken_up_again(
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
