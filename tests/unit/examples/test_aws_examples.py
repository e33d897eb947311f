"""The examples for AWS: manifests as their users were promised they may write them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from holdfast.components.training_namespace import CHECKPOINTS, SERVICE_ACCOUNT
from tests.support.json_objects import obj, objects

if TYPE_CHECKING:
    from holdfast.scheduling.json import Json

EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "aws"
SPOT = {"karpenter.sh/capacity-type": "spot"}


def manifest(name: str) -> Json:
    return obj(yaml.safe_load((EXAMPLES / f"{name}.yaml").read_text(encoding="utf-8")))


def job_of(jobset: Json) -> Json:
    (replicated,) = objects(obj(jobset["spec"])["replicatedJobs"])
    return obj(obj(replicated["template"])["spec"])


def pod_of(owner: Json) -> Json:
    return obj(obj(owner["template"])["spec"])


def training_pod(name: str) -> Json:
    """The spec of the pods that train."""
    if name.startswith("jobset"):
        return pod_of(job_of(manifest(name)))
    return pod_of(objects(ray_cluster()["workerGroupSpecs"])[0])


def ray_cluster() -> Json:
    return obj(obj(manifest("rayjob-spot")["spec"])["rayClusterSpec"])


@pytest.mark.parametrize("name", ["jobset-spot", "jobset-spot-gpu", "rayjob-spot"])
def test_training_selects_spot_by_one_selector(name: str) -> None:
    pod = training_pod(name)
    assert pod["nodeSelector"] == SPOT, "the selector alone asks for spot"
    assert "tolerations" not in pod, "admission adds them: users need not know the taints"


@pytest.mark.parametrize("name", ["jobset-spot", "jobset-spot-gpu", "rayjob-spot"])
def test_no_training_pod_is_kept_out_of_the_drain(name: str) -> None:
    assert "do-not-disrupt" not in (EXAMPLES / f"{name}.yaml").read_text(encoding="utf-8"), (
        "Karpenter would skip the pod on the notice, and it would get no SIGTERM"
    )


@pytest.mark.parametrize("name", ["jobset-spot", "jobset-spot-gpu"])
def test_a_jobset_may_be_restarted_five_times_as_a_whole(name: str) -> None:
    jobset = manifest(name)
    assert obj(obj(jobset["spec"])["failurePolicy"])["maxRestarts"] == 5, "evictions among them"
    assert job_of(jobset)["backoffLimit"] == 0, "one pod alone cannot go on without the others"


def test_a_rayjob_may_be_tried_again_five_times_and_its_head_is_not_on_spot() -> None:
    assert obj(manifest("rayjob-spot")["spec"])["backoffLimit"] == 5, "evictions among them"
    head = pod_of(obj(ray_cluster()["headGroupSpec"]))
    assert "nodeSelector" not in head, "a head on spot takes the whole job with it when it goes"
    assert obj(obj(ray_cluster()["headGroupSpec"])["rayStartParams"])["num-cpus"] == "0", (
        "the training runs on the workers"
    )


@pytest.mark.parametrize("name", ["jobset-spot", "jobset-spot-gpu", "rayjob-spot"])
def test_training_reaches_its_namespaces_checkpoints(name: str) -> None:
    pod = training_pod(name)
    assert pod["serviceAccountName"] == SERVICE_ACCOUNT, "the one that has the right to them"
    (container,) = objects(pod["containers"])
    assert container["envFrom"] == [{"configMapRef": {"name": CHECKPOINTS}}], (
        "where CHECKPOINT_URI comes from"
    )


@pytest.mark.parametrize("name", ["jobset-spot", "jobset-spot-gpu", "rayjob-spot"])
def test_training_has_time_for_a_last_checkpoint_and_no_more_than_the_notice_gives(name: str) -> None:
    seconds = training_pod(name)["terminationGracePeriodSeconds"]
    assert isinstance(seconds, int), "in seconds"
    assert 30 < seconds < 120, "EC2 gives two minutes, of which draining takes some"
