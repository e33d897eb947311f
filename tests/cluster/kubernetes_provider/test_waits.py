"""What was applied is waited for until it works; what cannot work says why."""

import threading
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

from holdfast.simulator.errors import RehearsalError
from holdfast.simulator.kubernetes_client.client import KubeClient
from holdfast.simulator.kubernetes_client.errors import Cancellation, KubeCancelled
from holdfast.simulator.kubernetes_provider.inputs import fields
from holdfast.simulator.pulumi.plugin import InitFailedError
from tests.support.clusters.kubernetes_provider import (
    CRD,
    DEPLOYMENT,
    Resource,
    deployment,
    widget_definition,
)

if TYPE_CHECKING:
    from holdfast.scheduling.json import Json
    from holdfast.simulator.pulumi.values import Properties

pytestmark = pytest.mark.cluster


def test_a_deployment_that_never_runs_fails_with_the_pods_own_reason(
    client: KubeClient, namespace: str
) -> None:
    resource = Resource(client=client, token=DEPLOYMENT, timeout=5)
    with pytest.raises(InitFailedError, match=r"0 of 1 pods are available.*didn't match"):
        resource.create(deployment(namespace, selector={"nobody": "has-this"}))


def test_a_deployment_that_was_not_ready_is_mended_by_the_next_run(
    client: KubeClient, namespace: str
) -> None:
    resource = Resource(client=client, token=DEPLOYMENT, timeout=5)
    with pytest.raises(InitFailedError):
        resource.create(deployment(namespace, selector={"nobody": "has-this"}))
    resource.id, resource.timeout = f"{namespace}/web", 60
    outcome = resource.update(deployment(namespace))
    assert fields(outcome.outputs, "status")["availableReplicas"] == 1, "its pod does not run"


def test_a_refresh_tells_of_a_deployment_that_does_not_run_any_more(
    client: KubeClient, namespace: str
) -> None:
    resource = Resource(client=client, token=DEPLOYMENT)
    resource.create(deployment(namespace))
    nowhere: Json = {"spec": {"template": {"spec": {"nodeSelector": {"nobody": "has-this"}}}}}
    client.merge_patch("apps/v1", "Deployment", "web", nowhere, namespace=namespace)
    with pytest.raises(InitFailedError, match="web is not ready"):
        resource.refresh()


def test_a_service_waits_for_the_pods_it_selects(client: KubeClient, namespace: str) -> None:
    resource = Resource(client=client, token="kubernetes:core/v1:Service", timeout=2)
    service: Properties = {
        "metadata": {"name": "web", "namespace": namespace},
        "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]},
    }
    outcome = resource.create(service)
    assert fields(outcome.outputs, "spec")["clusterIP"], (
        "a service whose pods come later is ready, as by the plugin"
    )


def test_a_custom_object_waits_for_its_definition(client: KubeClient, namespace: str) -> None:
    group = f"g{uuid4().hex[:8]}.test"
    widget = Resource(client=client, token=f"kubernetes:{group}/v1:Widget")
    made = threading.Thread(
        target=Resource(client=client, token=CRD).create, args=(widget_definition(group),)
    )
    made.start()
    outcome = widget.create({"metadata": {"name": "w", "namespace": namespace}, "spec": {"size": 1}})
    made.join()
    assert outcome.id == f"{namespace}/w", "a program that makes both at once would fail"


def test_a_kind_that_no_definition_can_bring_is_refused_at_once(client: KubeClient, namespace: str) -> None:
    nothing: Properties = {"metadata": {"name": "w", "namespace": namespace}}
    with pytest.raises(RehearsalError, match=r"does not serve kind Widget of apps/v1.*CRD"):
        Resource(client=client, token="kubernetes:apps/v1:Widget").create(nothing)


def test_a_cancelled_run_stops_waiting_at_once(client: KubeClient, namespace: str) -> None:
    cancellation = Cancellation()
    resource = Resource(client=client, token=DEPLOYMENT, cancellation=cancellation)

    def cancel_once_made() -> None:
        client.wait_for(
            "apps/v1",
            "Deployment",
            "web",
            namespace=namespace,
            timeout_seconds=60,
            condition=lambda found: found is not None,
            what="the Deployment is made",
        )
        cancellation.cancel()

    cancel = threading.Thread(target=cancel_once_made)
    cancel.start()
    with pytest.raises(KubeCancelled):
        resource.create(deployment(namespace, selector={"nobody": "has-this"}))
    cancel.join()
