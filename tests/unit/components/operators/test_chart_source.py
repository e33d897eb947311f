"""Where charts come from."""

import pytest

from holdfast.components.operators.charted_operator import UPSTREAM, ChartReference, chart_reference


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
def test_without_a_mirror_a_chart_is_its_projects_own(chart: str, reference: ChartReference) -> None:
    assert chart_reference(None, chart) == reference, "as helm names it there"


@pytest.mark.parametrize("chart", UPSTREAM)
def test_every_chart_is_in_the_mirror_under_its_own_name(chart: str) -> None:
    assert chart_reference("oci://registry.example.com/charts", chart).chart == (
        f"oci://registry.example.com/charts/{chart}"
    ), "one mirror holds them all"


@pytest.mark.parametrize("chart", UPSTREAM)
def test_upstream_charts_are_fetched_over_a_connection_that_proves_who_answers(chart: str) -> None:
    assert UPSTREAM[chart].startswith(("https://", "oci://")), "charts run with rights over the cluster"
