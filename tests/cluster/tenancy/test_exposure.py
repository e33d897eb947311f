"""No object of a training namespace is reached from outside the cluster, on a real API server."""

import pytest

from pulumi_holdfast.controller.kube.client import ApiError
from pulumi_holdfast.ladder.json import Json, JsonValue
from pulumi_holdfast.rehearsal.kubernetes import KubeClient
from tests.support.builders.training_jobs import pod_template, rayjob
from tests.support.clusters.admission import refusal
from tests.support.json_objects import obj

pytestmark = pytest.mark.cluster


def service(spec: Json | None = None, namespace: str = "tabular") -> Json:
    """A Service on port 80."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "shown", "namespace": namespace},
        "spec": {"ports": [{"port": 80}], **(spec or {})},
    }


def exposed(**head: JsonValue) -> Json:
    """A RayJob in the namespace `tabular` whose head has these fields."""
    job = rayjob()
    cluster = obj(obj(job["spec"])["rayClusterSpec"])
    group: Json = {"rayStartParams": {}, "template": pod_template(), **head}
    return {
        **job,
        "metadata": {"name": "exposed", "namespace": "tabular", "labels": {"holdfast.dev/fallback": "false"}},
        "spec": {**obj(job["spec"]), "rayClusterSpec": {**cluster, "headGroupSpec": group}},
    }


SERVICES = (
    {"type": "LoadBalancer"},
    {"type": "NodePort"},
    {"externalIPs": ["10.96.0.99"]},
    {"type": "ClusterIP", "externalIPs": ["8.8.8.8"]},
    {"type": "ExternalName", "externalName": "victim-head-svc.vision.svc.cluster.local"},
)
HEADS = (
    {"serviceType": "LoadBalancer"},
    {"serviceType": "NodePort"},
    {"enableIngress": True},
    {"headService": {"spec": {"type": "LoadBalancer", "ports": [{"port": 8265}]}}},
    {"headService": {"spec": {"externalIPs": ["10.96.0.99"], "ports": [{"port": 443}]}}},
    {"headService": {"spec": {"type": "ExternalName", "externalName": "victim-head-svc.vision.svc"}}},
    {"serviceType": "ExternalName"},
)


@pytest.mark.parametrize("spec", SERVICES)
def test_a_service_that_is_reached_from_outside_is_refused(tenant: KubeClient, spec: Json) -> None:
    assert "'training-inside'" in refusal(tenant, service(spec))
    assert "training-" not in refusal(tenant, service(spec, "web"))


@pytest.mark.parametrize("spec", [{}, {"clusterIP": "None"}])
def test_a_service_inside_the_cluster_is_admitted(tenant: KubeClient, spec: Json) -> None:
    assert not refusal(tenant, service(spec))


@pytest.mark.parametrize("spec", SERVICES)
def test_an_update_exposes_no_service(tenant: KubeClient, spec: Json) -> None:
    tenant.apply(service(), field_manager="tests")
    with pytest.raises(ApiError, match="training-inside"):
        tenant.merge_patch("v1", "Service", "shown", {"spec": spec}, namespace="tabular")
    tenant.merge_patch("v1", "Service", "shown", {"metadata": {"labels": {"a": "b"}}}, namespace="tabular")


@pytest.mark.parametrize("head", HEADS)
def test_a_rayjob_whose_head_is_reached_from_outside_is_refused(tenant: KubeClient, head: Json) -> None:
    assert "'training-inside'" in refusal(tenant, exposed(**head))


def test_a_rayjob_with_a_service_inside_the_cluster_is_admitted(tenant: KubeClient) -> None:
    assert not refusal(tenant, exposed(serviceType="ClusterIP", enableIngress=False))


def test_an_ingress_is_refused(tenant: KubeClient) -> None:
    ingress: Json = {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": {"name": "open", "namespace": "tabular"},
        "spec": {"defaultBackend": {"service": {"name": "shown", "port": {"number": 80}}}},
    }
    assert "'training-inside'" in refusal(tenant, ingress)
    assert not refusal(tenant, {**ingress, "metadata": {"name": "open", "namespace": "web"}})
