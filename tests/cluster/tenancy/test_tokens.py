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
    RECREATE,
    STATE,
    SUCCESSOR_OF,
)
from pulumi_holdfast.rehearsal.kubernetes import KubeClient
from tests.support.builders.training_jobs import (
    jobset,
    pod,
    pod_template,
    rayjob,
    replicated_job,
    worker_group,
)
from tests.support.clusters.admission import refusal
from tests.support.json_objects import obj

pytestmark = pytest.mark.cluster

Accounts = Callable[[str, str], KubeClient]

WRITES = "'fallback-controller-writes'"
OPERATORS = (("jobset-system", "jobset-controller"), ("kuberay-system", "kuberay-operator"))
STAYS = {"holdfast.dev/fallback": "false"}


def successor(name: str = "any-0badc0de", namespace: str = "tabular", **head: JsonValue) -> Json:
    """A RayJob that looks like a successor, of a RayJob that never was."""
    made = rayjob(worker_group(pod_template()), labels=STAYS)
    cluster = obj(obj(made["spec"])["rayClusterSpec"])
    group: Json = {**obj(cluster["headGroupSpec"]), **head}
    annotations = {RECREATE: "true", STATE: "{}", SUCCESSOR_OF: "any", FIRST_CREATED: "2030-05-01T11:00:00Z"}
    return {
        **made,
        "metadata": {"name": name, "namespace": namespace, "labels": STAYS, "annotations": annotations},
        "spec": {**obj(made["spec"]), "rayClusterSpec": {**cluster, "headGroupSpec": group}},
    }


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


def test_a_forged_successor_of_the_controllers_token_stays_within_its_namespace(account: Accounts) -> None:
    controller = account(CONTROLLER_NAMESPACE, CONTROLLER)
    # What no policy can know: whether a RayJob `any` has failed, and what its program was.
    assert not refusal(controller, successor())
    assert "'training-inside'" in refusal(controller, successor(serviceType="LoadBalancer"))
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
