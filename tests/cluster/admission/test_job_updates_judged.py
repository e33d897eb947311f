"""Updates of existing jobs on a real API server: only new pods of a user are validated."""

from collections.abc import Generator

import pytest

from pulumi_holdfast.controller.kube.client import ApiError
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import CAPACITY_TYPE, FOLLOWS, POOL, STATE, STOP, TRAINING, TRAINING_VALUE
from pulumi_holdfast.rehearsal.kubernetes import KubeClient
from tests.support.builders.training_jobs import jobset, rayjob, selectors_of, worker_group
from tests.support.clusters.admission import make_namespace, wait_until_enforced
from tests.support.clusters.job_admission import (
    KNOWN,
    LADDERS,
    Judging,
    gang,
    is_judged,
    ladder_with,
    mounting,
    stored_job,
    told,
    training,
)
from tests.support.json_objects import obj, objects

pytestmark = pytest.mark.cluster

FINALIZER = "example.com/kept"
ON = {POOL: "a100-spot"}
#: Mounts a volume claim that is bound to a zone.
HOPELESS = training(ON, spec=mounting("scratch"))


def job_of(kind: str, template: Json, namespace: str = "gpus") -> Json:
    """A job that follows, of one worker, as admission makes it."""
    marked = {**template, "metadata": {"labels": {FOLLOWS: "true"}}}
    labels = {FOLLOWS: "true"}
    job = (
        jobset(gang(marked, 1), labels=labels)
        if kind == "JobSet"
        else rayjob(worker_group(marked), labels=labels)
    )
    metadata = {**obj(job["metadata"]), "namespace": namespace, "finalizers": [FINALIZER]}
    return {**job, "metadata": metadata}


def with_template(job: Json, template: Json) -> Json:
    """The patch by which a job's pods become these."""
    marked = {**template, "metadata": {"labels": {FOLLOWS: "true"}}}
    spec = obj(job["spec"])
    if job["kind"] == "JobSet":
        (only,) = objects(spec["replicatedJobs"])
        inner = obj(obj(only["template"])["spec"])
        pods = {**obj(marked), "spec": {**obj(marked["spec"]), "restartPolicy": "Never"}}
        return {"spec": {"replicatedJobs": [{**only, "template": {"spec": {**inner, "template": pods}}}]}}
    cluster = obj(spec["rayClusterSpec"])
    (group,) = objects(cluster["workerGroupSpecs"])
    return {"spec": {"rayClusterSpec": {**cluster, "workerGroupSpecs": [{**group, "template": marked}]}}}


def patched(client: KubeClient, job: Json, patch: Json) -> Json:
    metadata = obj(job["metadata"])
    return client.merge_patch(
        str(job["apiVersion"]), str(job["kind"]), "train", patch, namespace=str(metadata["namespace"])
    )


def removed(client: KubeClient, job: Json) -> None:
    patched(client, job, {"metadata": {"finalizers": None}})
    metadata = obj(job["metadata"])
    client.delete(
        str(job["apiVersion"]),
        str(job["kind"]),
        "train",
        namespace=str(metadata["namespace"]),
        propagation="Background",
    )


@pytest.fixture(params=["JobSet", "RayJob"])
def job(request: pytest.FixtureRequest, judging: Judging) -> Generator[Json]:
    """A job that can follow its ladder."""
    written = job_of(str(request.param), training(ON))
    yield judging.client.create(written)
    removed(judging.as_controller, written)


@pytest.fixture(params=["JobSet", "RayJob"])
def lost(request: pytest.FixtureRequest, judging: Judging) -> Generator[Json]:
    """A job that cannot, as one is that was there before its ladder was changed."""
    written = job_of(str(request.param), HOPELESS)
    yield judging.as_controller.create(written)
    removed(judging.as_controller, written)


def refusal(client: KubeClient, job: Json, patch: Json) -> str:
    with pytest.raises(ApiError) as caught:
        patched(client, job, patch)
    return told(str(caught.value))


def test_new_pods_of_a_user_are_validated(judging: Judging, job: Json) -> None:
    found = refusal(judging.client, job, with_template(job, HOPELESS))
    assert "mounts the volume claim scratch" in found
    smaller = patched(judging.client, job, with_template(job, training(ON, cpu="40")))
    assert smaller["kind"] == job["kind"]


def test_a_job_returns_to_its_first_pool_by_the_controller_or_while_it_is_stopped(
    judging: Judging, job: Json
) -> None:
    first, other = (with_template(job, training({POOL: pool})) for pool in ("a100-spot", "a100"))

    def pool_after(client: KubeClient, patch: Json) -> object:
        return selectors_of(patched(client, job, patch))["worker"][POOL]

    assert pool_after(judging.as_controller, other) == "a100"
    assert pool_after(judging.client, first) == "a100", "its manifest is applied again"
    assert pool_after(judging.as_controller, first) == "a100-spot"
    assert pool_after(judging.client, other) == "a100"
    patched(judging.client, job, {"metadata": {"annotations": {STOP: "true"}}})
    assert pool_after(judging.client, first) == "a100-spot"


def test_a_user_can_select_another_tier_but_no_other_pool(judging: Judging, job: Json) -> None:
    assert patched(judging.client, job, with_template(job, training({POOL: "a100"})))
    found = refusal(judging.client, job, with_template(job, training({POOL: "cpu"})))
    assert "worker selects the pool cpu, but the ladder of its namespace has a100-spot, a100" in found


@pytest.mark.parametrize(
    "patch",
    [
        {"metadata": {"annotations": {"note": "mine"}}},
        {"metadata": {"labels": {"team": "vision"}}},
        {"spec": {"suspend": True}},
    ],
    ids=["an annotation", "a label", "a suspension"],
)
def test_updates_without_pod_changes_are_accepted(judging: Judging, lost: Json, patch: Json) -> None:
    assert patched(judging.client, lost, patch)


def test_pod_changes_of_an_invalid_job_are_rejected_until_they_fix_it(judging: Judging, lost: Json) -> None:
    other = training(ON, spec=mounting("another"))
    assert refusal(judging.client, lost, with_template(lost, other))
    assert patched(judging.client, lost, with_template(lost, training(ON)))


def test_moves_by_the_controller_are_accepted(judging: Judging, lost: Json) -> None:
    for pool, suspend in (("a100", True), ("a100", False), ("a100-spot", True)):
        moved = with_template(
            stored_job(judging.client, lost), training({POOL: pool}, spec=mounting("scratch"))
        )
        state: Json = {"metadata": {"annotations": {STATE: "{}"}}}
        found = patched(
            judging.as_controller,
            lost,
            {**moved, **state, "spec": {**obj(moved["spec"]), "suspend": suspend}},
        )
        assert obj(found["spec"])["suspend"] is suspend


def test_a_manifest_applied_again_over_a_moved_job_is_accepted(judging: Judging, job: Json) -> None:
    moved = patched(judging.as_controller, job, with_template(job, training({POOL: "a100"})))
    again = with_template(job, training({CAPACITY_TYPE: "spot"}))
    found = patched(judging.client, moved, again)
    assert found["spec"] == moved["spec"]


def test_a_job_can_be_deleted(judging: Judging, lost: Json) -> None:
    metadata = obj(lost["metadata"])
    judging.client.delete(
        str(lost["apiVersion"]), str(lost["kind"]), "train", namespace="gpus", propagation="Background"
    )
    change = with_template(lost, training(ON, cpu="98"))
    assert patched(judging.client, lost, change)
    patched(judging.client, lost, {"metadata": {"finalizers": None}})
    found = judging.client.get(
        str(lost["apiVersion"]), str(lost["kind"]), "train", str(metadata["namespace"])
    )
    assert found is None
    judging.as_controller.create(job_of(str(lost["kind"]), HOPELESS))


def test_a_job_without_a_ladder_can_be_changed(judging: Judging) -> None:
    make_namespace(judging.client, "passing", {TRAINING: TRAINING_VALUE})
    judging.client.apply(ladder_with(KNOWN, LADDERS["gpus"], "passing"), field_manager="tests")
    wait_until_enforced(judging.client, lambda client: is_judged(client, "passing"))
    stored = judging.client.create(job_of("RayJob", training(ON), "passing"))
    judging.client.delete(
        "holdfast.dev/v1alpha1", "FallbackPolicy", "ladder", namespace="passing", propagation="Background"
    )
    change = with_template(stored, HOPELESS)
    wait_until_enforced(judging.client, lambda client: passes(client, stored, change))
    removed(judging.client, stored)


def passes(client: KubeClient, job: Json, patch: Json) -> bool:
    """Whether an update is let through: the API server has seen that the ladder is gone."""
    try:
        return bool(patched(client, job, patch))
    except ApiError:
        return False
