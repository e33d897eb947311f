"""Deleted pods are in the history, the status of pools follows from the cluster, and half-placed gangs contend."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulumi_holdfast.controller.jobs.caches import POD_LABELS
from pulumi_holdfast.controller.jobs.kinds import pod_selectors
from pulumi_holdfast.controller.jobs.observation import Cause, PoolStatus
from pulumi_holdfast.controller.jobs.patches import write_state
from pulumi_holdfast.controller.jobs.pod_history import PodHistory, losses_of
from pulumi_holdfast.controller.jobs.pods_and_nodes import JobKey
from pulumi_holdfast.controller.jobs.state import Ledger
from pulumi_holdfast.controller.kube.client import JOB, RAYCLUSTER
from pulumi_holdfast.controller.loop.informers import enqueue_on_change
from pulumi_holdfast.controller.loop.observer import ApiAbsences, ClockJumps, PodHistories
from pulumi_holdfast.controller.loop.pools import MissingPools, UsedNodes, pool_statuses
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import MAX_COST, POOL, STATE
from pulumi_holdfast.ladder.ladder import Policy, Tier
from tests.support.builders.caches import caches_with_jobs, observer_of, training_caches
from tests.support.builders.fallback_objects import (
    NAMESPACE,
    NOW,
    UID,
    child_job,
    condition,
    disrupted,
    jobset,
    named,
    node,
    placeholder,
    ray_worker,
    rayjob,
    stamp,
    worker,
)
from tests.support.builders.job_states import running
from tests.support.json_objects import obj

TRAIN = JobKey("JobSet", NAMESPACE, "train")
RAY = JobKey("RayJob", NAMESPACE, "train")
OF_JOBSET, OF_RAY, OF_SUBMITTER = POD_LABELS


def test_the_time_without_an_api_server_is_measured_once() -> None:
    now = [NOW]
    absences = ApiAbsences(lambda: now[0])
    for seconds in (0, 2, 4, 1204):
        now[0] = NOW + timedelta(seconds=seconds)
        absences.answered()
    absences.add_since(NOW + timedelta(seconds=6))
    assert absences.within(NOW) == timedelta(minutes=20)
    assert absences.within(NOW + timedelta(seconds=604)) == timedelta(minutes=10)
    assert absences.within(NOW + timedelta(seconds=1204)) == timedelta(0)
    assert absences.within(None) == timedelta(0)


def test_a_job_that_gets_a_neighbor_on_its_node_has_a_part_of_it_from_then_on() -> None:
    caches, clock = caches_with_jobs(), [NOW]
    observer = observer_of(caches, now=lambda: clock[0])
    state = running(uid=UID, pool="spot-a", ledger=Ledger(counted_from=NOW, counted_until=NOW))
    limited = {STATE: write_state(state), MAX_COST: "100"}
    caches.jobs["JobSet"].put(jobset(annotations=limited))
    caches.nodes.put(node("n", labels={POOL: "spot-a"}))
    # Karpenter claimed the machine an hour before it was ready and the pod was bound.
    claim: Json = {"creationTimestamp": stamp(NOW - timedelta(hours=1)), "name": "n"}
    caches.claims.put({"metadata": claim, "status": {"nodeName": "n"}})
    bound = condition("PodScheduled", at=NOW)
    caches.pods[OF_JOBSET].put(worker("w", node="n", conditions=[bound]))

    def node_time() -> timedelta:
        seen = observer.observe(TRAIN)
        assert seen is not None
        return sum(seen.seen.node_time.values(), timedelta(0))

    assert node_time() == timedelta(0)
    clock[0] += timedelta(hours=1)
    enqueued, soon = list[JobKey](), list[JobKey]()
    enqueue_on_change(caches, enqueued.append, soon.append)
    caches.pods[OF_RAY].put(ray_worker("r", node="n"))
    assert (enqueued, soon) == ([RAY], [TRAIN])
    soon.clear()
    caches.pods[OF_RAY].put(ray_worker("r", node="n", phase="Running"))
    assert soon == []
    clock[0] += timedelta(hours=1)
    caches.pods[OF_RAY].put(ray_worker("r", node="n", phase="Succeeded"))
    assert TRAIN in soon
    clock[0] += timedelta(hours=1)
    assert node_time() == timedelta(hours=2.5)


def test_a_pod_deleted_between_reconciliations_is_in_the_history() -> None:
    caches = caches_with_jobs()
    histories = PodHistories(caches, now=lambda: NOW)
    caches.pods[OF_JOBSET].put(worker("w", node="n"))
    evicted = worker("w", node="n", conditions=[disrupted(NOW)], deleted_at=NOW)
    caches.pods[OF_JOBSET].remove(evicted)
    (loss,) = losses_of(histories.of(TRAIN))
    assert (loss.pod, loss.cause) == ("uid-of-w", Cause.EVICTION)


def test_the_reason_of_a_failed_attempt_is_known_after_the_next_has_started() -> None:
    caches = training_caches()
    histories = PodHistories(caches, now=lambda: NOW)
    failed: Json = {"failed": 1, "reason": "AppFailed", "message": "exit code 1"}
    for version, status in enumerate((None, failed, {"failed": 1, "reason": "", "message": ""}), start=1):
        caches.jobs["RayJob"].put(
            rayjob(more_status=status, metadata={"resourceVersion": str(version), "uid": "ray"})
        )
    (attempt,) = histories.of(RAY).ray.attempts
    assert (attempt.number, attempt.reason, attempt.message) == (1, "AppFailed", "exit code 1")


def test_a_job_with_more_pods_than_are_followed_is_left_until_they_are_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("pulumi_holdfast.controller.jobs.caches.MOST_PODS", 2)
    caches = caches_with_jobs()
    observer = observer_of(caches)
    histories = PodHistories(caches, now=lambda: NOW)
    for number in range(4):
        assert (observer.too_large(TRAIN) is None) == (number < 3)
        caches.pods[OF_JOBSET].put(worker(f"w{number}"))
    assert len(histories.of(TRAIN).pods) == 2
    caches.pods[OF_JOBSET].remove(worker("w0"))
    caches.pods[OF_JOBSET].remove(worker("w1"))
    assert observer.too_large(TRAIN) is None


def test_a_workload_of_another_namespace_does_not_take_a_job_off_its_ladder() -> None:
    caches = caches_with_jobs()
    observer = observer_of(caches)
    caches.namespaces.put({"metadata": {"name": "hostile"}})

    def is_managed(namespace: str) -> bool:
        owner: Json = {"kind": "JobSet", "name": "train", "uid": UID}
        metadata: Json = {"name": "w", "namespace": namespace, "ownerReferences": [owner]}
        caches.workloads.put({"metadata": metadata})
        context = observer.observe(TRAIN)
        return context is not None and context.seen.is_managed_by_kueue

    assert not is_managed("hostile")
    assert is_managed(NAMESPACE)


def test_histories_of_deleted_jobs_are_removed() -> None:
    caches = training_caches()
    histories = PodHistories(caches, now=lambda: NOW)
    caches.pods[OF_JOBSET].put(worker("w", node="n"))
    assert len(histories) == 1
    caches.pods[OF_JOBSET].remove(worker("w", node="n"))
    assert len(histories) == 0
    histories.keep(TRAIN, PodHistory())
    assert len(histories) == 0


@pytest.mark.parametrize(
    ("pod", "key", "watched_by"), [(worker("w"), TRAIN, OF_JOBSET), (ray_worker("r"), RAY, OF_RAY)]
)
def test_a_jobs_pods_are_found_in_caches_and_by_selectors(pod: Json, key: JobKey, watched_by: str) -> None:
    labels = obj(obj(pod["metadata"])["labels"])
    assert watched_by.partition(",")[0] in labels
    asked = [selector.partition("=") for selector in pod_selectors(key)]
    assert any(labels.get(name) == value if equals else name in labels for name, equals, value in asked)


def test_children_of_both_kinds_are_found_by_their_job() -> None:
    caches = caches_with_jobs()
    caches.children[JOB].put(child_job(jobset()))
    owner: Json = {"kind": "RayJob", "name": "train", "uid": "ray", "controller": True}
    cluster: Json = {"name": "train-bcdfg", "namespace": NAMESPACE, "ownerReferences": [owner]}
    caches.children[RAYCLUSTER].put({"metadata": cluster})
    assert [child["kind"] for child in caches.children_of(TRAIN)] == ["Job"]
    assert [child["kind"] for child in caches.children_of(RAY)] == ["RayCluster"]


LADDER = Policy(tiers=(Tier(pool="spot"), Tier(pool="missing")))


def test_a_pool_is_missing_only_if_karpenter_provisions_the_pools() -> None:
    caches = caches_with_jobs()
    used = UsedNodes(caches)
    assert pool_statuses(LADDER, caches, used)["missing"] == PoolStatus()
    caches.node_pools.put(named("else"))
    assert pool_statuses(LADDER, caches, used)["missing"] == PoolStatus()
    template: Json = {"metadata": {"labels": {POOL: "spot"}}}
    caches.node_pools.put(named("np", spec={"template": template, "limits": {"nodes": "8"}}))
    assert pool_statuses(LADDER, caches, used)["missing"] == PoolStatus(exists=False)
    assert pool_statuses(LADDER, caches, used)["spot"] == PoolStatus(max_nodes=8)
    caches.nodes.put(node("m", labels={POOL: "missing"}))
    assert pool_statuses(LADDER, caches, used)["missing"].exists
    priced = pool_statuses(LADDER, caches, used, price_of={"spot": 2.5}.get)
    assert [priced[pool].price for pool in ("spot", "missing")] == [2.5, None]


def test_a_pool_is_missing_since_it_was_seen_last_or_since_the_process_began() -> None:
    began = NOW - timedelta(hours=1)
    missing, gone = MissingPools(began), {"spot": PoolStatus(exists=False)}
    assert missing.marked(gone, NOW)["spot"].missing_since == began
    missing.marked({"spot": PoolStatus()}, NOW)
    later = NOW + timedelta(seconds=5)
    assert missing.marked(gone, NOW)["spot"].missing_since == NOW
    assert missing.marked(gone, later)["spot"].missing_since == NOW


def test_nodes_in_use_have_training_pods_or_placeholders() -> None:
    caches = caches_with_jobs()
    used = UsedNodes(caches)
    pods = caches.pods[OF_JOBSET]
    pods.put(worker("early", node="trains"))
    for name in ("trains", "held", "empty"):
        caches.nodes.put(node(name, labels={POOL: "spot"}))
    pods.put(worker("w", node="trains"))
    caches.placeholders.put(placeholder("held"))
    assert pool_statuses(LADDER, caches, used)["spot"].nodes_in_use == 2
    pods.remove(worker("w", node="trains"))
    assert used.count("spot") == 2
    pods.remove(worker("early", node="trains"))
    assert used.count("spot") == 1
    caches.nodes.put(node("held", labels={POOL: "other"}))
    assert (used.count("spot"), used.count("other")) == (0, 1)
    caches.nodes.retain(set())
    assert (used.count("spot"), used.count("other")) == (0, 0)


NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
ZERO = timedelta(0)


@given(st.lists(st.floats(0, 100_000)))
def test_passing_time_is_no_jump(passing: list[float]) -> None:
    clocks, going = ClockJumps[str](), 0.0
    for seconds in passing:
        going += seconds
        jump = clocks.jump("a", NOON + timedelta(seconds=going), going)
        assert jump == ZERO, f"both clocks went on by {seconds} s"


def test_a_clock_jump_is_returned_until_it_is_settled() -> None:
    clocks = ClockJumps[str]()
    hour = timedelta(hours=1)
    assert clocks.jump("a", NOON, 0) == ZERO
    assert clocks.jump("a", NOON + hour, 1) == hour - timedelta(seconds=1)
    assert clocks.jump("a", NOON + hour, 1) == hour - timedelta(seconds=1)
    clocks.settle("a", NOON + hour, 1)
    assert clocks.jump("a", NOON + hour + timedelta(seconds=9), 10) == ZERO
    assert clocks.jump("a", NOON, 11) < -timedelta(minutes=59)


def test_clock_jumps_are_settled_per_job_and_small_ones_add_up() -> None:
    clocks = ClockJumps[str]()
    clocks.jump("a", NOON, 0)
    assert clocks.jump("a", NOON + timedelta(seconds=13), 10) == ZERO
    assert clocks.jump("a", NOON + timedelta(seconds=26), 20) == timedelta(seconds=6)
    clocks = ClockJumps[str]()
    clocks.jump("a", NOON, 0)
    assert clocks.jump("b", NOON + timedelta(hours=1), 1) == ZERO
    clocks.forget("a")
    assert clocks.jump("a", NOON + timedelta(hours=2), 2) == ZERO
