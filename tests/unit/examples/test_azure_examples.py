"""The examples for Azure: manifests as their users were promised they may write them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from holdfast.components.training_namespace import CHECKPOINTS, SERVICE_ACCOUNT
from holdfast.rehearsal.scenarios.aks import NOTICE_SECONDS
from tests.support.json_objects import obj, objects

if TYPE_CHECKING:
    from holdfast.scheduling.json import Json

EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "azure"
NAMES = ["jobset-spot", "jobset-spot-gpu", "rayjob-spot"]


def manifest(name: str) -> Json:
    return obj(yaml.safe_load((EXAMPLES / f"{name}.yaml").read_text(encoding="utf-8")))


def job_of(jobset: Json) -> Json:
    (replicated,) = objects(obj(jobset["spec"])["replicatedJobs"])
    return obj(obj(replicated["template"])["spec"])


def pod_of(owner: Json) -> Json:
    return obj(obj(owner["template"])["spec"])


def ray_cluster() -> Json:
    return obj(obj(manifest("rayjob-spot")["spec"])["rayClusterSpec"])


def training_pod(name: str) -> Json:
    """The spec of the pods that train."""
    if name.startswith("jobset"):
        return pod_of(job_of(manifest(name)))
    return pod_of(objects(ray_cluster()["workerGroupSpecs"])[0])


@pytest.mark.parametrize("name", NAMES)
def test_training_selects_spot_by_one_selector_in_both_ways_of_scaling(name: str) -> None:
    pod = training_pod(name)
    assert pod["nodeSelector"] == {"karpenter.sh/capacity-type": "spot"}, "the selector alone asks for spot"
    assert "tolerations" not in pod, "admission adds them, AKS's own for scale sets among them"


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_said_that_admission_says(name: str) -> None:
    text = (EXAMPLES / f"{name}.yaml").read_text(encoding="utf-8")
    assert "azure.workload.identity" not in text, "trainers are labelled by their account"
    assert "do-not-disrupt" not in text, "a drain on a notice would leave the pod out"


@pytest.mark.parametrize("name", ["jobset-spot", "jobset-spot-gpu"])
def test_a_jobset_may_be_restarted_five_times_as_a_whole(name: str) -> None:
    jobset = manifest(name)
    assert obj(obj(jobset["spec"])["failurePolicy"])["maxRestarts"] == 5, "evictions among them"
    assert job_of(jobset)["backoffLimit"] == 0, "one pod alone cannot go on without the others"


def test_a_rayjob_may_be_tried_again_five_times_and_its_head_is_not_on_spot() -> None:
    assert obj(manifest("rayjob-spot")["spec"])["backoffLimit"] == 5, "evictions among them"
    head = pod_of(obj(ray_cluster()["headGroupSpec"]))
    assert "nodeSelector" not in head, "a head on spot takes the whole job with it when it goes"
    assert head["serviceAccountName"] == SERVICE_ACCOUNT, "it is one job"
    assert obj(obj(ray_cluster()["headGroupSpec"])["rayStartParams"])["num-cpus"] == "0", (
        "the training runs on the workers"
    )


@pytest.mark.parametrize("name", NAMES)
def test_training_reaches_its_namespaces_checkpoints(name: str) -> None:
    pod = training_pod(name)
    assert pod["serviceAccountName"] == SERVICE_ACCOUNT, "the one that has the right to them"
    (container,) = objects(pod["containers"])
    assert container["envFrom"] == [{"configMapRef": {"name": CHECKPOINTS}}], (
        "where CHECKPOINT_URI comes from"
    )


@pytest.mark.parametrize("name", NAMES)
def test_training_asks_for_little_time_after_a_notice(name: str) -> None:
    seconds = training_pod(name)["terminationGracePeriodSeconds"]
    assert isinstance(seconds, int), "in seconds"
    assert NOTICE_SECONDS <= seconds <= 10, "what is asked for beyond what Azure often gives is a false hope"
