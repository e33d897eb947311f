"""Copies of a job: the manifest of one, how both sides are read, and the patches of a transfer's steps."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from pulumi_holdfast.controller.jobs.base_observation import max_cost_of, work_done_of
from pulumi_holdfast.controller.jobs.jobset import JobSetKind
from pulumi_holdfast.controller.jobs.kinds import JobKind
from pulumi_holdfast.controller.jobs.observation import JobOutcome
from pulumi_holdfast.controller.jobs.patches import write_state
from pulumi_holdfast.controller.jobs.pod_history import PodHistory
from pulumi_holdfast.controller.jobs.rayjob import RayJobKind
from pulumi_holdfast.controller.jobs.rayjob_status import successor
from pulumi_holdfast.controller.jobs.state import Ledger, Pace, Phase, PoolUse
from pulumi_holdfast.controller.kube.objects import annotations_of, labels_of
from pulumi_holdfast.controller.other_clusters.copies import (
    copy_of,
    copy_status,
    home_of,
    home_view,
    may_run_here,
    outcome_patch,
    permit_patch,
    record_of,
    record_patch,
    remote_view,
)
from pulumi_holdfast.controller.other_clusters.protocol import (
    Permit,
    SetPermit,
    TransferRecord,
    TransferStage,
    write_record,
)
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import (
    COPY_OF,
    FINISH_BY,
    FIRST_CREATED,
    LOST_COPY,
    MAX_COST,
    PERMIT,
    PROGRESS,
    RECREATE,
    STATE,
    TIER,
    TRANSFER,
    WORK,
    CapacityType,
)
from tests.support.builders.fallback_objects import (
    NOW,
    UID,
    child_job,
    condition,
    jobset,
    ray_worker,
    rayjob,
    snapshot,
    worker,
    worker_group,
)
from tests.support.builders.job_states import running
from tests.support.json_objects import obj, objects

JOBSET, RAYJOB = JobSetKind(), RayJobKind()
RECORD = TransferRecord(uid=UID, epoch=2, stage=TransferStage.AWAY, cluster="elsewhere", copy="c")
SUSPENDED: Json = {"conditions": [condition("Suspended")]}


def a_copy(*, permit: str = "Recalled", origin: str = f"v1 home {UID} 2", status: Json = SUSPENDED) -> Json:
    """The object with the job's name in the other cluster; suspended unless its status says otherwise."""
    annotations = {COPY_OF: origin, PERMIT: permit}
    return jobset(suspend=True, annotations=annotations, status=status)


def stopped() -> Json:
    """The suspended child Job of the job, or of its copy."""
    return child_job(jobset(), suspend=True)


def held(job: Json, *finalizers: str) -> Json:
    """The job with finalizers."""
    return {**job, "metadata": {**obj(job["metadata"]), "finalizers": list(finalizers)}}


def test_a_copy_is_suspended_without_a_permit_and_has_nothing_of_homes_state() -> None:
    annotations = {STATE: "{}", TRANSFER: "v1", "example.com/team": "vision"}
    job = jobset(annotations=annotations, labels={TIER: "spot-a"}, ttlSecondsAfterFinished=60)
    copy = copy_of(JOBSET, job, home="home", epoch=3, pool="a100-spot")

    metadata, spec = obj(copy["metadata"]), obj(copy["spec"])
    assert obj(metadata["annotations"]) == {
        "example.com/team": "vision",
        COPY_OF: f"v1 home {UID} 3",
        PERMIT: "Waiting",
        FIRST_CREATED: obj(job["metadata"])["creationTimestamp"],
    }
    assert TIER not in obj(metadata["labels"])
    assert not {"uid", "resourceVersion"} & set(metadata)
    assert spec["suspend"] is True, "a request that arrives late must start nothing"
    assert "ttlSecondsAfterFinished" not in spec, "its operator must not delete it with its outcome"
    (template,) = [obj(each["template"]) for each in objects(spec["replicatedJobs"])]
    pods = obj(obj(template["spec"])["template"])
    for each in (template, pods):
        assert labels_of(each)[COPY_OF] == UID
    assert obj(obj(pods["spec"])["nodeSelector"]) == {"holdfast.dev/pool": "a100-spot"}


@pytest.mark.parametrize(
    ("limit", "spent", "left"),
    [
        ("250", 0.0, 250),
        ("250", 240.5, 9.5),
        ("250", 240.1234567, 9.876543),
        ("250", 250.0, 0.000001),
        ("99.50", 1e15, 0.000001),
        ("999999999.999999", 0.0, 999_999_999.999999),
    ],
)
def test_a_copy_may_spend_what_is_left_of_the_max_cost(limit: str, spent: float, left: float) -> None:
    uses = (
        PoolUse(pool="on-demand", capacity=CapacityType.ON_DEMAND, cost=spent / 2),
        PoolUse(pool="west/on-demand", capacity=CapacityType.ON_DEMAND, cost=spent / 2),
        PoolUse(pool="spot-a", capacity=CapacityType.SPOT, cost=1000.0),
    )
    ledger = Ledger(counted_from=NOW, counted_until=NOW, uses=uses)
    job = jobset(annotations={STATE: write_state(running(uid=UID, ledger=ledger)), MAX_COST: limit})
    copy = copy_of(JOBSET, job, home="home", epoch=1, pool="spot-a")
    found = max_cost_of(copy)
    assert found is not None, "0 would be read as no limit at all, and admission there rejects it"
    assert found.amount == pytest.approx(left, abs=2e-6)
    assert found.amount + spent <= max(float(limit), spent) + 1e-6


def test_a_copy_knows_since_when_its_job_is_there_and_what_it_has_done() -> None:
    pace = Pace(work_done=timedelta(hours=40, minutes=5, seconds=1, milliseconds=9))
    annotations = {
        STATE: write_state(running(uid=UID, pace=pace)),
        FINISH_BY: "2030-05-03T18:00:00Z",
        WORK: "48h",
        FIRST_CREATED: "2026-11-01T00:00:00Z",
    }
    copy = copy_of(JOBSET, jobset(annotations=annotations), home="home", epoch=1, pool="spot-a")
    seen, _ = JOBSET.observe(snapshot(copy), PodHistory())
    assert seen.created == datetime(2026, 11, 1, tzinfo=UTC)
    assert seen.deadline is not None
    assert seen.deadline.done_before == timedelta(hours=40, minutes=5, seconds=1)
    assert seen.deadline.work == timedelta(hours=48)

    pod = worker("a", annotations={PROGRESS: "0.9"})
    own = work_done_of(copy, [pod])
    assert own == timedelta(hours=48 * 0.9) - seen.deadline.done_before


def test_a_copy_says_how_far_it_has_come() -> None:
    pace = Pace(work_done=timedelta(hours=3), counts_from=NOW)
    annotations = {STATE: write_state(running(uid=UID, pace=pace)), WORK: "48h"}
    found = jobset(annotations=annotations)
    pod = worker("a", annotations={PROGRESS: "0.5"})
    status = copy_status(JOBSET, found, (), (pod,), NOW, cluster="west")
    assert (status.pace, status.progress) == (pace, 0.5)


def test_a_max_cost_that_cannot_be_read_is_copied_as_it_is() -> None:
    for written in ("0", "nothing"):
        copy = copy_of(JOBSET, jobset(annotations={MAX_COST: written}), home="home", epoch=1, pool="spot-a")
        assert annotations_of(copy)[MAX_COST] == written


ENDED: Json = {"conditions": [condition("Completed")]}


@pytest.mark.parametrize(
    ("found", "children", "pods", "is_quiet", "is_clear"),
    [
        pytest.param(None, (), (), False, True, id="nothing"),
        pytest.param(None, (), (worker("a"),), False, False, id="a pod without its copy"),
        pytest.param(None, (child_job(jobset()),), (), False, False, id="a Job without its copy"),
        pytest.param(a_copy(), (stopped(),), (), True, False, id="stopped"),
        pytest.param(a_copy(), (), (), False, True, id="its operator may still create a child Job"),
        pytest.param(
            a_copy(), (stopped(),), (worker("a", of="x"),), False, False, id="an earlier copy's pod"
        ),
        pytest.param(a_copy(status={}), (), (), False, True, id="not stopped by its operator yet"),
        pytest.param(a_copy(status=ENDED), (), (), True, True, id="completed"),
    ],
)
def test_a_copy_is_quiet_and_a_cluster_clear_only_without_any_pod(
    *, found: Json | None, children: tuple[Json, ...], pods: tuple[Json, ...], is_quiet: bool, is_clear: bool
) -> None:
    view = remote_view(JOBSET, found, children, pods, NOW)

    assert view.is_clear is is_clear, "home must not run the job beside what is left"
    assert (view.copy is not None and view.copy.is_quiet) is is_quiet


@pytest.mark.parametrize(
    ("found", "origin", "permit"),
    [
        (a_copy(permit="Granted"), UID, Permit.GRANTED),
        (a_copy(permit="granted"), UID, Permit.WAITING),
        (a_copy(origin=""), "", Permit.RECALLED),
        (a_copy(origin=f"v2 home {UID} 2"), "", Permit.RECALLED),
        (a_copy(origin=f"v1 home {UID} two"), "", Permit.RECALLED),
    ],
)
def test_annotations_that_cannot_be_read_make_no_copy_and_permit_nothing(
    found: Json, origin: str, permit: Permit
) -> None:
    view = remote_view(JOBSET, found, (), (), NOW)

    assert view.copy is not None
    assert (view.copy.origin, view.copy.permit) == (origin, permit), "an uncertain reading must start nothing"


def test_a_job_is_seen_with_its_record_and_what_its_user_declares_lost() -> None:
    annotations = {TRANSFER: write_record(RECORD), LOST_COPY: "2"}
    job = held(jobset(suspend=True, annotations=annotations, status=SUSPENDED), TRANSFER)

    view = home_view(JOBSET, snapshot(job, children=[stopped()]), wanted="elsewhere")
    assert (view.record, view.is_held, view.abandoned) == (RECORD, True, 2)
    assert view.is_quiet
    left = home_view(JOBSET, snapshot(job, worker("a"), children=[stopped()]), wanted="")
    assert not left.is_quiet
    assert record_of(held(jobset(), TRANSFER)).stage is TransferStage.RETURNING
    assert record_of(jobset()).stage is TransferStage.HOME


def test_patches_are_for_the_version_that_was_read_and_keep_what_others_wrote() -> None:
    job = held(jobset(suspend=True, status=SUSPENDED), "example.com/theirs")
    fence = {"uid": UID, "resourceVersion": "41"}

    metadata = obj(record_patch(job, RECORD, hold=True)["metadata"])
    assert metadata["finalizers"] == ["example.com/theirs", TRANSFER]
    assert obj(record_patch(held(job, TRANSFER), RECORD, hold=False)["metadata"])["finalizers"] == []
    status = obj(outcome_patch(JOBSET, job, JobOutcome.FAILED, "elsewhere", NOW)["status"])
    kinds = [each["type"] for each in objects(status["conditions"])]
    assert (kinds, status["terminalState"]) == (["Suspended", "Failed"], "Failed")
    patches = (metadata, obj(outcome_patch(JOBSET, job, JobOutcome.FAILED, "elsewhere", NOW)["metadata"]))
    assert all(fence.items() <= each.items() for each in patches), "a change in between must refuse them"
    granted = permit_patch(SetPermit(copy="c", version="7", permit=Permit.GRANTED))
    assert obj(granted["metadata"]) == {
        "uid": "c",
        "resourceVersion": "7",
        "annotations": {PERMIT: "Granted"},
    }
    assert obj(granted["spec"]) == {"suspend": False}
    assert home_of(a_copy()) == "home"


@pytest.mark.parametrize(("permit", "is_stopped"), [("Waiting", True), ("Granted", False), ("", True)])
def test_a_copy_without_a_permit_is_seen_as_stopped(permit: str, is_stopped: bool) -> None:
    seen, _ = JOBSET.observe(snapshot(a_copy(permit=permit)), PodHistory())

    assert (seen.stop_requested, seen.awaits_permit) == (is_stopped, is_stopped)
    assert not JOBSET.observe(snapshot(jobset()), PodHistory())[0].awaits_permit


def test_the_status_of_a_copy_has_its_pods_and_what_the_controller_there_has_recorded() -> None:
    placed, waits = worker("w0", node="n"), worker("w1")
    seen = copy_status(
        JOBSET, a_copy(permit="Granted"), [stopped()], [placed, waits], NOW, cluster="elsewhere"
    )
    assert (seen.pods_expected, seen.pods_placed) == (2, 1)
    assert seen.pool == ""

    used = Ledger(counted_from=NOW, counted_until=NOW)
    state = replace(running(uid=UID), evictions=2, phase=Phase.GIVEN_UP, ledger=used)
    recorded = jobset(annotations={COPY_OF: f"v1 home {UID} 2", STATE: write_state(state)})
    seen = copy_status(JOBSET, recorded, (), (), NOW, cluster="elsewhere")
    assert (seen.pool, seen.evictions, seen.is_given_up) == (state.pool, 2, True)
    assert (seen.uid, seen.cluster, seen.ledger) == (UID, "elsewhere", used)
    assert seen.is_closed


@pytest.mark.parametrize("stage", TransferStage)
def test_a_job_may_run_at_home_in_no_stage_of_a_transfer(stage: TransferStage) -> None:
    record = write_record(replace(RECORD, stage=stage))
    job = jobset(annotations={TRANSFER: record})
    assert may_run_here(job) == (stage is TransferStage.HOME)
    assert not may_run_here(held(job, TRANSFER))


def ray_copy(status: str, *, recreate: bool = False) -> Json:
    """The copy of a RayJob in a state of KubeRay."""
    asks = {RECREATE: "true"} if recreate else {}
    annotations = {COPY_OF: f"v1 home {UID} 2", PERMIT: "Granted", **asks}
    return rayjob(status=status, suspend=False, annotations=annotations)


def test_the_copy_of_a_rayjob_gives_all_its_pods_and_its_cluster_the_label_and_its_workers_the_pool() -> None:
    stays = worker_group("cache", template={})
    job = rayjob(
        worker_group(selector={"holdfast.dev/pool": "spot-a"}),
        stays,
        ttlSecondsAfterFinished=600,
        submitterPodTemplate={"spec": {}},
    )
    copy = copy_of(RAYJOB, job, home="home", epoch=1, pool="a100-spot")

    spec, cluster = obj(copy["spec"]), obj(obj(copy["spec"])["rayClusterSpec"])
    assert labels_of(copy)[COPY_OF] == UID
    workers, cache = objects(cluster["workerGroupSpecs"])
    parts = [obj(each["template"]) for each in (obj(cluster["headGroupSpec"]), workers, cache)]
    for each in (*parts, obj(spec["submitterPodTemplate"])):
        assert labels_of(each)[COPY_OF] == UID
    assert "a100-spot" in str(workers)
    assert "a100-spot" not in str(cache)
    assert (spec["suspend"], spec.get("ttlSecondsAfterFinished")) == (True, None)


@pytest.mark.parametrize("outcome", JobOutcome)
@pytest.mark.parametrize(
    ("kind", "ended"), [(JOBSET, jobset(suspend=True)), (RAYJOB, rayjob(status="Suspended"))]
)
def test_the_outcome_of_a_copy_is_read_as_that_of_its_job(
    kind: JobKind, outcome: JobOutcome, ended: Json
) -> None:
    patch = outcome_patch(kind, ended, outcome, "elsewhere", NOW)
    job = {**ended, "status": {**obj(ended.get("status")), **obj(patch["status"])}}
    assert kind.observe(snapshot(job), PodHistory())[0].outcome is outcome


@pytest.mark.parametrize(
    ("copy", "outcome", "is_given_up"),
    [
        pytest.param(ray_copy("Running"), None, False, id="runs"),
        pytest.param(ray_copy("Complete", recreate=True), JobOutcome.COMPLETED, False, id="completed"),
        pytest.param(ray_copy("Failed"), JobOutcome.FAILED, False, id="failed"),
        pytest.param(ray_copy("Failed", recreate=True), None, True, id="failed, and may be created again"),
        pytest.param(ray_copy("ValidationFailed"), None, True, id="another version of KubeRay refuses it"),
    ],
)
def test_a_rayjob_continues_at_home_where_its_copy_has_failed_and_the_job_has_not(
    copy: Json, outcome: JobOutcome | None, is_given_up: bool
) -> None:
    view = remote_view(RAYJOB, copy, (), (), NOW).copy
    assert view is not None
    assert view.outcome is outcome
    status = copy_status(RAYJOB, copy, (), (), NOW, cluster="elsewhere")
    assert status.is_given_up is is_given_up
    assert view.is_quiet is (outcome is not None or is_given_up)
    seen = RAYJOB.observe(snapshot(copy), PodHistory())[0]
    assert not seen.can_be_recreated


def test_a_suspended_rayjob_is_not_quiet_while_its_cluster_or_a_pod_is_left() -> None:
    job = rayjob(status="Suspended", suspend=True)
    owner: Json = {"kind": "RayJob", "name": "train", "uid": UID, "controller": True}
    cluster: Json = {"kind": "RayCluster", "metadata": {"name": "train-bcdfg", "ownerReferences": [owner]}}

    assert home_view(RAYJOB, snapshot(job), wanted="elsewhere").is_quiet
    assert not home_view(RAYJOB, snapshot(job, children=[cluster]), wanted="elsewhere").is_quiet
    assert not home_view(RAYJOB, snapshot(job, ray_worker("a")), wanted="elsewhere").is_quiet


def test_a_successor_has_nothing_of_its_predecessors_transfers() -> None:
    job = rayjob(annotations={TRANSFER: write_record(RECORD), LOST_COPY: "2"})
    annotations = annotations_of(successor(job, {}, ""))
    assert not {TRANSFER, LOST_COPY} & annotations.keys()
