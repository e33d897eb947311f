"""Annotations steer the provider as they steer the plugin."""

import pytest

from holdfast.scheduling.json import Json
from holdfast.simulator.kubernetes_provider.annotations import propagation, timeout_seconds


def annotated(name: str, value: str) -> Json:
    return {"metadata": {"annotations": {f"pulumi.com/{name}": value}}}


@pytest.mark.parametrize(
    ("custom", "value", "seconds"), [(30, "20", 30), (0, "20", 20), (0, "soon", 600), (0, "", 600)]
)
def test_the_programs_timeout_counts_more_than_the_annotation_and_that_more_than_ten_minutes(
    custom: float, value: str, seconds: float
) -> None:
    assert timeout_seconds(annotated("timeoutSeconds", value), custom) == seconds, (
        "the wait has another length"
    )


@pytest.mark.parametrize(
    ("value", "policy"), [("orphan", "Orphan"), ("Background", "Background"), ("", "Foreground")]
)
def test_dependents_go_first_unless_annotated(value: str, policy: str) -> None:
    assert propagation(annotated("deletionPropagationPolicy", value)) == policy, (
        "pods would outlive their owner"
    )
