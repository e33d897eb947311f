"""The CRD charts contain the upstream CRDs with one more annotation; what repeats in them is written once."""

import base64
import gzip
import json
import subprocess
from pathlib import Path
from typing import cast

import pytest
import yaml

from pulumi_holdfast.ladder.json import Json, JsonValue
from pulumi_holdfast.rehearsal.errors import RehearsalError
from pulumi_holdfast.rehearsal.paths import Workspace
from pulumi_holdfast.rehearsal.tools.charts import CRD_CHARTS, CrdChart, crd_chart_files
from pulumi_holdfast.rehearsal.tools.command import write_crd_charts
from pulumi_holdfast.rehearsal.tools.locate import find_tool
from tests.support.fakes.go_toolchain import PROJECT, checkout

WORKSPACE = Workspace(project_root=PROJECT)

#: The size limit of a Secret, in which Helm stores a release.
SECRET_BYTES = 1024 * 1024
#: The largest chart has 0.4 MB. As upstream writes it, KubeRay's has 4.0 MB.
PREVIEW_BYTES = 512 * 1024

each_chart = pytest.mark.parametrize("chart", CRD_CHARTS, ids=lambda chart: chart.name)


def folder_of(chart: CrdChart) -> Path:
    return PROJECT / "components/pulumi_holdfast/kubernetes/charts" / chart.name


def rendered(chart: CrdChart) -> str:
    command = (find_tool("helm", WORKSPACE), "template", chart.name, folder_of(chart))
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def by_name(text: str) -> dict[str, Json]:
    documents = [cast("Json", document) for document in yaml.load_all(text, yaml.CSafeLoader) if document]
    return {str(cast("Json", document["metadata"])["name"]): document for document in documents}


def with_keep_annotation(crd: Json) -> Json:
    metadata = cast("Json", crd["metadata"])
    annotations: dict[str, JsonValue] = dict(cast("Json", metadata.get("annotations", {})))
    return {
        **crd,
        "metadata": {**metadata, "annotations": {**annotations, "helm.sh/resource-policy": "keep"}},
    }


def release_secret_bytes(chart: CrdChart, manifest: str) -> int:
    """The size of the release as Helm stores it: JSON with the chart's files in base64, gzipped, in base64."""
    files = [
        {"name": str(path), "data": base64.b64encode(path.read_bytes()).decode()}
        for path in sorted(folder_of(chart).rglob("*.yaml"))
    ]
    packed = gzip.compress(json.dumps({"chart": {"files": files}, "manifest": manifest}).encode(), 9)
    return len(base64.b64encode(packed))


@each_chart
def test_crd_chart_has_the_version_of_its_operator(chart: CrdChart) -> None:
    described = yaml.safe_load((folder_of(chart) / "Chart.yaml").read_text(encoding="utf-8"))
    pin = str(chart.source.pin(PROJECT))
    assert (described["version"], described["appVersion"]) == (pin, pin)


def test_missing_upstream_chart_is_reported(tmp_path: Path) -> None:
    with pytest.raises(RehearsalError, match="is missing or from another version; run `make tools` first"):
        write_crd_charts(checkout(tmp_path))
    assert not (tmp_path / "components").exists()


@pytest.mark.engine
@each_chart
def test_crd_chart_matches_the_pinned_module(chart: CrdChart) -> None:
    folder = folder_of(chart)
    there = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    wanted = crd_chart_files(chart, WORKSPACE)
    assert sorted(there) == sorted(wanted), (
        f"components/pulumi_holdfast/kubernetes/charts/{chart.name} is not current; run `holdfast tools crd-charts`"
    )
    changed = [path for path, contents in wanted.items() if there[path] != contents]
    assert not changed


@pytest.mark.engine
@each_chart
def test_rendered_crds_differ_from_upstream_only_in_the_keep_annotation(chart: CrdChart) -> None:
    upstream = "\n---\n".join(
        path.read_text(encoding="utf-8")
        for path in sorted((WORKSPACE.charts_dir / chart.source.name / "crds").glob("*.yaml"))
    )
    wanted = {name: with_keep_annotation(crd) for name, crd in by_name(upstream).items()}
    assert wanted
    assert by_name(rendered(chart)) == wanted


@each_chart
def test_definitions_are_short_enough_for_every_preview_to_read(chart: CrdChart) -> None:
    size = sum(path.stat().st_size for path in (folder_of(chart) / "files").iterdir())
    assert size < PREVIEW_BYTES


@pytest.mark.engine
@each_chart
def test_release_fits_into_a_secret(chart: CrdChart) -> None:
    size = release_secret_bytes(chart, rendered(chart))
    assert size < SECRET_BYTES, f"{chart.name} takes {size} of {SECRET_BYTES} bytes; split it into two charts"
