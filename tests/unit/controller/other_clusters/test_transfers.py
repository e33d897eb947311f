"""Transfers are carried out from one API server to another, whichever request fails."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Final

import pytest

from pulumi_holdfast.controller.jobs.patches import write_state
from pulumi_holdfast.controller.jobs.pods_and_nodes import JobKey
from pulumi_holdfast.controller.jobs.state import Ledger, Phase
from pulumi_holdfast.controller.kube.client import (
    JOB,
    JOBSET,
    POD,
    RAYCLUSTER,
    RAYJOB,
    ApiError,
    Client,
    Kind,
    Unreachable,
)
from pulumi_holdfast.controller.kube.objects import annotations_of, labels_of, uid_of
from pulumi_holdfast.controller.other_clusters.protocol import CreateCopy, TransferAction, TransferStage
from pulumi_holdfast.controller.other_clusters.transfers import SomethingRemains, Transfers
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import COPY_OF, PERMIT, STATE, TRANSFER
from tests.support.builders.fallback_objects import (
    NAMESPACE,
    NOW,
    UID,
    child_job,
    condition,
    jobset,
    pod,
    ray_worker,
    rayjob,
    worker,
)
from tests.support.builders.job_states import running
from tests.support.coroutines import in_event_loop
from tests.support.fakes.api_server import FakeApi
from tests.support.json_objects import obj

BOTH: Final = pytest.mark.parametrize("kind", [JOBSET, RAYJOB], ids=lambda kind: kind.name)


class TwoApis:
    """A suspended job at home, another cluster, and operators that carry every suspension out."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.home, self.there = FakeApi(), FakeApi()
        clients = {"elsewhere": Client(self.there)}
        self.now = NOW
        self.transfers = Transfers(Client(self.home), clients, home_id="home", now=lambda: self.now)

    async def step(self, cluster: str) -> TransferAction | None:
        """Take one step, then let the operators work."""
        action = None
        with suppress(ApiError, Unreachable, SomethingRemains):
            key = JobKey(self.kind.name, NAMESPACE, "train")
            action = await self.transfers.step(key, cluster=cluster, pool="spot-b")
        for api in (self.home, self.there):
            await operators_work(api)
        return action

    async def drive(self, cluster: str, until: Callable[[], bool]) -> int:
        """Take steps until a condition holds; return how many."""
        for steps in range(40):
            if until():
                return steps
            await self.step(cluster)
        raise AssertionError(f"not after 40 steps: {self.stage()}")

    def at_home(self) -> Json:
        """The job."""
        return self.home.get(self.kind, NAMESPACE, "train") or {}

    def stage(self) -> str:
        """The recorded stage."""
        annotations = annotations_of(self.at_home())
        return str(annotations.get(TRANSFER, "- - - ")).split(" ")[3]

    def permit(self) -> str:
        """The permit of the copy, empty without one."""
        copy = self.there.get(self.kind, NAMESPACE, "train")
        return "" if copy is None else copy["metadata"]["annotations"].get(PERMIT, "")


async def operators_work(api: FakeApi) -> None:
    """Let the operators of one cluster carry out what its job says, and remove what it has left."""
    for kind, child_kind in ((JOBSET, JOB), (RAYJOB, RAYCLUSTER)):
        job = api.get(kind, NAMESPACE, "train")
        if job is None or (kind is RAYJOB and job["spec"]["suspend"]):
            for child in api.of(child_kind):
                await api.drop(child_kind, NAMESPACE, child["metadata"]["name"])
        if job is not None:
            await (_jobset_works if kind is JOBSET else _kuberay_works)(api, job)


async def _jobset_works(api: FakeApi, job: Json) -> None:
    suspended = obj(job["spec"])["suspend"] is True
    await api.put(JOB, _labelled(child_job(job, suspend=suspended), job))
    conditions = [condition("Suspended", status=str(suspended))]
    await api.put(JOBSET, {**job, "status": {"conditions": conditions}})


async def _kuberay_works(api: FakeApi, job: Json) -> None:
    suspended = obj(job["spec"])["suspend"] is True
    if not suspended:
        await api.put(RAYCLUSTER, _labelled(ray_cluster(job), job))
    state = "Suspended" if suspended else "Running"
    await api.put(RAYJOB, {**job, "status": {"jobDeploymentStatus": state}})


def ray_cluster(job: Json) -> Json:
    """The RayCluster of a RayJob."""
    metadata = obj(job["metadata"])
    owner: Json = {"kind": "RayJob", "name": metadata["name"], "uid": metadata["uid"], "controller": True}
    named: Json = {
        "name": "train-bcdfg",
        "namespace": NAMESPACE,
        "uid": "cluster",
        "ownerReferences": [owner],
    }
    return {"metadata": {**named, "labels": {}}}


def _labelled(child: Json, job: Json) -> Json:
    metadata = obj(child["metadata"])
    labels = {**obj(metadata["labels"]), **labels_of(job)}
    return {**child, "metadata": {**metadata, "labels": labels}}


async def started(kind: Kind = JOBSET) -> TwoApis:
    """The fixture, with the job at home."""
    fixture = TwoApis(kind)
    await fixture.home.put(
        kind, jobset(suspend=True) if kind is JOBSET else rayjob(suspend=True, status="Suspended")
    )
    await operators_work(fixture.home)
    return fixture


async def put_pod(api: FakeApi, kind: Kind, *, of_copy: bool) -> None:
    """A pod of the job's gang that is left."""
    left = worker("left") if kind is JOBSET else ray_worker("left")
    metadata = obj(left["metadata"])
    labels = {**obj(metadata["labels"]), **({COPY_OF: UID} if of_copy else {})}
    await api.put(POD, {**left, "metadata": {**metadata, "labels": labels}})


@BOTH
@in_event_loop
async def test_a_copy_is_not_recorded_while_a_pod_is_left_at_home(kind: Kind) -> None:
    fixture = await started(kind)
    await fixture.drive("elsewhere", lambda: fixture.permit() == "Waiting")
    await put_pod(fixture.home, kind, of_copy=False)

    assert await fixture.step("elsewhere") is None
    assert fixture.stage() == TransferStage.PREPARING


@BOTH
@in_event_loop
async def test_a_job_does_not_go_home_while_a_pod_of_its_copy_is_left(kind: Kind) -> None:
    fixture = await started(kind)
    await fixture.drive("elsewhere", lambda: fixture.permit() == "Granted")
    await put_pod(fixture.there, kind, of_copy=True)
    await fixture.there.drop(kind, NAMESPACE, "train")
    for _ in range(5):
        await fixture.step("")
    assert fixture.stage() == TransferStage.RETURNING

    await fixture.there.drop(POD, NAMESPACE, "left")
    await fixture.drive("", lambda: fixture.stage() == TransferStage.HOME)


@in_event_loop
async def test_a_rayjobs_copy_is_deleted_once_its_submitter_is_gone_which_alone_keeps_no_job_away() -> None:
    fixture = await started(RAYJOB)
    await fixture.drive("elsewhere", lambda: fixture.permit() == "Granted")
    await fixture.there.put(POD, pod("submits", {"batch.kubernetes.io/job-name": "train"}, pool=None))
    for _ in range(5):
        await fixture.step("")
    assert fixture.permit() == "Recalled"

    await fixture.there.drop(RAYJOB, NAMESPACE, "train")
    await fixture.drive("", lambda: fixture.stage() == TransferStage.HOME)


@pytest.mark.parametrize(("is_included", "seconds"), [(True, 2), (False, 15)])
@in_event_loop
async def test_a_copy_is_deleted_once_its_ledger_is_in_the_jobs_unless_that_takes_too_long(
    is_included: bool, seconds: int
) -> None:
    fixture = await started()
    await fixture.drive("elsewhere", lambda: fixture.permit() == "Granted")
    copy = fixture.there.get(JOBSET, NAMESPACE, "train") or {}
    used = Ledger(counted_from=NOW, counted_until=NOW)
    of_copy = running(uid=uid_of(copy), phase=Phase.STOPPED, ledger=used)
    included = replace(used, copy=of_copy.uid, copied=used) if is_included else used
    await annotate(fixture.there, {STATE: write_state(of_copy)})
    await annotate(fixture.home, {STATE: write_state(running(uid=UID, ledger=included))})

    for waited in (0, 0, 0, 0, seconds - 0.5):
        fixture.now = NOW + timedelta(seconds=waited)
        await fixture.step("")
    assert fixture.permit() == "Recalled"
    fixture.now = NOW + timedelta(seconds=seconds)
    await fixture.drive("", lambda: fixture.stage() == TransferStage.HOME)
    assert fixture.there.of(JOBSET) == []


async def annotate(api: FakeApi, annotations: dict[str, str]) -> None:
    """Add annotations to the cluster's JobSet."""
    job = api.get(JOBSET, NAMESPACE, "train") or {}
    metadata = obj(job["metadata"])
    await api.put(
        JOBSET,
        {**job, "metadata": {**metadata, "annotations": {**obj(metadata["annotations"]), **annotations}}},
    )


@BOTH
@in_event_loop
async def test_an_object_of_others_with_the_jobs_name_is_not_touched(kind: Kind) -> None:
    fixture = await started(kind)
    theirs = await fixture.there.put(kind, jobset() if kind is JOBSET else rayjob(suspend=False))
    await fixture.there.put(POD, pod("theirs", {"batch.kubernetes.io/job-name": "train"}, pool=None))
    for _ in range(4):
        assert not isinstance(await fixture.step("elsewhere"), CreateCopy)
    assert fixture.stage() == TransferStage.PREPARING

    await fixture.drive("", lambda: fixture.stage() == TransferStage.HOME)
    assert (fixture.there.get(kind, NAMESPACE, "train") or {})["spec"] == obj(theirs["spec"])


@BOTH
@in_event_loop
async def test_copies_of_deleted_jobs_and_of_this_cluster_alone_are_removed(kind: Kind) -> None:
    fixture = await started(kind)
    await fixture.drive("elsewhere", lambda: fixture.permit() == "Granted")
    await fixture.home.drop(kind, NAMESPACE, "train")
    other = Transfers(
        Client(fixture.home), {"elsewhere": Client(fixture.there)}, home_id="other", now=lambda: NOW
    )
    await other.remove_leftovers("elsewhere", NAMESPACE, kind.name)
    assert fixture.permit() == "Granted"

    await fixture.transfers.remove_leftovers("elsewhere", NAMESPACE, kind.name)
    assert fixture.permit() == "Recalled"
    await operators_work(fixture.there)
    await fixture.transfers.remove_leftovers("elsewhere", NAMESPACE, kind.name)
    assert fixture.there.of(kind) == []
