"""Writes the fallback controller as a Helm chart: `holdfast chart FOLDER`. Its objects are those of the components.

Helm stores a release in a Secret of at most 1 MiB, and the controller's program is larger. So a second file for kubectl has
the program, its namespaces and the definition of FallbackPolicy, which must also outlive the release.
"""

from __future__ import annotations

import asyncio
import re
import shutil
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

import pulumi
import yaml
from pulumi.runtime import mocks

from pulumi_holdfast.config import versions
from pulumi_holdfast.config.versions import OLDEST_VERSION
from pulumi_holdfast.kubernetes.admission.job_admission import JobAdmission, capacity_selections
from pulumi_holdfast.kubernetes.admission.rules import aks_rules, gke_rules, karpenter_rules
from pulumi_holdfast.kubernetes.fallback_controller.access import JOBS_ROLE, SUBJECT
from pulumi_holdfast.kubernetes.fallback_controller.component import (
    FallbackController,
    FallbackControllerArgs,
)
from pulumi_holdfast.kubernetes.fallback_controller.program import controller_archives, controller_images
from pulumi_holdfast.kubernetes.fallback_policy import fallback_policy_definition
from pulumi_holdfast.kubernetes.kubernetes_object import role_ref
from pulumi_holdfast.ladder.errors import ConfigError, Problem
from pulumi_holdfast.ladder.json import mapping, sequence
from pulumi_holdfast.ladder.labels import CONTROLLER, CONTROLLER_NAMESPACE

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable

    from pulumi_holdfast.kubernetes.admission.rules import NodeSelection
    from pulumi_holdfast.kubernetes.fallback_controller.program import ControllerImages
    from pulumi_holdfast.ladder.json import Json, JsonValue

#: The file beside the chart, for `kubectl apply --server-side`.
PREREQUISITES: Final = "prerequisites.yaml"
_PREREQUISITES: Final = ("Namespace", "CustomResourceDefinition", "ConfigMap")
_WEBHOOK: Final = "if .Values.webhookSecret"
_METRICS: Final = "if .Values.karpenterMetrics"
_VALUES: Final = """\
# The image that runs the program, and the image of placeholder pods that reserve nodes.
image: {image}
placeholderImage: {placeholder}
# More than one: the others stand by for the leader.
replicas: 2
# The training namespaces, which have the label holdfast.dev/training=true and a FallbackPolicy named ladder.
namespaces: []
# A Secret in the controller's namespace; its key url is a webhook that people are notified through.
webhookSecret: ""
# The address of Karpenter's metrics, which have the prices of pools: http://karpenter.karpenter.svc:8080/metrics
karpenterMetrics: ""
# The namespaces whose pods reach the metrics, at least one.
scrapers: [monitoring]
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument(
        "folder", type=Path, metavar="FOLDER", help="the folder to write; an earlier chart is replaced"
    )
    parser.add_argument(
        "--registry",
        metavar="HOST",
        help="the registry that mirrors the images, by default the projects' own",
    )


def run(parsed: argparse.Namespace) -> int:
    """Write the chart and the file beside it, and print how they are installed."""
    write_chart(parsed.folder, registry=parsed.registry)
    print(f"kubectl apply --server-side -f {parsed.folder / PREREQUISITES}")
    print(f"helm install {CONTROLLER} {parsed.folder / CONTROLLER} --namespace {CONTROLLER_NAMESPACE}")
    return 0


def write_chart(folder: Path, *, registry: str | None = None) -> None:
    """Write the chart and the file beside it. Raises ConfigError for a folder that holds something else."""
    chart = folder / CONTROLLER
    if folder.exists() and any(folder.iterdir()) and not (chart / "Chart.yaml").is_file():
        raise ConfigError(
            [
                Problem(
                    field="FOLDER",
                    value=f"{folder}, which holds other files",
                    allowed="a folder that is empty, does not exist, or has an earlier chart",
                    fix="Name another folder.",
                )
            ]
        )
    images = chart_images(registry)
    shutil.rmtree(chart, ignore_errors=True)
    (chart / "templates").mkdir(parents=True)
    about = {
        "apiVersion": "v2",
        "name": CONTROLLER,
        "description": "Moves training jobs down a ladder of pools when spot capacity is lost, and up again.",
        "type": "application",
        "version": version("pulumi-holdfast"),
        "appVersion": version("pulumi-holdfast"),
        "kubeVersion": f">={'.'.join(map(str, OLDEST_VERSION))}.0-0",
    }
    (chart / "Chart.yaml").write_text(yaml.safe_dump(about, sort_keys=False), "utf-8")
    values = _VALUES.format(image=images.controller, placeholder=images.placeholder)
    (chart / "values.yaml").write_text(values, "utf-8")
    prerequisites: list[Json] = []
    for each in controller_objects(_with_values(images)):
        if each["kind"] in _PREREQUISITES:
            prerequisites.append(each)
            continue
        (chart / "templates" / _file_name(each)).write_text(_template(each), "utf-8")
    (chart / "templates" / f"rolebinding-{JOBS_ROLE}-in-namespaces.yaml").write_text(_bindings(), "utf-8")
    (folder / PREREQUISITES).write_text(yaml.safe_dump_all(prerequisites, sort_keys=False), "utf-8")


def chart_images(registry: str | None = None) -> ControllerImages:
    """The images of the chart's default values."""
    return controller_images(
        versions.PYTHON_IMAGE, versions.PAUSE, registry, own=None, archives=controller_archives()
    )


def controller_objects(args: FallbackControllerArgs) -> list[Json]:
    """The objects of the controller with the definition of its ladders and the admission of jobs, as components make them."""

    def build() -> None:
        fallback_policy_definition("fallback-policy")
        JobAdmission("job-admission", capacity=all_capacity_selections())
        FallbackController("fallback-controller", args)

    return _registered(build)


def all_capacity_selections() -> tuple[NodeSelection, ...]:
    """The labels with which pods select spot on EKS, GKE and AKS: no cluster has nodes with those of another cloud."""
    rules = (*karpenter_rules(()), *gke_rules(()), *aks_rules(()))
    return capacity_selections(rules)


def _with_values(images: ControllerImages) -> FallbackControllerArgs:
    """Arguments whose values are expressions of the template."""
    return FallbackControllerArgs(
        images=type(images)(
            controller="@@.Values.image@@",
            placeholder="@@.Values.placeholderImage@@",
            archives=images.archives,
        ),
        replicas=2,
        webhook_secret="@@.Values.webhookSecret@@",  # noqa: S106 - the name of a Secret
        karpenter_metrics="@@.Values.karpenterMetrics@@",
        scrapers=("@@range .Values.scrapers@@", "@@.@@", "@@end@@"),
    )


class _Recorder(mocks.Mocks):
    """Keeps the Kubernetes objects that a program registers."""

    def __init__(self) -> None:
        self.objects: list[Json] = []

    def new_resource(self, args: mocks.MockResourceArgs) -> tuple[str | None, dict[str, object]]:
        inputs = cast("dict[str, object]", args.inputs)  # pyright: ignore[reportUnknownMemberType] - untyped in the SDK
        if "apiVersion" in inputs:
            self.objects.append(cast("Json", _whole(cast("JsonValue", inputs))))
        return f"{args.name}-id", inputs

    def call(self, args: mocks.MockCallArgs) -> tuple[dict[str, object], list[tuple[str, str]]]:
        raise AssertionError(f"{args.token} is called, where components need no cloud")


def _registered(build: Callable[[], None]) -> list[Json]:
    recorder = _Recorder()
    asyncio.set_event_loop(asyncio.new_event_loop())
    pulumi.runtime.set_mocks(recorder, project="chart", stack="chart", preview=False)
    cast("Callable[[], None]", pulumi.runtime.test(build))()  # pyright: ignore[reportUnknownMemberType] - untyped in the SDK
    return sorted(recorder.objects, key=_order)


def _order(each: Json) -> tuple[int, str, str]:
    """By kind and then by name, because resources are registered concurrently, in no fixed order."""
    kind, name = str(each["kind"]), str(mapping(each["metadata"])["name"])
    rank = _PREREQUISITES.index(kind) if kind in _PREREQUISITES else len(_PREREQUISITES)
    return rank, kind, name


def _whole(value: JsonValue) -> JsonValue:
    """Numbers as they are written in manifests, and fields in one order: the engine's protocol has neither."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_whole(each) for each in value]
    if isinstance(value, dict):
        return {name: _whole(value[name]) for name in sorted(value)}
    return value


def _file_name(each: Json) -> str:
    metadata = mapping(each["metadata"])
    parts = (each["kind"], metadata.get("namespace"), metadata["name"])
    return "-".join(str(part) for part in parts if part).lower() + ".yaml"


# --- objects to templates ----------------------------------------------------------------------


def _template(each: Json) -> str:
    if each["kind"] == "Deployment":
        return _as_template(_conditional_deployment(each))
    if each["kind"] == "PodDisruptionBudget":
        return _guarded("if gt (int .Values.replicas) 1", _as_template(each))
    return _as_template(each)


def _bindings() -> str:
    binding: Json = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": JOBS_ROLE, "namespace": "@@.@@"},
        "roleRef": role_ref("ClusterRole", JOBS_ROLE),
        "subjects": [SUBJECT],
    }
    return _guarded("range .Values.namespaces", f"---\n{_as_template(binding)}")


def _guarded(condition: str, text: str) -> str:
    return f"{{{{- {condition} }}}}\n{text}{{{{- end }}}}\n"


def _conditional_deployment(deployment: Json) -> Json:
    spec = mapping(deployment["spec"])
    template = mapping(spec["template"])
    pod = mapping(template["spec"])
    (container,) = map(mapping, sequence(pod["containers"]))
    conditional: Json = {
        **container,
        "args": _marked(sequence(container["args"])),
        "volumeMounts": _marked(sequence(container["volumeMounts"])),
    }
    changed: Json = {**pod, "containers": [conditional], "volumes": _marked(sequence(pod["volumes"]))}
    replicas = "@@int .Values.replicas@@"
    return {**deployment, "spec": {**spec, "replicas": replicas, "template": {**template, "spec": changed}}}


def _marked(items: Iterable[JsonValue]) -> list[JsonValue]:
    """Put the items that exist only with a value between marks, which become lines of the template."""
    found: list[JsonValue] = []
    for item in items:
        condition = _condition(item)
        found += [item] if condition is None else [f"@@{condition}@@", item, "@@end@@"]
    return found


def _condition(item: JsonValue) -> str | None:
    name = item if isinstance(item, str) else mapping(item).get("name")
    if name == "webhook" or str(name).startswith("--webhook-url-file="):
        return _WEBHOOK
    return _METRICS if str(name).startswith("--karpenter-metrics=") else None


def _as_template(each: Json) -> str:
    text = yaml.safe_dump(each, sort_keys=False, width=10_000_000)
    # What CEL writes with two braces is not an expression of the template.
    text = text.replace("{{", '{{ "{{" }}')
    text = re.sub(r"^ *- '@@((?:if|range) [^@]+|end)@@'$", r"{{- \1 }}", text, flags=re.MULTILINE)
    text = re.sub(r"'@@(int [^@]+)@@'", r"{{ \1 }}", text)
    return re.sub(r"@@([^@]+)@@", r"{{ \1 }}", text)
