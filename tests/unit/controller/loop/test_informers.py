"""No change is lost between the event handlers and the queue: each job is reconciled after the last one that affects it."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final, TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pulumi_holdfast.controller.jobs.caches import JOBSET_PODS, OF_JOB, POD_LABELS, Caches
from pulumi_holdfast.controller.jobs.patches import write_state
from pulumi_holdfast.controller.jobs.pods_and_nodes import JobKey
from pulumi_holdfast.controller.jobs.state import JobState, Phase, Purpose
from pulumi_holdfast.controller.kube.client import JOB
from pulumi_holdfast.controller.kube.work_queue import SOON_SECONDS, WorkQueue
from pulumi_holdfast.controller.loop.informers import enqueue_on_change
from pulumi_holdfast.controller.state_machine.decision import decide
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import MAX_COST, POOL, STATE
from tests.support.builders.caches import caches_with_jobs, observer_of, training_caches
from tests.support.builders.fallback_objects import (
    NAMESPACE,
    NOW,
    UID,
    child_job,
    condition,
    jobset,
    named,
    node,
    placeholder,
    ray_worker,
    rayjob,
    renamed,
    replicated_job,
    with_metadata,
    worker,
)
from tests.support.fakes.api_server import run_virtually
from tests.support.json_objects import obj
from tests.support.soak import sized

KEY: Final = JobKey("JobSet", NAMESPACE, "train")
CHILD: Final = "train-worker-0"
POOLS: Final = ("spot-a", "on-demand")
CONDITIONS: Final = ("FailureTarget", "Failed", "Suspended", "Complete")


def waiting() -> tuple[Json, JobState]:
    """A job that waits for nodes of its first tier, which it leaves after one failure."""
    state = JobState(uid=UID, phase=Phase.WAITING, pool=POOLS[0], rank=0, since=NOW, waiting_since=NOW)
    return jobset(replicated_job(selector={POOL: POOLS[0]})), state


def suspended() -> tuple[Json, JobState]:
    """A job on its way to its last tier; JobSet has suspended it."""
    state = JobState(
        uid=UID,
        phase=Phase.SUSPENDING,
        pool=POOLS[1],
        rank=1,
        since=NOW - timedelta(hours=1),
        suspended_at=NOW,
        purpose=Purpose.FAILOVER,
    )
    status: Json = {"conditions": [condition("Suspended", at=NOW)]}
    return jobset(replicated_job(selector={POOL: POOLS[1]}), suspend=True, status=status), state


def recreated() -> tuple[Json, JobState]:
    """The same job; JobSet has observed the suspension, and counted a failure of its child Jobs."""
    job, state = suspended()
    return {**job, "status": {"restarts": 1}}, replace(state, operator_status="0 - -")


PodEvent = tuple[str, str, str, bool, bool, bool]
POD_EVENTS: Final = st.tuples(
    st.sampled_from(["w-0", "w-1"]),
    st.sampled_from(["Pending", "Running", "Failed", "Succeeded", ""]),  # the last one: it is gone
    st.sampled_from(["", "n"]),
    st.booleans(),  # it is being deleted
    st.booleans(),  # it is evicted
    st.booleans(),  # it is ready
)
ChildEvent = tuple[frozenset[str], bool, int, str]
CHILD_EVENTS: Final = st.tuples(
    st.frozensets(st.sampled_from(CONDITIONS)),
    st.booleans(),  # it is suspended
    st.integers(0, 2),  # of its pods have succeeded
    st.sampled_from([*POOLS, POOLS[1], ""]),  # the pool of its template; the last one: it is gone
)


class Observed:
    """A job with its pods and its child Job, and the actions that a decision has now."""

    def __init__(self, job: Json, state: JobState) -> None:
        self.caches = caches = training_caches()
        self._job = job
        tiers: Json = {
            "tiers": [{"pool": POOLS[0], "maxFailures": 1, "procurementTimeout": "20m"}, {"pool": POOLS[1]}]
        }
        caches.policies.put({"metadata": {"name": "ladder", "namespace": NAMESPACE}, "spec": tiers})
        caches.nodes.put(node("n", labels={POOL: POOLS[0]}))
        self._observer = observer_of(caches)
        self.enqueued = list[JobKey]()
        enqueue_on_change(caches, self.enqueued.append, lambda _: None)
        caches.jobs["JobSet"].put(with_metadata(job, annotations={STATE: write_state(state)}))

    def actions(self) -> set[str]:
        """The kinds of action that deciding now leads to."""
        context = self._observer.observe(KEY)
        assert context is not None
        return {type(each).__name__ for each in decide(context.state, context.seen, context.policy).actions}

    def play(self, event: PodEvent | ChildEvent) -> None:
        """Put a version of a pod or of the child Job there, or remove it."""
        self.enqueued.clear()
        if len(event) == 4:
            self._put_child(*event)
        else:
            self._put_pod(*event)

    def _put_pod(self, name: str, phase: str, on: str, deleted: bool, evicted: bool, ready: bool) -> None:
        cache = self.caches.pods[JOBSET_PODS]
        if not phase:
            cache.retain({each for each in cache.known() if each[1] != name})
            return
        conditions = [condition("Ready", status=str(ready))]
        conditions += [condition("DisruptionTarget", at=NOW)] if evicted else []
        conditions += [condition("PodScheduled", at=NOW)] if on else []
        pod = worker(name, node=on, phase=phase, conditions=conditions, pool=POOLS[0])
        deletion = {"deletionTimestamp": "2030-05-01T12:00:30Z", "deletionGracePeriodSeconds": 30}
        cache.put(with_metadata(pod, **(deletion if deleted else {})))

    def _put_child(self, conditions: frozenset[str], suspend: bool, succeeded: int, pool: str) -> None:
        cache = self.caches.children[JOB]
        if not pool:
            cache.retain(set())
            return
        status: Json = {
            "succeeded": succeeded,
            "conditions": [condition(each) for each in sorted(conditions)],
        }
        child = child_job(self._job, selector={POOL: pool}, status=status)
        cache.put({**child, "spec": {**obj(child["spec"]), "suspend": suspend}})


@settings(max_examples=sized(75, soak=3000))
@given(
    st.sampled_from([waiting, suspended, recreated]),
    st.lists(st.one_of(POD_EVENTS, CHILD_EVENTS), min_size=5, max_size=40),
)
def test_a_change_that_is_not_reconciled_at_once_leads_to_no_further_action(
    begin: Callable[[], tuple[Json, JobState]], events: Sequence[PodEvent | ChildEvent]
) -> None:
    job, state = begin()
    observed = Observed(job, state)
    before = observed.actions()
    for event in events:
        observed.play(event)
        after = observed.actions()
        assert observed.enqueued or after <= before, f"{event} waits, and leads to {after - before}"
        before = after


def test_a_pod_that_exits_0_while_its_job_is_suspended_is_reconciled_at_once() -> None:
    observed = Observed(*suspended())
    observed.play(("w-0", "Running", "n", True, False, False))
    assert not observed.enqueued
    observed.play(("w-0", "Succeeded", "n", True, False, False))
    assert observed.enqueued == [KEY]


TRAIN: Final = JobKey("JobSet", NAMESPACE, "train")
RAY: Final = JobKey("RayJob", NAMESPACE, "train")
OF_JOBSET, OF_RAY, _ = POD_LABELS

JOBS: Final = ("a", "b", "c")
LIMITED: Final = ("a", "b")
NODES: Final = ("n", "m")
# Of each reconciliation; those of all jobs may be ahead of one.
WORK_SECONDS: Final = 0.05
TURN_SECONDS: Final = WORK_SECONDS * (len(JOBS) + 1)


Pod: TypeAlias = tuple[str, str]
"""The node and the phase of a pod."""


@dataclass(frozen=True)
class Event:
    """A version of a pod, after a pause; without a phase its last one. Without a job: the node is drained, or not any more."""

    pause: float
    node: str
    job: str = ""
    phase: str = ""


EVENTS = st.builds(
    Event,
    st.sampled_from([0.0, 0.01, 0.02, 0.03, 0.3, 0.95 * SOON_SECONDS, 1.5 * SOON_SECONDS]),
    st.sampled_from([*NODES, NODES[0], ""]),
    st.sampled_from([*JOBS, *JOBS, ""]),
    st.sampled_from(["Running", "Pending", "Failed", ""]),
)


class Played:
    """Events on a cluster in which each job has one pod and two have a `max-cost`, and when each job was reconciled."""

    def __init__(self) -> None:
        self.caches = training_caches()
        for name in JOBS:
            annotations = {MAX_COST: "100"} if name in LIMITED else {}
            self.caches.jobs["JobSet"].put(renamed(jobset(annotations=annotations), name))
        self.queue = WorkQueue[JobKey]()
        enqueue_on_change(self.caches, self.queue.add, self.queue.add_soon)
        self.reconciled: list[tuple[str, int, float]] = []
        self.count = 0
        self._pods: dict[str, Pod] = {}
        self._drained: set[str] = set()

    async def work(self) -> None:
        """Reconcile jobs, and note after how many events each reconciliation began."""
        while True:
            key = await self.queue.get()
            self.reconciled.append((key.name, self.count, asyncio.get_running_loop().time()))
            await asyncio.sleep(WORK_SECONDS)
            self.queue.done(key)

    def play(self, event: Event) -> tuple[set[str], set[str]]:
        """Apply an event. Returns the jobs that may act on it, and those for which it changes a warning or a timer at most."""
        self.count += 1
        if not event.job:
            return self._drain(event.node), set()
        cache = self.caches.pods[POD_LABELS[0]]
        before, after = self._pods.pop(event.job, None), None
        if event.phase:
            after = self._pods[event.job] = (event.node, event.phase)
            cache.put(renamed(worker(event.job, node=event.node, phase=event.phase), event.job))
        else:
            cache.retain({(NAMESPACE, name) for name in self._pods})
        was_counted = after is None and before is not None and before[1] == "Failed"
        own = {event.job} if _placement(before) != _placement(after) and not was_counted else set[str]()
        changed = {event.job} if before != after else set[str]()
        begun_or_ended = {_used_node(before)} ^ {_used_node(after)}
        sharing = {job for job in LIMITED if _used_node(self._pods.get(job)) in begun_or_ended - {""}}
        return own, (changed | sharing) - own

    def _drain(self, name: str) -> set[str]:
        if not name:
            return set()
        self._drained ^= {name}
        taints: Json = {"taints": [{"key": "karpenter.sh/disrupted"}] if name in self._drained else []}
        self.caches.nodes.put({**node(name), "spec": taints})
        return {job for job, (on, _) in self._pods.items() if on == name}


def _placement(pod: Pod | None) -> tuple[str, bool]:
    """The node of a pod, and whether it has failed."""
    return ("", False) if pod is None else (pod[0], pod[1] == "Failed")


def _used_node(pod: Pod | None) -> str:
    return "" if pod is None or pod[1] == "Failed" else pod[0]


@settings(max_examples=sized(100, soak=2000))
@given(st.lists(EVENTS, min_size=10, max_size=40))
def test_each_job_is_reconciled_after_the_last_event_that_concerns_it(events: Sequence[Event]) -> None:
    async def play() -> None:
        played = Played()
        await asyncio.sleep(0)
        worker = asyncio.create_task(played.work())
        concerned: list[tuple[int, float, set[str], set[str]]] = []
        for event in events:
            await asyncio.sleep(event.pause)
            at = asyncio.get_running_loop().time()
            own, sharing = played.play(event)
            concerned.append((played.count, at, own, sharing))
        await asyncio.sleep(60)
        worker.cancel()
        for number, at, own, sharing in concerned:
            for job in own | sharing:
                turn = TURN_SECONDS + (0 if job in own else SOON_SECONDS)
                assert any(
                    name == job and count >= number and when <= at + turn
                    for name, count, when in played.reconciled
                ), f"{job} was not reconciled {turn} s after event {number}, {events[number - 1]}"

    run_virtually(play())


@pytest.mark.parametrize(
    ("job", "counts"),
    [(jobset(), "replicatedJobsStatus"), (rayjob(), "rayClusterStatus")],
    ids=["JobSet", "RayJob"],
)
def test_a_status_that_counts_pods_enqueues_no_job_and_its_version_is_known(job: Json, counts: str) -> None:
    caches, enqueued = training_caches(), list[JobKey]()
    key = JobKey(str(job["kind"]), NAMESPACE, "train")
    caches.jobs[key.kind].put(job)
    enqueue_on_change(caches, enqueued.append, enqueued.append)
    status: Json = {**obj(job["status"]), counts: [{"ready": 1}]}
    later = {**with_metadata(job, resourceVersion="42"), "status": status}
    caches.jobs[key.kind].put(later)
    assert not enqueued
    cached = caches.job(key)
    assert cached is not None
    assert obj(cached.read()["metadata"])["resourceVersion"] == "42", "or the next write would be a conflict"
    caches.jobs[key.kind].put({**later, "spec": {**obj(job["spec"]), "suspend": True}})
    assert enqueued == [key]


@pytest.mark.parametrize(
    ("was", "becomes", "is_urgent"),
    [(False, False, False), (False, True, False), (True, False, False), (True, True, True)],
)
def test_what_the_controller_writes_itself_is_reconciled_at_once_only_if_no_operator_reports_on_it(
    was: bool, becomes: bool, is_urgent: bool
) -> None:
    caches, urgent, soon = training_caches(), list[JobKey](), list[JobKey]()
    cache = caches.jobs["JobSet"]

    def version(number: int, suspend: bool) -> Json:
        job = jobset(suspend=suspend, annotations={"version": str(number)})
        return with_metadata(job, resourceVersion=str(number))

    cache.put(version(1, was))
    enqueue_on_change(caches, urgent.append, soon.append)
    cache.refresh(version(2, becomes))
    key = JobKey("JobSet", NAMESPACE, "train")
    assert (urgent, soon) == (([key], []) if is_urgent else ([], [key]))
    cache.put(version(3, becomes))
    assert urgent[-1:] == [key]


def enqueued_by(caches: Caches, soon: list[JobKey] | None = None) -> list[JobKey]:
    """What is enqueued at once from now on; `soon` gets what is enqueued within seconds."""
    enqueued: list[JobKey] = []
    enqueue_on_change(caches, enqueued.append, ([] if soon is None else soon).append)
    return enqueued


def test_objects_in_other_namespaces_are_not_cached() -> None:
    caches = training_caches()
    caches.jobs["JobSet"].put(with_metadata(jobset(), namespace="default"))
    caches.pods[OF_JOBSET].put(with_metadata(worker("w"), namespace="default"))
    assert (len(caches.jobs["JobSet"]), len(caches.pods[OF_JOBSET])) == (0, 0)


def test_each_object_enqueues_only_its_job() -> None:
    caches, soon = caches_with_jobs(), list[JobKey]()
    enqueued = enqueued_by(caches, soon)
    caches.pods[OF_JOBSET].put(worker("w", node="n"))
    caches.children[JOB].put(child_job(jobset()))
    caches.nodes.put(node("n"))
    caches.nodes.put(node("empty"))
    caches.claims.put(named("claim", status={"nodeName": "n"}))
    owner: Json = {"uid": UID, "kind": "JobSet", "name": "train"}
    workload: Json = {"name": "w", "namespace": NAMESPACE, "ownerReferences": [owner]}
    caches.workloads.put({"metadata": workload})
    caches.placeholders.put(placeholder())
    assert enqueued == [TRAIN] * 5
    assert soon == [TRAIN]
    enqueued.clear()
    caches.pods[OF_RAY].put(ray_worker("r"))
    assert enqueued == [RAY]


def test_a_child_with_only_a_new_version_enqueues_no_job() -> None:
    caches = caches_with_jobs()
    cache = caches.children[JOB]
    cache.put(child_at("1"))
    enqueued = enqueued_by(caches)
    cache.put(child_at("2", ready=2))
    assert not enqueued
    assert obj(cache.find(OF_JOB, "/".join(TRAIN))[0]["metadata"])["resourceVersion"] == "2"
    cache.put(child_at("3", succeeded=1))
    assert enqueued == [TRAIN]


def child_at(version: str, **status: int) -> Json:
    """The JobSet's Job in one of its versions."""
    child = child_job(jobset(), status=status)
    return with_metadata(child, resourceVersion=version)


def test_a_tenants_pod_with_the_label_is_no_placeholder() -> None:
    caches = caches_with_jobs()
    enqueued = enqueued_by(caches)
    caches.placeholders.put(placeholder("victim", namespace=NAMESPACE))
    assert list(caches.placeholders) == [], "its node would be tainted, and it would be deleted as an orphan"
    assert enqueued == []


def test_the_node_of_a_placeholder_enqueues_its_job() -> None:
    caches = caches_with_jobs()
    caches.placeholders.put(placeholder("above"))
    enqueued = enqueued_by(caches)
    caches.nodes.put(node("above"))
    caches.claims.put(named("claim", status={"nodeName": "above"}))
    assert enqueued == [TRAIN] * 2


def test_only_a_changed_ladder_or_pool_enqueues_its_jobs() -> None:
    caches = caches_with_jobs()
    enqueued = enqueued_by(caches)
    caches.policies.put({"metadata": {"name": "ladder", "namespace": NAMESPACE}, "spec": {"tiers": []}})
    assert sorted(enqueued) == [TRAIN, RAY]
    enqueued.clear()
    caches.node_pools.put(named("spot-a"))
    assert sorted(enqueued) == [TRAIN, RAY]
    caches = caches_with_jobs()
    spec: Json = {"tiers": [{"pool": "spot-a"}, {"pool": "reserved"}]}
    ladder: Json = {"metadata": {"name": "ladder", "namespace": NAMESPACE}, "spec": spec}
    caches.policies.put(ladder)
    enqueued = enqueued_by(caches)
    caches.policies.put({**ladder, "status": {"jobs": 7}})
    assert not enqueued
    caches.policies.put({**ladder, "spec": {**spec, "returnAfter": "2h"}})
    assert sorted(enqueued) == [TRAIN, RAY]
