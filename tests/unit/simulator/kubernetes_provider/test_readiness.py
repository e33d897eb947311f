"""An object is ready when its kind's own status says so, and failed when it cannot become ready."""

import pytest

from holdfast.scheduling.json import Json, JsonValue
from holdfast.simulator.errors import RehearsalError
from holdfast.simulator.kubernetes_provider.readiness import Progress, custom_rule, rule_for

GENERATION = 3


def deployment(**status: JsonValue) -> Json:
    """A ready Deployment of two pods, but for what `status` says."""
    ready: Json = {
        "observedGeneration": GENERATION,
        "replicas": 2,
        "updatedReplicas": 2,
        "availableReplicas": 2,
        "readyReplicas": 2,
    }
    return workload("Deployment", {"replicas": 2}, {**ready, **status})


def workload(kind: str, spec: Json, status: Json) -> Json:
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": "w", "generation": GENERATION},
        "spec": spec,
        "status": status,
    }


def core(kind: str, **fields: JsonValue) -> Json:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": "x"}, **fields}


def told(obj: Json) -> tuple[Progress, str]:
    rule = rule_for(obj)
    assert rule is not None, f"nothing is waited for with {obj.get('kind')}"
    found = rule(obj)
    return found.progress, found.reason


def test_a_deployment_whose_pods_are_available_is_ready() -> None:
    assert told(deployment())[0] is Progress.READY, "up would wait for ever"


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        ({"observedGeneration": GENERATION - 1}, "has not seen it"),
        ({"updatedReplicas": 1}, "1 of 2 pods are of the latest revision"),
        ({"replicas": 3}, "1 pods of an older revision"),
        ({"availableReplicas": 0}, "0 of 2 pods are available"),
    ],
)
def test_a_deployment_waits_for_each_step_of_its_rollout(status: Json, reason: str) -> None:
    progress, words = told(deployment(**status))
    assert progress is Progress.WAITING, "what depends on it would start too early"
    assert reason in words, "the message does not say what is missing"


def test_a_deployment_past_its_deadline_has_failed() -> None:
    late: Json = {"type": "Progressing", "reason": "ProgressDeadlineExceeded", "message": "too late"}
    assert told(deployment(conditions=[late], availableReplicas=0)) == (Progress.FAILED, "too late"), (
        "up would wait for what its controller has given up"
    )


def test_a_deployment_of_no_pods_is_ready() -> None:
    obj = workload("Deployment", {"replicas": 0}, {"observedGeneration": GENERATION})
    assert told(obj)[0] is Progress.READY, "scaled to nothing, nothing is missing"


@pytest.mark.parametrize(
    ("spec", "status", "progress"),
    [
        ({"replicas": 2}, {"readyReplicas": 2, "updatedReplicas": 2}, Progress.READY),
        ({"replicas": 2}, {"readyReplicas": 2, "updatedReplicas": 1}, Progress.WAITING),
        (
            {"replicas": 2, "updateStrategy": {"rollingUpdate": {"partition": 1}}},
            {"readyReplicas": 2, "updatedReplicas": 1},
            Progress.READY,
        ),
        ({"replicas": 2, "updateStrategy": {"type": "OnDelete"}}, {"readyReplicas": 2}, Progress.READY),
        ({"replicas": 2}, {"readyReplicas": 1, "updatedReplicas": 2}, Progress.WAITING),
    ],
)
def test_a_stateful_set_waits_for_the_pods_it_rolls(spec: Json, status: Json, progress: Progress) -> None:
    obj = workload("StatefulSet", spec, {"observedGeneration": GENERATION, **status})
    assert told(obj)[0] is progress, f"a set with {spec} and {status} is misjudged"


@pytest.mark.parametrize(("available", "progress"), [(3, Progress.READY), (2, Progress.WAITING)])
def test_a_daemon_set_waits_for_every_node(available: int, progress: Progress) -> None:
    status: Json = {
        "observedGeneration": GENERATION,
        "desiredNumberScheduled": 3,
        "updatedNumberScheduled": 3,
        "numberAvailable": available,
    }
    assert told(workload("DaemonSet", {}, status))[0] is progress, "a node without its agent counts as done"


@pytest.mark.parametrize(
    ("obj", "progress"),
    [
        (core("Pod", status={"phase": "Succeeded"}), Progress.READY),
        (core("Pod", status={"phase": "Running"}), Progress.WAITING),
        (core("Pod", status={"phase": "Failed", "message": "m"}), Progress.FAILED),
        (core("Secret", type="Opaque"), Progress.READY),
        (core("Secret", type="kubernetes.io/service-account-token"), Progress.WAITING),
        (core("PersistentVolumeClaim", status={"phase": "Pending"}), Progress.WAITING),
        (core("PersistentVolume", status={"phase": "Available"}), Progress.READY),
        (core("Service", spec={"type": "ClusterIP"}), Progress.READY),
        (core("Service", spec={"type": "LoadBalancer"}), Progress.WAITING),
        (core("ResourceQuota", spec={"hard": {"pods": "1"}}), Progress.WAITING),
        (
            core("ResourceQuota", spec={"hard": {"pods": "1"}}, status={"hard": {"pods": "1"}}),
            Progress.READY,
        ),
    ],
)
def test_core_kinds_are_judged_by_their_own_status(obj: Json, progress: Progress) -> None:
    assert told(obj)[0] is progress, f"{obj} is misjudged"


@pytest.mark.parametrize(
    ("conditions", "progress"),
    [
        ([], Progress.WAITING),
        ([{"type": "Complete", "status": "True"}], Progress.READY),
        ([{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}], Progress.FAILED),
    ],
)
def test_a_job_is_waited_for_to_its_end(conditions: JsonValue, progress: Progress) -> None:
    job: Json = {"apiVersion": "batch/v1", "kind": "Job", "status": {"conditions": conditions}}
    assert told(job)[0] is progress, "a job that has not ended, or not well, is misjudged"


@pytest.mark.parametrize(
    ("conditions", "progress"),
    [
        ([], Progress.WAITING),
        ([{"type": "Established", "status": "True"}], Progress.READY),
        ([{"type": "NamesAccepted", "status": "False", "message": "taken"}], Progress.FAILED),
    ],
)
def test_a_crd_is_waited_for_until_its_kind_is_served(conditions: JsonValue, progress: Progress) -> None:
    crd: Json = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "status": {"conditions": conditions},
    }
    assert told(crd)[0] is progress, "objects of the kind would be refused"


@pytest.mark.parametrize("kind", ["ConfigMap", "Namespace", "ServiceAccount"])
def test_other_kinds_are_ready_at_once(kind: str) -> None:
    assert rule_for(core(kind)) is None, "nothing could ever become of it"


def test_custom_kinds_are_ready_at_once_whatever_their_name() -> None:
    assert rule_for({"apiVersion": "x.io/v1", "kind": "Job"}) is None, "its status means something else"


READY: Json = {"status": {"phase": "Running", "size": 3, "conditions": [{"type": "Ready", "status": "True"}]}}


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("condition=Ready", True),
        ("condition=Ready=False", False),
        ("condition=Drained", False),
        ("jsonpath={.status.phase}=Running", True),
        ("jsonpath={.status.phase}=Pending", False),
        ("jsonpath={.status.size}=3", True),
        ("jsonpath={.status.phase}", True),
        ("jsonpath={.status.gone}", False),
        ('["condition=Ready", "jsonpath={.status.phase}=Running"]', True),
        ('["condition=Ready", "jsonpath={.status.phase}=Pending"]', False),
    ],
)
def test_a_condition_holds_as_written(text: str, holds: bool) -> None:
    assert custom_rule(text)(READY).is_ready is holds, f"{text} is misjudged"


@pytest.mark.parametrize("text", ["Ready", "jsonpath={.status[0]}", "jsonpath={..phase}=x"])
def test_what_cannot_be_judged_is_refused_with_what_can(text: str) -> None:
    with pytest.raises(RehearsalError, match=r"condition=<type>"):
        custom_rule(text)
