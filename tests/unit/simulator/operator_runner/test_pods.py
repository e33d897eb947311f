"""Which pods are hosted, and what the API server is told of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.scheduling.json import Json
from holdfast.simulator.kubernetes_client.objects import mapping, sequence
from holdfast.simulator.operator_runner.operator_pod import ProcessState, pod_status
from holdfast.simulator.operator_runner.pod_spec import (
    Probe,
    container_ports,
    grace_seconds_of,
    readiness_probe,
    restarts_of,
    service_account_of,
    should_run,
)
from holdfast.simulator.operator_runner.process import LONGEST_DELAY_SECONDS, delay_seconds, failures_after
from tests.support.hosted_pods import container, pod

NOW = "2026-01-01T00:00:00Z"


def test_a_controllers_pod_that_has_a_node_is_hosted() -> None:
    assert should_run(pod()), "a process belongs behind it"
    assert should_run(pod(status={"phase": "Running"})), "also after the host came back"


@pytest.mark.parametrize(
    "unwanted",
    [
        pod(spec={"nodeName": ""}),
        pod(metadata={"deletionTimestamp": NOW}),
        pod(status={"phase": "Failed"}),
        pod(status={"phase": "Succeeded"}),
    ],
    ids=["no node", "being deleted", "failed", "succeeded"],
)
def test_one_that_has_none_or_has_ended_is_not(unwanted: Json) -> None:
    assert not should_run(unwanted), "no process belongs behind it"


def test_ports_are_known_by_name_and_without_one_by_number() -> None:
    ports = container_ports(container(ports=[{"name": "http", "containerPort": 1}, {"containerPort": 2}]))
    assert ports == {"http": 1, "2": 2}, "Services name them either way"


def test_a_probe_of_a_named_port_is_one_of_its_number() -> None:
    assert readiness_probe(container()) == Probe(port=8080, path="/readyz"), "http is port 8080"
    assert readiness_probe(container(readinessProbe={"httpGet": {"port": 9}})) == Probe(port=9, path="/"), (
        "a path that is not given is the root"
    )


@pytest.mark.parametrize("probe", [{}, {"exec": {"command": ["true"]}}, {"httpGet": {"port": "nameless"}}])
def test_a_container_without_an_http_probe_is_ready_when_it_runs(probe: Json) -> None:
    assert readiness_probe(container(readinessProbe=probe)) is None, "there is nothing to ask"


def test_what_a_pod_does_not_say_has_kubernetes_defaults() -> None:
    assert service_account_of(pod()) == "default", "the API server fills in this one"
    assert grace_seconds_of(pod()) == 30, "the default grace"
    assert restarts_of(pod()) == 0, "never started before"


def status_of(state: ProcessState, *, of: "Json | None" = None) -> Json:
    return pod_status(of or pod(), state, "10.1.2.3")


def conditions(status: Json) -> dict[str, str]:
    found = [mapping(each) for each in sequence(status["conditions"])]
    return {str(each["type"]): str(each["status"]) for each in found}


def test_a_pod_is_ready_only_when_its_process_is() -> None:
    assert conditions(status_of(ProcessState(at=NOW, ready=True)))["Ready"] == "True", "it answered its probe"
    assert conditions(status_of(ProcessState(at=NOW)))["Ready"] == "False", "it runs and does not answer yet"


def test_conditions_of_others_stay() -> None:
    scheduled: Json = {"type": "PodScheduled", "status": "True"}
    status = status_of(
        ProcessState(at=NOW), of=pod(status={"conditions": [scheduled, {"type": "Ready", "status": "?"}]})
    )
    assert sequence(status["conditions"])[0] == scheduled, "the scheduler wrote it"
    assert conditions(status)["Ready"] == "False", "and ours is there once, and new"


@pytest.mark.parametrize(
    ("restarts", "phase", "reason"), [(0, "Pending", "ContainerCreating"), (3, "Running", "CrashLoopBackOff")]
)
def test_a_pod_says_why_no_process_runs(restarts: int, phase: str, reason: str) -> None:
    status = status_of(ProcessState(at=NOW, restarts=restarts, waiting_for="no such Secret"))
    container_status = mapping(sequence(status["containerStatuses"])[0])
    assert status["phase"] == phase, "a pod that ran once is not pending again"
    assert container_status["state"] == {"waiting": {"reason": reason, "message": "no such Secret"}}, (
        "kubectl describe shows the cause"
    )
    assert container_status["restartCount"] == restarts, "and how often it was tried"


@given(st.integers(min_value=1, max_value=10_000))
def test_the_wait_grows_up_to_half_a_minute(failures: int) -> None:
    assert delay_seconds(failures) <= delay_seconds(failures + 1) <= LONGEST_DELAY_SECONDS, (
        "and never shrinks"
    )


def test_a_process_that_held_out_begins_anew() -> None:
    assert failures_after(7, ran_seconds=120) == 1, "it did not fail for the old reason"
    assert failures_after(7, ran_seconds=3) == 8, "this one did"
    assert delay_seconds(1) == 1, "the first wait is short"
