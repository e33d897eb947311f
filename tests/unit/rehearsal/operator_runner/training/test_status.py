"""The status that a kubelet writes of a training pod, and the pods that a node rejects."""

from dataclasses import replace

import pytest

from pulumi_holdfast.controller.kube.objects import condition_of
from pulumi_holdfast.ladder.json import Json, JsonValue
from pulumi_holdfast.rehearsal.operator_runner.training.status import (
    ContainerState,
    PodOutcome,
    pod_status,
    rejection,
    shortage,
    storage_eviction,
)
from tests.support.json_objects import obj, objects

WAITING = ContainerState(name="train", image="python:3.13", message="volume x")
RUNNING = replace(WAITING, started_at="2030-01-01T00:00:00Z", is_started=True, is_ready=True)
ENDED = replace(
    RUNNING,
    exit_code=143,
    reason="Error",
    finished_at="2030-01-01T00:01:00Z",
    is_started=False,
    is_ready=False,
)
NOW = "2030-01-01T00:02:00Z"


def status(
    phase: str, state: ContainerState, before: Json | None = None, address: str = "10.200.0.1"
) -> Json:
    return pod_status({"status": before or {}}, PodOutcome(phase=phase), [], [state], address, NOW)


def shown(state: ContainerState) -> Json:
    return obj(state.shown()["state"])


def test_a_container_waits_runs_and_ends() -> None:
    assert shown(WAITING) == {"waiting": {"reason": "ContainerCreating", "message": "volume x"}}
    assert shown(RUNNING) == {"running": {"startedAt": "2030-01-01T00:00:00Z"}}
    assert obj(shown(ENDED)["terminated"])["exitCode"] == 143
    again = replace(RUNNING, last=ENDED.terminated, restarts=1)
    assert obj(obj(again.shown()["lastState"])["terminated"])["exitCode"] == 143


@pytest.mark.parametrize(
    ("phase", "state", "initialized", "ready", "reason"),
    [
        ("Pending", WAITING, "False", "False", None),
        ("Running", RUNNING, "True", "True", None),
        ("Running", replace(RUNNING, is_ready=False), "True", "False", None),
        ("Failed", ENDED, "True", "False", "PodFailed"),
        ("Succeeded", ENDED, "True", "False", "PodCompleted"),
    ],
)
def test_the_conditions_of_a_pod_follow_its_phase(
    phase: str, state: ContainerState, initialized: str, ready: str, reason: str | None
) -> None:
    written = status(phase, state)
    assert condition_of({"status": written}, "Initialized")["status"] == initialized
    found = condition_of({"status": written}, "Ready")
    assert (found["status"], found["reason"]) == (ready, reason)


def test_a_condition_keeps_the_time_since_when_it_holds_and_an_address_is_written_once() -> None:
    before = status("Running", RUNNING)
    earlier: list[Json] = [
        {**each, "lastTransitionTime": "2030-01-01T00:00:00Z"} for each in objects(before["conditions"])
    ]
    after = status("Failed", ENDED, {**before, "conditions": earlier})
    assert condition_of({"status": after}, "Initialized")["lastTransitionTime"] == "2030-01-01T00:00:00Z"
    assert condition_of({"status": after}, "Ready")["lastTransitionTime"] == NOW
    assert (before["podIP"], after.get("podIP")) == ("10.200.0.1", None)
    assert "podIP" not in status("Failed", WAITING, address="")


NODE: Json = {
    "metadata": {"labels": {"pool": "a"}},
    "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "nvidia.com/gpu": "1"}},
}


def pod(cpu: str, *, init: str = "0", sidecar: str = "0", selector: str = "a") -> Json:
    def of(amount: str) -> Json:
        return {"resources": {"requests": {"cpu": amount}}}

    return {
        "spec": {
            "nodeSelector": {"pool": selector},
            "initContainers": [of(init), {**of(sidecar), "restartPolicy": "Always"}],
            "containers": [of(cpu)],
        }
    }


@pytest.mark.parametrize(
    ("bound", "others", "reason"),
    [
        (pod("4"), (), None),
        (pod("3"), (pod("1"),), None),
        (pod("3500m"), (pod("600m"),), "OutOfcpu"),
        (pod("1", init="5"), (), "OutOfcpu"),
        (pod("3", sidecar="2"), (), "OutOfcpu"),
        (pod("1", selector="b"), (), "NodeAffinity"),
    ],
)
def test_a_node_admits_only_pods_that_select_it_and_fit(
    bound: Json, others: tuple[Json, ...], reason: str | None
) -> None:
    found = rejection(bound, NODE, others)
    assert (found.reason if found else None) == reason


@pytest.mark.parametrize(
    ("used", "message"),
    [
        ({"scratch": 2**20 + 1}, 'Usage of EmptyDir volume "scratch" exceeds the limit "1Mi".'),
        ({"": 2**22}, "Pod ephemeral local storage usage exceeds the total limit of containers 3145728."),
        ({"scratch": 2**20, "data": 2**21, "": 2**21}, None),
    ],
)
def test_a_pod_that_writes_more_than_it_may_is_evicted(used: dict[str, int], message: str | None) -> None:
    containers: list[JsonValue] = [
        {"name": name, "resources": {"limits": {"ephemeral-storage": limit}}}
        for name, limit in (("train", "1Mi"), ("side", "2Mi"))
    ]
    volumes: list[JsonValue] = [
        {"name": "scratch", "emptyDir": {"sizeLimit": "1Mi"}},
        {"name": "data", "emptyDir": {}},
    ]
    found = storage_eviction({"spec": {"containers": containers, "volumes": volumes}}, used)
    assert found == (message and PodOutcome(phase="Failed", reason="Evicted", message=message))


def test_a_pod_without_a_limit_may_not_fill_the_disk_of_this_machine() -> None:
    assert storage_eviction({"spec": {}}, {"": 2**31}) is None
    assert storage_eviction({"spec": {}}, {"": 2**31 + 1})


def test_a_job_that_never_fits_says_how_many_cores_it_needs_and_does_not_begin() -> None:
    def of(job: str, number: int) -> Json:
        labels: Json = {"jobset.sigs.k8s.io/jobset-name": job}
        return {"metadata": {"namespace": "vision", "uid": f"{job}-{number}", "labels": labels}}

    wide = [(of("wide", number), False) for number in range(64)]
    assert "its job has 64 pods" in shortage(wide[0][0], wide, cores=2)
    assert "use 4 cores" in shortage(wide[0][0], wide, cores=2)
    assert not shortage(wide[0][0], wide, cores=4)
    others = [(of("small", number), True) for number in range(32)]
    plain: Json = {"metadata": {"namespace": "vision", "uid": "plain"}}
    assert "waits for the end of one" in shortage(plain, [*others, (plain, False)], cores=2)
    assert not shortage(plain, [*others[1:], (plain, False)], cores=2)
