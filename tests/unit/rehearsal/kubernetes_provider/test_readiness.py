"""Each kind has a rule that decides from its status whether an object is ready or has failed."""

import pytest

from pulumi_holdfast.ladder.json import Json, JsonValue
from pulumi_holdfast.rehearsal.kubernetes_provider.readiness import READY, rule_for

GENERATION = 3


def deployment(**status: JsonValue) -> Json:
    """A ready Deployment of two pods, changed by `status`."""
    counts = ("replicas", "updatedReplicas", "availableReplicas", "readyReplicas")
    ready: Json = {"observedGeneration": GENERATION, **dict.fromkeys(counts, 2)}
    return workload("Deployment", {"replicas": 2}, {**ready, **status})


def workload(kind: str, spec: Json, status: Json) -> Json:
    metadata = {"name": "w", "generation": GENERATION}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": metadata, "spec": spec, "status": status}


def core(kind: str, **fields: JsonValue) -> Json:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": "x"}, **fields}


def verdict(obj: Json) -> tuple[str, str]:
    rule = rule_for(obj)
    assert rule is not None, f"{obj.get('kind')} has no rule"
    found = rule(obj)
    return "ready" if found == READY else "failed" if found.is_final else "waiting", found.reason


def test_deployment_is_ready_without_missing_pods_and_fails_past_its_deadline() -> None:
    assert verdict(deployment())[0] == "ready", "`up` would wait indefinitely"
    obj = workload("Deployment", {"replicas": 0}, {"observedGeneration": GENERATION})
    assert verdict(obj)[0] == "ready", "no pod is missing"
    late: Json = {"type": "Progressing", "reason": "ProgressDeadlineExceeded", "message": "too late"}
    assert verdict(deployment(conditions=[late], availableReplicas=0)) == ("failed", "too late"), (
        "its controller no longer retries"
    )


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        ({"observedGeneration": GENERATION - 1}, "has not observed it"),
        ({"updatedReplicas": 1}, "1 of 2 pods have the latest revision"),
        ({"replicas": 3}, "1 pods of an older revision"),
        ({"availableReplicas": 0}, "0 of 2 pods are available"),
    ],
)
def test_deployment_is_waiting_until_its_rollout_completes(status: Json, reason: str) -> None:
    progress, message = verdict(deployment(**status))
    assert progress == "waiting", "dependents would start too early"
    assert reason in message, "the message must say what is missing"


@pytest.mark.parametrize(
    ("spec", "status", "progress"),
    [
        ({"replicas": 2}, {"readyReplicas": 2, "updatedReplicas": 2}, "ready"),
        ({"replicas": 2}, {"readyReplicas": 2, "updatedReplicas": 1}, "waiting"),
        (
            {"replicas": 2, "updateStrategy": {"rollingUpdate": {"partition": 1}}},
            {"readyReplicas": 2, "updatedReplicas": 1},
            "ready",
        ),
        ({"replicas": 2, "updateStrategy": {"type": "OnDelete"}}, {"readyReplicas": 2}, "ready"),
        ({"replicas": 2}, {"readyReplicas": 1, "updatedReplicas": 2}, "waiting"),
    ],
)
def test_stateful_set_waits_for_its_rollout(spec: Json, status: Json, progress: str) -> None:
    obj = workload("StatefulSet", spec, {"observedGeneration": GENERATION, **status})
    assert verdict(obj)[0] == progress, f"wrong verdict for {spec} and {status}"


@pytest.mark.parametrize(("available", "progress"), [(3, "ready"), (2, "waiting")])
def test_daemon_set_is_waiting_until_every_node_has_its_pod(available: int, progress: str) -> None:
    status: Json = {
        "observedGeneration": GENERATION,
        "desiredNumberScheduled": 3,
        "updatedNumberScheduled": 3,
        "numberAvailable": available,
    }
    assert verdict(workload("DaemonSet", {}, status))[0] == progress, "a node would be without its agent"


@pytest.mark.parametrize(
    ("obj", "progress"),
    [
        (core("Pod", status={"phase": "Succeeded"}), "ready"),
        (core("Pod", status={"phase": "Running"}), "waiting"),
        (core("Pod", status={"phase": "Failed", "message": "m"}), "failed"),
        (core("Secret", type="Opaque"), "ready"),
        (core("Secret", type="kubernetes.io/service-account-token"), "waiting"),
        (core("PersistentVolumeClaim", status={"phase": "Pending"}), "waiting"),
        (core("PersistentVolume", status={"phase": "Available"}), "ready"),
        (core("Service", spec={"type": "ClusterIP"}), "ready"),
        (core("Service", spec={"type": "LoadBalancer"}), "waiting"),
        (core("ResourceQuota", spec={"hard": {"pods": "1"}}), "waiting"),
        (core("ResourceQuota", spec={"hard": {"pods": "1"}}, status={"hard": {"pods": "1"}}), "ready"),
    ],
)
def test_core_kind_is_ready_according_to_its_status(obj: Json, progress: str) -> None:
    assert verdict(obj)[0] == progress, f"wrong verdict for {obj}"


JOB: Json = {"apiVersion": "batch/v1", "kind": "Job"}
CRD: Json = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}


@pytest.mark.parametrize(
    ("obj", "condition", "progress"),
    [
        (JOB, {}, "waiting"),
        (JOB, {"type": "Complete", "status": "True"}, "ready"),
        (JOB, {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}, "failed"),
        (CRD, {}, "waiting"),
        (CRD, {"type": "Established", "status": "True"}, "ready"),
        (CRD, {"type": "NamesAccepted", "status": "False", "message": "taken"}, "failed"),
    ],
)
def test_job_and_crd_are_waiting_until_a_condition(obj: Json, condition: Json, progress: str) -> None:
    conditions = [condition] if condition else []
    assert verdict({**obj, "status": {"conditions": conditions}})[0] == progress, "dependents need it"


@pytest.mark.parametrize(
    "obj",
    [core("ConfigMap"), core("Namespace"), core("ServiceAccount"), {"apiVersion": "x.io/v1", "kind": "Job"}],
)
def test_kind_without_a_rule_is_ready_at_once(obj: Json) -> None:
    assert rule_for(obj) is None, "its status never changes or has another meaning"
