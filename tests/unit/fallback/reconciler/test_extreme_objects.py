"""No object that an API server admits stops the controller: extremes are read, and what fails concerns its object only."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.fallback.api.client import JOB
from holdfast.fallback.jobs.snapshot import JobKey
from holdfast.fallback.policy.policy import Policy, PolicyTier
from holdfast.fallback.reconciler.caches import POD_LABELS, Caches
from holdfast.fallback.reconciler.informers import enqueue_on_change
from holdfast.fallback.reconciler.observer import GangContention, Observer, PodHistories
from holdfast.fallback.state_machine.decision import decide
from holdfast.fallback.state_machine.state import JobState, read_state, write_state
from holdfast.scheduling.json import Json
from holdfast.scheduling.labels import CHECKPOINTED, TRAINING
from tests.support.builders.fallback_objects import (
    NAMESPACE,
    NOW,
    child_job,
    disrupted,
    jobset,
    node,
    ray_head,
    ray_worker,
    rayjob,
    replicated_job,
    worker,
    worker_group,
)
from tests.support.json_objects import obj
from tests.support.soak import sized
from tests.support.strategies.extreme_objects import INTEGERS, TIMES, damaged

TRAIN, RAY = JobKey("JobSet", NAMESPACE, "train"), JobKey("RayJob", NAMESPACE, "train")
OF_JOBSET, OF_RAY, _ = POD_LABELS
LADDER = Policy(tiers=(PolicyTier(pool="spot-a", max_failures=2), PolicyTier(pool="on-demand")))

ENDED = worker(
    "w",
    node="n",
    phase="Failed",
    deleted_at=NOW,
    ended_at=NOW,
    conditions=[disrupted(NOW)],
    annotations={CHECKPOINTED: "2026-11-21T12:00:00Z"},
)
TEMPLATES = (replicated_job(selector={"holdfast.dev/pool": "spot-a"}, completions=2),)
GROUPS = (worker_group(selector={"holdfast.dev/pool": "spot-a"}),)
RAN: Json = {"endTime": "2026-11-21T12:00:00Z", "failed": 1, "reason": "AppFailed", "message": "it failed"}


class Seen:
    """Caches with every handler of the controller, and the observer of a JobSet and a RayJob."""

    def __init__(self) -> None:
        self.caches = Caches()
        self.caches.namespaces.put({"metadata": {"name": NAMESPACE, "labels": {TRAINING: "true"}}})
        histories = PodHistories(self.caches, now=lambda: NOW)
        enqueue_on_change(self.caches, lambda _: None, lambda _: None)
        self._observer = Observer(
            self.caches,
            histories,
            GangContention(lambda _: None),
            claims_are_served=lambda: True,
            now=lambda: NOW,
            monotonic=lambda: 0.0,
        )

    def put(self, *, job: Json, ray: Json, pods: tuple[Json, ...], child: Json, machine: Json) -> None:
        self.caches.jobs["JobSet"].put(job)
        self.caches.jobs["RayJob"].put(
            {**ray, "metadata": {**obj(ray["metadata"]), "uid": "uid-of-the-rayjob"}}
        )
        self.caches.nodes.put(machine)
        self.caches.children[JOB].put(child)
        for pod in pods:
            for cache in self.caches.pods.values():
                cache.put(pod)

    def reconcile(self) -> None:
        """Decide twice upon both jobs: what the first decision records can be read by the second."""
        for key in (TRAIN, RAY):
            context = self._observer.observe(key)
            assert context is not None, "the job exists"
            state = context.state
            for _ in range(2):
                state = decide(state, context.seen, LADDER).state
                assert state is None or isinstance(read_state(write_state(state)), JobState), (
                    "what is recorded can be read again"
                )

    @property
    def errors(self) -> int:
        caches = self.caches
        every = (*caches.jobs.values(), *caches.children.values(), *caches.pods.values(), caches.nodes)
        return sum(cache.errors for cache in every)


@settings(max_examples=sized(40, soak=2000))
@given(
    job=damaged(jobset(*TEMPLATES, status={"restarts": 1, "restartsCountTowardsMax": 1})),
    ray=damaged(rayjob(*GROUPS, more_status=RAN)),
    pods=st.tuples(damaged(ENDED), damaged(ray_worker("r", node="n")), damaged(ray_head(node="n"))),
    child=damaged(child_job(jobset(*TEMPLATES), status={"succeeded": 1})),
    machine=damaged(node("n", taints=["node.kubernetes.io/unreachable"])),
)
def test_objects_with_extreme_values_are_cached_observed_and_decided_upon(
    job: Json, ray: Json, pods: tuple[Json, ...], child: Json, machine: Json
) -> None:
    seen = Seen()
    seen.put(job=job, ray=ray, pods=pods, child=child, machine=machine)
    seen.reconcile()
    for pod in pods:
        seen.caches.pods[OF_JOBSET].remove(pod)
    seen.reconcile()
    assert seen.errors == 0, "no handler fails"


@pytest.mark.parametrize("grace", [each for each in INTEGERS if each > 1])
def test_a_pod_with_any_grace_period_counts_as_deleted_when_it_was(grace: int) -> None:
    seen = Seen()
    for ends_at in TIMES:
        pod = worker("w", node="n", phase="Running")
        metadata: Json = {
            **obj(pod["metadata"]),
            "deletionTimestamp": ends_at,
            "deletionGracePeriodSeconds": grace,
        }
        seen.put(
            job=jobset(), ray=rayjob(), pods=({**pod, "metadata": metadata},), child={}, machine=node("n")
        )
        seen.reconcile()
    assert seen.errors == 0, "the API server admits every grace period, and its own sum wraps"


def test_a_handler_that_fails_for_one_object_is_called_for_the_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caches = Seen().caches
    told: list[str] = []

    def fail_for_bad(name: str) -> None:
        if name == "bad":
            raise OverflowError("date value out of range")

    caches.nodes.add_handler(lambda change: fail_for_bad(change.name[1]))
    caches.nodes.add_handler(lambda change: told.append(change.name[1]))
    for _ in range(2):
        for name in ("bad", "good"):
            caches.nodes.put(node(name, ready="True" if len(told) < 2 else "False"))
    assert told == ["bad", "good", "bad", "good"], "neither another handler nor another object is affected"
    assert caches.nodes.errors == 2, "each failure is counted"
    assert len(caplog.records) == 1, "an object that changes often is logged once"
