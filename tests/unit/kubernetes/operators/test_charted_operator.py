"""An operator that is installed from two charts."""

from dataclasses import replace
from pathlib import Path

import pytest

from pulumi_holdfast.kubernetes.operators.charted_operator import (
    UPSTREAM,
    ChartedOperator,
    ChartedOperatorArgs,
    ChartReference,
    chart_reference,
)
from tests.support.fakes.pulumi_engine import Recorded, Recording, record
from tests.support.inputs import text, value

ARGS = ChartedOperatorArgs(
    namespace="jobset-system",
    release="jobset",
    crds_release="jobset-crds",
    crds_chart="jobset-crds",
    charts="/charts",
    chart="jobset",
    version="0.12.0",
    chart_version="0.12.1",
    values={"replicas": 1},
    config_maps={"settings": {"file.json": "{}"}},
)


def recorded(args: ChartedOperatorArgs = ARGS, *, preview: bool = False) -> Recording:
    return record(lambda: ChartedOperator("operator", args), preview=preview)


def crds(recording: Recording) -> Recorded:
    return recording.one(":Release", "operator-crds")


def controller(recording: Recording) -> Recorded:
    return recording.one(":Release", "operator-controller")


@pytest.mark.parametrize("preview", [False, True])
def test_it_creates_its_namespace_config_maps_and_two_releases(preview: bool) -> None:
    recording = recorded(preview=preview)
    names = sorted(resource.name for resource in recording if resource.custom)
    assert names == [
        "operator-controller",
        "operator-crds",
        "operator-namespace",
        "operator-network",
        "operator-priority",
        "operator-settings",
    ], "no others"
    assert "operator-crds" in controller(recording).depends_on, "a controller without its CRDs does not start"
    assert "operator-namespace" in crds(recording).depends_on, "Helm stores its releases in the namespace"
    assert controller(recording).inputs["skipCrds"] is True, "Helm would never upgrade them"
    assert not crds(recording).inputs.get("skipCrds")
    made = [
        (text(release, "name"), text(release, "namespace"), text(release, "version"))
        for release in (crds(recording), controller(recording))
    ]
    assert made == [("jobset-crds", "jobset-system", "0.12.0"), ("jobset", "jobset-system", "0.12.1")]
    chart = Path(text(crds(recording), "chart"))
    assert (chart / "Chart.yaml").is_file()


@pytest.mark.parametrize(
    ("charts", "chart", "repository"),
    [
        ("/charts", "/charts/jobset", None),
        ("/charts/", "/charts/jobset", None),
        ("oci://mirror.example.com/charts", "oci://mirror.example.com/charts/jobset", None),
        ("https://mirror.example.com/charts", "jobset", "https://mirror.example.com/charts"),
    ],
)
def test_the_controllers_chart_comes_from_the_mirror(charts: str, chart: str, repository: str | None) -> None:
    release = controller(recorded(replace(ARGS, charts=charts)))
    assert text(release, "chart") == chart, f"Helm's form for a chart of {charts}"
    assert value(release, "repositoryOpts", "repo") == repository


@pytest.mark.parametrize(
    ("chart", "reference"),
    [
        ("jobset", ChartReference(chart="oci://registry.k8s.io/jobset/charts/jobset")),
        ("karpenter", ChartReference(chart="oci://public.ecr.aws/karpenter/karpenter")),
        (
            "nvidia-device-plugin",
            ChartReference(
                chart="nvidia-device-plugin", repository="https://nvidia.github.io/k8s-device-plugin"
            ),
        ),
        (
            "aws-efa-k8s-device-plugin",
            ChartReference(chart="aws-efa-k8s-device-plugin", repository="https://aws.github.io/eks-charts"),
        ),
    ],
)
def test_without_a_mirror_a_chart_is_the_projects_own(chart: str, reference: ChartReference) -> None:
    assert chart_reference(None, chart) == reference


@pytest.mark.parametrize("chart", UPSTREAM)
def test_every_upstream_chart_is_encrypted_and_has_its_own_name_in_the_mirror(chart: str) -> None:
    assert chart_reference("oci://registry.example.com/charts", chart).chart == (
        f"oci://registry.example.com/charts/{chart}"
    )
    assert UPSTREAM[chart].startswith(("https://", "oci://"))
