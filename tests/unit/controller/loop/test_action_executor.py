"""Actions are carried out in order under the observed version, up to the first failure."""

from dataclasses import replace

import pytest

from pulumi_holdfast.controller.jobs.actions import (
    CreatePlaceholders,
    DeleteChildren,
    DeletePlaceholders,
    ForceDelete,
    Recreate,
    ReleaseReservation,
    RequestCheckpoint,
    Resume,
    Suspend,
    TaintReservedNodes,
    WriteState,
)
from pulumi_holdfast.controller.jobs.cached_objects import CachedJob
from pulumi_holdfast.controller.jobs.kinds import KINDS
from pulumi_holdfast.controller.jobs.patches import CHECKPOINT_REQUESTED, read_state
from pulumi_holdfast.controller.jobs.pod_history import PodHistory
from pulumi_holdfast.controller.jobs.pod_shapes import PodShape
from pulumi_holdfast.controller.jobs.pods_and_nodes import JobKey
from pulumi_holdfast.controller.jobs.state import JobState, Phase
from pulumi_holdfast.controller.kube.cache import Change
from pulumi_holdfast.controller.kube.client import JOB, JOBSET, NODE, POD, RAYJOB, ApiError, Client
from pulumi_holdfast.controller.kube.objects import annotations_of
from pulumi_holdfast.controller.loop.action_executor import (
    ActionExecutor,
    JobChanged,
    PodsPlaced,
    PodsRemain,
    ReservationManager,
    SuspensionIncomplete,
)
from pulumi_holdfast.controller.loop.observer import JobContext
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import (
    POOL,
    RESERVATION_NAMESPACE,
    RESERVED_FOR,
    STATE,
    STOP,
    SUSPENDED_FOR,
)
from pulumi_holdfast.ladder.ladder import DeclaredFacts, Policy, Tier
from pulumi_holdfast.ladder.taints import Taint
from tests.support.builders.caches import training_caches
from tests.support.builders.fallback_objects import (
    NAMESPACE,
    NOW,
    UID,
    child_job,
    condition,
    jobset,
    ray_worker,
    rayjob,
    snapshot,
    with_metadata,
    worker,
)
from tests.support.builders.fallback_objects import node as live_node
from tests.support.coroutines import in_event_loop
from tests.support.fakes.api_server import FakeApi, Sent
from tests.support.json_objects import obj, objects

SUSPENDED = jobset(suspend=True, status={"conditions": [condition("Suspended")]})
STATE_NOW = JobState(uid=UID, phase=Phase.SUSPENDING, pool="spot-b", rank=1, since=NOW)
SHAPES = (PodShape(count=2, requests={"cpu": "1"}),)
TAINT = Taint(key="spot", value="true", effect="NoSchedule")
POLICY = Policy(tiers=(Tier(pool="spot-b", facts=DeclaredFacts(taints=(TAINT,))),))


class ExecutorFixture:
    """A job on an API server in memory, and what acts for it."""

    def __init__(self, job: Json) -> None:
        self.api, self.caches = FakeApi(), training_caches()
        client = Client(self.api)
        self.holder = ReservationManager(client, self.caches, image="pause")
        self.actor = ActionExecutor(client, self.caches, self.holder)
        self.kind = RAYJOB if job["kind"] == "RayJob" else JOBSET
        self._job = job

    async def observe(self, *pods: Json, children: tuple[Json, ...] = ()) -> JobContext:
        """Put the job and what is around it there, and context."""
        job = await self.api.put(self.kind, self._job)
        self.caches.jobs[self.kind.name].put(job)
        for pod in pods:
            await self.api.put(POD, pod)
        seen = snapshot(job, *pods, children=[await self.api.put(JOB, each) for each in children])
        kind = KINDS[self.kind.name]
        observed, _ = kind.observe(seen, PodHistory())
        key = JobKey(self.kind.name, NAMESPACE, "train")
        return JobContext(key=key, kind=kind, snapshot=seen, state=None, seen=observed, policy=POLICY)

    def job(self) -> Json:
        """The job as it is."""
        return self.api.get(self.kind, NAMESPACE, "train") or {}

    def state(self) -> object:
        """What is written in it."""
        annotations = annotations_of(self.job())
        return read_state(str(annotations[STATE]))

    def marker(self) -> object:
        """The marker of the job's suspension, None without one."""
        return annotations_of(self.job()).get(SUSPENDED_FOR)

    def writes(self) -> list[str]:
        """The methods and last parts of the paths of all that was to change something."""
        sent = [each for each in self.api.sent if each.method != "GET"]
        return [f"{each.method} {each.path.rpartition('/')[2]}" for each in sent]


@in_event_loop
async def test_writes_of_one_decision_use_the_previous_response() -> None:
    fixture = ExecutorFixture(jobset())
    context = await fixture.observe()
    await fixture.actor.execute(
        context,
        (WriteState(state=replace(STATE_NOW, phase=Phase.RUNNING)), Suspend(state=STATE_NOW, pool="spot-b")),
    )
    assert fixture.state() == STATE_NOW
    assert obj(fixture.job()["spec"])["suspend"] is True
    cached = fixture.caches.job(context.key)
    assert cached is not None
    assert obj(cached.read()["spec"])["suspend"] is True


@in_event_loop
async def test_each_write_of_a_state_updates_the_marker_of_the_suspension() -> None:
    fixture = ExecutorFixture(jobset(status={"conditions": [condition("Suspended")]}))
    await fixture.api.put(JOB, child_job(SUSPENDED, suspend=True, selector={POOL: "spot-b"}))
    context = await fixture.observe()
    running = replace(STATE_NOW, phase=Phase.RUNNING)
    await fixture.actor.execute(context, (WriteState(state=running),))
    assert fixture.marker() is None
    context = replace(context, snapshot=replace(context.snapshot, job=fixture.job()))
    await fixture.actor.execute(context, (Suspend(state=STATE_NOW, pool="spot-b"),))
    assert fixture.marker() == f"v1 {STATE_NOW.uid} {STATE_NOW.pool}"
    context = replace(context, snapshot=replace(context.snapshot, job=fixture.job()))
    await fixture.actor.execute(context, (Resume(state=running, pool="spot-b"),))
    assert fixture.marker() == ""


@in_event_loop
async def test_a_changed_job_is_not_written() -> None:
    fixture = ExecutorFixture(jobset())
    context = await fixture.observe()
    await fixture.api.put(JOBSET, {**fixture.job(), "spec": {"suspend": True}})
    with pytest.raises(JobChanged):
        await fixture.actor.execute(
            context, (WriteState(state=STATE_NOW), Suspend(state=STATE_NOW, pool="spot-b"))
        )
    assert fixture.writes() == ["PATCH train"]


@in_event_loop
async def test_a_job_is_not_resumed_while_the_server_has_a_pod() -> None:
    fixture = ExecutorFixture(SUSPENDED)
    context = await fixture.observe(children=(child_job(SUSPENDED, suspend=True),))
    await fixture.api.put(POD, worker("hidden", node="n"))
    with pytest.raises(PodsRemain, match="hidden"):
        await fixture.actor.execute(context, (Resume(state=STATE_NOW, pool="spot-b"),))
    assert fixture.writes() == []
    await fixture.api.drop(POD, NAMESPACE, "hidden")
    await fixture.api.put(POD, worker("ended", node="n", phase="Failed"))
    await fixture.actor.execute(context, (Resume(state=STATE_NOW, pool="spot-b"),))
    assert obj(fixture.job()["spec"])["suspend"] is False


@pytest.mark.parametrize(
    "current",
    [
        child_job(SUSPENDED),
        child_job(SUSPENDED, suspend=True, status={}),
        child_job(SUSPENDED, suspend=True, selector={POOL: "old"}),
        None,
    ],
    ids=[
        "created unsuspended by a restart",
        "not noticed by the Job controller",
        "of an old template",
        "missing",
    ],
)
@in_event_loop
async def test_a_job_is_not_resumed_while_a_child_job_that_no_cache_shows_may_create_pods(
    current: Json | None,
) -> None:
    fixture = ExecutorFixture(SUSPENDED)
    suspended = child_job(SUSPENDED, suspend=True)
    context = await fixture.observe(children=(suspended,))
    assert context.seen.is_suspension_complete
    await fixture.api.drop(JOB, NAMESPACE, "train-worker-0")
    if current is not None:
        await fixture.api.put(JOB, current)
    with pytest.raises(SuspensionIncomplete):
        await fixture.actor.execute(context, (Resume(state=STATE_NOW, pool="spot-b"),))
    assert fixture.writes() == [], "its pods would keep the old selectors"
    await fixture.api.put(JOB, suspended)
    await fixture.actor.execute(context, (Resume(state=STATE_NOW, pool="spot-b"),))
    assert obj(fixture.job()["spec"])["suspend"] is False


@in_event_loop
async def test_a_job_whose_child_jobs_are_recreated_is_resumed_only_if_none_may_create_pods() -> None:
    fixture = ExecutorFixture(SUSPENDED)
    old = child_job(SUSPENDED, suspend=True, selector={POOL: "old"})
    context = await fixture.observe(children=(old,))
    resume = Resume(state=STATE_NOW, pool="spot-b", recreates_children=True)
    with pytest.raises(SuspensionIncomplete, match="1 have another template"):
        await fixture.actor.execute(context, (resume,))
    await fixture.api.put(JOB, child_job(SUSPENDED, index=1))
    with pytest.raises(SuspensionIncomplete, match="may still create pods"):
        await fixture.actor.execute(context, (DeleteChildren(), resume))
    assert fixture.writes() == ["DELETE train-worker-0"]
    await fixture.api.drop(JOB, NAMESPACE, "train-worker-1")
    await fixture.actor.execute(context, (DeleteChildren(), resume))
    assert obj(fixture.job()["spec"])["suspend"] is False


@in_event_loop
async def test_a_job_is_not_moved_for_lack_of_capacity_once_the_server_has_its_pods_on_nodes() -> None:
    fixture = ExecutorFixture(jobset())
    suspend = Suspend(state=STATE_NOW, pool="spot-b", only_without_nodes=True)
    context = await fixture.observe(worker("w0"), worker("w1"))
    for name in ("w0", "w1"):
        await fixture.api.put(POD, worker(name, node="new"))
    await fixture.api.put(NODE, live_node("new"))
    with pytest.raises(PodsPlaced, match="all 2 pods of the job have nodes"):
        await fixture.actor.execute(context, (suspend,))
    assert fixture.writes() == []
    await fixture.api.put(POD, worker("w1"))
    await fixture.actor.execute(context, (suspend,))
    assert obj(fixture.job()["spec"])["suspend"] is True


@in_event_loop
async def test_a_rayjobs_pods_are_found_by_their_cluster() -> None:
    fixture = ExecutorFixture(rayjob(suspend=True, status="Suspended"))
    context = await fixture.observe()
    await fixture.api.put(POD, ray_worker("stranger", cluster="other-bcdfg"))
    await fixture.api.put(POD, ray_worker("left"))
    with pytest.raises(PodsRemain, match="1 pods of the job are left, for example left"):
        await fixture.actor.execute(context, (Resume(state=STATE_NOW, pool="spot-b"),))


@in_event_loop
async def test_a_changed_child_job_is_not_deleted() -> None:
    fixture = ExecutorFixture(jobset(suspend=True))
    child = child_job(jobset(), suspend=True, selector={POOL: "old"})
    context = await fixture.observe(children=(child,))
    (there,) = fixture.api.of(JOB)
    await fixture.api.put(JOB, {**there, "spec": {**there["spec"], "suspend": False}})
    with pytest.raises(ApiError) as refused:
        await fixture.actor.execute(context, (DeleteChildren(),))
    assert refused.value.is_conflict
    assert fixture.api.of(JOB)


@in_event_loop
async def test_outdated_children_are_deleted() -> None:
    fixture = ExecutorFixture(jobset(suspend=True))
    child = child_job(jobset(), suspend=True, selector={POOL: "old"})
    context = await fixture.observe(children=(child,))
    await fixture.actor.execute(context, (DeleteChildren(), DeleteChildren()))
    assert not fixture.api.of(JOB)


@in_event_loop
async def test_pods_of_lost_machines_are_deleted_without_grace() -> None:
    fixture = ExecutorFixture(jobset())
    context = await fixture.observe(worker("lost", node="n"), worker("lives", node="m"))
    await fixture.actor.execute(context, (ForceDelete(pods=("lost", "unknown")),))
    assert fixture.writes() == ["PATCH status", "DELETE lost"]
    (deletion,) = [each for each in fixture.api.sent if each.method == "DELETE"]
    assert obj(deletion.body)["gracePeriodSeconds"] == 0
    assert obj(obj(deletion.body)["preconditions"])["uid"] == "uid-of-lost"


@in_event_loop
async def test_pods_are_asked_for_a_checkpoint_before_the_job_records_it() -> None:
    fixture = ExecutorFixture(jobset())
    context = await fixture.observe(worker("w0", node="n"), worker("w1", node="n"))
    await fixture.actor.execute(context, (RequestCheckpoint(at=NOW),))
    assert fixture.writes() == ["PATCH w0", "PATCH w1", "PATCH train"]
    assert CHECKPOINT_REQUESTED in annotations_of(fixture.job())


@in_event_loop
async def test_a_request_for_a_checkpoint_does_not_hide_what_a_user_has_just_written() -> None:
    fixture = ExecutorFixture(jobset())
    context = await fixture.observe()
    changes = list[Change[CachedJob]]()
    fixture.caches.jobs["JobSet"].add_handler(changes.append)
    await fixture.actor.execute(context, (WriteState(state=STATE_NOW),))
    assert [each.is_own for each in changes] == [True]
    job = fixture.job()
    await fixture.api.put(JOBSET, with_metadata(job, annotations={**annotations_of(job), STOP: "true"}))
    await fixture.actor.execute(context, (RequestCheckpoint(at=NOW),))
    assert [each.is_own for each in changes] == [True, False]
    cached = fixture.caches.job(context.key)
    assert cached is not None
    assert STOP in annotations_of(cached.read())


@in_event_loop
async def test_a_successor_is_created_before_its_predecessor_names_it() -> None:
    annotations = {"fallback.holdfast.dev/recreate": "true"}
    fixture = ExecutorFixture(rayjob(status="Failed", annotations=annotations))
    context = await fixture.observe()
    recreate = Recreate(state=STATE_NOW, pool="spot-b")

    def refuse(sent: Sent) -> None:
        if sent.method == "PATCH":
            raise ApiError(500, "InternalError", "no")

    fixture.api.fail = refuse
    with pytest.raises(ApiError):
        await fixture.actor.execute(context, (recreate,))
    assert len(fixture.api.of(RAYJOB)) == 2
    fixture.api.fail = lambda _: None
    await fixture.actor.execute(context, (recreate,))
    assert len(fixture.api.of(RAYJOB)) == 2


class ReservationFixture(ExecutorFixture):
    """A fixture on which capacity is held; its caches show what the server has."""

    async def sync(self) -> None:
        """Bring the caches up to date."""
        for pod in self.api.of(POD):
            self.caches.placeholders.put(pod)
        for node in self.api.of(NODE):
            self.caches.nodes.put(node)

    def taints(self, node: str) -> list[object]:
        """The keys of a node's taints."""
        found = obj(obj(self.api.get(NODE, "", node))["spec"]).get("taints") or []
        return [each["key"] for each in objects(found)]


@in_event_loop
async def test_a_reservation_is_created_tainted_and_released() -> None:
    fixture = ReservationFixture(jobset())
    context = await fixture.observe()
    await fixture.api.put(NODE, {"metadata": {"name": "n"}, "spec": {"taints": [{"key": "kept"}]}})
    hold = CreatePlaceholders(pool="spot-b", shapes=SHAPES)
    await fixture.actor.execute(context, (hold,))
    await fixture.actor.execute(context, (hold,))
    pods = fixture.api.of(POD)
    assert len(pods) == 2
    assert {pod["metadata"]["namespace"] for pod in pods} == {RESERVATION_NAMESPACE}
    tolerated = [each["key"] for each in pods[0]["spec"]["tolerations"]]
    assert "spot" in tolerated
    for pod in pods:
        await fixture.api.put(POD, {**pod, "spec": {**pod["spec"], "nodeName": "n"}})
    await fixture.sync()
    await fixture.actor.execute(context, (TaintReservedNodes(),))
    assert fixture.taints("n") == ["kept", RESERVED_FOR]
    await fixture.sync()
    await fixture.actor.execute(context, (DeletePlaceholders(),))
    assert not fixture.api.of(POD)
    assert fixture.taints("n") == ["kept", RESERVED_FOR]
    await fixture.actor.execute(context, (ReleaseReservation(),))
    assert fixture.taints("n") == ["kept"]


@in_event_loop
async def test_a_conflict_on_a_node_is_not_a_conflict_on_the_job() -> None:
    def another_client_writes_first(sent: Sent) -> None:
        if (sent.method, sent.path) == ("PATCH", "/api/v1/nodes/n"):
            raise ApiError(409, "Conflict", "the object has been modified")

    fixture = ReservationFixture(jobset())
    context = await fixture.observe()
    await fixture.api.put(NODE, {"metadata": {"name": "n"}})
    await fixture.actor.execute(context, (CreatePlaceholders(pool="spot-b", shapes=SHAPES),))
    for pod in fixture.api.of(POD):
        await fixture.api.put(POD, {**pod, "spec": {**pod["spec"], "nodeName": "n"}})
    await fixture.sync()
    fixture.api.fail = another_client_writes_first
    with pytest.raises(ApiError) as refused:
        await fixture.actor.execute(context, (TaintReservedNodes(),))
    assert not isinstance(refused.value, JobChanged)


@in_event_loop
async def test_orphaned_reservations_are_released() -> None:
    fixture = ReservationFixture(jobset())
    await fixture.observe()
    for uid, node in ((UID, "mine"), ("gone", "orphan")):
        taint: Json = {"key": RESERVED_FOR, "value": uid, "effect": "NoSchedule"}
        spec: Json = {"taints": [taint]}
        await fixture.api.put(NODE, {"metadata": {"name": node, "labels": {RESERVED_FOR: uid}}, "spec": spec})
        metadata: Json = {
            "name": f"hold-{uid}",
            "namespace": RESERVATION_NAMESPACE,
            "labels": {RESERVED_FOR: uid},
        }
        await fixture.api.put(POD, {"metadata": metadata, "spec": {"nodeName": node}, "status": {}})
    await fixture.sync()
    await fixture.holder.release_orphans()
    assert [pod["metadata"]["name"] for pod in fixture.api.of(POD)] == [f"hold-{UID}"]
    assert fixture.taints("orphan") == []
    assert fixture.taints("mine") == [RESERVED_FOR]


@in_event_loop
async def test_a_node_that_cannot_be_released_keeps_no_other_from_it() -> None:
    fixture = ReservationFixture(jobset())
    for name in ("a", "b"):
        spec: Json = {"taints": [{"key": RESERVED_FOR, "value": "gone", "effect": "NoSchedule"}]}
        await fixture.api.put(NODE, {"metadata": {"name": name}, "spec": spec})
    await fixture.sync()

    def refuse(sent: Sent) -> None:
        if (sent.method, sent.path) == ("PATCH", "/api/v1/nodes/a"):
            raise ApiError(403, "Forbidden", "an admission webhook of this node rejects it")

    fixture.api.fail = refuse
    with pytest.raises(ApiError):
        await fixture.holder.release_orphans()
    assert fixture.taints("b") == []
