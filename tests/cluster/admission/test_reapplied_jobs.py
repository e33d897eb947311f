"""A manifest that is applied again over a job that follows its ladder, on a real API server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.scheduling.labels import CAPACITY_TYPE, FOLLOWS, HELD_FOR, ORIGINAL, POOL, STATE
from tests.support.builders.training_jobs import (
    jobset,
    marked,
    pod_template,
    rayjob,
    replicated_job,
    selectors_of,
    templates_of,
    worker_group,
)
from tests.support.clusters.job_admission import as_manifest, stored_job
from tests.support.json_objects import obj, objects

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from holdfast.scheduling.json import Json
    from holdfast.simulator.kubernetes_client.client import KubeClient

pytestmark = pytest.mark.cluster

SPOT = {CAPACITY_TYPE: "spot"}
HOLD: Json = {"key": HELD_FOR, "operator": "Equal", "value": "uid-1", "effect": "NoSchedule"}

JOBSET = jobset(
    replicated_job(pod_template(), "driver"),
    replicated_job(pod_template(SPOT)),
    annotations={},
    spec={"failurePolicy": {"maxRestarts": 5}},
)
RAYJOB = rayjob(
    worker_group(pod_template(SPOT)),
    head=pod_template({POOL: "cpu-spot"}),
    annotations={},
    spec={"backoffLimit": 5},
)


@pytest.fixture(params=[JOBSET, RAYJOB], ids=["JobSet", "RayJob"])
def job(request: pytest.FixtureRequest, cluster: KubeClient) -> Generator[Json]:
    """A job that was moved to its last tier: what is stored, and what was once written."""
    written: Json = request.param
    cluster.create(written)
    yield moved(cluster, written)
    removed(cluster, written)


def removed(cluster: KubeClient, job: Json) -> None:
    # At once: nothing hangs on it.
    cluster.delete(
        str(job["apiVersion"]), str(job["kind"]), "train", namespace="vision", propagation="Background"
    )


def written_for(job: Json) -> Json:
    return JOBSET if job["kind"] == "JobSet" else RAYJOB


def moved(cluster: KubeClient, written: Json, pool: str = "a100") -> Json:
    """The job as the controller leaves it on another tier, on capacity that was held for it."""

    def onto(template: Json) -> Json:
        return {
            **template,
            "spec": {**obj(template["spec"]), "nodeSelector": {POOL: pool}, "tolerations": [HOLD]},
        }

    return changed(cluster, stored_job(cluster, written), onto, {STATE: "{}"})


def changed(cluster: KubeClient, job: Json, change: Callable[[Json], Json], annotations: Json) -> Json:
    """The stored job with its worker's template changed."""
    spec = obj(job["spec"])
    if job["kind"] == "JobSet":
        patch: Json = {
            "replicatedJobs": [_replicated(each, change) for each in objects(spec["replicatedJobs"])]
        }
    else:
        ray = obj(spec["rayClusterSpec"])
        groups = [
            {**each, "template": change(obj(each["template"]))} for each in objects(ray["workerGroupSpecs"])
        ]
        patch = {"rayClusterSpec": {**ray, "workerGroupSpecs": groups}}
    return cluster.merge_patch(
        str(job["apiVersion"]),
        str(job["kind"]),
        "train",
        {"metadata": {"annotations": annotations}, "spec": patch},
        namespace="vision",
    )


def _replicated(each: Json, change: Callable[[Json], Json]) -> Json:
    if each["name"] != "worker":
        return each
    template = obj(each["template"])
    job = obj(template["spec"])
    return {**each, "template": {**template, "spec": {**job, "template": change(obj(job["template"]))}}}


def reapplied(cluster: KubeClient, job: Json) -> Json:
    """What `kubectl apply` makes of it: what differs from the manifest is sent, lists as a whole."""
    written = written_for(job)
    metadata = obj(written["metadata"])
    patch: Json = {"metadata": {"annotations": metadata["annotations"]}, "spec": written["spec"]}
    return cluster.merge_patch(str(job["apiVersion"]), str(job["kind"]), "train", patch, namespace="vision")


def test_a_manifest_applied_again_changes_nothing(cluster: KubeClient, job: Json) -> None:
    found = reapplied(cluster, job)
    assert as_manifest(found)["spec"] == as_manifest(job)["spec"], (
        "JobSet would refuse any change, and KubeRay's next attempt would be on spot again"
    )
    assert as_manifest(found)["metadata"] == as_manifest(job)["metadata"], "nor is it lost where the job is"


def test_a_job_that_is_replaced_stays_on_its_tier(cluster: KubeClient, job: Json) -> None:
    bare: Json = {"metadata": {"labels": None, "annotations": None}, "spec": written_for(job)["spec"]}
    found = cluster.merge_patch(str(job["apiVersion"]), str(job["kind"]), "train", bare, namespace="vision")
    assert selectors_of(found)["worker"] == {POOL: "a100"}, "it does not go back to where it came from"
    metadata = obj(found["metadata"])
    assert obj(metadata["labels"])[FOLLOWS] == "true", "it still follows"
    assert {STATE, ORIGINAL} <= obj(metadata["annotations"]).keys(), "and whoever moves it knows where it is"
    assert obj(templates_of(found)["worker"]["spec"])["tolerations"] == [HOLD], (
        "the capacity held for it stays within reach"
    )


def test_a_move_is_not_undone(cluster: KubeClient, job: Json) -> None:
    found = moved(cluster, written_for(job), pool="cpu-spot")
    assert selectors_of(found)["worker"] == {POOL: "cpu-spot"}, "whoever names a pool is meant"
    assert marked(found) == ["worker"], "and moves the templates that follow"


def test_an_author_can_take_a_job_off_its_ladder(cluster: KubeClient, job: Json) -> None:
    patch: Json = {"metadata": {"labels": {FOLLOWS: "false"}}}
    found = cluster.merge_patch(str(job["apiVersion"]), str(job["kind"]), "train", patch, namespace="vision")
    assert obj(obj(found["metadata"])["labels"])[FOLLOWS] == "false", "the label is the author's"
    assert selectors_of(found)["worker"] == {POOL: "a100"}, "it stays where it is"


def test_a_job_that_follows_no_ladder_is_updated_as_it_is_written(cluster: KubeClient) -> None:
    plain = jobset(replicated_job(pod_template()), annotations={}, labels={})
    stored = cluster.create(plain)
    try:
        found = changed(cluster, stored, lambda _: pod_template(SPOT), {})
        assert selectors_of(found)["worker"] == SPOT, "it was not mended when it came, and is not now"
    finally:
        removed(cluster, plain)
