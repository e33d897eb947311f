"""The upstream charts in .tools/charts, copied from the pinned modules, and the CRD charts generated from them.

Helm installs the CRDs in the crds/ folder of a chart once and never upgrades them. The CRD charts contain the same CRDs
as templates, so an upgrade of the release upgrades them, and mark them to be kept: the deletion of a CRD deletes every
JobSet and RayJob of the cluster.
"""

import json
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import cast

import yaml

from pulumi_holdfast.ladder.json import Json, JsonValue
from pulumi_holdfast.rehearsal.errors import RehearsalError
from pulumi_holdfast.rehearsal.paths import Workspace
from pulumi_holdfast.rehearsal.tools.catalog import Version, pinned_version


@dataclass(frozen=True, kw_only=True)
class ChartSource:
    """One chart: `folder` inside `go_module`, which tools/`module`/go.mod pins.

    `more_crds` are folders of the same module with CRDs that the chart needs but does not contain. `numbered_late`:
    upstream writes the version into the chart only when it publishes the chart.
    """

    name: str
    module: str
    go_module: str
    folder: PurePosixPath
    more_crds: tuple[PurePosixPath, ...] = ()
    numbered_late: bool = False

    def pin(self, project_root: Path) -> Version:
        """The version of the module and its operator. Raises RehearsalError if the module has no releases."""
        return pinned_version(project_root, self.module, self.go_module)


CHARTS = (
    ChartSource(
        name="jobset",
        module="kubernetes",
        go_module="sigs.k8s.io/jobset",
        folder=PurePosixPath("charts/jobset"),
    ),
    ChartSource(
        name="kuberay-operator",
        module="kuberay",
        go_module="github.com/ray-project/kuberay",
        folder=PurePosixPath("helm-chart/kuberay-operator"),
    ),
    # Upstream names both Karpenter charts `karpenter`. The chart of the kwok provider is not published, and has the name
    # of its provider here.
    ChartSource(
        name="karpenter-kwok",
        module="karpenter",
        go_module="sigs.k8s.io/karpenter",
        folder=PurePosixPath("kwok/charts"),
        more_crds=(PurePosixPath("kwok/apis/crds"),),
    ),
    ChartSource(
        name="karpenter",
        module="karpenter",
        go_module="github.com/aws/karpenter-provider-aws",
        folder=PurePosixPath("charts/karpenter"),
        # In the repository, crds/ of the chart is a link to this folder; Go modules contain no links.
        more_crds=(PurePosixPath("pkg/apis/crds"),),
        numbered_late=True,
    ),
    # Only for its CRDs, which AKS node auto-provisioning installs; the chart itself is never installed.
    ChartSource(
        name="karpenter-azure",
        module="karpenter",
        go_module="github.com/Azure/karpenter-provider-azure",
        folder=PurePosixPath("charts/karpenter"),
        more_crds=(PurePosixPath("pkg/apis/crds"),),
    ),
    ChartSource(
        name="nvidia-device-plugin",
        module="charts",
        go_module="github.com/NVIDIA/k8s-device-plugin",
        folder=PurePosixPath("deployments/helm/nvidia-device-plugin"),
    ),
    ChartSource(
        name="aws-efa-k8s-device-plugin",
        module="charts",
        go_module="github.com/aws/eks-charts",
        folder=PurePosixPath("stable/aws-efa-k8s-device-plugin"),
    ),
)


def gather(source: ChartSource, module_dir: Path, made: Path, project_root: Path) -> None:
    """Copy the chart and more CRDs from the folder of the module into `made`, and replace its content.

    Raises RehearsalError if the module does not contain the chart.
    """
    chart = module_dir / source.folder
    if not (chart / "Chart.yaml").is_file():
        raise RehearsalError(
            f"{source.go_module} has no chart in {source.folder}; fix its entry in components/pulumi_holdfast/rehearsal/tools/charts.py"
        )
    shutil.rmtree(made, ignore_errors=True)
    _copy_folder(chart, made)
    for folder in source.more_crds:
        _copy_folder(module_dir / folder, made / "crds")
    if source.numbered_late:
        write_release(made, source.pin(project_root))


def _copy_folder(source: Path, target: Path) -> None:
    # Without file modes: the module cache is read-only, and a read-only copy could not be replaced.
    target.mkdir(parents=True, exist_ok=True)
    for path in sorted(source.iterdir()):
        if path.is_dir():
            _copy_folder(path, target / path.name)
        else:
            shutil.copyfile(path, target / path.name)


def write_release(chart: Path, version: Version) -> None:
    """Write the version of the chart, its operator and its image, like publishing does.

    The digest stays empty, because only the registry knows it, and a digest overrides the tag. Raises RehearsalError if
    a line is missing or not unique.
    """
    _write(chart / "Chart.yaml", {"version": str(version), "appVersion": str(version)})
    _write(chart / "values.yaml", {"    tag": str(version), "    digest": '""'})


def _write(path: Path, entries: dict[str, str]) -> None:
    text = path.read_text(encoding="utf-8")
    for key, value in entries.items():
        text, count = re.subn(rf"^{key}: .*$", f"{key}: {value}", text, flags=re.MULTILINE)
        if count != 1:
            raise RehearsalError(
                f"{path} has {count} lines with `{key.strip()}:` instead of one, because upstream changed its chart; "
                "fix components/pulumi_holdfast/rehearsal/tools/charts.py"
            )
    path.write_text(text, encoding="utf-8")


# The text is passed on as it is: every preview renders the charts, and a template that parses and prints a definition takes
# most of that time.
_TEMPLATE = """\
{{- range $path, $_ := .Files.Glob "files/*.yaml" }}
---
{{ $.Files.Get $path }}
{{- end }}
"""
#: Uninstalling the release leaves what has this annotation.
_KEPT = {"helm.sh/resource-policy": "keep"}
#: The least length, as JSON, of a part that is written once and referred to where it repeats.
_REPEATED = 100

_CHART_YAML = """\
# Generated by `holdfast tools crd-charts` from the pinned modules under tools/; edit nothing here by hand.
apiVersion: v2
name: {name}
description: The CustomResourceDefinitions of {upstream}, upgraded with the release and kept when it goes.
type: application
version: {version}
appVersion: {version}
"""


@dataclass(frozen=True, kw_only=True)
class CrdChart:
    """One generated chart: its folder in components/pulumi_holdfast/kubernetes/charts, and the upstream chart of its CRDs."""

    name: str
    source: ChartSource


_SOURCES = {source.name: source for source in CHARTS}
CRD_CHARTS = (
    CrdChart(name="jobset-crds", source=_SOURCES["jobset"]),
    CrdChart(name="kuberay-crds", source=_SOURCES["kuberay-operator"]),
    CrdChart(name="karpenter-crds", source=_SOURCES["karpenter"]),
    CrdChart(name="karpenter-kwok-crds", source=_SOURCES["karpenter-kwok"]),
)


def crd_chart_files(chart: CrdChart, workspace: Workspace) -> dict[str, bytes]:
    """Return the files of the generated chart, from the upstream chart in .tools/charts: path → contents.

    Raises RehearsalError if that has no CRDs.
    """
    upstream = workspace.charts_dir / chart.source.name
    crds = sorted((upstream / "crds").glob("*.yaml"))
    if not crds:
        raise RehearsalError(
            f"{upstream / 'crds'} contains no CRD; add the folder with the CRDs to components/pulumi_holdfast/rehearsal/tools/charts.py"
        )
    version = chart.source.pin(workspace.tools_root)
    described = _CHART_YAML.format(name=chart.name, upstream=chart.source.name, version=version)
    files = {f"files/{path.name}": _definition(path.read_text(encoding="utf-8")) for path in crds}
    return {"Chart.yaml": described.encode(), "templates/crds.yaml": _TEMPLATE.encode(), **files}


def _definition(upstream: str) -> bytes:
    """Return upstream's CRD with the annotation, each part that repeats as a YAML alias of the first.

    Schemas of jobs repeat those of pods: without aliases the CRDs have 5 MB, which every preview reads twice.
    """
    crd = cast("Json", yaml.load(upstream, yaml.CSafeLoader))
    metadata = cast("Json", crd["metadata"])
    annotations = cast("Json", metadata.get("annotations", {}))
    kept: Json = {**crd, "metadata": {**metadata, "annotations": {**annotations, **_KEPT}}}
    shared = _shared(kept, {})
    return yaml.dump(shared, Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True, width=120).encode()


def _shared(value: JsonValue, known: dict[str, JsonValue]) -> JsonValue:
    """Return the value with equal parts as one object, which YAML writes once; `known` has them by their JSON."""
    shared: JsonValue
    if isinstance(value, Mapping):
        shared = {name: _shared(part, known) for name, part in value.items()}
    elif isinstance(value, Sequence) and not isinstance(value, str):
        shared = [_shared(part, known) for part in value]
    else:
        return value
    text = json.dumps(shared)
    return shared if len(text) < _REPEATED else known.setdefault(text, shared)
