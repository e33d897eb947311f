"""RayJobs: their observation, and the patches that suspend, resume and recreate them."""

from datetime import timedelta

import pytest

from pulumi_holdfast.controller.jobs.actions import Recreate, Resume, Suspend
from pulumi_holdfast.controller.jobs.observation import Cause, JobOutcome, Observation, Part
from pulumi_holdfast.controller.jobs.pod_history import PodHistory
from pulumi_holdfast.controller.jobs.pods_and_nodes import JobKey
from pulumi_holdfast.controller.jobs.rayjob import RayJobKind
from pulumi_holdfast.controller.jobs.rayjob_status import successor
from pulumi_holdfast.controller.jobs.state import JobState, Phase
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import STOP
from tests.support.builders.fallback_objects import (
    EARLIER,
    NAMESPACE,
    NOW,
    UID,
    condition,
    disrupted,
    node,
    observed,
    pod,
    pod_spec,
    ray_head,
    ray_worker,
    rayjob,
    snapshot,
    stamp,
    worker_group,
)
from tests.support.json_objects import obj, objects

KIND = RayJobKind()
STATE = JobState(uid=UID, phase=Phase.SUSPENDING, pool="cpu", rank=2, since=NOW)
NODES = [node("n1"), node("n2"), node("head-node")]
ON_A = {"holdfast.dev/pool": "spot-a"}
SPOT = {"karpenter.sh/capacity-type": "spot"}
RECREATE = {"fallback.holdfast.dev/recreate": "true"}


def groups(patch: Json) -> list[Json]:
    """The pod specs of a patch's worker groups."""
    found = objects(obj(obj(patch["spec"])["rayClusterSpec"])["workerGroupSpecs"])
    return [obj(obj(each["template"])["spec"]) for each in found]


def test_a_job_that_runs_is_seen_with_its_workers_placed() -> None:
    pods = [ray_head(), ray_worker("a", node="n1"), ray_worker("b", node="n2")]
    now = observed(rayjob(), *pods, nodes=NODES)
    assert (now.pods_expected, now.pods_placed, now.pods_started) == (2, 2, 2)
    assert now.pods_remaining == 3
    assert (now.pool, now.head_unready_since, now.outcome) == ("spot-a", None, None)


@pytest.mark.parametrize(
    ("status", "honoured", "outcome"),
    [
        ("", False, None),
        ("Initializing", True, None),
        ("Waiting", False, None),
        ("Running", True, None),
        ("Suspending", False, None),
        ("Suspended", False, None),
        ("Retrying", False, None),
        ("Complete", False, JobOutcome.COMPLETED),
        ("Failed", False, JobOutcome.FAILED),
        ("ValidationFailed", False, JobOutcome.FAILED),
    ],
)
def test_each_state_of_a_rayjob_has_its_meaning(
    status: str, honoured: bool, outcome: JobOutcome | None
) -> None:
    now = observed(rayjob(status=status))
    assert now.can_be_suspended is honoured, f"KubeRay looks at `suspend` in {status or 'New'}: {honoured}"
    assert now.outcome is outcome, f"{status or 'New'} is terminal: {outcome}"
    assert now.is_suspension_complete is (status == "Suspended")


@pytest.mark.parametrize(
    ("spec", "word"),
    [
        ({"shutdownAfterJobFinishes": False}, "shutdownAfterJobFinishes"),
        ({"clusterSelector": {"ray.io/cluster": "shared"}}, "clusterSelector"),
        ({"submissionMode": "InteractiveMode"}, "InteractiveMode"),
    ],
)
def test_a_rayjob_that_kuberay_would_reject_is_not_suspendable(spec: dict[str, object], word: str) -> None:
    said = observed(rayjob(**spec)).not_suspendable_reason  # type: ignore[arg-type] - of the spec alone
    assert said is not None, "KubeRay never reconciles an invalid RayJob again: it would be lost"
    assert word in said


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"replicas": 3}, 3),
        ({"replicas": 1, "minReplicas": 2}, 2),
        ({"replicas": 20, "maxReplicas": 4}, 4),
        ({"replicas": 2, "numOfHosts": 4}, 8),
        ({"replicas": 2, "suspend": True}, 0),
    ],
)
def test_a_group_expects_the_pods_that_kuberay_creates(fields: dict[str, object], expected: int) -> None:
    group = worker_group(selector=ON_A, **fields)  # type: ignore[arg-type] - of the group alone
    assert observed(rayjob(group)).pods_expected == expected, f"of {fields}"


def test_a_group_expects_its_minimum_if_ray_scales_it_and_none_without_selector() -> None:
    group = worker_group(selector=ON_A, replicas=5, minReplicas=1)
    now = observed(rayjob(group, cluster={"enableInTreeAutoscaling": True}))
    assert now.pods_expected == 1, "more is a wish, and a wish must not walk a job down its ladder"
    scaled = rayjob(worker_group(selector=ON_A, minReplicas=0), cluster={"enableInTreeAutoscaling": True})
    pods = [ray_worker("a", node="n1"), ray_worker("b"), ray_worker("c"), ray_worker("d", deleted_at=NOW)]
    now = observed(scaled, *pods, nodes=NODES)
    assert (now.pods_expected, now.pods_placed) == (3, 1)
    assert [shape.count for shape in now.shapes] == [3]
    assert (now.is_elastic, now.is_half_placed) == (True, False)
    now = observed(rayjob(worker_group(selector=ON_A), worker_group("helpers", replicas=3)))
    assert now.pods_expected == 2, "helpers run on the default pool"
    assert [shape.count for shape in now.shapes] == [2]
    now = observed(rayjob(worker_group(selector=ON_A, replicas=2, numOfHosts=2)))
    assert [shape.count for shape in now.shapes] == [4]
    assert observed(rayjob(worker_group(selector=ON_A, replicas=0))).shapes == ()


def test_a_lost_worker_is_distinguished_from_a_lost_head() -> None:
    lost = ray_worker("a", node="n1", conditions=[disrupted(NOW)], deleted_at=NOW)
    now = observed(rayjob(), ray_head(), lost, ray_worker("b", node="n2"), nodes=NODES)
    assert [(loss.cause, loss.part, loss.pool) for loss in now.losses] == [
        (Cause.EVICTION, Part.WORKER, "spot-a")
    ]
    assert now.restarts == 0
    head = ray_head(conditions=[disrupted(NOW)], deleted_at=NOW)
    (loss,) = observed(rayjob(), head, nodes=NODES).losses
    assert (loss.part, loss.pool) == (Part.HEAD, None)


def head_unready(
    history: PodHistory, *pods: Json, after: float, status: str = "Running"
) -> tuple[object, PodHistory]:
    now = NOW + timedelta(seconds=after)
    found, history = KIND.observe(snapshot(rayjob(status=status), *pods, nodes=NODES, now=now), history)
    return found.head_unready_since, history


def test_a_head_is_unready_until_it_is_ready_again() -> None:
    since, history = head_unready(PodHistory(), after=0)
    assert since == NOW
    since, history = head_unready(history, ray_head(ready=False), after=40)
    assert since == NOW
    since, history = head_unready(history, ray_head(), after=60)
    assert since is None
    since, _ = head_unready(history, after=90)
    assert since == NOW + timedelta(seconds=90)


@pytest.mark.parametrize("status", ["Initializing", "Retrying", "Suspending", "Suspended"])
def test_a_head_that_is_starting_is_not_unready(status: str) -> None:
    assert head_unready(PodHistory(), after=0, status=status)[0] is None


def test_only_a_ready_head_on_a_live_node_is_ready() -> None:
    lost = [node("head-node", ready="Unknown")]
    assert observed(rayjob(), ray_head(), nodes=lost).head_unready_since == NOW
    head = ray_head(conditions=[condition("Ready", status="Unknown")])
    assert observed(rayjob(), head, nodes=NODES).head_unready_since == NOW


def failed_rayjob(
    history: PodHistory, count: int, *, reason: str = "AppFailed", after: float = 0
) -> tuple[Observation, PodHistory]:
    more: Json = {"failed": count, "reason": reason, "message": "the driver raised"}
    job = rayjob(status="Retrying" if count else "Running", more_status=more)
    return KIND.observe(snapshot(job, now=NOW + timedelta(seconds=after)), history)


def test_a_failure_is_recorded_before_its_operator_forgets_it() -> None:
    _, history = failed_rayjob(PodHistory(), 0)
    now, history = failed_rayjob(history, 1, after=10)
    assert [(loss.cause, loss.at) for loss in now.losses] == [
        (Cause.APPLICATION, NOW + timedelta(seconds=10))
    ]
    assert now.restarts == 1
    cleared = rayjob(more_status={"failed": 1, "reason": "", "message": ""})
    later, _ = KIND.observe(
        snapshot(cleared, ray_head(), nodes=NODES, now=NOW + timedelta(seconds=20)), history
    )
    assert later.losses == now.losses
    (report,) = later.notices
    assert (report.reason, "AppFailed" in report.message, "the driver raised" in report.message) == (
        "AttemptFailed",
        True,
        True,
    )


def test_only_failures_of_started_attempts_since_the_first_reconciliation_are_losses() -> None:
    now, _ = failed_rayjob(PodHistory(), 3)
    assert (now.losses, now.restarts) == ((), 3)
    _, history = failed_rayjob(PodHistory(), 0)
    now, _ = failed_rayjob(history, 1, reason="PreRunningDeadlineExceeded")
    assert now.losses == ()
    _, history = failed_rayjob(PodHistory(), 0)
    now, _ = failed_rayjob(history, 2)
    assert len({loss.pod for loss in now.losses}) == 2
    _, history = failed_rayjob(PodHistory(), 0)
    _, history = failed_rayjob(history, 2)
    now, _ = failed_rayjob(history, 0)
    assert (now.losses, now.notices) == ((), ())


def test_a_failed_rayjob_has_its_failure_cause() -> None:
    head = ray_head(conditions=[disrupted(NOW)], deleted_at=NOW)
    job = rayjob(status="Failed", more_status={"endTime": stamp(NOW + timedelta(seconds=30))})
    assert observed(job, head, nodes=NODES).failure_cause is Cause.EVICTION


def test_a_move_changes_only_worker_groups_and_tolerates_their_reservation() -> None:
    job = rayjob(worker_group(selector={**SPOT, **ON_A}), worker_group("helpers"), head=pod_spec(SPOT))
    patch = KIND.suspension(job, Suspend(state=STATE, pool="cpu"), "the state")
    moved, helpers = groups(patch)
    assert moved["nodeSelector"] == {"holdfast.dev/pool": "cpu"}
    assert helpers == pod_spec()
    assert obj(obj(patch["spec"])["rayClusterSpec"]).keys() == {"workerGroupSpecs"}
    assert obj(patch["spec"])["suspend"] is True
    assert obj(patch["metadata"])["resourceVersion"] == "41"
    patch = KIND.resumption(rayjob(), Resume(state=STATE, pool="spot-a", tolerate_reservation=True), "")
    (spec,) = groups(patch)
    assert [each["value"] for each in objects(spec["tolerations"])] == [UID]
    assert obj(patch["spec"])["suspend"] is False


def test_a_head_on_spot_gets_a_warning() -> None:
    (report,) = observed(rayjob(head=pod_spec(SPOT))).notices
    assert report.reason == "CannotFollow"


@pytest.mark.parametrize(
    ("name", "labels", "found"),
    [
        ("of its cluster", {"ray.io/cluster": "train-bcdfg"}, "train"),
        ("of its submitter", {"batch.kubernetes.io/job-name": "train"}, "train"),
        ("of a cluster whose name has no such ending", {"ray.io/cluster": "shared"}, None),
        ("of nothing", {}, None),
    ],
)
def test_a_pods_rayjob_is_derived_from_names(name: str, labels: dict[str, str], found: str | None) -> None:
    key = JobKey("RayJob", NAMESPACE, found) if found else None
    assert KIND.job_of_pod(pod("a", labels)) == key, f"a pod {name}"


def test_only_pods_of_the_jobs_cluster_remain() -> None:
    now = observed(
        rayjob(status="Suspended", suspend=True), ray_worker("a", node="n1", deleted_at=NOW), nodes=NODES
    )
    assert (now.is_suspension_complete, now.pods_remaining) == (True, 1)
    cluster: Json = {"kind": "RayCluster", "metadata": {"name": "train-bcdfg", "namespace": NAMESPACE}}
    assert KIND.job_of_child(cluster) == JobKey("RayJob", NAMESPACE, "train")
    assert observed(rayjob(), ray_worker("a", node="n1"), children=[cluster]).pods_remaining == 0


def test_the_submitter_is_a_pod_of_the_job_but_not_of_the_gang() -> None:
    submitter = pod("train-x", {"batch.kubernetes.io/job-name": "train"}, node="n1")
    assert observed(rayjob(), submitter, nodes=NODES).pods_remaining == 1
    assert observed(rayjob(submissionMode="HTTPMode"), submitter, nodes=NODES).pods_remaining == 0
    submitter = pod(
        "train-x",
        {"batch.kubernetes.io/job-name": "train"},
        node="n1",
        pool=None,
        phase="Failed",
        ended_at=NOW,
    )
    assert observed(rayjob(), ray_head(), submitter, nodes=NODES).losses == ()


def test_a_submitter_that_exits_with_zero_when_its_job_is_suspended_is_no_reason_for_a_warning() -> None:
    submitter = pod(
        "train-x",
        {"batch.kubernetes.io/job-name": "train"},
        node="n1",
        phase="Succeeded",
        ended_at=NOW,
        exit_code=0,
        deleted_at=NOW,
    )
    assert observed(rayjob(), ray_head(), submitter, nodes=NODES).notices == ()


def test_a_job_that_is_being_deleted_follows_nothing() -> None:
    going = rayjob(metadata={"deletionTimestamp": stamp(NOW), "labels": {"holdfast.dev/fallback": "true"}})
    assert observed(going).follows is False


def test_a_job_is_recreated_only_on_request() -> None:
    assert observed(rayjob(status="Failed")).can_be_recreated is False
    assert observed(rayjob(status="Failed", annotations=RECREATE)).can_be_recreated is True
    done = {**RECREATE, "fallback.holdfast.dev/successor": "train-0c9d27a2"}
    assert observed(rayjob(status="Failed", annotations=done)).can_be_recreated is False
    owned: Json = {"ownerReferences": [{"kind": "RayCronJob", "controller": True}], "annotations": RECREATE}
    assert observed(rayjob(status="Failed", metadata=owned)).can_be_recreated is False


def test_a_successor_is_the_same_job_under_a_name_derived_from_the_first() -> None:
    job = rayjob(
        status="Failed",
        suspend=True,
        annotations={**RECREATE, "team": "a", "fallback.holdfast.dev/state": "old"},
    )
    made = KIND.recreation(job, Recreate(state=STATE, pool="cpu"), "new")
    assert made is not None
    metadata, spec = obj(made.manifest["metadata"]), obj(made.manifest["spec"])
    assert metadata["name"] == "train-0c9d27a2"
    assert metadata["annotations"] == {
        **RECREATE,
        "team": "a",
        "fallback.holdfast.dev/state": "new",
        "fallback.holdfast.dev/successor-of": "train",
        "fallback.holdfast.dev/first-created": stamp(EARLIER),
    }
    again = {**made.manifest, "metadata": {**metadata, "uid": "second", "creationTimestamp": stamp(NOW)}}
    assert observed(again).created == EARLIER
    third = KIND.recreation(again, Recreate(state=STATE, pool="cpu"), "new")
    assert third is not None
    assert obj(obj(third.manifest["metadata"])["annotations"])["fallback.holdfast.dev/first-created"] == (
        stamp(EARLIER)
    )
    assert "uid" not in metadata
    assert "status" not in made.manifest
    assert (spec["suspend"], spec["entrypoint"]) == (False, "python -m train")
    assert obj(groups(made.manifest)[0])["nodeSelector"] == {"holdfast.dev/pool": "cpu"}
    assert obj(spec["rayClusterSpec"])["headGroupSpec"]
    assert obj(made.patch["metadata"])["annotations"] == {
        "fallback.holdfast.dev/successor": "train-0c9d27a2",
        "fallback.holdfast.dev/state": None,
    }
    job = rayjob(annotations={"fallback.holdfast.dev/successor-of": "a" * 47}, metadata={"uid": "12345678-x"})
    made = KIND.recreation(job, Recreate(state=STATE, pool="cpu"), "")
    assert made is not None
    assert obj(made.manifest["metadata"])["name"] == f"{'a' * 38}-12345678"


@pytest.mark.parametrize(("stop", "is_suspended"), [("true", True), ("false", False), (None, False)])
def test_the_successor_of_a_stopped_rayjob_starts_no_pod(stop: str | None, is_suspended: bool) -> None:
    annotations = {**RECREATE, **({} if stop is None else {STOP: stop})}
    made = successor(rayjob(annotations=annotations), {}, "{}")
    assert obj(made["spec"])["suspend"] is is_suspended
    assert obj(obj(made["metadata"])["annotations"]).get(STOP) == stop
