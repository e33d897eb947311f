"""Charts of registries and repositories are read from the mirror, and keep their address in the state."""

from pathlib import Path

import pytest
from google.protobuf import struct_pb2

from pulumi_holdfast.rehearsal.engine.charts import RELEASE, ChartMirror, give_back
from pulumi_holdfast.rehearsal.engine.values import UNKNOWN, Properties, Secret, from_struct, to_struct
from pulumi_holdfast.rehearsal.errors import RehearsalError


@pytest.fixture
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ChartMirror:
    for folder in ("charts/web", "own"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "Chart.yaml").write_text("name: web\nversion: 1.0.0\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return ChartMirror(tmp_path / "charts")


def _lent(mirror: ChartMirror, **inputs: object) -> struct_pb2.Struct:
    release = to_struct(inputs)  # pyright: ignore[reportArgumentType] - literals of the tests
    mirror.lend(RELEASE, release)
    return release


@pytest.mark.parametrize(
    ("inputs", "folder"),
    [
        ({"chart": "oci://registry.example/web", "version": "v1.0.0"}, "charts/web"),
        ({"chart": "web", "repositoryOpts": {"repo": "https://charts.example"}}, "charts/web"),
        ({"chart": "./own"}, "own"),
    ],
)
def test_a_chart_is_lent_by_each_form_of_its_address_and_given_back(
    mirror: ChartMirror, inputs: Properties, folder: str
) -> None:
    release = to_struct(inputs)
    address = mirror.lend(RELEASE, release)
    lent = str((mirror.directory.parent / folder).resolve())
    assert from_struct(release) == {**{k: v for k, v in inputs.items() if k == "version"}, "chart": lent}
    outputs = to_struct({**from_struct(release), "__inputs": Secret(from_struct(release))})
    give_back(outputs, address)
    assert from_struct(outputs) == {**inputs, "__inputs": Secret(inputs)}


def test_a_chart_that_is_not_known_yet_stays(mirror: ChartMirror) -> None:
    assert from_struct(_lent(mirror, chart=UNKNOWN)) == {"chart": UNKNOWN}


@pytest.mark.parametrize(
    ("chart", "version", "message"),
    [
        ("oci://registry.example/web", "2.0.0", "sets version 2.0.0, but .* has version 1.0.0"),
        ("oci://registry.example/other", "1.0.0", "is not in the mirror: .* has web"),
        ("./nowhere", "1.0.0", "is neither a directory"),
    ],
)
def test_another_version_and_a_missing_chart_are_refused(
    mirror: ChartMirror, chart: str, version: str, message: str
) -> None:
    with pytest.raises(RehearsalError, match=message):
        _lent(mirror, chart=chart, version=version)
