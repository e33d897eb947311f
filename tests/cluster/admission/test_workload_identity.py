"""Workload identity on AKS on a real API server: which pods are labeled."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.components.admission.rules import USE_WORKLOAD_IDENTITY, workload_identity_rule
from tests.support.builders.training_jobs import pod
from tests.support.clusters.admission import OTHER_NAMESPACE, TRAINING_NAMESPACE, admitted, running_rules
from tests.support.json_objects import obj

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    from holdfast.scheduling.json import Json
    from holdfast.simulator.kubernetes_client.client import KubeClient

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Generator[KubeClient]:
    """A cluster with the rule in force."""
    rules = (workload_identity_rule("trainer"),)
    with running_rules(tmp_path_factory.mktemp("identity"), rules, in_force) as client:
        for namespace in (TRAINING_NAMESPACE, OTHER_NAMESPACE):
            account: Json = {
                "apiVersion": "v1",
                "kind": "ServiceAccount",
                "metadata": {"name": "trainer", "namespace": namespace},
            }
            client.apply(account, field_manager="tests")
        yield client


def in_force(client: KubeClient) -> bool:
    account: Json = {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": "trainer", "namespace": TRAINING_NAMESPACE},
    }
    client.apply(account, field_manager="tests")
    return USE_WORKLOAD_IDENTITY in labels(admitted(client, of_account("trainer")))


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
    assert found == {**given, USE_WORKLOAD_IDENTITY: "true"}, "beside whatever else they carry"


@pytest.mark.parametrize("value", ["true", "false"])
def test_a_value_set_by_the_author_is_kept(cluster: KubeClient, value: str) -> None:
    found = labels(admitted(cluster, of_account("trainer", labels={USE_WORKLOAD_IDENTITY: value})))
    assert found == {USE_WORKLOAD_IDENTITY: value}, "a pod may do without"


@pytest.mark.parametrize("account", ["", "default"])
def test_pods_of_other_accounts_have_no_identity(cluster: KubeClient, account: str) -> None:
    assert labels(admitted(cluster, of_account(account))) == {}, "they reach no checkpoints"


def test_other_namespaces_are_unchanged(cluster: KubeClient) -> None:
    assert labels(admitted(cluster, of_account("trainer", namespace=OTHER_NAMESPACE))) == {}, (
        "an account of the same name elsewhere has no identity"
    )
