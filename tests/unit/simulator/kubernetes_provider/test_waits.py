"""The problem of a pod is summarized in one line."""

import pytest

from holdfast.scheduling.json import Json, JsonValue
from holdfast.simulator.kubernetes_provider.waits import pod_problem


def pod(**status: JsonValue) -> Json:
    return {"metadata": {"name": "p"}, "status": {"phase": "Pending", **status}}


@pytest.mark.parametrize(
    ("status", "problem"),
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
def test_pod_problem_is_reported(status: Json, problem: str) -> None:
    assert pod_problem(pod(**status)) == problem, "the message must name the cause"


@pytest.mark.parametrize(
    "status", [{"phase": "Succeeded"}, {"conditions": [{"type": "Ready", "status": "True"}]}]
)
def test_ready_or_succeeded_pod_has_no_problem(status: Json) -> None:
    assert pod_problem(pod(**status)) is None, "the pod is fine"
