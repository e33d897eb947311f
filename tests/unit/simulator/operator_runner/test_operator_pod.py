"""The status of a pod reports the state of its process."""

import pytest

from holdfast.scheduling.json import Json, mapping, sequence
from holdfast.simulator.operator_runner.operator_pod import ProcessState, pod_status
from tests.support.builders.operator_pods import pod

NOW = "2026-01-01T00:00:00Z"


def status_of(state: ProcessState, *, of: "Json | None" = None) -> Json:
    return pod_status(of or pod(), state, "10.1.2.3")


def conditions(status: Json) -> dict[str, str]:
    found = [mapping(each) for each in sequence(status["conditions"])]
    return {str(each["type"]): str(each["status"]) for each in found}


def test_ready_condition_is_that_of_the_process() -> None:
    assert conditions(status_of(ProcessState(at=NOW, ready=True)))["Ready"] == "True", "its probe succeeded"
    assert conditions(status_of(ProcessState(at=NOW)))["Ready"] == "False", "its probe has not succeeded"
    scheduled: Json = {"type": "PodScheduled", "status": "True"}
    status = status_of(
        ProcessState(at=NOW), of=pod(status={"conditions": [scheduled, {"type": "Ready", "status": "?"}]})
    )
    assert sequence(status["conditions"])[0] == scheduled, "the scheduler wrote it"
    assert conditions(status)["Ready"] == "False", "the condition of the runner is replaced"


@pytest.mark.parametrize(
    ("restarts", "phase", "reason"), [(0, "Pending", "ContainerCreating"), (3, "Running", "CrashLoopBackOff")]
)
def test_waiting_pod_reports_the_reason(restarts: int, phase: str, reason: str) -> None:
    status = status_of(ProcessState(at=NOW, restarts=restarts, waiting_for="no such Secret"))
    container_status = mapping(sequence(status["containerStatuses"])[0])
    assert status["phase"] == phase, "a pod that ran is not Pending again"
    assert container_status["state"] == {"waiting": {"reason": reason, "message": "no such Secret"}}, (
        "kubectl describe shows the cause"
    )
    assert container_status["restartCount"] == restarts, "the number of attempts"
