"""What `FallbackController` registers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.components.fallback_controller.component import (
    ControllerImages,
    FallbackController,
    FallbackControllerArgs,
    controller_images,
    deployment_spec,
)
from tests.support.fakes.pulumi_engine import Recording, record
from tests.support.json_objects import obj, objects

if TYPE_CHECKING:
    from holdfast.scheduling.json import Json

IMAGES = ControllerImages(
    controller="registry.example.com/controller:1", placeholder="registry.example.com/pause:1"
)
UPSTREAM = "ghcr.io/holdfast-dev/fallback-controller:0.1.0"


def recorded(replicas: int = 2) -> Recording:
    args = FallbackControllerArgs(images=IMAGES, replicas=replicas)
    return record(lambda: FallbackController("fallback", args))


def pod() -> Json:
    return obj(obj(deployment_spec(IMAGES, 2)["template"])["spec"])


def container() -> Json:
    (found,) = objects(pod()["containers"])
    return found


def test_the_deployment_arrives_at_the_engine_as_it_was_rendered() -> None:
    assert recorded().one(":Deployment").inputs["spec"] == deployment_spec(IMAGES, 2), (
        "the SDK must pass the API's own field names through"
    )


@pytest.mark.parametrize("replicas", [1, 2])
def test_replicas_are_drained_one_after_the_other(replicas: int) -> None:
    controller = recorded(replicas)
    assert obj(controller.one(":Deployment").inputs["spec"])["replicas"] == replicas, (
        "as many as were asked for"
    )
    budgets = controller.of(":PodDisruptionBudget")
    assert len(budgets) == (replicas > 1), (
        "a single one could never be drained under a budget that means anything"
    )
    for budget in budgets:
        assert obj(budget.inputs["spec"])["maxUnavailable"] == 1, "one leads while the other moves"


def test_its_pods_are_held_to_the_strictest_standard_and_keep_it() -> None:
    for namespace in recorded().of("core/v1:Namespace"):
        labels = obj(obj(namespace.inputs["metadata"])["labels"])
        assert labels["pod-security.kubernetes.io/enforce"] == "restricted", (
            f"{namespace.name} is nobody's playground"
        )
    assert obj(pod()["securityContext"])["runAsNonRoot"] is True, "it needs no right on its node"
    assert container()["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
    }, "it writes no file"


def test_it_runs_where_no_interruption_takes_it() -> None:
    assert pod()["nodeSelector"] == {"holdfast.dev/system": "true"}, "with the other operators"
    assert pod()["tolerations"] == [{"key": "CriticalAddonsOnly", "operator": "Exists"}], (
        "whose nodes are tainted"
    )
    apart = obj(obj(pod()["affinity"])["podAntiAffinity"])
    assert "preferredDuringSchedulingIgnoredDuringExecution" in apart, "one zone may fail"


def test_its_probes_and_metrics_are_where_it_serves_them() -> None:
    (port,) = objects(container()["ports"])
    assert f"--port={port['containerPort']}" in [*objects(container()["args"])], "it is told where to listen"
    for probe, path in (("livenessProbe", "/healthz"), ("readinessProbe", "/readyz")):
        assert obj(obj(container()[probe])["httpGet"]) == {"path": path, "port": port["name"]}, (
            f"{probe} is answered"
        )
    annotations = obj(obj(obj(deployment_spec(IMAGES, 2)["template"])["metadata"])["annotations"])
    assert annotations == {
        "prometheus.io/scrape": "true",
        "prometheus.io/port": str(port["containerPort"]),
        "prometheus.io/path": "/metrics",
    }, "Prometheus finds it by these"
    service = obj(recorded().one(":Service").inputs["spec"])
    assert service["clusterIP"] == "None", "each replica has numbers of its own"


def test_placeholders_hold_their_place_without_taking_anybodys() -> None:
    priority = recorded().one(":PriorityClass").inputs
    assert priority["value"] == -10, "below every job; lower, no autoscaler would buy a node for it"
    assert priority["preemptionPolicy"] == "Never", "it waits for room"
    assert "--placeholder-image=registry.example.com/pause:1" in [*objects(container()["args"])], (
        "from a registry that the cluster reaches"
    )


def test_the_pods_come_when_all_they_need_is_there() -> None:
    controller = recorded()
    earlier = controller.everything_before(controller.one(":Deployment"))
    needed = {"fallback-holdfast-system", "fallback-holdfast-holding", "fallback-priority", "fallback-access"}
    assert needed <= earlier, "and go before any of it"


@pytest.mark.parametrize(
    ("mirror", "own", "controller", "placeholder"),
    [
        (None, None, UPSTREAM, "registry.k8s.io/pause:3.10.1"),
        (
            "mirror.example.com/m",
            None,
            "mirror.example.com/m/holdfast-dev/fallback-controller:0.1.0",
            "mirror.example.com/m/pause:3.10.1",
        ),
        (
            "mirror.example.com/m",
            "own.example.com/c:2",
            "own.example.com/c:2",
            "mirror.example.com/m/pause:3.10.1",
        ),
    ],
)
def test_images_come_from_a_mirror_unless_one_is_named(
    mirror: str | None, own: str | None, controller: str, placeholder: str
) -> None:
    found = controller_images("0.1.0", "3.10.1", mirror, own=own)
    assert (found.controller, found.placeholder) == (controller, placeholder), (
        "what a cluster can reach is pulled"
    )
