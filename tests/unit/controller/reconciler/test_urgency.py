"""A change that is not reconciled at once leads to no action: deciding at once would have done nothing either."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Final

from hypothesis import given, settings
from hypothesis import strategies as st

from pulumi_holdfast.controller.api.client import JOB
from pulumi_holdfast.controller.jobs.snapshot import JobKey
from pulumi_holdfast.controller.reconciler.caches import JOBSET_PODS
from pulumi_holdfast.controller.reconciler.informers import enqueue_on_change
from pulumi_holdfast.controller.state_machine.decision import decide
from pulumi_holdfast.controller.state_machine.state import JobState, Phase, Purpose
from pulumi_holdfast.controller.state_machine.state_annotation import write_state
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import POOL, STATE
from tests.support.builders.caches import observer_of, training_caches
from tests.support.builders.fallback_objects import (
    NAMESPACE,
    NOW,
    UID,
    child_job,
    condition,
    jobset,
    node,
    replicated_job,
    with_metadata,
    worker,
)
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
        assert context is not None, "the job exists"
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
    assert not observed.enqueued, "the job waits for the end of its pods"
    observed.play(("w-0", "Succeeded", "n", True, False, False))
    assert observed.enqueued == [KEY], "what warns of it reads the pod, which may be gone within a second"
