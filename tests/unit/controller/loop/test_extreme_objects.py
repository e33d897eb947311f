"""No object that an API server admits stops the controller: extremes are read, and what fails concerns its object only."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pulumi_holdfast.controller.jobs.caches import POD_LABELS
from pulumi_holdfast.controller.jobs.kinds import KINDS
from pulumi_holdfast.controller.jobs.patches import read_state, write_state
from pulumi_holdfast.controller.jobs.pods_and_nodes import JobKey, Snapshot
from pulumi_holdfast.controller.jobs.reservations import orphans
from pulumi_holdfast.controller.jobs.state import JobState
from pulumi_holdfast.controller.kube.client import JOB
from pulumi_holdfast.controller.loop.informers import enqueue_on_change
from pulumi_holdfast.controller.loop.policy_status import policy_status
from pulumi_holdfast.controller.loop.pools import OfferedPrice, Offering, cheapest
from pulumi_holdfast.controller.other_clusters import copies
from pulumi_holdfast.controller.other_clusters.protocol import (
    Permit,
    TransferStage,
    WriteRecord,
    decide_leftover,
    decide_transfer,
    read_transfer,
    write_record,
)
from pulumi_holdfast.controller.state_machine.decision import decide
from pulumi_holdfast.ladder.fallback_policy import parse_policy
from pulumi_holdfast.ladder.json import Json, mapping
from pulumi_holdfast.ladder.labels import (
    CHECKPOINT_REQUESTED,
    CHECKPOINTED,
    COPY_OF,
    FINISH_BY,
    FIRST_CREATED,
    INSTANCE_TYPE,
    LOST_COPY,
    MAX_COST,
    PERMIT,
    POOL,
    PROGRESS,
    RESERVATION_NAMESPACE,
    RESERVED_FOR,
    STATE,
    STOP,
    SUSPENDED_FOR,
    TRANSFER,
    WORK,
)
from pulumi_holdfast.ladder.ladder import Policy, Tier
from tests.support.builders.caches import observer_of, training_caches
from tests.support.builders.fallback_objects import (
    NAMESPACE,
    NOW,
    UID,
    child_job,
    disrupted,
    jobset,
    node,
    pod,
    ray_head,
    ray_worker,
    rayjob,
    replicated_job,
    with_metadata,
    worker,
    worker_group,
)
from tests.support.clusters.reconciler import policy
from tests.support.soak import sized
from tests.support.strategies.extreme_objects import INTEGERS, TEXTS, TIMES, damaged
from tests.support.strategies.schema_objects import admitted, pod_schema, schema_of

TRAIN, RAY = JobKey("JobSet", NAMESPACE, "train"), JobKey("RayJob", NAMESPACE, "train")
OF_JOBSET, OF_RAY, _ = POD_LABELS
LADDER = Policy(tiers=(Tier(pool="spot-a", max_failures=2), Tier(pool="on-demand")))

# Every annotation of a job that the controller reads.
READ = (
    STATE,
    SUSPENDED_FOR,
    STOP,
    CHECKPOINT_REQUESTED,
    FINISH_BY,
    WORK,
    PROGRESS,
    MAX_COST,
    FIRST_CREATED,
    TRANSFER,
    COPY_OF,
    PERMIT,
    LOST_COPY,
)

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
        self.caches = training_caches()
        self._observer = observer_of(self.caches)
        enqueue_on_change(self.caches, lambda _: None, lambda _: None)

    def put(self, *, job: Json, ray: Json, pods: tuple[Json, ...], child: Json, machine: Json) -> None:
        self.caches.jobs["JobSet"].put(job)
        self.caches.jobs["RayJob"].put(with_metadata(ray, uid="uid-of-the-rayjob"))
        self.caches.nodes.put(machine)
        self.caches.children[JOB].put(child)
        for each in pods:
            for cache in self.caches.pods.values():
                cache.put(each)

    def reconcile(self) -> None:
        """Decide twice upon both jobs: what the first decision records can be read by the second."""
        for key in (TRAIN, RAY):
            context = self._observer.observe(key)
            assert context is not None
            state = context.state
            for _ in range(2):
                state = decide(state, context.seen, LADDER).state
                assert state is None or isinstance(read_state(write_state(state)), JobState)

    @property
    def errors(self) -> int:
        caches = self.caches
        every = (
            caches.namespaces,
            caches.policies,
            *caches.jobs.values(),
            *caches.children.values(),
            *caches.pods.values(),
            caches.workloads,
            caches.placeholders,
            caches.nodes,
            caches.claims,
            caches.node_pools,
        )
        return sum(cache.errors for cache in every)


JOB_OBJECT = jobset(*TEMPLATES, status={"restarts": 1, "restartsCountTowardsMax": 1})
RAY_OBJECT = rayjob(*GROUPS, more_status=RAN)
JOBS = {
    "JobSet": damaged(JOB_OBJECT) | admitted(JOB_OBJECT, schema_of("JobSet"), annotations=READ),
    "RayJob": damaged(RAY_OBJECT) | admitted(RAY_OBJECT, schema_of("RayJob"), annotations=READ),
}


def a_pod(valid: Json) -> st.SearchStrategy[Json]:
    return damaged(valid) | admitted(valid, pod_schema(), annotations=(CHECKPOINTED, PROGRESS))


@settings(max_examples=sized(20, soak=2000), suppress_health_check=(HealthCheck.too_slow,))
@given(
    job=JOBS["JobSet"],
    ray=JOBS["RayJob"],
    pods=st.tuples(a_pod(ENDED), a_pod(ray_worker("r", node="n")), a_pod(ray_head(node="n"))),
    child=damaged(child_job(jobset(*TEMPLATES), status={"succeeded": 1})),
    machine=damaged(node("n", taints=["node.kubernetes.io/unreachable"])),
)
def test_objects_with_extreme_values_are_cached_observed_and_decided_upon(
    job: Json, ray: Json, pods: tuple[Json, ...], child: Json, machine: Json
) -> None:
    seen = Seen()
    seen.put(job=job, ray=ray, pods=pods, child=child, machine=machine)
    seen.reconcile()
    for each in pods:
        seen.caches.pods[OF_JOBSET].remove(each)
    seen.reconcile()
    assert seen.errors == 0


NODE_POOL: Json = {
    "metadata": {"name": "spot-a"},
    "spec": {
        "limits": {"nodes": "4"},
        "template": {
            "metadata": {"labels": {POOL: "spot-a"}},
            "spec": {
                "requirements": [{"key": INSTANCE_TYPE, "operator": "In", "values": ["p4d.24xlarge"]}],
                "nodeClassRef": {"group": "g", "kind": "k", "name": "n"},
            },
        },
    },
}
CLAIM: Json = {
    "metadata": {"name": "claim", "creationTimestamp": "2026-11-21T12:00:00Z"},
    "status": {"nodeName": "n"},
}
PLACEHOLDER = with_metadata(
    pod("hold", {RESERVED_FOR: UID, POOL: "spot-a"}, node="n"), namespace=RESERVATION_NAMESPACE
)
WORKLOAD: Json = {
    "metadata": {
        "name": "w",
        "namespace": NAMESPACE,
        "ownerReferences": [
            {"apiVersion": "a", "kind": "JobSet", "name": "train", "uid": UID, "controller": True}
        ],
    }
}


@settings(max_examples=sized(20, soak=2000), suppress_health_check=(HealthCheck.too_slow,))
@given(
    ladder=damaged(policy({"pool": "spot-a", "price": 3, "maxFailures": 2}, {"pool": "on-demand"}))
    | admitted(policy(), schema_of("FallbackPolicy")),
    node_pool=damaged(NODE_POOL) | admitted(NODE_POOL, schema_of("NodePool")),
    claim=damaged(CLAIM) | admitted(CLAIM, schema_of("NodeClaim")),
    placeholder=a_pod(PLACEHOLDER),
    workload=damaged(WORKLOAD),
    job=JOBS["JobSet"],
)
def test_everything_around_a_job_may_have_extreme_values(
    ladder: Json, node_pool: Json, claim: Json, placeholder: Json, workload: Json, job: Json
) -> None:
    seen = Seen()
    for cache, found in (
        (seen.caches.policies, ladder),
        (seen.caches.node_pools, node_pool),
        (seen.caches.claims, claim),
        (seen.caches.placeholders, placeholder),
        (seen.caches.workloads, workload),
    ):
        cache.put(found)
    seen.put(job=job, ray=rayjob(), pods=(worker("w", node="n"),), child={}, machine=node("n"))
    seen.reconcile()
    prices = {Offering("p4d.24xlarge", "spot", "z"): OfferedPrice(price=1.0, is_available=True)}
    for each in seen.caches.node_pools:
        cheapest(each, prices)
    orphans(seen.caches.placeholders, seen.caches.nodes, seen.caches.has_uid)
    policy_status(parse_policy(ladder), 1, [], before=next(iter(seen.caches.policies)).status, now=NOW)
    for each in (claim, placeholder, workload, node_pool):
        for cache in (seen.caches.claims, seen.caches.placeholders, seen.caches.workloads):
            cache.remove(each)
    assert seen.errors == 0


EPOCHS = st.sampled_from(("0", "1", "-1", "9" * 18, "9" * 5000))
RECORDS = st.builds(
    "{} {} {} {} {} {}".format,
    st.sampled_from(("v1", "v1", "v2")),
    st.sampled_from((UID, UID, "another")),
    EPOCHS,
    st.sampled_from((*TransferStage, "x")),
    st.sampled_from(("-", "west", "")),
    st.sampled_from(("-", "c")),
)
ORIGINS = st.builds("v1 {} {} {}".format, st.sampled_from(("home", "")), st.sampled_from((UID, "")), EPOCHS)
PERMITS = st.sampled_from((*Permit, *TEXTS))


def noted(job: Json, **annotations: str) -> Json:
    """A job with these annotations and the finalizer of a transfer, unless its metadata is damaged beyond that."""
    metadata = mapping(job.get("metadata"))
    own = dict(zip((TRANSFER, COPY_OF, PERMIT, LOST_COPY), annotations.values(), strict=True))
    more: Json = {"annotations": {**mapping(metadata.get("annotations")), **own}, "finalizers": [TRANSFER]}
    return {**job, "metadata": {**metadata, **more}}


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=sized(15, soak=2000), suppress_health_check=(HealthCheck.too_slow,))
@given(data=st.data())
def test_both_sides_of_a_transfer_may_have_extreme_values(kind: str, data: st.DataObject) -> None:
    record, origin, permit, lost = (data.draw(each) for each in (RECORDS, ORIGINS, PERMITS, EPOCHS))
    home, found = (
        noted(data.draw(JOBS[kind]), record=record, origin=origin, permit=permit, lost=lost) for _ in range(2)
    )
    pods = (data.draw(a_pod(ENDED)),)
    children = (data.draw(damaged(child_job(jobset(*TEMPLATES)))),)
    adapter = KINDS[kind]
    here = copies.home_view(
        adapter,
        Snapshot(job=home, now=NOW, pods=pods, children=children),
        wanted=data.draw(st.sampled_from(("", "west"))),
    )
    there = copies.remote_view(adapter, found, children, pods, NOW)
    action = decide_transfer(here, {"west": there})
    copies.copy_status(adapter, found, children, pods, NOW, cluster="west")
    copies.may_run_here(home)
    json.dumps(copies.copy_of(adapter, home, home="home", epoch=1, pool="spot-a"))
    if there.copy is not None:
        decide_leftover(there.copy, "west", copies.record_of(home))
    if isinstance(action, WriteRecord):
        again = read_transfer(write_record(action.record), here.uid)
        assert again == action.record or action.record.epoch >= 10**18


@pytest.mark.parametrize("grace", [each for each in INTEGERS if each > 1])
def test_a_pod_with_any_grace_period_counts_as_deleted_when_it_was(grace: int) -> None:
    seen = Seen()
    for ends_at in TIMES:
        pod = with_metadata(
            worker("w", node="n"), deletionTimestamp=ends_at, deletionGracePeriodSeconds=grace
        )
        seen.put(job=jobset(), ray=rayjob(), pods=(pod,), child={}, machine=node("n"))
        seen.reconcile()
    assert seen.errors == 0


def test_a_handler_that_fails_for_one_object_is_called_for_the_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caches = Seen().caches
    called: list[str] = []

    def fail_for_bad(name: str) -> None:
        if name == "bad":
            raise OverflowError("date value out of range")

    caches.nodes.add_handler(lambda change: fail_for_bad(change.name[1]))
    caches.nodes.add_handler(lambda change: called.append(change.name[1]))
    for _ in range(2):
        for name in ("bad", "good"):
            caches.nodes.put(node(name, ready="True" if len(called) < 2 else "False"))
    assert called == ["bad", "good", "bad", "good"]
    assert caches.nodes.errors == 2
    assert len(caplog.records) == 1
