"""JobSets: their observation, and the patches that suspend and resume them."""

from datetime import timedelta

import pytest

from pulumi_holdfast.controller.jobs.actions import EventReason, Resume, Suspend
from pulumi_holdfast.controller.jobs.jobset import JobSetKind
from pulumi_holdfast.controller.jobs.observation import Cause, JobOutcome
from pulumi_holdfast.controller.jobs.pod_history import PodHistory
from pulumi_holdfast.controller.jobs.state import JobState, Phase
from pulumi_holdfast.ladder.json import Json
from tests.support.builders.fallback_objects import (
    NOW,
    UID,
    child_job,
    condition,
    disrupted,
    jobset,
    node,
    observed,
    pod_spec,
    replicated_job,
    snapshot,
    worker,
)
from tests.support.builders.training_jobs import expression, required_affinity
from tests.support.json_objects import obj, objects

KIND = JobSetKind()
STATE = JobState(uid=UID, phase=Phase.SUSPENDING, pool="cpu", rank=2, since=NOW)
SUSPENDED = condition("Suspended")
SPOT = {"karpenter.sh/capacity-type": "spot"}
ON_A = {"holdfast.dev/pool": "spot-a"}


def pod_specs(patch: Json) -> list[Json]:
    """The pod specs of a patch's templates."""
    templates = objects(obj(patch["spec"])["replicatedJobs"])
    return [obj(obj(obj(obj(each["template"])["spec"])["template"])["spec"]) for each in templates]


def test_a_job_that_runs_is_seen_with_all_its_pods_placed() -> None:
    job = jobset()
    nodes = [node("n1"), node("n2")]
    now = observed(
        job, worker("a", node="n1"), worker("b", node="n2"), nodes=nodes, children=[child_job(job)]
    )
    assert (now.uid, now.follows, now.suspended, now.pool) == (UID, True, False, "spot-a")
    assert (now.pods_expected, now.pods_placed, now.pods_started, now.pods_remaining) == (2, 2, 2, 2)
    assert (now.can_be_suspended, now.not_suspendable_reason, now.outcome) == (True, None, None)
    assert now.losses == ()


def test_a_pod_is_placed_by_its_live_node_and_started_by_its_containers() -> None:
    job = jobset(replicated_job(selector=ON_A, parallelism=4))
    bound = condition("PodScheduled", at=NOW - timedelta(minutes=3))
    pods = [
        worker("waiting"),
        worker("pulling", node="n1", phase="Pending", conditions=[bound]),
        worker("running", node="n1"),
        worker("ending", node="n1", deleted_at=NOW),
    ]
    now = observed(job, *pods, nodes=[node("n1")])
    assert (now.pods_expected, now.pods_placed, now.pods_started) == (4, 2, 1)
    assert now.starting_since == NOW - timedelta(minutes=3)
    assert now.pods_missing == 1
    assert now.pods_remaining == 4
    now = observed(jobset(), worker("a", node="n1"), nodes=[node("n1", ready="Unknown")])
    assert now.pods_placed == 0, "capacity that is lost must be procured again"


@pytest.mark.parametrize(
    ("templates", "expected"),
    [
        ([replicated_job(replicas=3, parallelism=4)], 12),
        ([replicated_job(parallelism=8, completions=3)], 3),
        ([replicated_job("driver", parallelism=1), replicated_job("worker", replicas=2)], 5),
        ([replicated_job("driver", parallelism=1), replicated_job("worker", selector=ON_A)], 2),
    ],
    ids=["replicas times parallelism", "no more than complete", "none selects a pool", "one selects a pool"],
)
def test_expected_pods_follow_from_the_templates(templates: list[Json], expected: int) -> None:
    now = observed(jobset(*templates))
    assert now.pods_expected == expected
    assert sum(shape.count for shape in now.shapes) == expected, "and as many would have to be held"


def test_only_labeled_templates_follow_and_those_on_several_pools_have_none() -> None:
    driver = replicated_job("driver", selector={"holdfast.dev/pool": "cpu"}, parallelism=1)
    job = jobset(driver, replicated_job("worker", selector=ON_A, follows=True))
    now = observed(job)
    assert (now.pool, now.pods_expected) == ("spot-a", 2)
    stays, moves = pod_specs(KIND.suspension(job, Suspend(state=STATE, pool="spot-b"), ""))
    assert obj(stays["nodeSelector"]) == {"holdfast.dev/pool": "cpu"}
    assert obj(moves["nodeSelector"]) == {"holdfast.dev/pool": "spot-b"}
    both = [replicated_job("a", selector=ON_A), replicated_job("b", selector={"holdfast.dev/pool": "cpu"})]
    assert observed(jobset(*both)).pool is None


def test_a_pod_that_succeeded_is_expected_no_more_before_its_job_counts_it() -> None:
    job = jobset(replicated_job(selector=ON_A))
    child = child_job(job)
    done = worker("done", node="n1", phase="Succeeded", owner=child)
    runs = worker("runs", node="n1", owner=child)
    now = observed(job, done, runs, nodes=[node("n1")], children=[child])
    assert (now.pods_expected, now.pods_placed, now.pods_missing) == (1, 1, 0)
    counted = child_job(job, status={"succeeded": 1})
    now = observed(job, done, runs, nodes=[node("n1")], children=[counted])
    assert now.pods_expected == 1
    of_another = worker("done", node="n1", phase="Succeeded", owner=child_job(job, index=1))
    now = observed(job, of_another, runs, nodes=[node("n1")], children=[child])
    assert now.pods_expected == 2


def test_capacity_is_held_only_for_pods_that_the_quota_has_counted() -> None:
    never = replicated_job(
        "gang", selector=ON_A, parallelism=600, dependsOn=[{"name": "first", "status": "Complete"}]
    )
    job = jobset(replicated_job("first", selector=ON_A, parallelism=1), never)
    first = child_job(job, place=0)
    assert [shape.count for shape in observed(job, children=[first]).shapes] == [1]
    done = child_job(job, place=0, status={"conditions": [condition("Complete")], "succeeded": 1})
    assert [shape.count for shape in observed(job, children=[done, child_job(job, place=1)]).shapes] == [600]


def test_templates_that_are_complete_or_not_started_yet_expect_no_pods() -> None:
    job = jobset(replicated_job(selector=ON_A, replicas=2, parallelism=4))
    done = child_job(job, status={"conditions": [condition("Complete")], "succeeded": 4})
    half = child_job(job, index=1, status={"succeeded": 3})
    assert observed(job, children=[done, half]).pods_expected == 1
    later = replicated_job("worker", selector=ON_A, dependsOn=[{"name": "driver", "status": "Ready"}])
    job = jobset(replicated_job("driver", selector=ON_A, parallelism=1), later)
    first = child_job(job, place=0)
    assert observed(job, children=[first]).pods_expected == 1
    assert observed(job, children=[first, child_job(job, place=1)]).pods_expected == 3
    order: Json = {"startupPolicyOrder": "InOrder"}
    job = jobset(
        replicated_job("driver", selector=ON_A, parallelism=1),
        replicated_job("worker", selector=ON_A),
        startupPolicy=order,
    )
    children = [child_job(job, place=0), child_job(job, place=1, suspend=True)]
    assert observed(job, children=children).pods_expected == 1


@pytest.mark.parametrize(
    ("selector", "pool"),
    [(ON_A, "spot-a"), ({**ON_A, "topology.kubernetes.io/zone": "a"}, "spot-a"), (SPOT, None), (None, None)],
)
def test_the_pool_is_what_its_templates_select(selector: dict[str, str] | None, pool: str | None) -> None:
    assert observed(jobset(replicated_job(selector=selector))).pool == pool


@pytest.mark.parametrize(
    ("kind", "outcome"),
    [("Completed", JobOutcome.COMPLETED), ("Failed", JobOutcome.FAILED), ("Suspended", None)],
)
def test_a_job_ends_by_its_conditions(kind: str, outcome: JobOutcome | None) -> None:
    now = observed(jobset(status={"conditions": [condition(kind, at=NOW)]}))
    assert now.outcome is outcome, f"of the condition {kind}"
    assert now.can_be_suspended is (outcome is None)


def test_a_failed_job_has_its_failure_cause_and_the_operators_counters() -> None:
    job = jobset(status={"conditions": [condition("Failed", at=NOW)]})
    evicted = worker(
        "a", node="n1", phase="Failed", conditions=[disrupted(NOW)], deleted_at=NOW, ended_at=NOW
    )
    peer = worker("b", node="n2", phase="Failed", ended_at=NOW)
    nodes = [node("n1"), node("n2")]
    assert observed(job, evicted, peer, nodes=nodes).failure_cause is Cause.EVICTION
    assert observed(job, peer, nodes=nodes).failure_cause is Cause.APPLICATION
    assert observed(job, nodes=nodes).failure_cause is None
    now = observed(jobset(status={"restarts": 5, "restartsCountTowardsMax": 2}))
    assert (now.restarts, now.disrupted_restarts) == (5, 3)


@pytest.mark.parametrize(
    ("conditions", "suspend", "is_complete", "why"),
    [
        (["Suspended"], True, True, "JobSet and the Job controller are done"),
        ([], False, False, "the JobSet's condition is that of an earlier suspension"),
        ([], True, False, "the Job controller has not noticed, and may create pods of the old template"),
        (["Failed"], True, False, "JobSet restarts it in a suspended JobSet too: it would start twice"),
        (["Complete"], False, True, "what is complete is left as it is"),
        (["SuccessCriteriaMet"], True, True, "it creates no pods, and never shows that it is suspended"),
        (["FailureTarget"], True, True, "it creates no pods, and is deleted"),
    ],
)
def test_a_suspension_is_complete_when_each_child_job_creates_no_more_pods(
    conditions: list[str], suspend: bool, is_complete: bool, why: str
) -> None:
    job = jobset(suspend=True, status={"conditions": [SUSPENDED]})
    status: Json = {"conditions": [condition(each) for each in conditions]}
    child = child_job(job, suspend=suspend, status=status)
    assert observed(job, children=[child]).is_suspension_complete is is_complete, why


def test_a_suspension_is_complete_only_when_jobset_has_noticed_it() -> None:
    job = jobset(suspend=True)
    assert not observed(job, children=[child_job(job, suspend=True)]).is_suspension_complete
    templates = [replicated_job(selector=ON_A, replicas=2), replicated_job("later", selector=ON_A)]
    job = jobset(*templates, suspend=True, status={"conditions": [SUSPENDED]})
    children = [child_job(job, suspend=True), child_job(job, index=1, suspend=True)]
    assert not observed(job, children=children).is_suspension_complete
    later = replicated_job("later", selector=ON_A, dependsOn=[{"name": "worker", "status": "Ready"}])
    job = jobset(templates[0], later, suspend=True, status={"conditions": [SUSPENDED]})
    assert observed(job, children=children).is_suspension_complete


def test_a_suspension_is_complete_only_when_the_job_controller_tracks_no_pod() -> None:
    job = jobset(suspend=True, status={"conditions": [SUSPENDED]})
    evicted = worker("a", node="n1", phase="Failed", conditions=[disrupted(NOW)], deleted_at=NOW)
    now = observed(job, evicted, nodes=[node("n1")], children=[child_job(job, suspend=True)])
    assert (now.pods_remaining, now.is_suspension_complete) == (0, False)
    failed = worker("b", node="n1", phase="Failed", ended_at=NOW)
    now = observed(job, failed, nodes=[node("n1")], children=[child_job(job, suspend=True)])
    assert now.is_suspension_complete is True


def test_a_failing_child_job_is_deleted_once_its_pods_are_gone() -> None:
    job = jobset(suspend=True, status={"conditions": [SUSPENDED]})
    failing = child_job(job, suspend=True, status={"conditions": [condition("FailureTarget")]})
    ending = worker("a", node="n1", deleted_at=NOW)
    now = observed(job, ending, nodes=[node("n1")], children=[failing])
    assert (now.is_suspension_complete, now.outdated_children) == (False, 0)
    now = observed(job, children=[failing])
    assert (now.is_suspension_complete, now.outdated_children) == (True, 1)


@pytest.mark.parametrize(
    ("conditions", "suspend", "attempt", "is_deleted", "create_no_pods", "why"),
    [
        (["Suspended"], True, 1, False, True, "the Job controller has noticed the suspension"),
        ([], True, 1, False, False, "the Job controller may still create a pod for it"),
        ([], False, 1, False, False, "it runs"),
        ([], False, 0, False, False, "JobSet has not deleted it yet"),
        (["Failed"], True, 1, False, False, "JobSet has not counted its failure: the job would start twice"),
        (["Failed"], True, 0, False, True, "its failure is counted, and JobSet deletes it"),
        (["Failed"], False, 0, False, True, "JobSet had not suspended it before it failed"),
        ([], False, 0, True, True, "the Job controller creates no pods for it any more"),
        (["Failed"], False, 1, True, False, "its ttlSecondsAfterFinished may delete it uncounted"),
        (["FailureTarget"], False, 1, True, False, "the Job controller ends one that is being deleted, too"),
        (["FailureTarget"], True, 1, True, False, "a second deletion has no effect: it may fail first"),
        (["Complete"], False, 1, False, True, "it is done"),
    ],
)
def test_a_child_job_creates_no_pods_when_it_is_suspended_or_ends(
    *, conditions: list[str], suspend: bool, attempt: int, is_deleted: bool, create_no_pods: bool, why: str
) -> None:
    job = jobset(suspend=True, status={"restarts": 1, "conditions": [SUSPENDED]})
    status: Json = {"conditions": [condition(each) for each in conditions]}
    deleted_at = NOW if is_deleted else None
    child = child_job(job, suspend=suspend, status=status, attempt=attempt, deleted_at=deleted_at)
    seen = observed(job, children=[child])
    assert seen.children_create_no_pods is create_no_pods, why
    assert create_no_pods or not seen.is_suspension_complete, why
    evicted = worker("a", node="n1", phase="Failed", conditions=[disrupted(NOW)], deleted_at=NOW)
    seen = observed(job, evicted, nodes=[node("n1")], children=[child])
    assert not seen.children_create_no_pods


def test_no_child_jobs_create_no_pods() -> None:
    assert observed(jobset(suspend=True)).children_create_no_pods


def test_a_child_job_that_is_being_deleted_is_not_outdated() -> None:
    job = jobset(suspend=True)
    child = child_job(job, suspend=True, selector=SPOT, deleted_at=NOW)
    assert observed(job, children=[child]).outdated_children == 0


def test_jobsets_status_changes_with_its_suspension_and_its_restarts() -> None:
    resumed = jobset(suspend=True, status={"conditions": [condition("Suspended", status="False")]})
    several = [
        jobset(suspend=True),
        resumed,
        jobset(suspend=True, status={"conditions": [SUSPENDED]}),
        jobset(suspend=True, status={"conditions": [SUSPENDED], "restarts": 1}),
    ]
    texts = [observed(each).operator_status for each in several]
    assert len(set(texts)) == len(texts)
    counting = jobset(suspend=True, status={"replicatedJobsStatus": [{"name": "worker", "ready": 1}]})
    assert observed(counting).operator_status == texts[0]


def test_terminating_pods_remain_and_ended_ones_do_not() -> None:
    ended = worker("a", node="n1", phase="Failed", deleted_at=NOW, ended_at=NOW)
    ending = worker("b", node="n1", deleted_at=NOW)
    earlier = worker("c", node="n1", of="another")
    now = observed(jobset(suspend=True), ended, ending, earlier, nodes=[node("n1")])
    assert now.pods_remaining == 1


def test_a_suspension_selects_the_pool_and_removes_other_capacity_selectors() -> None:
    selector = {**SPOT, "cloud.google.com/gke-spot": "true", "topology.kubernetes.io/zone": "a", **ON_A}
    job = jobset(replicated_job(selector=selector), replicated_job("driver"))
    patch = KIND.suspension(job, Suspend(state=STATE, pool="cpu"), "the state")
    follows, stays = pod_specs(patch)
    assert follows["nodeSelector"] == {"topology.kubernetes.io/zone": "a", "holdfast.dev/pool": "cpu"}
    assert stays == pod_spec()
    assert obj(patch["spec"])["suspend"] is True


def test_an_update_is_fenced_and_a_resumption_ends_the_suspension() -> None:
    for patch in (
        KIND.suspension(jobset(), Suspend(state=STATE, pool="cpu"), "the state"),
        KIND.resumption(jobset(), Resume(state=STATE, pool="cpu"), "the state"),
    ):
        assert patch["metadata"] == {
            "resourceVersion": "41",
            "uid": UID,
            "annotations": {"fallback.holdfast.dev/state": "the state"},
        }
    patch = KIND.resumption(jobset(suspend=True), Resume(state=STATE, pool="cpu"), "")
    assert obj(patch["spec"])["suspend"] is False
    assert obj(pod_specs(patch)[0])["nodeSelector"] == {"holdfast.dev/pool": "cpu"}


def test_a_reservation_is_tolerated_only_during_the_failback() -> None:
    up = KIND.resumption(jobset(), Resume(state=STATE, pool="spot-a", tolerate_reservation=True), "")
    (spec,) = pod_specs(up)
    taint: Json = {
        "key": "holdfast.dev/reserved-for",
        "operator": "Equal",
        "value": UID,
        "effect": "NoSchedule",
    }
    assert spec["tolerations"] == [taint]
    held = jobset(replicated_job(template=pod_spec(ON_A, tolerations=[taint, {"key": "x"}])))
    (spec,) = pod_specs(KIND.suspension(held, Suspend(state=STATE, pool="cpu"), ""))
    assert spec["tolerations"] == [{"key": "x"}]


def test_only_children_of_a_suspended_jobs_other_template_are_outdated() -> None:
    job = jobset(suspend=True, status={"conditions": [SUSPENDED]})
    current = child_job(job, suspend=True)
    spot = child_job(job, index=1, suspend=True, selector={**ON_A, **SPOT})
    elsewhere = child_job(job, index=2, suspend=True, selector={"holdfast.dev/pool": "cpu"})
    done = child_job(job, index=3, selector=SPOT, status={"conditions": [condition("Complete")]})
    marked = child_job(
        job, index=4, suspend=True, selector={**ON_A, "alpha.jobset.sigs.k8s.io/namespaced-job": "x"}
    )
    tolerant = child_job(
        job, index=5, suspend=True, tolerations=[{"key": "holdfast.dev/reserved-for", "value": "x"}]
    )
    found = KIND.outdated_children(snapshot(job, children=[current, spot, elsewhere, done, marked, tolerant]))
    assert [obj(each["metadata"])["name"] for each in found] == [
        "train-worker-1",
        "train-worker-2",
        "train-worker-5",
    ]
    job = jobset()
    assert KIND.outdated_children(snapshot(job, children=[child_job(job, selector=SPOT)])) == ()


def test_jobs_that_evictions_would_end_get_a_warning() -> None:
    reasons = {report.reason for report in observed(jobset(failurePolicy=None)).notices}
    assert reasons == {"EndsAtFirstLoss"}
    ignoring: Json = {"rules": [{"action": "RestartJobSetAndIgnoreMaxRestarts"}]}
    assert not observed(jobset(failurePolicy=ignoring)).notices
    pod = worker("a", node="n1", phase="Succeeded", conditions=[disrupted(NOW)], deleted_at=NOW)
    (report,) = observed(jobset(), pod, nodes=[node("n1")]).notices
    assert report.reason == "EndsAtFirstLoss"
    assert report.is_standing, "it holds until the script is fixed"


def test_affinity_that_requires_spot_prevents_moves() -> None:
    affinity = required_affinity([expression("karpenter.sh/capacity-type", "In", "spot")])
    job = jobset(replicated_job(template=pod_spec(ON_A, affinity=affinity)))
    said = observed(job).not_suspendable_reason
    assert said is not None, "on the on-demand tier it would wait forever"
    assert "karpenter.sh/capacity-type" in said


def test_jobs_managed_by_kueue_are_recognized() -> None:
    workload: Json = {"metadata": {"ownerReferences": [{"uid": UID}]}}
    stranger: Json = {"metadata": {"ownerReferences": [{"uid": "another"}]}}
    named = jobset(labels={"kueue.x-k8s.io/queue-name": "q"})
    assert observed(named).is_managed_by_kueue
    assert observed(jobset(), workloads=[workload]).is_managed_by_kueue
    managed = jobset(managedBy="kueue.x-k8s.io/multikueue")
    assert observed(managed).is_managed_by_kueue
    assert not observed(jobset(), workloads=[stranger]).is_managed_by_kueue


def test_checkpoints_are_requested_and_answered_by_annotations() -> None:
    asked = {
        "fallback.holdfast.dev/checkpoints-on-request": "true",
        "fallback.holdfast.dev/checkpoint-requested": "2026-11-21T11:59:00Z",
    }
    answer = {"fallback.holdfast.dev/checkpointed": "2026-11-21T11:59:30Z"}
    pods = [worker("a", node="n1", annotations=answer), worker("b", node="n1")]
    now = observed(jobset(annotations=asked), *pods, nodes=[node("n1")])
    assert (now.checkpoints_on_request, now.checkpoint_requested_at) == (True, NOW - timedelta(seconds=60))
    assert now.checkpointed_at == NOW - timedelta(seconds=30)


@pytest.mark.parametrize(
    ("after", "events"),
    [(timedelta(minutes=-1), []), (timedelta(seconds=10), [EventReason.ENDS_AT_FIRST_LOSS])],
    ids=["completed before", "ended by it"],
)
def test_an_exit_with_zero_is_reported_only_after_the_deletion_was_requested(
    after: timedelta, events: list[EventReason]
) -> None:
    done = worker("a", node="n1", phase="Succeeded", ended_at=NOW + after, exit_code=0, deleted_at=NOW)
    now = observed(jobset(), done, nodes=[node("n1")])
    assert [event.reason for event in now.notices] == events


def test_a_completed_pod_whose_end_is_unknown_stays_completed_when_it_is_deleted() -> None:
    history = PodHistory()
    for done in (
        worker("a", node="n1", phase="Succeeded"),
        worker("a", node="n1", phase="Succeeded", deleted_at=NOW),
    ):
        now, history = KIND.observe(snapshot(jobset(), done, nodes=[node("n1")]), history)
        assert now.notices == ()
