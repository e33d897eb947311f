"""The number of machines that a gang fills, which is compared with a pool's limit."""

import pytest

from pulumi_holdfast.controller.policy.policy import MachineResources
from pulumi_holdfast.controller.reservations.pod_shapes import PodShape, machines_needed

EIGHT_GPUS = MachineResources(cpu=96_000, memory=1152 * 2**30, gpus=8)


@pytest.mark.parametrize(
    ("count", "requests", "machines"),
    [
        (4, {"nvidia.com/gpu": "8"}, 4),
        (16, {"nvidia.com/gpu": "1"}, 2),
        (3, {"cpu": "50"}, 3),
        (3, {"cpu": "48500m", "memory": "1Gi"}, 3),
        (4, {"cpu": "48"}, 2),
        (2, {"memory": "600Gi"}, 2),
        (1, {}, 1),
        (0, {"cpu": "1"}, 0),
        (2, {"cpu": "200"}, 2),
        (2, {"cpu": "nonsense"}, 1),
        (5, {"example.com/device": "1"}, 1),
    ],
)
def test_a_gang_needs_as_many_machines_as_it_fills(
    count: int, requests: dict[str, str], machines: int
) -> None:
    shapes = (PodShape(count=count, requests=requests),)
    assert machines_needed(shapes, EIGHT_GPUS) == machines, "whole pods go onto whole machines"


def test_shapes_share_machines_and_without_facts_one_is_assumed() -> None:
    shapes = (
        PodShape(count=1, requests={"nvidia.com/gpu": "4"}),
        PodShape(count=4, requests={"nvidia.com/gpu": "1"}),
    )
    assert machines_needed(shapes, EIGHT_GPUS) == 1, "8 GPUs in all"
    assert machines_needed((PodShape(count=9, requests={"cpu": "64"}),), None) == 1, (
        "a hold that is too large times out"
    )
