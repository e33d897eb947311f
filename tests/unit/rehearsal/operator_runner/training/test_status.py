"""The status that a kubelet writes of a training pod, and the pods that a node rejects."""

import pytest

from pulumi_holdfast.ladder.json import Json, JsonValue
from pulumi_holdfast.rehearsal.operator_runner.training.status import (
    ContainerState,
    PodOutcome,
    pod_status,
    rejection,
    shortage,
    storage_eviction,
)
from tests.support.json_objects import obj

NOW = "2030-01-01T00:02:00Z"


def status(
    phase: str, state: ContainerState, before: Json | None = None, address: str = "10.200.0.1"
) -> Json:
    return pod_status({"status": before or {}}, PodOutcome(phase=phase), [], [state], address, NOW)


def shown(state: ContainerState) -> Json:
    return obj(state.shown()["state"])


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
