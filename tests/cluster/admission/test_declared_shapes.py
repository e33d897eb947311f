"""What the API server accepts as the shapes of a namespace's jobs: what the configuration does, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.components.fallback_policy.definition import API_VERSION, KIND
from holdfast.components.fallback_policy.ladder import ladder_spec, shape_object
from holdfast.scheduling.quantities import MOST_CPU_MILLIS, MOST_MEMORY_MIB
from holdfast.scheduling.reachability.shape import (
    MOST_GPUS,
    MOST_SHAPES,
    WIDEST_GANG,
    Resources,
    Shape,
    shape_problems,
)
from holdfast.simulator.kubernetes_client.errors import KubeError
from tests.support.clusters.admission import TRAINING_NAMESPACE
from tests.support.json_objects import obj
from tests.support.ladders import CONDUCT, SHAPES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.scheduling.json import Json
    from holdfast.simulator.kubernetes_client.client import KubeClient

pytestmark = pytest.mark.cluster

FINETUNE: Json = {"name": "finetune", "pods": 4, "cpu": "48", "memory": "512Gi", "gpus": 8}


def accepted(cluster: KubeClient, shapes: Sequence[Json]) -> Json:
    manifest: Json = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": "ladder", "namespace": TRAINING_NAMESPACE},
        "spec": {**ladder_spec(CONDUCT), "shapes": list(shapes)},
    }
    return obj(cluster.apply(manifest, field_manager="tests", dry_run=True)["spec"])


@pytest.mark.parametrize(
    ("what", "shapes"),
    [
        ("what a stack writes", [shape_object(shape) for shape in SHAPES]),
        ("a name alone", [{"name": "fit"}]),
        ("a part of a CPU", [{**FINETUNE, "cpu": "1.5"}]),
        ("memory in powers of ten", [{**FINETUNE, "memory": "500M"}]),
        ("as many as may be", [{"name": f"s{i}"} for i in range(MOST_SHAPES)]),
        ("none", []),
    ],
)
def test_shapes_are_stored_as_they_are_written(
    cluster: KubeClient, what: str, shapes: Sequence[Json]
) -> None:
    assert accepted(cluster, shapes)["shapes"] == shapes, f"{what}: nothing is added to it"


@pytest.mark.parametrize(
    ("reason", "shapes"),
    [
        ("each shape needs a unique name", [FINETUNE, {"name": "fit"}, FINETUNE]),
        ("name: Required", [{"gpus": 8}]),
        ("should match", [{**FINETUNE, "name": "Fine_Tune"}]),
        ("accelerator needs gpus", [{**FINETUNE, "gpus": 0, "accelerator": "a100"}]),
        ("accelerator needs gpus", [{"name": "fit", "accelerator": "a100"}]),
        ("should match", [{**FINETUNE, "memory": "512"}]),
        ("should match", [{**FINETUNE, "memory": "512GB"}]),
        ("should match", [{**FINETUNE, "cpu": "48Gi"}]),
        ("greater than or equal to 1", [{**FINETUNE, "pods": 0}]),
        ("less than or equal to 64", [{**FINETUNE, "gpus": 65}]),
        ("Too many", [{"name": f"s{i}"} for i in range(MOST_SHAPES + 1)]),
        ("field not declared in schema", [{**FINETUNE, "parallelism": 4}]),
    ],
)
def test_shapes_that_mean_nothing_are_refused_with_the_reason(
    cluster: KubeClient, reason: str, shapes: Sequence[Json]
) -> None:
    with pytest.raises(KubeError, match=reason):
        accepted(cluster, shapes)


any_shape = st.builds(
    Shape,
    name=st.sampled_from(("a", "b", "c-1")),
    pods=st.integers(1, WIDEST_GANG),
    requests=st.builds(
        Resources,
        cpu_millis=st.integers(1, MOST_CPU_MILLIS),
        memory_mib=st.integers(1, MOST_MEMORY_MIB),
        gpus=st.sampled_from((0, 1, MOST_GPUS)),
    ),
    accelerator=st.sampled_from((None, "a100")),
)


@settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(shapes=st.lists(any_shape, max_size=3))
def test_shapes_are_accepted_exactly_when_the_configuration_accepts_them(
    cluster: KubeClient, shapes: list[Shape]
) -> None:
    written = [shape_object(shape) for shape in shapes]
    is_taken = len({shape.name for shape in shapes}) == len(shapes) and not list(
        shape_problems(shapes, "shapes")
    )
    if is_taken:
        assert accepted(cluster, written)["shapes"] == written, (
            "what a stack file may hold is stored as it is"
        )
    else:
        with pytest.raises(KubeError, match="is invalid"):
            accepted(cluster, written)
