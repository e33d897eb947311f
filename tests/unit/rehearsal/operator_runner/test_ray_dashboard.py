"""The dashboard of a simulated Ray head reports the status of its job."""

from collections.abc import Sequence

import pytest

from pulumi_holdfast.ladder.json import Json, mapping
from pulumi_holdfast.rehearsal.operator_runner.ray_dashboard import answer
from tests.support.builders.operator_pods import pod

URL = "http://rj-head-svc.tabular.svc.cluster.local:8265"


def heads(*pods: Json, requested: list[tuple[str, str]] | None = None):
    def find(service: str, namespace: str) -> Sequence[Json]:
        if requested is not None:
            requested.append((service, namespace))
        return pods

    return find


RUNNING = pod(status={"phase": "Running"})


def test_running_head_reports_its_job_and_accepts_a_submission() -> None:
    requested: list[tuple[str, str]] = []
    response = answer("GET", f"{URL}/api/jobs/rj-1", {}, heads(RUNNING, requested=requested))
    assert mapping(response.body)["status"] == "RUNNING"
    assert mapping(response.body)["submission_id"] == "rj-1"
    assert requested == [("rj-head-svc", "tabular")]
    response = answer("POST", f"{URL}/api/jobs/", {"submission_id": "rj-1"}, heads(RUNNING))
    assert response.body == {"job_id": "rj-1", "submission_id": "rj-1"}
    assert answer("GET", f"{URL}/api/jobs/", {}, heads(RUNNING)).body == []
    assert answer("POST", f"{URL}/api/jobs/rj-1/stop", {}, heads(RUNNING)).body == {}


@pytest.mark.parametrize(("annotation", "status"), [("complete", "SUCCEEDED"), ("fail", "FAILED")])
def test_annotation_of_the_head_finishes_its_job(annotation: str, status: str) -> None:
    head = pod(metadata={"annotations": {f"holdfast.dev/{annotation}": "true"}}, status={"phase": "Running"})
    response = answer("GET", f"{URL}/api/jobs/rj-1", {}, heads(head))
    assert mapping(response.body)["status"] == status


def test_only_a_running_head_that_is_not_silent_answers() -> None:
    head = pod(metadata={"annotations": {"holdfast.dev/silent": "true"}}, status={"phase": "Running"})
    response = answer("GET", f"{URL}/api/jobs/rj-1", {}, heads(head))
    assert response.status == 502
    for found in ([], [pod(status={"phase": "Pending"})]):
        response = answer("GET", f"{URL}/api/jobs/rj-1", {}, heads(*found))
        assert response.status == 502
    for url in ("http://example.org/", "http://rj-head-svc.tabular.svc:80/api/jobs/x", "http://a.b:8265/"):
        response = answer("GET", url, {}, heads(RUNNING))
        assert response.status == 502, "requests must not leave this machine"
