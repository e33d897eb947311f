"""The records of the fallback controller on jobs are its own, on a real API server."""

from collections.abc import Callable

import pytest

from pulumi_holdfast.controller.kube.client import ApiError
from pulumi_holdfast.ladder import labels
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import AUTHORS_ANNOTATIONS, CONTROLLER, CONTROLLER_NAMESPACE, POOL
from pulumi_holdfast.rehearsal.kubernetes import KubeClient
from tests.support.builders.training_jobs import jobset, pod_template, rayjob, replicated_job, worker_group
from tests.support.clusters.admission import refusal
from tests.support.json_objects import obj

pytestmark = pytest.mark.cluster

STAYS = {"holdfast.dev/fallback": "false"}
RESERVATION: Json = {"key": "holdfast.dev/reserved-for", "value": "another-job", "effect": "NoSchedule"}
RESERVED = pod_template(spec={"tolerations": [RESERVATION]})
RECORDS = (
    labels.STATE,
    labels.SUSPENDED_FOR,
    labels.FIRST_CREATED,
    labels.SUCCESSOR,
    labels.SUCCESSOR_OF,
    labels.TRANSFER,
    labels.COPY_OF,
    labels.PERMIT,
    labels.WORK_DONE,
    labels.CHECKPOINT_REQUESTED,
    "fallback.holdfast.dev/of-a-later-version",
)


def of_both_kinds(**annotations: str) -> list[Json]:
    """A job of each kind that stays as it is, with these annotations, in the namespace `tabular`."""
    of_ray = rayjob(worker_group(pod_template()), labels=STAYS, annotations=annotations)
    return [
        jobset(replicated_job(pod_template()), namespace="tabular", labels=STAYS, annotations=annotations),
        {**of_ray, "metadata": {**obj(of_ray["metadata"]), "namespace": "tabular"}},
    ]


@pytest.mark.parametrize("record", RECORDS)
def test_a_job_created_with_a_record_is_refused(tenant: KubeClient, record: str) -> None:
    for job in of_both_kinds(**{record: "forged"}):
        assert record in refusal(tenant, job)
        assert "training-" not in refusal(
            tenant, {**job, "metadata": {**obj(job["metadata"]), "namespace": "web"}}
        )


@pytest.mark.parametrize("annotation", sorted(AUTHORS_ANNOTATIONS))
def test_what_job_authors_set_is_admitted(tenant: KubeClient, annotation: str) -> None:
    for job in of_both_kinds(**{annotation: "true"}):
        assert "training-records" not in refusal(tenant, job)


def test_only_the_controller_changes_a_record(
    tenant: KubeClient, account: Callable[[str, str], KubeClient]
) -> None:
    controller = account(CONTROLLER_NAMESPACE, CONTROLLER)
    for job in of_both_kinds():
        version, kind = str(job["apiVersion"]), str(job["kind"])
        tenant.create(job)

        def annotate(client: KubeClient, value: str | None, at: tuple[str, str] = (version, kind)) -> None:
            changed: Json = {"metadata": {"annotations": {labels.STATE: value}}}
            client.merge_patch(*at, "train", changed, namespace="tabular")

        with pytest.raises(ApiError, match="training-records"):
            annotate(tenant, "forged")
        annotate(controller, "its own")
        for other in ("forged", None):
            with pytest.raises(ApiError, match="training-records"):
                annotate(tenant, other)
        applied: Json = {"name": "train", "namespace": "tabular", "annotations": {labels.STATE: "forged"}}
        with pytest.raises(ApiError, match="training-records"):
            tenant.apply(
                {**job, "metadata": {**obj(job["metadata"]), **applied}}, field_manager="x", force=True
            )
        tenant.merge_patch(version, kind, "train", {"metadata": {"labels": {"a": "b"}}}, namespace="tabular")
        tenant.merge_patch(
            version, kind, "train", {"metadata": {"annotations": {labels.STOP: "true"}}}, namespace="tabular"
        )


def test_a_tenants_job_tolerates_no_reservation(tenant: KubeClient) -> None:
    of_ray = rayjob(worker_group(pod_template()), head=RESERVED, labels=STAYS)
    job: Json = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "lone", "namespace": "tabular"},
        "spec": {"template": {"spec": {**obj(RESERVED["spec"]), "restartPolicy": "Never"}}},
    }
    for forged in (
        jobset(replicated_job(RESERVED), namespace="tabular", labels=STAYS),
        {**of_ray, "metadata": {**obj(of_ray["metadata"]), "namespace": "tabular"}},
        job,
    ):
        assert "'training-records'" in refusal(tenant, forged)


def test_the_child_jobs_of_a_jobset_may_tolerate_its_reservation(
    account: Callable[[str, str], KubeClient],
) -> None:
    job: Json = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "child", "namespace": "tabular"},
        "spec": {
            "template": {
                "spec": {**obj(RESERVED["spec"]), "restartPolicy": "Never", "nodeSelector": {POOL: "cpu"}}
            }
        },
    }
    assert not refusal(account("jobset-system", "jobset-controller"), job)
