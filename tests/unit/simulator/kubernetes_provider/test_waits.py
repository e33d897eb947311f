"""What keeps a pod from running is told in one line."""

import pytest

from holdfast.scheduling.json import Json, JsonValue
from holdfast.simulator.kubernetes_provider.waits import pod_problem


def pod(**status: JsonValue) -> Json:
    return {"metadata": {"name": "p"}, "status": {"phase": "Pending", **status}}


@pytest.mark.parametrize(
    ("status", "told"),
    [
        (
            {
                "conditions": [
                    {"type": "PodScheduled", "status": "False", "message": "0/1 nodes are available"}
                ]
            },
            "pod p: 0/1 nodes are available",
        ),
        (
            {
                "containerStatuses": [
                    {"name": "c", "state": {"waiting": {"reason": "ErrImagePull", "message": "no"}}}
                ]
            },
            "pod p: container c: ErrImagePull no",
        ),
        (
            {"containerStatuses": [{"name": "c", "state": {"terminated": {"reason": "Error"}}}]},
            "pod p: container c: Error",
        ),
        ({"phase": "Running"}, "pod p: is Running"),
    ],
)
def test_the_cause_is_told(status: Json, told: str) -> None:
    assert pod_problem(pod(**status)) == told, "the reader would have to ask the cluster"


@pytest.mark.parametrize(
    "status", [{"phase": "Succeeded"}, {"conditions": [{"type": "Ready", "status": "True"}]}]
)
def test_a_pod_that_is_well_has_no_trouble(status: Json) -> None:
    assert pod_problem(pod(**status)) is None, "the message would name the wrong pod"
