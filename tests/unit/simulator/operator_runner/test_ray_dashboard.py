"""KubeRay is told how the job of a simulated head is."""

from collections.abc import Sequence

from holdfast.scheduling.json import Json
from holdfast.simulator.kubernetes_client.objects import mapping
from holdfast.simulator.operator_runner.ray_dashboard import answer
from tests.support.hosted_pods import pod

URL = "http://rj-head-svc.tabular.svc.cluster.local:8265"


def heads(*pods: Json, asked: list[tuple[str, str]] | None = None):
    def find(service: str, namespace: str) -> Sequence[Json]:
        if asked is not None:
            asked.append((service, namespace))
        return pods

    return find


RUNNING = pod(status={"phase": "Running"})


def test_a_job_runs_while_its_head_does() -> None:
    asked: list[tuple[str, str]] = []
    said = answer("GET", f"{URL}/api/jobs/rj-1", {}, heads(RUNNING, asked=asked))
    assert mapping(said.body)["status"] == "RUNNING", "the head runs"
    assert mapping(said.body)["submission_id"] == "rj-1", "it is this job"
    assert asked == [("rj-head-svc", "tabular")], "the head is found by its Service"


def test_a_job_succeeds_when_its_head_is_annotated() -> None:
    annotated: Json = {"annotations": {"holdfast.dev/complete": "true"}}
    done = pod(metadata=annotated, status={"phase": "Running"})
    said = answer("GET", f"{URL}/api/jobs/rj-1", {}, heads(done))
    assert mapping(said.body)["status"] == "SUCCEEDED", "its author said so"


def test_a_job_fails_when_its_head_is_annotated() -> None:
    annotated: Json = {"annotations": {"holdfast.dev/fail": "true"}}
    failed = pod(metadata=annotated, status={"phase": "Running"})
    said = answer("GET", f"{URL}/api/jobs/rj-1", {}, heads(failed))
    assert mapping(said.body)["status"] == "FAILED", "its author said so"


def test_a_head_may_be_told_to_be_silent() -> None:
    annotated: Json = {"annotations": {"holdfast.dev/silent": "true"}}
    silent = pod(metadata=annotated, status={"phase": "Running"})
    said = answer("GET", f"{URL}/api/jobs/rj-1", {}, heads(silent))
    assert said.status.startswith("502"), "it runs, and yet nothing comes back"


def test_a_submission_is_accepted_under_its_own_name() -> None:
    said = answer("POST", f"{URL}/api/jobs/", {"submission_id": "rj-1"}, heads(RUNNING))
    assert said.body == {"job_id": "rj-1", "submission_id": "rj-1"}, "KubeRay looks for it by this name"


def test_a_head_that_does_not_run_does_not_answer() -> None:
    for found in ([], [pod(status={"phase": "Pending"})]):
        said = answer("GET", f"{URL}/api/jobs/rj-1", {}, heads(*found))
        assert said.status.startswith("502"), "nothing listens in a pod that is not there"


def test_no_other_address_is_a_dashboard() -> None:
    for url in ("http://example.org/", "http://rj-head-svc.tabular.svc:80/api/jobs/x", "http://a.b:8265/"):
        said = answer("GET", url, {}, heads(RUNNING))
        assert said.status.startswith("502"), f"{url} is not one, and nothing is let out of the machine"


def test_other_calls_are_answered_with_nothing() -> None:
    assert answer("GET", f"{URL}/api/jobs/", {}, heads(RUNNING)).body == [], "no list of jobs is kept"
    assert answer("POST", f"{URL}/api/jobs/rj-1/stop", {}, heads(RUNNING)).body == {}, "stopping is accepted"
