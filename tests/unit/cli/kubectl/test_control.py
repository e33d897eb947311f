"""Stop, resume and move: what is written in which order, and what is refused."""

from typing import Final

import pytest

from pulumi_holdfast.cli.kubectl import control
from pulumi_holdfast.cli.kubectl.cluster import Cluster
from pulumi_holdfast.cli.kubectl.control import Waiting, move_job, resume_job, stop_job
from pulumi_holdfast.controller.jobs.patches import write_state
from pulumi_holdfast.controller.jobs.pods_and_nodes import JobKey
from pulumi_holdfast.controller.jobs.state import JobState, Phase
from pulumi_holdfast.controller.other_clusters.protocol import TransferRecord, TransferStage, write_record
from pulumi_holdfast.controller.state_machine.decision import decide
from pulumi_holdfast.kubernetes.fallback_policy import API_VERSION
from pulumi_holdfast.ladder.errors import ConfigError
from pulumi_holdfast.ladder.fallback_policy import parse_policy
from pulumi_holdfast.ladder.json import Json, mapping
from pulumi_holdfast.ladder.labels import POOL, STATE, STOP, TRANSFER
from tests.support.builders.fallback_objects import NAMESPACE, UID, child_job, jobset
from tests.support.builders.job_states import observed, running, suspending
from tests.support.fakes.namespace_requests import NamespaceRequests, merged
from tests.support.json_objects import obj, objects

JOB: Final = f"/apis/jobset.x-k8s.io/v1alpha2/namespaces/{NAMESPACE}/jobsets/train"
CHILD: Final = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs/train-worker-0"
POLICY: Final = f"/apis/{API_VERSION}/namespaces/{NAMESPACE}/fallbackpolicies/ladder"
KEY: Final = JobKey("JobSet", NAMESPACE, "train")
LADDER: Final[Json] = {"spec": {"tiers": [{"pool": "spot-a"}, {"pool": "spot-b"}, {"pool": "on-demand"}]}}
WITH_EAST: Final[Json] = {
    "spec": {
        "tiers": [
            {"pool": "spot-a"},
            {"pool": "spot-b"},
            {"cluster": "east", "pool": "spot-b"},
            {"pool": "on-demand"},
        ]
    }
}
AWAY: Final = TransferRecord(uid=UID, epoch=1, stage=TransferStage.RETURNING, cluster="east", copy="c")
#: Longer than a fake controller needs.
PATIENT: Final = Waiting(seconds=180, say=lambda _: None)


def job(state: JobState | None = None, *, suspend: bool = False, **annotations: str) -> Json:
    recorded = {} if state is None else {STATE: write_state(state)}
    return jobset(suspend=suspend, annotations={**recorded, **annotations})


def on_spot(phase: Phase = Phase.RUNNING) -> JobState:
    return running(uid=UID, pool="spot-a", phase=phase)


def server(there: Json) -> NamespaceRequests:
    return NamespaceRequests(objects={JOB: there, POLICY: LADDER})


def notes_of(found: NamespaceRequests) -> Json:
    return mapping(obj(found.objects[JOB]["metadata"]).get("annotations"))


def controller(found: NamespaceRequests) -> None:
    """Suspend a job that is asked to stop, as the fallback controller, JobSet and the Job controller do."""
    there = found.objects[JOB]
    is_asked = notes_of(found).get(STOP) == "true"
    if is_asked and obj(there["spec"])["suspend"] is not True:
        stopped: Json = {
            "metadata": {"annotations": {STATE: write_state(on_spot(Phase.STOPPED))}},
            "spec": {"suspend": True},
            "status": {"conditions": [{"type": "Suspended", "status": "True"}]},
        }
        found.objects[JOB] = merged(there, stopped)
    found.objects[CHILD] = child_job(
        found.objects[JOB], suspend=obj(found.objects[JOB]["spec"])["suspend"] is True
    )


def selected(found: NamespaceRequests) -> object:
    spec = obj(found.objects[JOB]["spec"])
    template = obj(obj(obj(objects(spec["replicatedJobs"])[0]["template"])["spec"])["template"])
    return obj(obj(template["spec"])["nodeSelector"])[POOL]


def test_stop_sets_the_annotation_and_nothing_else() -> None:
    found = server(job(on_spot()))
    said = stop_job(Cluster(found, NAMESPACE), KEY)
    assert notes_of(found)[STOP] == "true"
    assert obj(found.objects[JOB]["spec"])["suspend"] is False
    assert "kubectl holdfast resume" in said


def test_resume_removes_the_annotation_and_the_suspension_in_one_write() -> None:
    found = server(job(on_spot(Phase.STOPPED), suspend=True, **{STOP: "true"}))
    resume_job(Cluster(found, NAMESPACE), KEY)
    assert STOP not in notes_of(found), "otherwise it is stopped again"
    assert obj(found.objects[JOB]["spec"])["suspend"] is False
    assert found.sent == [("PATCH", JOB)]


@pytest.mark.parametrize(
    ("recorded", "pool"), [("east/spot-b", "spot-a"), ("on-demand", "spot-a"), ("spot-a", "spot-a")]
)
def test_resume_names_the_pool_that_the_controller_finds_the_job_on(recorded: str, pool: str) -> None:
    stopped = running(uid=UID, pool=recorded, rank=2, phase=Phase.STOPPED)
    found = server(job(stopped, suspend=True, **{STOP: "true"}))
    said = resume_job(Cluster(found, NAMESPACE), KEY)
    assert f"is resumed on {pool}, from" in said
    assert ("in the cluster east" in said) == recorded.startswith("east/")
    resumed = observed(uid=UID, pool=pool, suspended=False)
    after = decide(stopped, resumed, parse_policy(WITH_EAST)).state
    assert after is not None
    assert after.pool == pool


@pytest.mark.parametrize(
    ("there", "words"),
    [
        (
            job(on_spot(Phase.STOPPED), suspend=True, **{STOP: "true", TRANSFER: write_record(AWAY)}),
            "Wait until the fallback controller has deleted the copy",
        ),
        (job(on_spot()), "not suspended"),
        (job(suspending(uid=UID, pool="spot-b"), suspend=True), "resumes it by itself"),
        (job(on_spot(), suspend=True, **{STOP: "true"}), "Wait until it is Stopped"),
        (jobset(status={"conditions": [{"type": "Completed", "status": "True"}]}), "has ended"),
    ],
)
def test_resume_refuses_a_job_that_is_not_at_rest(there: Json, words: str) -> None:
    found = server(there)
    with pytest.raises(ConfigError, match=words):
        resume_job(Cluster(found, NAMESPACE), KEY)
    assert found.sent == []


def test_move_stops_then_selects_then_resumes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control, "_POLL_SECONDS", 0.001)
    found = server(job(on_spot()))
    seen: list[tuple[object, object, object]] = []

    def react(there: NamespaceRequests) -> None:
        controller(there)
        seen.append((notes_of(there).get(STOP), obj(there.objects[JOB]["spec"])["suspend"], selected(there)))

    found.after = react
    move_job(Cluster(found, NAMESPACE), KEY, "on-demand", PATIENT)
    assert seen == [("true", True, "spot-a"), ("true", True, "on-demand"), (None, False, "on-demand")]
    recorded = notes_of(found)[STATE]
    assert recorded == write_state(on_spot(Phase.STOPPED))


def test_move_goes_on_when_an_operator_wrote_at_the_same_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control, "_POLL_SECONDS", 0.001)
    found = server(job(on_spot()))
    found.after = controller
    # JobSet writes a status between the first readings and the writes that follow them.
    found.conflicts = 3
    move_job(Cluster(found, NAMESPACE), KEY, "on-demand", PATIENT)
    assert selected(found) == "on-demand"


def test_move_that_is_not_stopped_in_time_says_how_to_go_on() -> None:
    found = server(job(on_spot()))
    with pytest.raises(ConfigError, match="kubectl holdfast resume jobset/train"):
        move_job(Cluster(found, NAMESPACE), KEY, "on-demand", Waiting(seconds=0, say=lambda _: None))
    assert selected(found) == "spot-a"


@pytest.mark.parametrize(
    ("there", "pool", "words"),
    [
        (job(on_spot()), "moon", "spot-a, spot-b, on-demand"),
        (job(on_spot()), "spot-a", "another tier of the ladder in this cluster: spot-b, on-demand"),
        (job(suspending(uid=UID, pool="spot-b"), suspend=True), "on-demand", "which is Suspending"),
        (job(), "spot-b", "has not recorded"),
        (job(on_spot()), "east/spot-b", "the fallback controller alone moves a job to another cluster"),
        (
            job(on_spot()),
            "spot-c",
            "allowed: the tiers of the ladder in this cluster: spot-a, spot-b, on-demand",
        ),
    ],
)
def test_move_refuses_what_the_ladder_could_not_follow(there: Json, pool: str, words: str) -> None:
    found = server(there)
    found.objects[POLICY] = WITH_EAST
    with pytest.raises(ConfigError, match=words):
        move_job(Cluster(found, NAMESPACE), KEY, pool, PATIENT)
    assert found.sent == []


def test_job_that_does_not_follow_is_left_to_kubectl() -> None:
    found = server({**job(), "metadata": {"name": "train", "uid": UID}})
    with pytest.raises(ConfigError, match="kubectl patch"):
        stop_job(Cluster(found, NAMESPACE), KEY)


def test_unknown_job_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(ConfigError, match="allowed: jobset/train"):
        Cluster(server(job()), NAMESPACE).job_named("absent")
