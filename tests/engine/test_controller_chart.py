"""The chart of the fallback controller: the real Helm renders from it what the components register."""

import json
import subprocess
from pathlib import Path
from typing import Final

import pytest
import yaml

from pulumi_holdfast.cli.controller_chart import (
    PREREQUISITES,
    all_capacity_selections,
    chart_images,
    write_chart,
)
from pulumi_holdfast.kubernetes.admission.job_admission import JobAdmission
from pulumi_holdfast.kubernetes.fallback_controller.access import JOBS_ROLE
from pulumi_holdfast.kubernetes.fallback_controller.component import (
    FallbackController,
    FallbackControllerArgs,
)
from pulumi_holdfast.kubernetes.fallback_controller.program import ControllerImages
from pulumi_holdfast.kubernetes.fallback_policy import fallback_policy_definition
from pulumi_holdfast.kubernetes.training_namespace import TrainingNamespace, TrainingNamespaceArgs
from pulumi_holdfast.ladder.errors import ConfigError
from pulumi_holdfast.ladder.json import Json, JsonValue
from pulumi_holdfast.ladder.labels import CONTROLLER
from pulumi_holdfast.ladder.ladder import Ladder, Tier
from pulumi_holdfast.rehearsal.paths import Workspace
from pulumi_holdfast.rehearsal.tools.locate import find_tool
from tests.support.command_line import command
from tests.support.fakes.pulumi_engine import record
from tests.support.json_objects import obj

pytestmark = pytest.mark.engine

IMAGES: Final = chart_images()
OWN: Final = ControllerImages(
    controller="registry.example.com/python:3",
    placeholder="registry.example.com/pause:1",
    archives=IMAGES.archives,
)
EVERYTHING: Final[Json] = {
    "image": OWN.controller,
    "placeholderImage": OWN.placeholder,
    "replicas": 3,
    "namespaces": ["vision", "tabular"],
    "webhookSecret": "pager",
    "scrapers": ["prometheus", "agents"],
    "karpenterMetrics": "http://karpenter.karpenter.svc:8080/metrics",
}


@pytest.fixture(scope="module")
def chart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The chart, as the command writes it."""
    folder = tmp_path_factory.mktemp("chart") / "made"
    ended = command(folder.parent, "chart", str(folder))
    assert ended.returncode == 0
    assert [line.split()[0] for line in ended.stdout.splitlines()] == ["kubectl", "helm"]
    return folder


def rendered(chart: Path, values: Json) -> list[Json]:
    """What Helm renders with values, and what kubectl applies before."""
    helm = str(find_tool("helm", Workspace.find()))
    sets = [f"--set-json={name}={json.dumps(value)}" for name, value in values.items()]
    options = ("--namespace=holdfast-system", "--kube-version=1.36.3", *sets)
    answer = subprocess.run(
        (helm, "template", CONTROLLER, chart / CONTROLLER, *options),
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 0
    prerequisites = (chart / PREREQUISITES).read_text("utf-8")
    texts = (prerequisites, answer.stdout)
    return [each for text in texts for each in yaml.load_all(text, yaml.CSafeLoader) if each]


def registered(args: FallbackControllerArgs) -> list[Json]:
    """What the components register."""

    def build() -> None:
        fallback_policy_definition("fallback-policy")
        JobAdmission("job-admission", capacity=all_capacity_selections())
        FallbackController("fallback-controller", args)

    return [each.inputs for each in record(build) if each.custom]


def by_identity(objects: list[Json]) -> dict[tuple[JsonValue, ...], Json]:
    found: dict[tuple[JsonValue, ...], Json] = {
        (each["kind"], obj(each["metadata"]).get("namespace"), obj(each["metadata"])["name"]): each
        for each in objects
    }
    assert len(found) == len(objects)
    return found


@pytest.mark.parametrize(
    ("values", "args"),
    [
        pytest.param(
            {},
            FallbackControllerArgs(images=IMAGES, replicas=2, scrapers=("monitoring",)),
            id="default values",
        ),
        pytest.param(
            {"replicas": 1, "image": OWN.controller, "placeholderImage": OWN.placeholder},
            FallbackControllerArgs(images=OWN, replicas=1, scrapers=("monitoring",)),
            id="one replica",
        ),
        pytest.param(
            EVERYTHING,
            FallbackControllerArgs(
                images=OWN,
                replicas=3,
                webhook_secret="pager",
                scrapers=("prometheus", "agents"),
                karpenter_metrics="http://karpenter.karpenter.svc:8080/metrics",
            ),
            id="every value",
        ),
    ],
)
def test_helm_renders_what_the_components_register(
    chart: Path, values: Json, args: FallbackControllerArgs
) -> None:
    made = by_identity(rendered(chart, values))
    bindings = {key: made.pop(key) for key in [*made] if key[0] == "RoleBinding" and key[2] == JOBS_ROLE}
    assert made == by_identity(registered(args)), "a chart that differs would be another controller"
    assert [key[1] for key in bindings] == values.get("namespaces", [])
    for (_, namespace, _), binding in bindings.items():
        assert binding == _binding_of(str(namespace))


def _binding_of(namespace: str) -> Json:
    args = TrainingNamespaceArgs(
        namespace=namespace, ladder=Ladder(tiers=(Tier(pool="cpu"),)), checkpoint_uri="s3://it", bounded=False
    )
    return (
        record(lambda: TrainingNamespace("it", args))
        .one(":RoleBinding", "it-fallback-controller-jobs")
        .inputs
    )


def test_a_chart_is_written_again_with_the_same_bytes_and_over_nothing_else(
    chart: Path, tmp_path: Path
) -> None:
    ended = command(tmp_path, "chart", "again", "--registry", "registry.example.com")
    assert ended.returncode == 0
    again = {
        file.relative_to(tmp_path / "again"): file.read_bytes() for file in (tmp_path / "again").rglob("*.*")
    }
    before = {file.relative_to(chart): file.read_bytes() for file in chart.rglob("*.*")}
    differing = {str(name) for name in {*again, *before} if again.get(name) != before.get(name)}
    assert differing == {f"{CONTROLLER}/values.yaml"}
    with pytest.raises(ConfigError, match="which holds other files"):
        write_chart(chart.parent)
