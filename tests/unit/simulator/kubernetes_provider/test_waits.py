"""The problem of a pod is summarized in one line."""

import pytest

from holdfast.scheduling.json import Json
from holdfast.simulator.kubernetes_provider.waits import pod_problem

WAITING = {"name": "c", "state": {"waiting": {"reason": "ErrImagePull", "message": "no"}}}
TERMINATED = {"name": "c", "state": {"terminated": {"reason": "Error"}}}
UNSCHEDULED = {"type": "PodScheduled", "status": "False", "message": "0/1 nodes are available"}


@pytest.mark.parametrize(
    ("status", "problem"),
    [
        ({"conditions": [UNSCHEDULED]}, "pod p: 0/1 nodes are available"),
        ({"containerStatuses": [WAITING]}, "pod p: container c: ErrImagePull no"),
        ({"containerStatuses": [TERMINATED]}, "pod p: container c: Error"),
        ({"phase": "Running"}, "pod p: is Running"),
        ({"phase": "Succeeded"}, None),
        ({"conditions": [{"type": "Ready", "status": "True"}]}, None),
    ],
)
def test_pod_problem_is_reported_unless_the_pod_is_fine(status: Json, problem: str | None) -> None:
    pod: Json = {"metadata": {"name": "p"}, "status": {"phase": "Pending", **status}}
    assert pod_problem(pod) == problem, "the message must name the cause"
