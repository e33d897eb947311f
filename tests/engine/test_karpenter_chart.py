"""What Karpenter's real chart makes of our values."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from holdfast.components.karpenter.eks.component import (
    NAMESPACE,
    SERVICE_ACCOUNT,
    ControllerValues,
    karpenter_values,
)
from holdfast.infra import versions
from tests.support.inputs import mapping, objects, text, value
from tests.support.official_karpenter import official
from tests.support.rendered_charts import rendered

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast.scheduling.json import Json

pytestmark = pytest.mark.engine

RELEASE = official("release")
CONTROLLER = ControllerValues(
    cluster_name="holdfast-dev",
    repository=str(RELEASE["image"]),
    version=versions.KARPENTER,
    digest=str(RELEASE["digest"]),
    replicas=2,
    isolated=False,
)


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> list[Json]:
    return rendered(
        "karpenter", NAMESPACE, karpenter_values(CONTROLLER, "notices"), tmp_path_factory.mktemp("helm")
    )


@pytest.fixture(scope="module")
def deployment(release: list[Json]) -> Json:
    (found,) = [one for one in release if one["kind"] == "Deployment"]
    return found


@pytest.fixture(scope="module")
def pod(deployment: Json) -> Json:
    return mapping(deployment, "spec", "template", "spec")


@pytest.fixture(scope="module")
def environment(pod: Json) -> dict[str, object]:
    (container,) = objects(pod, "containers")
    return {text(each, "name"): each.get("value") for each in objects(container, "env")}


def test_chart_tag_and_digest_are_of_the_pinned_version(deployment: Json, pod: Json) -> None:
    labels = mapping(deployment, "metadata", "labels")
    assert labels["helm.sh/chart"] == f"karpenter-{versions.KARPENTER}", "the chart that is published"
    (container,) = objects(pod, "containers")
    wanted = f"public.ecr.aws/karpenter/controller:{versions.KARPENTER}@{RELEASE['digest']}"
    assert container["image"] == wanted, "the repository's chart carries an older release's tag and digest"


def test_two_controllers_go_to_two_zones_or_stay_pending(deployment: Json, pod: Json) -> None:
    assert value(deployment, "spec", "replicas") == 2, "one takes over from the other"
    (spread,) = objects(pod, "topologySpreadConstraints")
    assert (spread["topologyKey"], spread["whenUnsatisfiable"]) == (
        "topology.kubernetes.io/zone",
        "DoNotSchedule",
    )
    assert spread["maxSkew"] == 1, "never both in one zone while there is another"
    assert value(spread, "labelSelector", "matchLabels"), "counted among themselves"
    anti = objects(pod, "affinity", "podAntiAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
    assert anti[0]["topologyKey"] == "kubernetes.io/hostname", "nor on one node"


def test_controllers_run_on_system_nodes_and_on_none_they_made(pod: Json) -> None:
    assert mapping(pod, "nodeSelector")["holdfast.dev/system"] == "true", "the system nodes"
    assert {"key": "CriticalAddonsOnly", "operator": "Exists"} in objects(pod, "tolerations"), (
        "which are tainted"
    )
    assert pod["priorityClassName"] == "system-cluster-critical", "no job takes its place"


def test_the_controller_is_told_what_it_needs(environment: dict[str, object]) -> None:
    told = {
        name: environment.get(name) for name in ("CLUSTER_NAME", "INTERRUPTION_QUEUE", "EKS_CONTROL_PLANE")
    }
    assert told == {
        "CLUSTER_NAME": "holdfast-dev",
        "INTERRUPTION_QUEUE": "notices",
        "EKS_CONTROL_PLANE": "true",
    }, "it ends at its start, or hears of no interruption, without"
    assert "ISOLATED_VPC" not in environment, "it reaches IAM and the price list"


def test_an_isolated_controller_is_told_so(tmp_path: Path) -> None:

    isolated = karpenter_values(replace(CONTROLLER, isolated=True), "notices")
    (found,) = [
        one for one in rendered("karpenter", NAMESPACE, isolated, tmp_path) if one["kind"] == "Deployment"
    ]
    (container,) = objects(found, "spec", "template", "spec", "containers")
    assert {"name": "ISOLATED_VPC", "value": "true"} in objects(container, "env"), (
        "else it waits for IAM for ever"
    )


def test_its_service_account_is_the_one_its_identity_is_bound_to(release: list[Json], pod: Json) -> None:
    accounts = {text(one, "metadata", "name") for one in release if one["kind"] == "ServiceAccount"}
    assert accounts == {SERVICE_ACCOUNT}, "the association is by this name"
    assert pod["serviceAccountName"] == SERVICE_ACCOUNT, "and so are the pods"


def test_every_feature_gate_has_a_value(environment: dict[str, object]) -> None:
    gates = str(environment["FEATURE_GATES"]).split(",")
    assert all(gate.partition("=")[2] for gate in gates), (
        f"an empty gate ends the controller at its start: {gates}"
    )
