"""The dashboard of a simulated Ray head reports the status of its job."""

from collections.abc import Sequence

from pulumi_holdfast.ladder.json import Json
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
