"""Charts installed by the real engine: AWS's Karpenter and the operators, with the values that the components set."""

import json
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
import yaml

from pulumi_holdfast.aws.karpenter.component import (
    NAMESPACE,
    SERVICE_ACCOUNT,
    ControllerValues,
    karpenter_values,
)
from pulumi_holdfast.config import versions
from pulumi_holdfast.kubernetes.karpenter_pool import node_labels
from pulumi_holdfast.kubernetes.operators.device_plugins import efa_values, nvidia_values
from pulumi_holdfast.kubernetes.operators.job_operators import jobset_values, kuberay_values
from pulumi_holdfast.kubernetes.operators.operator_access import JOBSET_ROLE, JOBSET_RULES, JOBSET_WEBHOOKS
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.rehearsal.paths import Workspace
from pulumi_holdfast.rehearsal.tools.locate import find_tool
from tests.support.builders.configurations import pool
from tests.support.builders.official_karpenter import official
from tests.support.builders.rendered_charts import rendered
from tests.support.fakes.go_toolchain import PROJECT
from tests.support.inputs import mapping, objects, text, value

pytestmark = pytest.mark.engine


RELEASE = official("release")
CONTROLLER = ControllerValues(
    cluster_name="holdfast-dev",
    region="us-west-2",
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
    assert labels["helm.sh/chart"] == f"karpenter-{versions.KARPENTER}"
    (container,) = objects(pod, "containers")
    wanted = f"public.ecr.aws/karpenter/controller:{versions.KARPENTER}@{RELEASE['digest']}"
    assert container["image"] == wanted


def test_two_controllers_run_in_two_zones_or_stay_pending(deployment: Json, pod: Json) -> None:
    assert value(deployment, "spec", "replicas") == 2
    (spread,) = objects(pod, "topologySpreadConstraints")
    assert (spread["topologyKey"], spread["whenUnsatisfiable"]) == (
        "topology.kubernetes.io/zone",
        "DoNotSchedule",
    )
    assert spread["maxSkew"] == 1
    assert value(spread, "labelSelector", "matchLabels")
    anti = objects(pod, "affinity", "podAntiAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
    assert anti[0]["topologyKey"] == "kubernetes.io/hostname"


def test_controllers_run_on_system_nodes_only(pod: Json) -> None:
    assert mapping(pod, "nodeSelector")["holdfast.dev/system"] == "true"
    assert {"key": "CriticalAddonsOnly", "operator": "Exists"} in objects(pod, "tolerations")
    assert pod["priorityClassName"] == "system-cluster-critical"


def test_the_controller_has_its_settings(environment: dict[str, object]) -> None:
    told = {
        name: environment.get(name) for name in ("CLUSTER_NAME", "INTERRUPTION_QUEUE", "EKS_CONTROL_PLANE")
    }
    assert told == {
        "CLUSTER_NAME": "holdfast-dev",
        "INTERRUPTION_QUEUE": "notices",
        "EKS_CONTROL_PLANE": "true",
    }
    assert "ISOLATED_VPC" not in environment


def test_an_isolated_controller_is_configured_so(tmp_path: Path) -> None:

    isolated = karpenter_values(replace(CONTROLLER, isolated=True), "notices")
    (found,) = [
        one for one in rendered("karpenter", NAMESPACE, isolated, tmp_path) if one["kind"] == "Deployment"
    ]
    (container,) = objects(found, "spec", "template", "spec", "containers")
    assert {"name": "ISOLATED_VPC", "value": "true"} in objects(container, "env")


def test_its_service_account_is_the_one_its_identity_is_bound_to(release: list[Json], pod: Json) -> None:
    accounts = {text(one, "metadata", "name") for one in release if one["kind"] == "ServiceAccount"}
    assert accounts == {SERVICE_ACCOUNT}
    assert pod["serviceAccountName"] == SERVICE_ACCOUNT


def test_every_feature_gate_has_a_value(environment: dict[str, object]) -> None:
    gates = str(environment["FEATURE_GATES"]).split(",")
    assert all(gate.partition("=")[2] for gate in gates)


WORKSPACE = Workspace(project_root=PROJECT)
MIRROR = "registry.example.com/mirror"

VALUES: Mapping[str, Json] = {
    "aws-efa-k8s-device-plugin": efa_values(MIRROR, "eu-west-1"),
    "jobset": jobset_values("0.12.0", MIRROR, 2),
    "kuberay-operator": kuberay_values("1.6.2", MIRROR, 2),
    "nvidia-device-plugin": nvidia_values(MIRROR),
}


def chart_objects(chart: str, kind: str) -> list[Json]:
    """A chart's objects of one kind, in a release that has its name."""
    release = ("template", chart, WORKSPACE.charts_dir / chart, "--namespace", "operators")
    command = (find_tool("helm", WORKSPACE), *release, "--values", "-")
    done = subprocess.run(
        command, input=json.dumps(VALUES[chart]), capture_output=True, text=True, check=True
    )
    documents = [cast("Json", found) for found in yaml.load_all(done.stdout, yaml.CSafeLoader) if found]
    return [found for found in documents if found["kind"] == kind]


def pod_of(workload: Json) -> Json:
    return mapping(workload, "spec", "template")


def is_let_in(pod: Json, labels: Mapping[str, str]) -> bool:
    """Whether a node with these labels satisfies a pod's selector and its required affinity."""
    selector = cast("Mapping[str, str]", value(pod, "spec", "nodeSelector") or {})
    terms = cast(
        "list[Json]",
        value(
            pod,
            *("spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"),
            "nodeSelectorTerms",
        )
        or [{"matchExpressions": []}],
    )
    return selector.items() <= labels.items() and any(
        all(_holds(expression, labels) for expression in objects(term, "matchExpressions")) for term in terms
    )


def _holds(expression: Json, labels: Mapping[str, str]) -> bool:
    listed = labels.get(str(expression["key"])) in cast("list[str]", expression["values"])
    assert expression["operator"] in {"In", "NotIn"}
    return listed is (expression["operator"] == "In")


@pytest.mark.parametrize("chart", VALUES)
def test_every_image_of_a_chart_comes_from_the_mirror(chart: str) -> None:
    workloads = [*chart_objects(chart, "Deployment"), *chart_objects(chart, "DaemonSet")]
    assert workloads, f"{chart} runs something"
    for workload in workloads:
        for container in objects(pod_of(workload), "spec", "containers"):
            assert text(container, "image").startswith(f"{MIRROR}/"), (
                f"{container['image']} is out of reach without internet"
            )


@pytest.mark.parametrize("chart", ["jobset", "kuberay-operator"])
def test_two_replicas_have_anti_affinity(chart: str) -> None:
    (deployment,) = chart_objects(chart, "Deployment")
    assert value(deployment, "spec", "replicas") == 2
    pod = pod_of(deployment)
    (preferred,) = objects(
        pod, "spec", "affinity", "podAntiAffinity", "preferredDuringSchedulingIgnoredDuringExecution"
    )
    avoided = mapping(preferred, "podAffinityTerm", "labelSelector", "matchLabels")
    assert avoided.items() <= mapping(pod, "metadata", "labels").items()


def _rights(rules: Iterable[Json]) -> set[tuple[str, str, str]]:
    """Each verb that rules allow, with its group and resource."""
    return {
        (group, resource, verb)
        for each in rules
        for group in cast("list[str]", each["apiGroups"])
        for resource in cast("list[str]", each["resources"])
        for verb in cast("list[str]", each["verbs"])
    }


def test_jobset_gets_no_right_that_its_chart_does_not_give() -> None:
    """A version with another role fails here: read in its source what the manager uses now."""
    roles = {_name(role): role for role in chart_objects("jobset", "ClusterRole")}
    given = _rights(objects(roles[JOBSET_ROLE], "rules"))
    assert _rights(JOBSET_RULES) <= given
    assert given - _rights(JOBSET_RULES) == {
        ("", "events", "watch"),
        ("events.k8s.io", "events", "watch"),
        ("", "pods", "patch"),
        ("", "pods", "update"),
        ("", "services", "delete"),
        ("", "services", "patch"),
        ("", "services", "update"),
        ("jobset.x-k8s.io", "jobsets", "create"),
    }
    names = {
        _name(webhooks)
        for kind in ("Mutating", "Validating")
        for webhooks in chart_objects("jobset", f"{kind}WebhookConfiguration")
    }
    assert names == set(JOBSET_WEBHOOKS)


@pytest.mark.parametrize(
    ("chart", "efa"), [("nvidia-device-plugin", False), ("aws-efa-k8s-device-plugin", True)]
)
def test_a_device_plugin_runs_only_on_nodes_with_its_devices(chart: str, efa: bool) -> None:
    plugin = pod_of(next(found for found in chart_objects(chart, "DaemonSet") if _name(found) == chart))
    assert is_let_in(plugin, node_labels(pool(has_gpus=True), efa=efa))
    assert not is_let_in(plugin, node_labels(pool(), efa=False))
    assert {"operator": "Exists"} in objects(plugin, "spec", "tolerations")


def _name(workload: Json) -> str:
    return text(workload, "metadata", "name")
