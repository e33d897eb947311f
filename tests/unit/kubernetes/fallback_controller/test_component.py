"""What `FallbackController` registers."""

from base64 import b64encode
from pathlib import Path
from typing import cast

import pytest

from pulumi_holdfast.controller.kube.access import from_kubeconfig
from pulumi_holdfast.controller.kube.objects import annotations_of, labels_of, name_of
from pulumi_holdfast.controller.loop.settings import parse_settings
from pulumi_holdfast.kubernetes.fallback_controller.clusters import OtherCluster
from pulumi_holdfast.kubernetes.fallback_controller.component import (
    FallbackController,
    FallbackControllerArgs,
    deployment_spec,
)
from pulumi_holdfast.kubernetes.fallback_controller.program import ControllerImages
from pulumi_holdfast.ladder.json import Json
from tests.support.fakes.pulumi_engine import Recording, record
from tests.support.json_objects import obj, objects

IMAGES = ControllerImages(
    controller="registry.example.com/controller:1", placeholder="registry.example.com/pause:1"
)

#: Two lines of what a kubeconfig has.
AUTHORITY = b64encode(b"-----BEGIN CERTIFICATE-----\n").decode()


def recorded(replicas: int = 2) -> Recording:
    args = FallbackControllerArgs(images=IMAGES, replicas=replicas)
    return record(lambda: FallbackController("fallback", args))


def pod() -> Json:
    return obj(obj(deployment_spec(IMAGES, 2)["template"])["spec"])


def container() -> Json:
    (found,) = objects(pod()["containers"])
    return found


def test_the_deployment_is_registered_as_rendered_after_everything_it_needs() -> None:
    controller = recorded()
    assert controller.one(":Deployment").inputs["spec"] == deployment_spec(IMAGES, 2)
    earlier = controller.everything_before(controller.one(":Deployment"))
    needed = {
        "fallback-holdfast-system",
        "fallback-holdfast-reservations",
        "fallback-priority",
        "fallback-access",
    }
    assert needed <= earlier
    priority = controller.one(":PriorityClass").inputs
    assert priority["value"] == -10, "below every job; with a lower one no autoscaler would add a node for it"
    assert priority["preemptionPolicy"] == "Never"
    assert "--placeholder-image=registry.example.com/pause:1" in [*objects(container()["args"])]


def test_no_job_preempts_the_controller_also_where_the_class_needs_a_quota() -> None:
    assert pod()["priorityClassName"] == "system-cluster-critical"
    controller = recorded()
    earlier = controller.everything_before(controller.one(":Deployment"))
    assert controller.one(":ResourceQuota", "fallback-own-priority").name in earlier


@pytest.mark.parametrize("replicas", [1, 2])
def test_several_replicas_have_a_disruption_budget(replicas: int) -> None:
    controller = recorded(replicas)
    assert obj(controller.one(":Deployment").inputs["spec"])["replicas"] == replicas
    budgets = controller.of(":PodDisruptionBudget")
    assert len(budgets) == (replicas > 1)
    for budget in budgets:
        assert obj(budget.inputs["spec"])["maxUnavailable"] == 1


def test_the_controllers_pods_meet_the_restricted_standard_on_system_nodes_in_different_zones() -> None:
    for namespace in recorded().of("core/v1:Namespace"):
        labels = labels_of(namespace.inputs)
        assert labels["pod-security.kubernetes.io/enforce"] == "restricted", f"{namespace.name} enforces it"
    assert obj(pod()["securityContext"])["runAsNonRoot"] is True
    assert container()["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
    }
    assert pod()["nodeSelector"] == {"holdfast.dev/system": "true"}
    assert pod()["tolerations"] == [{"key": "CriticalAddonsOnly", "operator": "Exists"}]
    apart = obj(obj(pod()["affinity"])["podAntiAffinity"])
    assert "preferredDuringSchedulingIgnoredDuringExecution" in apart


def test_probes_and_metrics_use_the_port_that_is_served() -> None:
    (port,) = objects(container()["ports"])
    assert f"--port={port['containerPort']}" in [*objects(container()["args"])]
    for probe, path in (("livenessProbe", "/healthz"), ("readinessProbe", "/readyz")):
        assert obj(obj(container()[probe])["httpGet"]) == {"path": path, "port": port["name"]}, f"{probe}"
    annotations = annotations_of(obj(deployment_spec(IMAGES, 2)["template"]))
    assert annotations == {
        "prometheus.io/scrape": "true",
        "prometheus.io/port": str(port["containerPort"]),
        "prometheus.io/path": "/metrics",
    }
    service = obj(recorded().one(":Service").inputs["spec"])
    assert service["clusterIP"] == "None"


def test_the_controller_reads_prices_where_karpenter_shows_them() -> None:
    address = "http://karpenter.karpenter.svc:8080/metrics"
    spec = obj(obj(deployment_spec(IMAGES, 2, karpenter_metrics=address)["template"])["spec"])
    (found,) = objects(spec["containers"])
    arguments = [str(each) for each in cast("list[str]", found["args"])]
    assert f"--karpenter-metrics={address}" in arguments
    assert parse_settings(arguments, {}).karpenter_metrics == address
    assert not [each for each in objects(container()["args"]) if "karpenter" in str(each)]


def test_each_other_cluster_has_a_kubeconfig_beside_the_token_that_is_for_it(tmp_path: Path) -> None:
    clusters = (
        OtherCluster(name="us-east-2", server="https://there.example.com", certificate_authority=AUTHORITY),
        OtherCluster(name="on-prem", server="https://on-prem.example.com:6443"),
    )
    args = FallbackControllerArgs(images=IMAGES, replicas=2, clusters=clusters)
    recording = record(lambda: FallbackController("fallback", args))
    deployment = recording.one(":Deployment")
    spec = obj(obj(obj(deployment.inputs["spec"])["template"])["spec"])
    (main,) = objects(spec["containers"])
    config_map = recording.one(":ConfigMap", "fallback-clusters")
    mounted = {str(each["name"]): str(each["mountPath"]) for each in objects(main["volumeMounts"])}
    shown, projected = objects(spec["volumes"])
    tokens = objects(obj(projected["projected"])["sources"])
    assert obj(shown["configMap"])["name"] == obj(config_map.inputs["metadata"])["name"]
    assert config_map.name in recording.everything_before(deployment), "a pod without it would not start"

    settings = parse_settings([str(each) for each in objects(main["args"])], {})
    assert settings.clusters.keys() == {"us-east-2", "on-prem"}
    for cluster, token in zip(clusters, tokens, strict=True):
        folder, key = settings.clusters[cluster.name].parent, settings.clusters[cluster.name].name
        assert str(folder) == mounted[str(shown["name"])]
        (tmp_path / key).write_text(str(obj(config_map.inputs["data"])[key]))
        access = from_kubeconfig(tmp_path / key)
        requested = obj(token["serviceAccountToken"])
        assert access.server == cluster.server == requested["audience"]
        assert str(access.token_file) == f"{mounted[str(projected['name'])]}/{requested['path']}"
        assert (access.token, access.certificate) == (None, None)
        assert (access.authority is not None) == (cluster.name == "us-east-2")
    policies = {name_of(each.inputs) for each in recording.of(":ValidatingAdmissionPolicy")}
    assert policies == {"fallback-controller-writes", "fallback-transfers"}
    assert "jobsets/status" in str(
        recording.one(":ValidatingAdmissionPolicy", "fallback-writes-policy").inputs
    )
