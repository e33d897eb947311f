"""No change is lost between the event handlers and the queue: each job is reconciled after the last one that affects it."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pulumi_holdfast.controller.api.client import JOB
from pulumi_holdfast.controller.jobs.snapshot import JobKey
from pulumi_holdfast.controller.reconciler.caches import OF_JOB, POD_LABELS, Caches
from pulumi_holdfast.controller.reconciler.informers import enqueue_on_change
from pulumi_holdfast.controller.reconciler.work_queue import SOON_SECONDS, WorkQueue
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import MAX_COST
from tests.support.builders.caches import caches_with_jobs, training_caches
from tests.support.builders.fallback_objects import (
    NAMESPACE,
    UID,
    child_job,
    jobset,
    named,
    node,
    placeholder,
    ray_worker,
    rayjob,
    renamed,
    with_metadata,
    worker,
)
from tests.support.fakes.api_server import run_virtually
from tests.support.json_objects import obj
from tests.support.soak import sized

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
    assert not enqueued, "JobSet and KubeRay write these counts with each pod, and nothing reads them"
    cached = caches.job(key)
    assert cached is not None, "it is cached"
    assert obj(cached.read()["metadata"])["resourceVersion"] == "42", "or the next write would be a conflict"
    caches.jobs[key.kind].put({**later, "spec": {**obj(job["spec"]), "suspend": True}})
    assert enqueued == [key], "every other change is reconciled"


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
    assert (urgent, soon) == (([key], []) if is_urgent else ([], [key])), (
        "a suspended job only waits for the controller"
    )
    cache.put(version(3, becomes))
    assert urgent[-1:] == [key], "what others write is reconciled at once"


def enqueued_by(caches: Caches, soon: list[JobKey] | None = None) -> list[JobKey]:
    """What is enqueued at once from now on; `soon` gets what is enqueued within seconds."""
    enqueued: list[JobKey] = []
    enqueue_on_change(caches, enqueued.append, ([] if soon is None else soon).append)
    return enqueued


def test_objects_in_other_namespaces_are_not_cached() -> None:
    caches = training_caches()
    caches.jobs["JobSet"].put(with_metadata(jobset(), namespace="default"))
    caches.pods[OF_JOBSET].put(with_metadata(worker("w"), namespace="default"))
    assert (len(caches.jobs["JobSet"]), len(caches.pods[OF_JOBSET])) == (0, 0), (
        "it is not a training namespace"
    )


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
    assert enqueued == [TRAIN] * 5, "its pod, node, NodeClaim, Workload and placeholder; no empty node"
    assert soon == [TRAIN], "its child, whose pods are expected in any case"
    enqueued.clear()
    caches.pods[OF_RAY].put(ray_worker("r"))
    assert enqueued == [RAY], "the RayJob of the same name is another job"


def test_a_child_with_only_a_new_version_enqueues_no_job() -> None:
    caches = caches_with_jobs()
    cache = caches.children[JOB]
    cache.put(child_at("1"))
    enqueued = enqueued_by(caches)
    cache.put(child_at("2", ready=2))
    assert not enqueued, "how many of its pods are ready is read from the pods"
    assert obj(cache.find(OF_JOB, "/".join(TRAIN))[0]["metadata"])["resourceVersion"] == "2", (
        "its deletion is under the version that it has"
    )
    cache.put(child_at("3", succeeded=1))
    assert enqueued == [TRAIN], "a pod that completed is expected no longer"


def child_at(version: str, **status: int) -> Json:
    """The JobSet's Job in one of its versions."""
    child = child_job(jobset(), status=status)
    return with_metadata(child, resourceVersion=version)


def test_a_tenants_pod_with_the_label_is_no_placeholder() -> None:
    caches = caches_with_jobs()
    enqueued = enqueued_by(caches)
    caches.placeholders.put(placeholder("victim", namespace=NAMESPACE))
    assert list(caches.placeholders) == [], "its node would be tainted, and it would be deleted as an orphan"
    assert enqueued == [], "no job is concerned"


def test_the_node_of_a_placeholder_enqueues_its_job() -> None:
    caches = caches_with_jobs()
    caches.placeholders.put(placeholder("above"))
    enqueued = enqueued_by(caches)
    caches.nodes.put(node("above"))
    caches.claims.put(named("claim", status={"nodeName": "above"}))
    assert enqueued == [TRAIN] * 2, "the failback waits for its node and for its taint"


def test_only_a_changed_ladder_or_pool_enqueues_its_jobs() -> None:
    caches = caches_with_jobs()
    enqueued = enqueued_by(caches)
    caches.policies.put({"metadata": {"name": "ladder", "namespace": NAMESPACE}, "spec": {"tiers": []}})
    assert sorted(enqueued) == [TRAIN, RAY], "those of its namespace"
    enqueued.clear()
    caches.node_pools.put(named("spot-a"))
    assert sorted(enqueued) == [TRAIN, RAY], "one may be on a ladder that waits for it"
    caches = caches_with_jobs()
    spec: Json = {"tiers": [{"pool": "spot-a"}, {"pool": "reserved"}]}
    ladder: Json = {"metadata": {"name": "ladder", "namespace": NAMESPACE}, "spec": spec}
    caches.policies.put(ladder)
    enqueued = enqueued_by(caches)
    caches.policies.put({**ladder, "status": {"jobs": 7}})
    assert not enqueued, (
        "it is our own summary: with a thousand jobs, a thousand reconciliations each time it is written"
    )
    caches.policies.put({**ladder, "spec": {**spec, "returnAfter": "2h"}})
    assert sorted(enqueued) == [TRAIN, RAY], "another ladder may move any of them"
