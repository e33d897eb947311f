"""Trimmed objects have every field that the controller reads, and few others."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulumi_holdfast.controller.jobs.cached_objects import MOST_BYTES, MOST_TEMPLATES, cached_job, trim_child
from pulumi_holdfast.controller.jobs.caches import JOBSET_PODS, Caches
from pulumi_holdfast.controller.jobs.kinds import KINDS
from pulumi_holdfast.controller.jobs.pod_history import PodHistory
from pulumi_holdfast.controller.jobs.pods_and_nodes import Snapshot
from pulumi_holdfast.controller.jobs.trimmed_objects import (
    MOST_CONTAINERS,
    POD_FIELDS,
    trim,
    trim_claim,
    trim_node,
    trim_pod,
)
from pulumi_holdfast.controller.kube.client import JOB, RAYCLUSTER
from pulumi_holdfast.ladder.json import Json, JsonValue
from pulumi_holdfast.ladder.labels import PROGRESS
from tests.support.builders.fallback_objects import (
    NOW,
    child_job,
    condition,
    disrupted,
    jobset,
    node,
    ray_head,
    ray_worker,
    rayjob,
    snapshot,
    worker,
)
from tests.support.json_objects import obj, objects
from tests.support.strategies.any_json import any_json

LONG = "x" * 3000
FAILED = worker("failed", node="n1", phase="Failed", ended_at=NOW, exit_code=1)
EVICTED = worker("evicted", node="n2", conditions=[disrupted(NOW)], deleted_at=NOW)
SNAPSHOTS = {
    "a JobSet with every kind of pod": snapshot(
        jobset(),
        worker("runs", node="n1"),
        worker("waits"),
        FAILED,
        EVICTED,
        worker("other", job="evaluator", node="n3"),
        children=[child_job(jobset())],
        nodes=[node("n1"), node("n2", taints=["karpenter.sh/disrupted"]), node("n3", ready="Unknown")],
        claims={},
    ),
    "a suspended JobSet with an outdated child": snapshot(
        jobset(suspend=True), children=[child_job(jobset(), suspend=True, selector={"a": "b"})]
    ),
    "a RayJob whose head is lost": snapshot(
        rayjob(), ray_head(ready=False), ray_worker("w", node="n1"), nodes=[node("n1"), node("head-node")]
    ),
}


def noisy(pod: Json) -> Json:
    """A pod as a kubelet writes it, with many fields that are not read."""
    status = obj(pod["status"])
    return {
        **pod,
        "apiVersion": "v1",
        "metadata": {**obj(pod["metadata"]), "managedFields": [LONG], "generateName": "x", "finalizers": []},
        "spec": {**obj(pod["spec"]), "containers": [{"name": "c", "env": [{"value": LONG}]}], "volumes": []},
        "status": {
            **status,
            "podIP": "10.0.0.1",
            "qosClass": "Burstable",
            "conditions": [*objects(status["conditions"]), condition("Initialized")],
        },
    }


def whole_snapshot(snapshot: Snapshot) -> Snapshot:
    """The snapshot with everything in it that the API server tells."""
    return replace(snapshot, pods=tuple(noisy(pod) for pod in snapshot.pods))


def trimmed_snapshot(snapshot: Snapshot) -> Snapshot:
    """The snapshot as the controller has it."""
    kinds = {"Job": JOB, "RayCluster": RAYCLUSTER}
    children = (trim_child(kinds[str(child["kind"])])(child) for child in snapshot.children)
    return replace(
        snapshot,
        job=cached_job(snapshot.job).read(),
        pods=tuple(trim_pod(pod) for pod in whole_snapshot(snapshot).pods),
        children=tuple(child for child in children if child is not None),
        nodes={name: trim_node(each) for name, each in snapshot.nodes.items()},
        claims=None
        if snapshot.claims is None
        else {name: trim_claim(each) for name, each in snapshot.claims.items()},
    )


@pytest.mark.parametrize("snapshot", SNAPSHOTS.values(), ids=SNAPSHOTS)
def test_trimmed_objects_give_the_same_observation(snapshot: Snapshot) -> None:
    kind = KINDS[str(snapshot.job["kind"])]
    whole, reduced_to = whole_snapshot(snapshot), trimmed_snapshot(snapshot)
    assert kind.observe(reduced_to, PodHistory()) == kind.observe(whole, PodHistory())
    left = [obj(child["metadata"])["name"] for child in kind.outdated_children(reduced_to)]
    assert left == [obj(child["metadata"])["name"] for child in kind.outdated_children(whole)]


def test_most_of_a_pod_is_dropped() -> None:
    pod = noisy(worker("w", node="n1"))
    assert len(json.dumps(trim_pod(pod))) < len(json.dumps(pod)) / 5


def test_a_heartbeat_changes_no_trimmed_node() -> None:
    quiet = node("n")
    pressure = {**condition("MemoryPressure"), "lastHeartbeatTime": "now"}
    conditions = [*objects(obj(quiet["status"])["conditions"]), pressure]
    beating: Json = {**quiet, "status": {"conditions": conditions, "images": [LONG]}}
    assert trim_node(beating) == trim_node(quiet)


def test_conditions_of_a_starting_pod_and_the_schedulers_message_change_no_trimmed_pod() -> None:
    waiting = worker("w")
    unscheduled = {**condition("PodScheduled"), "status": "False", "reason": "Unschedulable"}
    before, after = (
        {**waiting, "status": {**obj(waiting["status"]), "conditions": conditions}}
        for conditions in (
            [{**unscheduled, "message": "0/3 nodes are available"}],
            [{**unscheduled, "message": "0/4 nodes are available"}, condition("Initialized")],
        )
    )
    assert trim_pod(before) == trim_pod(after), "or each new node would enqueue every job that waits"


def test_a_job_or_child_is_cached_without_what_is_not_read() -> None:
    job = jobset(annotations={"kubectl.kubernetes.io/last-applied-configuration": LONG, "mine": "1"})
    kept = cached_job({**job, "metadata": {**obj(job["metadata"]), "managedFields": [LONG]}})
    assert kept.read()["spec"] == job["spec"]
    assert LONG.encode() not in kept.content
    assert obj(obj(kept.read()["metadata"])["annotations"]) == {"mine": "1"}
    child = child_job(jobset())
    stranger: Json = {**child, "metadata": {**obj(child["metadata"]), "ownerReferences": []}}
    assert trim_child(JOB)(stranger) is None
    assert obj(trim_child(JOB)(child))["kind"] == "Job"


EMPTY: Json = {}


def jobset_of(*pod_specs: Json) -> Json:
    templates: list[JsonValue] = [{"template": {"spec": {"template": {"spec": spec}}}} for spec in pod_specs]
    return {**jobset(), "spec": {"replicatedJobs": templates}}


def containers(number: int) -> list[JsonValue]:
    return [{"name": f"c{each}"} for each in range(number)]


@pytest.mark.parametrize(
    ("job", "excess"),
    [
        (jobset_of({"initContainers": containers(MOST_CONTAINERS)}), ""),
        (jobset_of({}, {"initContainers": containers(6000), "containers": containers(1)}), "6001 containers"),
        (
            {**rayjob(), "spec": {"submitterPodTemplate": {"spec": {"containers": containers(301)}}}},
            "301 containers",
        ),
        (jobset_of(*[EMPTY] * MOST_TEMPLATES), ""),
        (jobset_of(*[EMPTY] * (MOST_TEMPLATES + 1)), "101 pod templates"),
        (jobset_of({"containers": [{"name": "x", "args": ["x" * MOST_BYTES]}]}), "KiB"),
    ],
)
def test_nothing_is_kept_of_a_job_that_is_too_large(job: Json, excess: str) -> None:
    kept = cached_job(job)
    assert excess in kept.excess
    assert bool(kept.excess) == bool(excess)
    assert (kept.content == b"{}") == bool(excess)


def test_what_is_kept_of_a_pod_does_not_grow_with_its_containers() -> None:
    ended: Json = {"state": {"terminated": {"exitCode": 1, "finishedAt": "2026-11-21T11:00:00Z"}}}
    last: Json = {"state": {"terminated": {"exitCode": 0, "finishedAt": "2026-11-21T12:00:00Z"}}}
    requests = {f"example.com/r{each}": "1" for each in range(5000)}
    large: Json = {
        "metadata": {"annotations": {PROGRESS: "9" * 200_000}},
        "spec": {
            "containers": [{"resources": {"requests": {"cpu": "10m", **requests}}}] * 4,
            "initContainers": containers(6000),
        },
        "status": {"containerStatuses": [last, *[ended] * 6000]},
    }
    kept = trim_pod(large)
    assert len(json.dumps(kept)) < 8 * 1024
    (container,) = objects(obj(kept["spec"])["containers"])
    assert obj(obj(container["resources"])["requests"])["cpu"] == "40m"
    (status,) = objects(obj(kept["status"])["containerStatuses"])
    assert obj(obj(status["state"])["terminated"])["finishedAt"] == "2026-11-21T12:00:00Z"


def test_pods_of_a_namespace_beyond_its_memory_are_ignored_until_others_are_deleted() -> None:
    caches = Caches()
    for name in ("crowded", "quiet"):
        caches.namespaces.put({"metadata": {"name": name}})
    pods = caches.pods[JOBSET_PODS]

    def pod(namespace: str, number: int) -> Json:
        owner: Json = {"name": "x" * 4000, "uid": "u"}
        return {"metadata": {"namespace": namespace, "name": f"p{number}", "ownerReferences": [owner] * 10}}

    for number in range(300):
        pods.put(pod("crowded", number))
    assert 100 < len(pods) < 250
    pods.put(pod("quiet", 0))
    assert pods.get("quiet", "p0") is not None
    assert pods.get("crowded", "p299") is None
    pods.remove(pod("crowded", 0))
    pods.put(pod("crowded", 299))
    assert pods.get("crowded", "p299") is not None


def test_a_namespace_has_a_limited_part_of_the_memory_until_its_jobs_are_deleted() -> None:
    caches = Caches()
    for name in ("crowded", "quiet"):
        caches.namespaces.put({"metadata": {"name": name}})
    jobs = [
        {**jobset(), "metadata": {"namespace": "crowded", "name": f"j{each}", "uid": f"u{each}"}}
        for each in range(2100)
    ]
    for job in jobs:
        caches.jobs["JobSet"].put(job)
    beyond = [each for each in caches.jobs["JobSet"] if each.excess]
    assert len(beyond) == 2100 - 2048
    caches.jobs["JobSet"].put({**jobset(), "metadata": {"namespace": "quiet", "name": "j", "uid": "q"}})
    assert not caches.jobs["JobSet"].find("uid", "q")[0].excess
    caches.jobs["JobSet"].remove(jobs[0])
    caches.jobs["JobSet"].put(jobs[-1])
    assert not caches.jobs["JobSet"].find("uid", "u2099")[0].excess


@given(any_json("metadata", "spec", "status", "conditions", "type", "labels"))
def test_any_value_can_be_trimmed(value: JsonValue) -> None:
    once = trim(value, POD_FIELDS)
    assert trim(once, POD_FIELDS) == once


@given(st.dictionaries(st.sampled_from(["metadata", "spec", "status", "other"]), st.text()))
def test_trimming_adds_no_field(found: dict[str, str]) -> None:
    assert set(trim_pod(found)) <= set(found)
