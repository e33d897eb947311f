"""Every kind of job can observe any object that an API server may return."""

import pytest
from hypothesis import given

from pulumi_holdfast.controller.jobs.actions import Recreate, Resume, Suspend
from pulumi_holdfast.controller.jobs.kinds import KINDS, job_of_child, job_of_pod
from pulumi_holdfast.controller.jobs.pod_history import PodHistory, with_pod
from pulumi_holdfast.controller.jobs.pods_and_nodes import JobKey, Snapshot
from pulumi_holdfast.controller.jobs.state import JobState, Phase
from pulumi_holdfast.ladder.json import Json, JsonValue
from tests.support.builders.fallback_objects import (
    NAMESPACE,
    NOW,
    child_job,
    jobset,
    node,
    ray_worker,
    rayjob,
    worker,
)
from tests.support.json_objects import obj
from tests.support.strategies.any_json import any_json

KEYS = (
    "metadata",
    "spec",
    "status",
    "labels",
    "annotations",
    "conditions",
    "type",
    "nodeSelector",
    "tolerations",
    "template",
    "replicatedJobs",
    "rayClusterSpec",
    "workerGroupSpecs",
    "replicas",
    "parallelism",
    "deletionTimestamp",
    "containers",
    "resources",
    "requests",
    "cpu",
    "ownerReferences",
    "initContainers",
    "creationTimestamp",
    "containerStatuses",
)
STATE = JobState(uid="u", phase=Phase.SUSPENDING, pool="cpu", rank=0, since=NOW)


@pytest.mark.parametrize("kind", KINDS)
@given(job=any_json(*KEYS), pod=any_json(*KEYS), other=any_json(*KEYS))
def test_any_object_can_be_observed(kind: str, job: JsonValue, pod: JsonValue, other: JsonValue) -> None:
    seen = Snapshot(
        job=obj(job) if isinstance(job, dict) else {},
        now=NOW,
        pods=(obj(pod) if isinstance(pod, dict) else {},),
        children=(obj(other) if isinstance(other, dict) else {},),
        nodes={"": obj(other) if isinstance(other, dict) else {}},
        claims={},
        workloads=(obj(other) if isinstance(other, dict) else {},),
    )
    history = with_pod(PodHistory(), seen.pods[0], NOW)
    found, history = KINDS[kind].observe(seen, history)
    assert found.pods_expected >= 0
    assert KINDS[kind].observe(seen, history)[0] == found
    KINDS[kind].suspension(seen.job, Suspend(state=STATE, pool="cpu"), "")
    KINDS[kind].recreation(seen.job, Recreate(state=STATE, pool="cpu"), "")


def test_a_resumption_differs_from_a_suspension_only_in_its_flag() -> None:
    for kind, job in (("JobSet", jobset()), ("RayJob", rayjob())):
        suspended = KINDS[kind].suspension(job, Suspend(state=STATE, pool="cpu"), "x")
        resumed = KINDS[kind].resumption(job, Resume(state=STATE, pool="cpu"), "x")
        spec: Json = {**obj(suspended["spec"]), "suspend": False}
        assert resumed == {**suspended, "spec": spec}, f"{kind}: what was selected on the way down still is"


def test_each_pod_and_child_is_of_one_kind() -> None:
    train = JobKey("JobSet", NAMESPACE, "train")
    assert job_of_pod(worker("a")) == train
    assert job_of_pod(ray_worker("a")) == JobKey("RayJob", NAMESPACE, "train")
    assert job_of_pod(node("a")) is None
    assert job_of_child(child_job(jobset())) == train
    assert job_of_child({"metadata": {"name": "train"}}) is None
