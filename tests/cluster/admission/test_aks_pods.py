"""Admission on AKS on a real API server: tolerations of its pools, and the identity of trainers."""

from collections.abc import Generator, Mapping

import pytest

from pulumi_holdfast.controller.kube.objects import annotations_of
from pulumi_holdfast.kubernetes.admission.rules import (
    DO_NOT_DISRUPT,
    SAFE_TO_EVICT,
    USE_WORKLOAD_IDENTITY,
    aks_rules,
    workload_identity_rule,
)
from pulumi_holdfast.ladder import taints
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import AKS_PRIORITY, AKS_SCALE_SET_PRIORITY, CAPACITY_TYPE, POOL
from pulumi_holdfast.rehearsal.kubernetes import KubeClient
from tests.support.builders.training_jobs import POOLS, container, pod
from tests.support.clusters.admission import (
    OTHER_NAMESPACE,
    TRAINING_NAMESPACE,
    admitted,
    running_rules,
    tolerations_of,
)
from tests.support.json_objects import obj

pytestmark = pytest.mark.cluster

ON_SPOT = [taints.SPOT.as_toleration(), taints.AKS_SPOT.as_toleration()]
ON_GPUS = [taints.GPU.as_toleration()]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Generator[KubeClient]:
    """A cluster with the rules of AKS in force, and the account of trainers in both namespaces."""
    rules = (*aks_rules(POOLS), workload_identity_rule("trainer"))
    with running_rules(tmp_path_factory.mktemp("aks-admission"), rules, in_force) as client:
        make_account(client, OTHER_NAMESPACE)
        yield client


def in_force(client: KubeClient) -> bool:
    make_account(client, TRAINING_NAMESPACE)
    found = admitted(client, selecting({POOL: "a100-spot"}))
    return (
        {SAFE_TO_EVICT} <= annotations_of(found).keys()
        and len(tolerations_of(found)) == 3
        and USE_WORKLOAD_IDENTITY in labels(admitted(client, of_account("trainer")))
    )


def make_account(client: KubeClient, namespace: str) -> None:
    metadata: Json = {"name": "trainer", "namespace": namespace}
    client.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}, field_manager="tests")


def selecting(selector: Mapping[str, str]) -> Json:
    """A training pod with a node selector."""
    return pod(namespace=TRAINING_NAMESPACE, spec={"nodeSelector": selector})


def in_order(tolerations: list[Json]) -> list[str]:
    return sorted(str(sorted(each.items())) for each in tolerations)


@pytest.mark.parametrize(
    "selector",
    [
        {CAPACITY_TYPE: "spot"},
        {AKS_SCALE_SET_PRIORITY: "spot"},
        {AKS_PRIORITY: "spot"},
        {CAPACITY_TYPE: "spot", POOL: "cpu-spot"},
        {POOL: "cpu-spot"},
    ],
)
def test_a_pod_that_selects_spot_tolerates_both_taints(
    cluster: KubeClient, selector: Mapping[str, str]
) -> None:
    found = tolerations_of(admitted(cluster, selecting(selector)))
    assert in_order(found) == in_order(ON_SPOT)


def test_a_toleration_that_its_author_wrote_is_not_added_again(cluster: KubeClient) -> None:
    written = pod(
        namespace=TRAINING_NAMESPACE,
        spec={
            "nodeSelector": {AKS_SCALE_SET_PRIORITY: "spot"},
            "tolerations": [taints.AKS_SPOT.as_toleration()],
        },
    )
    found = tolerations_of(admitted(cluster, written))
    assert in_order(found) == in_order(ON_SPOT)


@pytest.mark.parametrize("selector", [{}, {POOL: "cpu"}, {AKS_PRIORITY: "regular"}])
def test_a_pod_that_does_not_select_spot_does_not_tolerate_it(
    cluster: KubeClient, selector: Mapping[str, str]
) -> None:
    assert tolerations_of(admitted(cluster, selecting(selector))) == []


def test_a_pod_with_gpus_on_spot_tolerates_all_three(cluster: KubeClient) -> None:
    asking = pod(
        namespace=TRAINING_NAMESPACE, containers=[container("8")], spec={"nodeSelector": {POOL: "a100-spot"}}
    )
    found = tolerations_of(admitted(cluster, asking))
    assert in_order(found) == in_order([*ON_SPOT, *ON_GPUS])


def test_training_pods_on_spot_can_be_drained_and_are_not_moved(cluster: KubeClient) -> None:
    asking = pod(
        namespace=TRAINING_NAMESPACE,
        annotations={DO_NOT_DISRUPT: "true", "team": "vision"},
        spec={"nodeSelector": {CAPACITY_TYPE: "spot"}},
    )
    assert annotations_of(admitted(cluster, asking)) == {"team": "vision", SAFE_TO_EVICT: "false"}


def of_account(
    account: str, *, namespace: str = TRAINING_NAMESPACE, labels: Mapping[str, str] | None = None
) -> Json:
    """A pod of a service account, "" for one that names none."""
    made = pod(namespace=namespace, spec={"serviceAccountName": account} if account else {})
    return {**made, "metadata": {**obj(made["metadata"]), **({"labels": labels} if labels else {})}}


def labels(found: Json) -> Json:
    """The labels a pod would be stored with."""
    return obj(obj(found["metadata"]).get("labels") or {})


@pytest.mark.parametrize("given", [{}, {"team": "vision"}])
def test_trainers_are_labeled_by_admission(cluster: KubeClient, given: Mapping[str, str]) -> None:
    found = labels(admitted(cluster, of_account("trainer", labels=given)))
    assert found == {**given, USE_WORKLOAD_IDENTITY: "true"}


@pytest.mark.parametrize("value", ["true", "false"])
def test_an_identity_label_set_by_the_author_is_kept(cluster: KubeClient, value: str) -> None:
    found = labels(admitted(cluster, of_account("trainer", labels={USE_WORKLOAD_IDENTITY: value})))
    assert found == {USE_WORKLOAD_IDENTITY: value}


@pytest.mark.parametrize("account", ["", "default"])
def test_pods_of_other_accounts_have_no_identity(cluster: KubeClient, account: str) -> None:
    assert labels(admitted(cluster, of_account(account))) == {}


def test_accounts_in_other_namespaces_have_no_identity(cluster: KubeClient) -> None:
    assert labels(admitted(cluster, of_account("trainer", namespace=OTHER_NAMESPACE))) == {}
