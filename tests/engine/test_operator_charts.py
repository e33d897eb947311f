"""The operators' real charts, rendered by the real helm with the values we give them."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, cast

import pytest
import yaml

from holdfast.components.operators.device_plugins import efa_values, nvidia_values
from holdfast.components.operators.job_operators import jobset_values, kuberay_values
from holdfast.components.pools.karpenter import node_labels
from holdfast.simulator.paths import Workspace
from holdfast.simulator.tools.locate import find_tool
from tests.support.builders.configurations import pool
from tests.support.inputs import mapping, objects, text, value
from tests.support.tool_workspace import PROJECT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.scheduling.json import Json

pytestmark = pytest.mark.engine

WORKSPACE = Workspace(project_root=PROJECT)
MIRROR = "registry.example.com/mirror"

VALUES: Mapping[str, Json] = {
    "aws-efa-k8s-device-plugin": efa_values(MIRROR, "eu-west-1"),
    "jobset": jobset_values("0.12.0", MIRROR, 2),
    "kuberay-operator": kuberay_values("1.6.2", MIRROR, 2),
    "nvidia-device-plugin": nvidia_values(MIRROR),
}


def rendered(chart: str, kind: str) -> list[Json]:
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
    assert expression["operator"] in {"In", "NotIn"}, f"{expression} asks for what this test does not know"
    return listed is (expression["operator"] == "In")


@pytest.mark.parametrize("chart", VALUES)
def test_every_image_of_a_chart_comes_from_the_mirror(chart: str) -> None:
    workloads = [*rendered(chart, "Deployment"), *rendered(chart, "DaemonSet")]
    assert workloads, f"{chart} runs something"
    for workload in workloads:
        for container in objects(pod_of(workload), "spec", "containers"):
            assert text(container, "image").startswith(f"{MIRROR}/"), (
                f"{container['image']} is out of reach without internet"
            )


@pytest.mark.parametrize("chart", ["jobset", "kuberay-operator"])
def test_two_replicas_keep_away_from_each_other(chart: str) -> None:
    (deployment,) = rendered(chart, "Deployment")
    assert value(deployment, "spec", "replicas") == 2, "as many as asked for"
    pod = pod_of(deployment)
    (preferred,) = objects(
        pod, "spec", "affinity", "podAntiAffinity", "preferredDuringSchedulingIgnoredDuringExecution"
    )
    avoided = mapping(preferred, "podAffinityTerm", "labelSelector", "matchLabels")
    assert avoided.items() <= mapping(pod, "metadata", "labels").items(), (
        "they must know each other by labels which the chart gives them"
    )


@pytest.mark.parametrize(
    ("chart", "efa"), [("nvidia-device-plugin", False), ("aws-efa-k8s-device-plugin", True)]
)
def test_a_device_plugin_runs_on_nodes_that_have_its_devices_and_on_no_others(chart: str, efa: bool) -> None:
    plugin = pod_of(next(found for found in rendered(chart, "DaemonSet") if _name(found) == chart))
    assert is_let_in(plugin, node_labels(pool(has_gpus=True), efa=efa)), (
        "the nodes of such a pool wait for it"
    )
    assert not is_let_in(plugin, node_labels(pool(), efa=False)), "elsewhere it finds nothing"
    assert {"operator": "Exists"} in objects(plugin, "spec", "tolerations"), "whatever taints such a node has"


def _name(workload: Json) -> str:
    return text(workload, "metadata", "name")
