"""RayJobs that cannot fall back are refused when they are created, with the reason."""

from collections.abc import Mapping

import pytest

from pulumi_holdfast.controller.jobs.judgement import left_on_spot
from pulumi_holdfast.kubernetes.admission.job_expressions import QUEUE_NAME
from pulumi_holdfast.kubernetes.fallback_policy import API_VERSION, KIND
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import CAPACITY_TYPE, FOLLOWS, LADDER, RECREATE, SPOT
from pulumi_holdfast.ladder.reachability.facts import read_tiers
from tests.support.builders.training_jobs import (
    expression,
    pod_template,
    rayjob,
    required_affinity,
    worker_group,
)
from tests.support.clusters.job_admission import Judging, admitted_job, mounting, training
from tests.support.json_objects import obj

pytestmark = pytest.mark.cluster

SELECTOR: Json = {"clusterSelector": {"ray.io/cluster": "shared"}}
DELETION: Json = {"policy": "DeleteCluster", "condition": {"jobStatus": "SUCCEEDED"}}
RULES: Json = {"deletionStrategy": {"deletionRules": [DELETION]}}
KEPT: Json = {
    "deletionStrategy": {"onSuccess": {"policy": "DeleteNone"}, "onFailure": {"policy": "DeleteCluster"}}
}


def workers(template: Json | None = None, count: int = 2, **fields: int) -> Json:
    sizes = {"replicas": count, "minReplicas": count, "maxReplicas": count, **fields}
    return {**worker_group(template or training()), **sizes}


def ray(
    *groups: Json,
    namespace: str = "gpus",
    head: Json | None = None,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    spec: Json | None = None,
) -> Json:
    job = rayjob(*groups, head=head, labels=labels, annotations=annotations, spec=spec)
    return {**job, "metadata": {**obj(job["metadata"]), "namespace": namespace}}


PINNED: Json = {"affinity": required_affinity([expression(CAPACITY_TYPE, "NotIn", "on-demand")])}


@pytest.mark.parametrize(
    ("group", "why"),
    [
        (workers(training(cpu="97")), "shape worker (2 pods of 8 GPUs, 97 CPU, 512 GiB) cannot fall back"),
        (workers(count=5), "it has room for at most 4 of the 5 pods that have to run together"),
        (workers(count=1, numOfHosts=5), "it has room for at most 4 of the 5 pods"),
        (workers(training({CAPACITY_TYPE: SPOT, "disk": "nvme"})), "its nodes have disk=slow"),
        (workers(training(spec=PINNED)), "worker requires karpenter.sh/capacity-type by node affinity"),
        (workers(training(spec=mounting("scratch"))), "worker mounts the volume claim scratch"),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else "",
)
def test_workers_that_cannot_reach_the_end_of_their_ladder_are_rejected(
    judging: Judging, group: Json, why: str
) -> None:
    assert why in judging.refusal(ray(group))


def test_workers_of_two_groups_must_fit_together(judging: Judging) -> None:
    other = {**workers(count=3), "groupName": "other"}
    found = judging.refusal(ray(workers(count=3), other))
    assert "the job cannot fall back: tier 2 → pool a100: all its nodes together have 32 GPUs" in found


def test_the_minimum_of_an_autoscaled_group_must_fit(judging: Judging) -> None:
    group = workers(count=9, minReplicas=2, maxReplicas=9)
    scaled = ray(group)
    cluster = {**obj(obj(scaled["spec"])["rayClusterSpec"]), "enableInTreeAutoscaling": True}
    found = {**scaled, "spec": {**obj(scaled["spec"]), "rayClusterSpec": cluster}}
    assert not judging.problems(found)
    assert "4 of the 9 pods" in judging.refusal(scaled)


@pytest.mark.parametrize(
    ("field", "spec"),
    [("clusterSelector", SELECTOR), ("deletionRules", RULES), ("onSuccess.policy: DeleteNone", KEPT)],
)
def test_a_rayjob_that_cannot_be_suspended_cannot_follow(judging: Judging, field: str, spec: Json) -> None:
    job = ray(workers(), labels={FOLLOWS: "true"}, spec=spec)
    assert f"{field}` keeps its cluster. Remove" in judging.refusal(job)


def test_a_rayjob_that_ends_with_its_first_failed_attempt_is_rejected(judging: Judging) -> None:
    job = ray(workers(), namespace="evictions")
    assert "without a `backoffLimit` it fails at the first attempt that fails" in judging.refusal(job)


@pytest.mark.parametrize(
    ("job", "why"),
    [
        (ray(workers()), "where any failure moves a job on, admission raises its limit"),
        (ray(workers(), namespace="evictions", spec={"backoffLimit": 3}), "it has retries of its own"),
        (
            ray(workers(), namespace="evictions", annotations={RECREATE: "true"}),
            "it is recreated after an eviction ended it",
        ),
        (
            ray(workers(), namespace="evictions", spec={"submissionMode": "InteractiveMode"}),
            "KubeRay gives one that is driven by hand no retries",
        ),
        (ray(workers(training(cpu="97")), labels={QUEUE_NAME: "team"}), "Kueue decides where it runs"),
        (ray(workers(training(cpu="97")), labels={FOLLOWS: "false"}), "its author keeps it off the ladder"),
        (ray(workers(), head=pod_template(spec=mounting("scratch"))), "a head stays on the default pool"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_rayjob_that_can_follow_or_need_not_is_accepted(judging: Judging, job: Json, why: str) -> None:
    assert not judging.problems(job), why


@pytest.mark.parametrize(
    ("job", "words"),
    [
        (ray(workers(), spec=RULES), "a RayJob with `deletionStrategy.deletionRules` keeps its cluster"),
        (
            ray(workers(), spec=KEPT),
            "a RayJob with `deletionStrategy.onSuccess.policy: DeleteNone` keeps its cluster",
        ),
        (ray(head=training()), "only its head is on spot, and a move does not move a head"),
        (ray(workers(), namespace="cpus"), "the job requests GPUs, and no tier has any"),
        (ray(workers()), ""),
        (ray(head=training(), labels={FOLLOWS: "false"}), ""),
    ],
    ids=["deletion rules", "kept cluster", "head alone", "other machines", "follows", "on purpose"],
)
def test_a_rayjob_on_spot_that_nothing_moves_is_admitted_and_named_by_the_controller(
    judging: Judging, job: Json, words: str
) -> None:
    admitted = admitted_job(judging.client, job)
    policy = judging.client.get(API_VERSION, KIND, LADDER, str(obj(job["metadata"])["namespace"]))
    found = left_on_spot(admitted, read_tiers(policy or {}))
    assert words in found
    assert ("Nothing moves it to on-demand" in found) is bool(words), found
