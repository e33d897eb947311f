"""Charts come from the mirror, at the version asked for, or not at all."""

from pathlib import Path

import pytest

from holdfast.simulator.errors import RehearsalError
from holdfast.simulator.kubernetes_provider.charts import Chart, ChartMirror

OCI = "oci://registry.example/charts/jobset"


@pytest.fixture
def mirror(tmp_path: Path) -> ChartMirror:
    """A mirror with one chart, jobset 0.12.0."""
    write_chart(tmp_path / "charts" / "jobset", version="0.12.0")
    return ChartMirror(tmp_path / "charts", base=tmp_path)


def write_chart(path: Path, *, version: str) -> None:
    path.mkdir(parents=True)
    (path / "Chart.yaml").write_text(f"apiVersion: v2\nname: {path.name}\nversion: {version}\n")


@pytest.mark.parametrize(
    ("chart", "version", "repo"),
    [
        (OCI, "0.12.0", None),
        (OCI, "v0.12.0", None),
        (OCI, None, None),
        ("jobset", "0.12.0", "https://charts.example"),
        ("charts/jobset", None, None),
    ],
)
def test_every_way_to_name_a_chart_leads_to_the_mirrored_one(
    mirror: ChartMirror, chart: str, version: str | None, repo: str | None
) -> None:
    found = mirror.find(chart, version=version, repo=repo)
    assert (found.name, found.version) == ("jobset", "0.12.0"), "another chart would be installed"


def test_another_version_is_refused_with_both_named(mirror: ChartMirror) -> None:
    with pytest.raises(RehearsalError, match=r"version 0\.11\.0 is asked for.*is version 0\.12\.0"):
        mirror.find(OCI, version="0.11.0", repo=None)


@pytest.mark.parametrize(
    ("chart", "repo"), [("oci://x/kueue", None), ("kueue", "https://x"), ("kueue", None)]
)
def test_a_chart_that_is_nowhere_is_refused_with_those_that_are_there(
    mirror: ChartMirror, chart: str, repo: str | None
) -> None:
    with pytest.raises(RehearsalError, match="jobset"):
        mirror.find(chart, version=None, repo=repo)


def test_a_directory_without_a_chart_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RehearsalError, match=r"Chart\.yaml"):
        Chart.at(tmp_path)


def test_an_edited_chart_has_another_digest(mirror: ChartMirror) -> None:
    chart = mirror.find(OCI, version=None, repo=None)
    before = chart.digest()
    (chart.path / "templates").mkdir()
    (chart.path / "templates" / "a.yaml").write_text("kind: ConfigMap\n")
    assert chart.digest() != before, "an edited chart would never be upgraded"
    (chart.path / "templates" / "a.yaml").rename(chart.path / "a.yaml")
    assert chart.digest() != before, "a moved file changes what is rendered"
