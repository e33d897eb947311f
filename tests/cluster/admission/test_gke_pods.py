"""Admission for GKE's pools against a real API server."""

from collections.abc import Generator, Mapping

import pytest

from pulumi_holdfast.controller.kube.objects import annotations_of, labels_of
from pulumi_holdfast.kubernetes.admission.rules import SAFE_TO_EVICT, gke_rules, spot_classes
from pulumi_holdfast.ladder import taints
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import (
    COMPUTE_CLASS,
    FOLLOWS,
    GKE_PROVISIONING,
    GKE_SPOT,
    POOL,
    CapacityType,
)
from pulumi_holdfast.ladder.pools import Pool
from pulumi_holdfast.rehearsal.kubernetes import KubeClient
from tests.support.builders.training_jobs import (
    POOLS,
    jobset,
    pod,
    pod_template,
    rayjob,
    replicated_job,
    selectors_of,
    worker_group,
)
from tests.support.clusters.admission import OTHER_NAMESPACE, TRAINING_NAMESPACE, admitted, tolerations_of
from tests.support.clusters.job_admission import admitted_job, running_job_admission

pytestmark = pytest.mark.cluster

CLASSES = {
    "h100s": [Pool(name="h100-spot", capacity=CapacityType.SPOT, has_gpus=True, max_nodes=4)],
    "kept": [Pool(name="h100", capacity=CapacityType.ON_DEMAND, has_gpus=True, max_nodes=4)],
}
SPOT_TOLERATION = taints.GKE_SPOT_TAINT.as_toleration()
GPU_TOLERATION = taints.GPU.as_toleration()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Generator[KubeClient]:
    """A cluster with the rules of GKE in force, two of whose pools are of a ComputeClass."""
    folder = tmp_path_factory.mktemp("gke-admission")
    rules = gke_rules(POOLS, CLASSES)
    with running_job_admission(folder, rules, in_force, selections=spot_classes(CLASSES)) as client:
        yield client


def in_force(client: KubeClient) -> bool:
    found = admitted(client, selecting({POOL: "a100-spot"}))
    return {SAFE_TO_EVICT} <= annotations_of(found).keys() and len(tolerations_of(found)) == 2


def selecting(selector: Mapping[str, str], annotations: Mapping[str, str] | None = None) -> Json:
    """A training pod with a node selector."""
    return pod(namespace=TRAINING_NAMESPACE, annotations=annotations or {}, spec={"nodeSelector": selector})


@pytest.mark.parametrize(
    "selector",
    [
        {GKE_SPOT: "true"},
        {GKE_PROVISIONING: "spot"},
        {GKE_SPOT: "true", GKE_PROVISIONING: "spot"},
        {POOL: "cpu-spot"},
    ],
)
def test_a_pod_that_selects_spot_tolerates_it(cluster: KubeClient, selector: Mapping[str, str]) -> None:
    found = tolerations_of(admitted(cluster, selecting(selector)))
    assert found == [SPOT_TOLERATION]


def test_a_helper_follows_its_job_to_a_spot_pool_with_gpus(cluster: KubeClient) -> None:
    found = tolerations_of(admitted(cluster, selecting({POOL: "a100-spot"})))
    assert sorted(map(str, found)) == sorted(map(str, [SPOT_TOLERATION, GPU_TOLERATION]))


@pytest.mark.parametrize("selector", [{}, {POOL: "cpu"}, {GKE_PROVISIONING: "standard"}])
def test_a_pod_that_does_not_select_spot_does_not_tolerate_it(
    cluster: KubeClient, selector: Mapping[str, str]
) -> None:
    assert tolerations_of(admitted(cluster, selecting(selector))) == []


@pytest.mark.parametrize("annotations", [{}, {"team": "vision"}])
def test_training_pods_are_not_safe_to_evict(cluster: KubeClient, annotations: Mapping[str, str]) -> None:
    found = annotations_of(admitted(cluster, selecting({}, annotations)))
    assert found == {**annotations, SAFE_TO_EVICT: "false"}


def test_a_value_set_by_the_author_is_kept(cluster: KubeClient) -> None:
    found = annotations_of(admitted(cluster, selecting({}, {SAFE_TO_EVICT: "true"})))
    assert found == {SAFE_TO_EVICT: "true"}


def test_other_namespaces_are_unchanged(cluster: KubeClient) -> None:
    other = pod(namespace=OTHER_NAMESPACE, annotations={}, spec={"nodeSelector": {GKE_SPOT: "true"}})
    found = admitted(cluster, other)
    assert tolerations_of(found) == []
    assert annotations_of(found) == {}


@pytest.mark.parametrize("pool", ["h100-spot", "h100"])
def test_a_pod_that_names_a_pool_of_a_compute_class_tolerates_it(cluster: KubeClient, pool: str) -> None:
    found = tolerations_of(admitted(cluster, selecting({POOL: pool})))
    keys = {str(each["key"]) for each in found}
    assert keys == {COMPUTE_CLASS, taints.GPU.key}


@pytest.mark.parametrize(
    "selector",
    [
        {GKE_SPOT: "true"},
        {GKE_PROVISIONING: "spot"},
        {GKE_SPOT: "true", GKE_PROVISIONING: "spot"},
        {COMPUTE_CLASS: "h100s"},
    ],
)
@pytest.mark.parametrize("kind", ["JobSet", "RayJob"])
def test_a_job_on_gkes_spot_follows_from_the_first_tier(
    cluster: KubeClient, kind: str, selector: Mapping[str, str]
) -> None:
    template = pod_template({**selector, "disk": "fast"})
    job = jobset(replicated_job(template)) if kind == "JobSet" else rayjob(worker_group(template))
    found = admitted_job(cluster, job)
    assert labels_of(found)[FOLLOWS] == "true"
    assert selectors_of(found)["worker"] == {POOL: "a100-spot", "disk": "fast"}


@pytest.mark.parametrize("selector", [{GKE_PROVISIONING: "standard"}, {COMPUTE_CLASS: "kept"}])
def test_a_job_on_gkes_on_demand_is_unchanged(cluster: KubeClient, selector: Mapping[str, str]) -> None:
    found = admitted_job(cluster, jobset(replicated_job(pod_template(selector))))
    assert selectors_of(found)["worker"] == selector
