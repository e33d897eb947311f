"""The patches that are the same for every kind of job."""

from pulumi_holdfast.controller.jobs import patches
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import TIER
from tests.support.builders.fallback_objects import NOW, UID, jobset, worker
from tests.support.builders.job_states import running
from tests.support.json_objects import obj


def test_a_state_patch_changes_only_the_state() -> None:
    assert patches.state_patch(jobset(), "the state") == {
        "metadata": {
            "resourceVersion": "41",
            "uid": UID,
            "annotations": {"fallback.holdfast.dev/state": "the state"},
        }
    }, "under the observed version"


def test_a_checkpoint_request_has_no_resource_version() -> None:
    assert patches.checkpoint_request(worker("a"), NOW) == {
        "metadata": {
            "uid": "uid-of-a",
            "annotations": {"fallback.holdfast.dev/checkpoint-requested": "2026-11-21T12:00:00Z"},
        }
    }, "a kubelet writes to its pods all the time, and the request holds whatever it wrote"


def test_a_job_without_checkpoint_request_has_none() -> None:
    assert patches.checkpoint_requested_at(jobset()) is None, "no annotation"
    assert patches.checkpoints_on_request(jobset()) is False, "and it does not say that it listens"
    assert patches.checkpointed_at([worker("a")]) is None, "nor has it answered"


def test_a_pod_whose_machine_is_gone_is_ended_as_by_garbage_collection() -> None:
    ready: Json = {"type": "Ready", "status": "True"}
    before: Json = {"type": "DisruptionTarget", "status": "False"}
    patch = patches.terminated_pod_status(worker("a", node="n1", conditions=[ready, before]), NOW)
    assert patch == {
        "metadata": {"uid": "uid-of-a"},
        "status": {
            "phase": "Failed",
            "conditions": [
                ready,
                {
                    "type": "DisruptionTarget",
                    "status": "True",
                    "reason": "DeletionByPodGC",
                    "message": "Its machine is gone permanently.",
                    "lastTransitionTime": "2026-11-21T12:00:00Z",
                },
            ],
        },
    }, "a Job with a pod failure policy lets go of it then, and takes it for disrupted"


def test_the_label_of_the_tier_is_written_with_the_state_that_changes_it() -> None:
    job: Json = {"metadata": {"name": "train", "labels": {TIER: "a-spot"}}}
    patch = patches.state_patch(job, "state")
    assert patches.with_marks(patch, job, running()) == patch, "the job has it already"
    moved = patches.with_marks(patch, job, running(pool="b-spot"))
    assert obj(moved["metadata"])["labels"] == {TIER: "b-spot"}, "kubectl get -L shows it"
