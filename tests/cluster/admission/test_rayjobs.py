"""How admission mutates a RayJob, and jobs that are applied again, on a real API server."""

import json
from collections.abc import Callable, Generator

import pytest

from pulumi_holdfast.controller.kube.objects import annotations_of, labels_of
from pulumi_holdfast.kubernetes.admission.job_expressions import QUEUE_NAME
from pulumi_holdfast.kubernetes.admission.rayjob import MOST_RETRIES
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import CAPACITY_TYPE, FOLLOWS, ORIGINAL, POOL, RESERVED_FOR, STATE
from pulumi_holdfast.rehearsal.kubernetes import KubeClient
from tests.support.builders.training_jobs import (
    expression,
    jobset,
    marked,
    pod_template,
    rayjob,
    replicated_job,
    required_affinity,
    selectors_of,
    templates_of,
    worker_group,
)
from tests.support.clusters.job_admission import admitted_job, as_manifest, stored_job
from tests.support.json_objects import obj, objects

pytestmark = pytest.mark.cluster


SPOT = {CAPACITY_TYPE: "spot"}
LABEL = {FOLLOWS: "true"}


def test_workers_on_spot_follow_and_the_head_stays_on_the_default_pool(cluster: KubeClient) -> None:
    found = admitted_job(cluster, rayjob(worker_group(pod_template(SPOT))))
    assert selectors_of(found) == {"head": {}, "worker": {POOL: "a100-spot"}}
    assert marked(found) == ["worker"]


def test_it_can_be_suspended_and_kuberays_limit_does_not_end_it(cluster: KubeClient) -> None:
    found = obj(
        admitted_job(cluster, rayjob(worker_group(pod_template(SPOT)), spec={"backoffLimit": 5}))["spec"]
    )
    assert found["shutdownAfterJobFinishes"] is True, "KubeRay refuses to suspend it otherwise"
    assert found["backoffLimit"] == MOST_RETRIES, "a RayJob that has failed cannot be revived"


@pytest.mark.parametrize("head", [SPOT, {POOL: "cpu-spot"}, {POOL: "a100-spot", **SPOT}])
def test_a_head_on_spot_loses_its_spot_selector(cluster: KubeClient, head: dict[str, str]) -> None:
    template = pod_template({**head, "disk": "fast"})
    found = admitted_job(cluster, rayjob(worker_group(pod_template(SPOT)), head=template))
    assert selectors_of(found)["head"] == {"disk": "fast"}
    original = obj(json.loads(str(annotations_of(found)[ORIGINAL])))
    assert original["headNodeSelector"] == {**head, "disk": "fast"}


def test_a_head_with_a_spot_affinity_loses_it(cluster: KubeClient) -> None:
    head = pod_template(spec={"affinity": required_affinity([expression(CAPACITY_TYPE, "In", "spot")])})
    found = admitted_job(cluster, rayjob(worker_group(pod_template(SPOT)), head=head))
    spec = obj(templates_of(found)["head"]["spec"])
    assert obj(obj(spec["affinity"])["nodeAffinity"]) == {}


@pytest.mark.parametrize("head", [{CAPACITY_TYPE: "on-demand"}, {POOL: "a100"}, {POOL: "elsewhere"}])
def test_a_head_that_is_not_on_spot_is_unchanged(cluster: KubeClient, head: dict[str, str]) -> None:
    found = admitted_job(cluster, rayjob(worker_group(pod_template(SPOT)), head=pod_template(head)))
    assert selectors_of(found)["head"] == head


def test_a_submitter_on_spot_loses_its_spot_selector(cluster: KubeClient) -> None:
    spec: Json = {"submitterPodTemplate": pod_template(SPOT)}
    found = obj(admitted_job(cluster, rayjob(worker_group(pod_template(SPOT)), spec=spec))["spec"])
    assert obj(obj(obj(found["submitterPodTemplate"])["spec"])["nodeSelector"]) == {}


def test_worker_groups_that_are_not_on_spot_are_unchanged(cluster: KubeClient) -> None:
    groups = (worker_group(pod_template(), "loaders"), worker_group(pod_template(SPOT), "trainers"))
    found = admitted_job(cluster, rayjob(*groups))
    assert marked(found) == ["trainers"], "CPU helpers are meant for the default pool"
    assert selectors_of(found)["loaders"] == {}


def test_a_job_with_only_the_label_follows_with_all_its_workers(cluster: KubeClient) -> None:
    found = admitted_job(cluster, rayjob(worker_group(pod_template()), labels=LABEL))
    assert selectors_of(found) == {"head": {}, "worker": {POOL: "a100-spot"}}


@pytest.mark.parametrize(
    ("job", "why"),
    [
        (rayjob(worker_group(pod_template())), "it asks for nothing"),
        (rayjob(worker_group(pod_template(SPOT)), labels={FOLLOWS: "false"}), "its author said no"),
        (rayjob(head=pod_template(SPOT)), "it has no workers that could move"),
        (
            rayjob(worker_group(pod_template(SPOT)), spec={"clusterSelector": {"ray.io/cluster": "ours"}}),
            "a job on an existing RayCluster cannot be suspended",
        ),
        (
            rayjob(worker_group(pod_template(SPOT)), spec={"managedBy": "kueue.x-k8s.io/multikueue"}),
            "another cluster's KubeRay runs it",
        ),
        (
            rayjob(
                worker_group(pod_template(SPOT)),
                spec={
                    "deletionStrategy": {
                        "deletionRules": [
                            {"policy": "DeleteCluster", "condition": {"jobStatus": "FAILED", "ttlSeconds": 9}}
                        ]
                    }
                },
            ),
            "a job that keeps its cluster by rules cannot be suspended",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_job_that_does_not_follow_is_stored_unchanged(cluster: KubeClient, job: Json, why: str) -> None:
    found = admitted_job(cluster, job)
    assert ORIGINAL not in annotations_of(found), why
    assert selectors_of(found) == selectors_of(job), why
    assert "backoffLimit" not in obj(found["spec"]) or obj(found["spec"])["backoffLimit"] == 0, why


def test_an_interactive_job_gets_no_retries(cluster: KubeClient) -> None:
    spec: Json = {"submissionMode": "InteractiveMode"}
    found = obj(admitted_job(cluster, rayjob(worker_group(pod_template(SPOT)), spec=spec))["spec"])
    assert found.get("backoffLimit", 0) == 0


def test_kueues_jobs_keep_their_selectors(cluster: KubeClient) -> None:
    job = rayjob(worker_group(pod_template(SPOT)), head=pod_template(SPOT), labels={QUEUE_NAME: "spot"})
    found = admitted_job(cluster, job)
    assert selectors_of(found) == {"head": SPOT, "worker": SPOT}
    assert obj(found["spec"])["shutdownAfterJobFinishes"] is True


def test_admission_is_idempotent(cluster: KubeClient) -> None:
    written = rayjob(
        worker_group(pod_template(), "loaders"), worker_group(pod_template(SPOT)), head=pod_template(SPOT)
    )
    once = admitted_job(cluster, written)
    again = admitted_job(cluster, as_manifest(once))
    assert as_manifest(again) == as_manifest(once)


HOLD: Json = {"key": RESERVED_FOR, "operator": "Equal", "value": "uid-1", "effect": "NoSchedule"}

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
    assert as_manifest(found)["spec"] == as_manifest(job)["spec"]
    assert as_manifest(found)["metadata"] == as_manifest(job)["metadata"]


def test_a_job_that_is_replaced_stays_on_its_tier(cluster: KubeClient, job: Json) -> None:
    bare: Json = {"metadata": {"labels": None, "annotations": None}, "spec": written_for(job)["spec"]}
    found = cluster.merge_patch(str(job["apiVersion"]), str(job["kind"]), "train", bare, namespace="vision")
    assert selectors_of(found)["worker"] == {POOL: "a100"}
    metadata = obj(found["metadata"])
    assert obj(metadata["labels"])[FOLLOWS] == "true"
    assert {STATE, ORIGINAL} <= obj(metadata["annotations"]).keys()
    assert obj(templates_of(found)["worker"]["spec"])["tolerations"] == [HOLD]


@pytest.mark.parametrize(
    ("pool", "stays"), [("a100-spot", True), ("cpu-spot", False)], ids=["its first pool", "another pool"]
)
@pytest.mark.parametrize("kind", ["JobSet", "RayJob"])
def test_a_manifest_that_names_its_first_pool_is_applied_again_without_a_move(
    cluster: KubeClient, kind: str, pool: str, stays: bool
) -> None:
    worker = pod_template({POOL: "a100-spot", "disk": "fast"})
    written = jobset(replicated_job(worker)) if kind == "JobSet" else rayjob(worker_group(worker))
    cluster.apply(written, field_manager="gitops")
    try:
        moved(cluster, written)
        named = pod_template({POOL: pool, "disk": "fast"})
        manifest = jobset(replicated_job(named)) if kind == "JobSet" else rayjob(worker_group(named))
        found = cluster.apply(manifest, field_manager="gitops", force=True)
        assert selectors_of(found)["worker"] == {POOL: "a100" if stays else pool, "disk": "fast"}
    finally:
        removed(cluster, written)


def test_a_move_is_not_undone(cluster: KubeClient, job: Json) -> None:
    found = moved(cluster, written_for(job), pool="cpu-spot")
    assert selectors_of(found)["worker"] == {POOL: "cpu-spot"}
    assert marked(found) == ["worker"]


def test_an_author_can_remove_a_job_from_its_ladder(cluster: KubeClient, job: Json) -> None:
    patch: Json = {"metadata": {"labels": {FOLLOWS: "false"}}}
    found = cluster.merge_patch(str(job["apiVersion"]), str(job["kind"]), "train", patch, namespace="vision")
    assert labels_of(found)[FOLLOWS] == "false"
    assert selectors_of(found)["worker"] == {POOL: "a100"}


def test_updates_of_a_job_without_a_ladder_are_unchanged(cluster: KubeClient) -> None:
    plain = jobset(replicated_job(pod_template()), annotations={}, labels={})
    stored = cluster.create(plain)
    try:
        found = changed(cluster, stored, lambda _: pod_template(SPOT), {})
        assert selectors_of(found)["worker"] == SPOT
    finally:
        removed(cluster, plain)
