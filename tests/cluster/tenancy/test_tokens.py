"""What the policies leave to the holder of a stolen token, whatever RBAC allows its account, on a real API server."""

from collections.abc import Callable

import pytest

from pulumi_holdfast.controller.kube.client import ApiError
from pulumi_holdfast.ladder.json import Json, JsonValue
from pulumi_holdfast.ladder.labels import (
    CONTROLLER,
    CONTROLLER_NAMESPACE,
    FIRST_CREATED,
    POOL,
    PREDECESSOR,
    RECREATE,
    STATE,
    SUCCESSOR_OF,
)
from pulumi_holdfast.rehearsal.kubernetes import KubeClient
from tests.support.builders.training_jobs import (
    container,
    jobset,
    pod,
    pod_template,
    rayjob,
    replicated_job,
    worker_group,
)
from tests.support.clusters.admission import refusal, wait_until_enforced
from tests.support.json_objects import obj

pytestmark = pytest.mark.cluster

Accounts = Callable[[str, str], KubeClient]

WRITES = "'fallback-controller-writes'"
OPERATORS = (("jobset-system", "jobset-controller"), ("kuberay-system", "kuberay-operator"))
STAYS = {"holdfast.dev/fallback": "false"}


def failing(**spec: JsonValue) -> Json:
    """A RayJob `any` that asks to be created again when it has failed."""
    made = rayjob(worker_group(pod_template()), labels=STAYS)
    metadata: Json = {
        "name": "any",
        "namespace": "tabular",
        "labels": STAYS,
        "annotations": {RECREATE: "true"},
    }
    return {**made, "metadata": metadata, "spec": {**obj(made["spec"]), **spec}}


def successor(name: str = "any-0badc0de", **spec: JsonValue) -> Json:
    """A RayJob that looks like a successor of `any`."""
    made = failing(**spec)
    annotations = {RECREATE: "true", STATE: "{}", SUCCESSOR_OF: "any", FIRST_CREATED: "2030-05-01T11:00:00Z"}
    return {**made, "metadata": {**obj(made["metadata"]), "name": name, "annotations": annotations}}


def test_the_controllers_token_creates_no_pod_and_no_job_but_a_successor(account: Accounts) -> None:
    controller = account(CONTROLLER_NAMESPACE, CONTROLLER)
    template = pod_template(spec={"restartPolicy": "Never"})
    job: Json = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "stolen", "namespace": "tabular"},
        "spec": {"template": template},
    }
    for manifest in (pod(namespace="tabular"), job):
        with pytest.raises(ApiError, match="fallback-controller-writes"):
            controller.create(manifest)
    plain = successor()
    for annotations in ({}, {SUCCESSOR_OF: "any"}, {RECREATE: "true", STATE: "{}"}):
        metadata: Json = {**obj(plain["metadata"]), "annotations": annotations}
        assert WRITES in refusal(controller, {**plain, "metadata": metadata})
    assert WRITES in refusal(controller, successor("another-0badc0de"))
    assert WRITES in refusal(controller, successor("any-program"))


def cluster_of(**head: JsonValue) -> Json:
    """The cluster of a RayJob whose head has these fields."""
    cluster = obj(obj(failing()["spec"])["rayClusterSpec"])
    return {**cluster, "headGroupSpec": {**obj(cluster["headGroupSpec"]), **head}}


def test_the_controllers_token_creates_no_successor_but_of_a_failed_rayjob_with_its_program(
    tenant: KubeClient, account: Accounts
) -> None:
    controller = account(CONTROLLER_NAMESPACE, CONTROLLER)
    uid = str(obj(tenant.create(failing())["metadata"])["uid"])
    own = f"any-{uid[:8]}"
    assert WRITES in refusal(controller, successor(own)), "it has not failed"
    failed: Json = {"status": {"jobDeploymentStatus": "Failed"}}
    tenant.merge_patch("ray.io/v1", "RayJob", "any", failed, namespace="tabular", subresource="status")
    elsewhere = worker_group(pod_template(spec={"nodeSelector": {POOL: "cpu"}}))
    wait_until_enforced(controller, lambda client: not refusal(client, successor(own)))
    moved = successor(own, suspend=True, rayClusterSpec={**cluster_of(), "workerGroupSpecs": [elsewhere]})
    assert not refusal(controller, moved)
    forged = successor()
    annotations = {
        **obj(obj(forged["metadata"])["annotations"]),
        PREDECESSOR: "0badc0de-0000-0000-0000-000000000000",
    }
    theft = pod_template(spec={"containers": [{**container(), "image": "evil.example.com/x"}]})
    for attack in (
        forged,
        {**forged, "metadata": {**obj(forged["metadata"]), "annotations": annotations}},
        successor(own, entrypoint="sh -c 'steal checkpoints'"),
        successor(own, backoffLimit=100),
        successor(own, rayClusterSpec=cluster_of(template=theft)),
        successor(own, rayClusterSpec=cluster_of(rayStartParams={"dashboard-host": "0.0.0.0"})),
        successor(own, rayClusterSpec={**cluster_of(), "workerGroupSpecs": [worker_group(theft)]}),
        successor(own, rayClusterSpec={**cluster_of(), "workerGroupSpecs": [elsewhere, elsewhere]}),
        {**successor(own), "metadata": {**obj(successor(own)["metadata"]), "namespace": "vision"}},
    ):
        assert WRITES in refusal(controller, attack)
    tenant.delete("ray.io/v1", "RayJob", "any", namespace="tabular")


def test_kuberays_token_creates_no_pod_beyond_the_bounds(account: Accounts) -> None:
    kuberay = account(*OPERATORS[1])
    foreign = pod(namespace="tabular", spec={"nodeSelector": {POOL: "a100"}})
    assert "'training-pools'" in refusal(kuberay, foreign)
    assert "'training-pods'" in refusal(kuberay, pod(namespace="tabular", spec={"nodeName": "system-1"}))


@pytest.mark.parametrize("operator", OPERATORS)
def test_an_operators_token_writes_no_record(account: Accounts, operator: tuple[str, str]) -> None:
    for job in (
        jobset(
            replicated_job(pod_template()), namespace="tabular", labels=STAYS, annotations={STATE: "forged"}
        ),
        successor(),
    ):
        assert "'training-records'" in refusal(account(*operator), job)


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("namespace", ["web", "kube-system"])
def test_an_operators_token_writes_in_training_namespaces_alone(
    account: Accounts, operator: tuple[str, str], namespace: str
) -> None:
    assert "'operator-writes'" in refusal(account(*operator), pod(namespace=namespace))
