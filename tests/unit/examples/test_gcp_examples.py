"""The examples for Google Cloud: manifests as their users were promised they may write them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from holdfast.components.training_namespace import CHECKPOINTS, service_account_of
from tests.support.json_objects import obj, objects

if TYPE_CHECKING:
    from holdfast.scheduling.json import Json

EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "gcp"
NAMES = ["jobset-spot", "jobset-spot-gpu", "rayjob-spot"]
STACKS = {"jobset-spot": "gcp-dev", "jobset-spot-gpu": "gcp-prod", "rayjob-spot": "gcp-dev"}


def manifest(name: str) -> Json:
    return obj(yaml.safe_load((EXAMPLES / f"{name}.yaml").read_text(encoding="utf-8")))


def job_of(jobset: Json) -> Json:
    (replicated,) = objects(obj(jobset["spec"])["replicatedJobs"])
    return obj(obj(replicated["template"])["spec"])


def ray_cluster() -> Json:
    return obj(obj(manifest("rayjob-spot")["spec"])["rayClusterSpec"])


def training_template(name: str) -> Json:
    """The template of the pods that train."""
    owner = (
        job_of(manifest(name)) if name.startswith("jobset") else objects(ray_cluster()["workerGroupSpecs"])[0]
    )
    return obj(owner["template"])


def head_template() -> Json:
    return obj(obj(ray_cluster()["headGroupSpec"])["template"])


def training_pod(name: str) -> Json:
    return obj(training_template(name)["spec"])


def safe_to_evict(template: Json) -> object:
    return obj(obj(template["metadata"])["annotations"])["cluster-autoscaler.kubernetes.io/safe-to-evict"]


@pytest.mark.parametrize("name", NAMES)
def test_training_selects_and_tolerates_spot_as_gke_spells_it(name: str) -> None:
    pod = training_pod(name)
    assert pod["nodeSelector"] == {
        "cloud.google.com/gke-spot": "true",
        "cloud.google.com/gke-provisioning": "spot",
    }, "both labels, which nodes of every spot pool have"
    assert pod["tolerations"] == [
        {"key": "cloud.google.com/gke-spot", "operator": "Equal", "value": "true", "effect": "NoSchedule"}
    ], "one toleration: outside training namespaces admission does not add it"


@pytest.mark.parametrize("name", NAMES)
def test_no_node_is_taken_from_under_a_pod_that_trains_because_it_is_half_empty(name: str) -> None:
    assert safe_to_evict(training_template(name)) == "false", (
        "the autoscaler would move it, and the step is lost"
    )


def test_rays_head_is_not_moved_and_not_on_spot() -> None:
    assert safe_to_evict(head_template()) == "false", "it would take the whole job with it"
    head = obj(head_template()["spec"])
    assert not {"nodeSelector", "tolerations"} & head.keys(), (
        "a head on spot takes the whole job with it when it goes"
    )
    assert obj(obj(ray_cluster()["headGroupSpec"])["rayStartParams"])["num-cpus"] == "0", (
        "the training runs on the workers"
    )


@pytest.mark.parametrize("name", ["jobset-spot", "jobset-spot-gpu"])
def test_a_jobset_may_be_restarted_five_times_as_a_whole(name: str) -> None:
    jobset = manifest(name)
    assert obj(obj(jobset["spec"])["failurePolicy"])["maxRestarts"] == 5, "evictions among them"
    assert job_of(jobset)["backoffLimit"] == 0, "one pod alone cannot go on without the others"


def test_a_rayjob_may_be_tried_again_five_times() -> None:
    assert obj(manifest("rayjob-spot")["spec"])["backoffLimit"] == 5, "evictions among them"


@pytest.mark.parametrize("name", NAMES)
def test_training_reaches_its_namespaces_checkpoints(name: str) -> None:
    pod = training_pod(name)
    assert pod["serviceAccountName"] == service_account_of(STACKS[name]), "the one that has the right to them"
    (container,) = objects(pod["containers"])
    assert container["envFrom"] == [{"configMapRef": {"name": CHECKPOINTS}}], (
        "where CHECKPOINT_URI comes from"
    )


def test_rays_head_acts_as_its_workers_do() -> None:
    assert obj(head_template()["spec"])["serviceAccountName"] == service_account_of("gcp-dev"), (
        "it is one job"
    )


@pytest.mark.parametrize("name", NAMES)
def test_training_asks_for_no_more_time_than_gke_gives_after_the_notice(name: str) -> None:
    assert training_pod(name)["terminationGracePeriodSeconds"] == 15, (
        "of 30 seconds GKE keeps 15 for critical pods: what a pod hopes for beyond it does not get"
    )


def test_gpus_are_asked_for_and_their_taint_is_left_to_gke() -> None:
    pod = training_pod("jobset-spot-gpu")
    (container,) = objects(pod["containers"])
    assert obj(obj(container["resources"])["limits"])["nvidia.com/gpu"] == "8", "a whole machine"
    assert "nvidia.com/gpu" not in [toleration["key"] for toleration in objects(pod["tolerations"])], (
        "GKE gives the toleration to pods that ask for the resource"
    )
