"""What was decided is written under the version that was observed, in its order, and no further than the first refusal."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from holdfast.fallback.api.client import JOB, JOBSET, NODE, POD, RAYJOB, ApiError, Client
from holdfast.fallback.jobs.kinds import KINDS
from holdfast.fallback.jobs.patches import CHECKPOINT_REQUESTED
from holdfast.fallback.jobs.pod_history import PodHistory
from holdfast.fallback.jobs.snapshot import JobKey
from holdfast.fallback.policy.policy import Policy, PolicyTier, TierFacts
from holdfast.fallback.reconciler.action_executor import (
    ActionExecutor,
    JobChanged,
    PodsRemain,
    ReservationManager,
)
from holdfast.fallback.reconciler.caches import Caches
from holdfast.fallback.reconciler.observer import JobContext
from holdfast.fallback.reservations.pod_shapes import PodShape
from holdfast.fallback.state_machine.actions import (
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
from holdfast.fallback.state_machine.state import JobState, Phase, read_state
from holdfast.scheduling.labels import POOL, RESERVATION_NAMESPACE, RESERVED_FOR, STATE, TRAINING
from holdfast.scheduling.taints import Taint
from tests.support.builders.fallback_objects import (
    NAMESPACE,
    NOW,
    UID,
    child_job,
    jobset,
    ray_worker,
    rayjob,
    snapshot,
    worker,
)
from tests.support.fakes.api_server import FakeApi, Sent
from tests.support.json_objects import obj, objects

if TYPE_CHECKING:
    from holdfast.scheduling.json import Json

STATE_NOW = JobState(uid=UID, phase=Phase.SUSPENDING, pool="spot-b", rank=1, since=NOW)
SHAPES = (PodShape(count=2, requests={"cpu": "1"}),)
TAINT = Taint(key="spot", value="true", effect="NoSchedule")
POLICY = Policy(tiers=(PolicyTier(pool="spot-b", facts=TierFacts(taints=(TAINT,))),))


class Stage:
    """A job on an API server in memory, and what acts for it."""

    def __init__(self, job: Json) -> None:
        self.api, self.caches = FakeApi(), Caches()
        client = Client(self.api)
        self.holder = ReservationManager(client, self.caches, image="pause")
        self.actor = ActionExecutor(client, self.caches, self.holder)
        self.kind = RAYJOB if job["kind"] == "RayJob" else JOBSET
        self.caches.namespaces.put({"metadata": {"name": NAMESPACE, "labels": {TRAINING: "true"}}})
        self._job = job

    async def look(self, *pods: Json, children: tuple[Json, ...] = ()) -> JobContext:
        """Put the job and what is around it there, and look."""
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
        annotations = obj(obj(self.job()["metadata"]).get("annotations"))
        return read_state(str(annotations[STATE]))

    def writes(self) -> list[str]:
        """The methods and last parts of the paths of all that was to change something."""
        sent = [each for each in self.api.sent if each.method != "GET"]
        return [f"{each.method} {each.path.rpartition('/')[2]}" for each in sent]


def test_writes_of_one_decision_use_the_previous_response() -> None:
    async def run() -> None:
        stage = Stage(jobset())
        look = await stage.look()
        await stage.actor.execute(
            look,
            (
                WriteState(state=replace(STATE_NOW, phase=Phase.RUNNING)),
                Suspend(state=STATE_NOW, pool="spot-b"),
            ),
        )
        assert stage.state() == STATE_NOW, "the second was made from what the first left"
        assert obj(stage.job()["spec"])["suspend"] is True, "in one update with the suspension"
        kept = stage.caches.job(look.key)
        assert kept is not None, "it is known"
        assert obj(kept.read()["spec"])["suspend"] is True, "before any watch has shown it"

    asyncio.run(run())


def test_a_changed_job_is_not_written() -> None:
    async def run() -> None:
        stage = Stage(jobset())
        look = await stage.look()
        await stage.api.put(JOBSET, {**stage.job(), "spec": {"suspend": True}})
        with pytest.raises(JobChanged):
            await stage.actor.execute(
                look, (WriteState(state=STATE_NOW), Suspend(state=STATE_NOW, pool="spot-b"))
            )
        assert stage.writes() == ["PATCH train"], "the rest is decided again"

    asyncio.run(run())


def test_a_job_is_not_resumed_while_the_server_has_a_pod() -> None:
    async def run() -> None:
        stage = Stage(jobset(suspend=True))
        look = await stage.look()
        await stage.api.put(POD, worker("hidden", node="n"))
        with pytest.raises(PodsRemain, match="hidden"):
            await stage.actor.execute(look, (Resume(state=STATE_NOW, pool="spot-b"),))
        assert stage.writes() == [], "no cache had it"
        await stage.api.drop(POD, NAMESPACE, "hidden")
        await stage.api.put(POD, worker("ended", node="n", phase="Failed"))
        await stage.actor.execute(look, (Resume(state=STATE_NOW, pool="spot-b"),))
        assert obj(stage.job()["spec"])["suspend"] is False, "what has ended writes to no checkpoint"

    asyncio.run(run())


def test_a_rayjobs_pods_are_found_by_their_cluster() -> None:
    async def run() -> None:
        stage = Stage(rayjob(suspend=True, status="Suspended"))
        look = await stage.look()
        await stage.api.put(POD, ray_worker("stranger", cluster="other-bcdfg"))
        await stage.api.put(POD, ray_worker("left"))
        with pytest.raises(PodsRemain, match="1 pods of the job are left, for example left"):
            await stage.actor.execute(look, (Resume(state=STATE_NOW, pool="spot-b"),))

    asyncio.run(run())


def test_a_changed_child_job_is_not_deleted() -> None:
    async def run() -> None:
        stage = Stage(jobset(suspend=True))
        child = child_job(jobset(), suspend=True, selector={POOL: "old"})
        look = await stage.look(children=(child,))
        (there,) = stage.api.of(JOB)
        await stage.api.put(JOB, {**there, "spec": {**there["spec"], "suspend": False}})
        await stage.actor.execute(look, (DeleteChildren(),))
        assert stage.api.of(JOB), "another client has resumed it: it may have pods"

    asyncio.run(run())


def test_outdated_children_are_deleted() -> None:
    async def run() -> None:
        stage = Stage(jobset(suspend=True))
        child = child_job(jobset(), suspend=True, selector={POOL: "old"})
        look = await stage.look(children=(child,))
        await stage.actor.execute(look, (DeleteChildren(), DeleteChildren()))
        assert not stage.api.of(JOB), "and deleting them twice is no error"

    asyncio.run(run())


def test_pods_of_lost_machines_are_deleted_without_grace() -> None:
    async def run() -> None:
        stage = Stage(jobset())
        look = await stage.look(worker("lost", node="n"), worker("lives", node="m"))
        await stage.actor.execute(look, (ForceDelete(pods=("lost", "unknown")),))
        assert stage.writes() == ["PATCH status", "DELETE lost"], "that one and no other, and ended first"
        (deletion,) = [each for each in stage.api.sent if each.method == "DELETE"]
        assert obj(deletion.body)["gracePeriodSeconds"] == 0, "no kubelet will ever confirm it"
        assert obj(obj(deletion.body)["preconditions"])["uid"] == "uid-of-lost", "nor another of its name"

    asyncio.run(run())


def test_pods_are_asked_for_a_checkpoint_before_the_job_records_it() -> None:
    async def run() -> None:
        stage = Stage(jobset())
        look = await stage.look(worker("w0", node="n"), worker("w1", node="n"))
        await stage.actor.execute(look, (RequestCheckpoint(at=NOW),))
        assert stage.writes() == ["PATCH w0", "PATCH w1", "PATCH train"], "a death between them asks again"
        assert CHECKPOINT_REQUESTED in obj(obj(stage.job()["metadata"])["annotations"]), (
            "and then it is on record"
        )

    asyncio.run(run())


def test_a_successor_is_created_before_its_predecessor_names_it() -> None:
    async def run() -> None:
        annotations = {"fallback.holdfast.dev/recreate": "true"}
        stage = Stage(rayjob(status="Failed", annotations=annotations))
        look = await stage.look()
        recreate = Recreate(state=replace(STATE_NOW, uid=""), pool="spot-b")

        def refuse(sent: Sent) -> None:
            if sent.method == "PATCH":
                raise ApiError(500, "InternalError", "no")

        stage.api.fail = refuse
        with pytest.raises(ApiError):
            await stage.actor.execute(look, (recreate,))
        assert len(stage.api.of(RAYJOB)) == 2, "the successor was made, and the old one does not know of it"
        stage.api.fail = lambda _: None
        await stage.actor.execute(look, (recreate,))
        assert len(stage.api.of(RAYJOB)) == 2, "made again it is the same one"

    asyncio.run(run())


class Held(Stage):
    """A stage on which capacity is held; its caches show what the server has."""

    async def see(self) -> None:
        """Bring the caches up to date."""
        for pod in self.api.of(POD):
            self.caches.placeholders.put(pod)
        for node in self.api.of(NODE):
            self.caches.nodes.put(node)

    def taints(self, node: str) -> list[object]:
        """The keys of a node's taints."""
        found = obj(obj(self.api.get(NODE, "", node))["spec"]).get("taints") or []
        return [each["key"] for each in objects(found)]


def test_a_reservation_is_created_tainted_and_released() -> None:
    async def run() -> None:
        stage = Held(jobset())
        look = await stage.look()
        await stage.api.put(NODE, {"metadata": {"name": "n"}, "spec": {"taints": [{"key": "kept"}]}})
        hold = CreatePlaceholders(pool="spot-b", shapes=SHAPES)
        await stage.actor.execute(look, (hold,))
        await stage.actor.execute(look, (hold,))
        pods = stage.api.of(POD)
        assert len(pods) == 2, "as many as the gang has, though it was done twice before they were seen"
        assert {pod["metadata"]["namespace"] for pod in pods} == {RESERVATION_NAMESPACE}, (
            "where no quota counts"
        )
        tolerated = [each["key"] for each in pods[0]["spec"]["tolerations"]]
        assert "spot" in tolerated, "the tier's own taints, by the policy's facts"
        for pod in pods:
            await stage.api.put(POD, {**pod, "spec": {**pod["spec"], "nodeName": "n"}})
        await stage.see()
        await stage.actor.execute(look, (TaintReservedNodes(),))
        assert stage.taints("n") == ["kept", RESERVED_FOR], "beside what was there"
        await stage.see()
        await stage.actor.execute(look, (DeletePlaceholders(),))
        assert not stage.api.of(POD), "they make room"
        assert stage.taints("n") == ["kept", RESERVED_FOR], "for this job alone"
        await stage.actor.execute(look, (ReleaseReservation(),))
        assert stage.taints("n") == ["kept"], "then for everybody"

    asyncio.run(run())


def test_a_conflict_on_a_node_is_not_a_conflict_on_the_job() -> None:
    def somebody_was_faster(sent: Sent) -> None:
        if (sent.method, sent.path) == ("PATCH", "/api/v1/nodes/n"):
            raise ApiError(409, "Conflict", "the object has been modified")

    async def run() -> None:
        stage = Held(jobset())
        look = await stage.look()
        await stage.api.put(NODE, {"metadata": {"name": "n"}})
        await stage.actor.execute(look, (CreatePlaceholders(pool="spot-b", shapes=SHAPES),))
        for pod in stage.api.of(POD):
            await stage.api.put(POD, {**pod, "spec": {**pod["spec"], "nodeName": "n"}})
        await stage.see()
        stage.api.fail = somebody_was_faster
        with pytest.raises(ApiError) as refused:
            await stage.actor.execute(look, (TaintReservedNodes(),))
        assert not isinstance(refused.value, JobChanged), "otherwise the job would not be reconciled until it changes"

    asyncio.run(run())


def test_orphaned_reservations_are_released() -> None:
    async def run() -> None:
        stage = Held(jobset())
        await stage.look()
        for uid, node in ((UID, "mine"), ("gone", "orphan")):
            taint: Json = {"key": RESERVED_FOR, "value": uid, "effect": "NoSchedule"}
            spec: Json = {"taints": [taint]}
            await stage.api.put(
                NODE, {"metadata": {"name": node, "labels": {RESERVED_FOR: uid}}, "spec": spec}
            )
            metadata: Json = {
                "name": f"hold-{uid}",
                "namespace": RESERVATION_NAMESPACE,
                "labels": {RESERVED_FOR: uid},
            }
            await stage.api.put(POD, {"metadata": metadata, "spec": {"nodeName": node}, "status": {}})
        await stage.see()
        await stage.holder.release_orphans()
        assert [pod["metadata"]["name"] for pod in stage.api.of(POD)] == [f"hold-{UID}"], "its job is there"
        assert stage.taints("orphan") == [], "it is unused and costs money"
        assert stage.taints("mine") == [RESERVED_FOR], "this one is waited for"

    asyncio.run(run())
