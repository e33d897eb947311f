"""The examples of every cloud: manifests as their users were promised they may write them."""

from pathlib import Path

import pytest
import yaml

from pulumi_holdfast.kubernetes.training_namespace import SERVICE_ACCOUNT, service_account_of
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import CHECKPOINTS
from pulumi_holdfast.rehearsal.scenarios.aks import NOTICE_SECONDS
from tests.support.json_objects import obj, objects

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
CLOUDS = ["aws", "azure", "gcp"]
JOBSETS = ["jobset-spot", "jobset-spot-gpu", "jobset-data"]
every_job = pytest.mark.parametrize("name", [*JOBSETS, "rayjob-spot"])
every_cloud = pytest.mark.parametrize("cloud", CLOUDS)

#: Cloud → how a pod selects spot. The selector alone asks for it; GKE's nodes have both labels.
KARPENTER_SPOT = {"karpenter.sh/capacity-type": "spot"}
GKE_SPOT = {"cloud.google.com/gke-spot": "true", "cloud.google.com/gke-provisioning": "spot"}
SELECTORS = {"aws": KARPENTER_SPOT, "azure": KARPENTER_SPOT, "gcp": GKE_SPOT}
#: Cloud → the shortest and longest grace period. EC2 gives two minutes; GKE keeps 15 of 30 seconds.
GRACE = {"aws": (31, 119), "azure": (NOTICE_SECONDS, 10), "gcp": (15, 15)}


def text(cloud: str, name: str) -> str:
    return (EXAMPLES / cloud / f"{name}.yaml").read_text(encoding="utf-8")


def spec_of(cloud: str, name: str) -> Json:
    return obj(obj(yaml.safe_load(text(cloud, name)))["spec"])


def job_of(cloud: str, name: str) -> Json:
    (replicated,) = objects(spec_of(cloud, name)["replicatedJobs"])
    return obj(obj(replicated["template"])["spec"])


def ray_group(cloud: str, group: str) -> Json:
    return obj(obj(spec_of(cloud, "rayjob-spot")["rayClusterSpec"])[group])


def training_template(cloud: str, name: str) -> Json:
    """The template of the pods that train."""
    if name in JOBSETS:
        return obj(job_of(cloud, name)["template"])
    (workers,) = objects(obj(spec_of(cloud, name)["rayClusterSpec"])["workerGroupSpecs"])
    return obj(workers["template"])


def account(cloud: str, name: str) -> str:
    if cloud != "gcp":
        return SERVICE_ACCOUNT
    stacks = {"jobset-spot-gpu": "gcp-prod", "jobset-data": "gcp-data"}
    return service_account_of(stacks.get(name, "gcp-dev"))


def safe_to_evict(template: Json) -> object:
    return obj(obj(template["metadata"])["annotations"])["cluster-autoscaler.kubernetes.io/safe-to-evict"]


@every_cloud
@every_job
def test_training_pods_select_spot_and_have_an_account_checkpoints_and_time_to_stop(
    cloud: str, name: str
) -> None:
    pod = obj(training_template(cloud, name)["spec"])
    assert pod["nodeSelector"] == SELECTORS[cloud]
    if cloud == "gcp":
        tolerated = {"key": "cloud.google.com/gke-spot", "operator": "Equal", "value": "true"}
        wanted = [{**tolerated, "effect": "NoSchedule"}]
        assert pod["tolerations"] == wanted
        assert safe_to_evict(training_template(cloud, name)) == "false", "the autoscaler would move the pod"
    else:
        assert "tolerations" not in pod
        assert "do-not-disrupt" not in text(cloud, name), "Karpenter would send the pod no SIGTERM"
        assert "azure.workload.identity" not in text(cloud, name)
    assert pod["serviceAccountName"] == account(cloud, name)
    (container,) = objects(pod["containers"])
    assert container["envFrom"] == [{"configMapRef": {"name": CHECKPOINTS}}]
    shortest, longest = GRACE[cloud]
    assert isinstance(pod["terminationGracePeriodSeconds"], int)
    assert shortest <= pod["terminationGracePeriodSeconds"] <= longest


@every_cloud
@pytest.mark.parametrize("name", JOBSETS)
def test_a_jobset_may_be_restarted_five_times_as_a_whole(cloud: str, name: str) -> None:
    assert obj(spec_of(cloud, name)["failurePolicy"])["maxRestarts"] == 5
    assert job_of(cloud, name)["backoffLimit"] == 0, "one pod alone cannot go on without the others"


@every_cloud
def test_a_rayjob_may_be_tried_again_five_times_and_its_head_is_not_on_spot(cloud: str) -> None:
    assert spec_of(cloud, "rayjob-spot")["backoffLimit"] == 5
    group = ray_group(cloud, "headGroupSpec")
    template = obj(group["template"])
    head = obj(template["spec"])
    assert not {"nodeSelector", "tolerations"} & head.keys()
    assert obj(group["rayStartParams"])["num-cpus"] == "0"
    assert cloud == "aws" or head["serviceAccountName"] == account(cloud, "rayjob-spot")
    assert cloud != "gcp" or safe_to_evict(template) == "false", "the autoscaler would end the whole job"


def test_gpus_are_requested_and_their_taint_is_left_to_gke() -> None:
    pod = obj(training_template("gcp", "jobset-spot-gpu")["spec"])
    (container,) = objects(pod["containers"])
    assert obj(obj(container["resources"])["limits"])["nvidia.com/gpu"] == "8"
