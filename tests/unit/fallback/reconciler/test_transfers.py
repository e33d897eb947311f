"""Transfers are carried out from one API server to another, whichever request fails."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Final

import pytest

from holdfast.fallback.api.client import JOB, JOBSET, POD, ApiError, Client, Unreachable
from holdfast.fallback.jobs.snapshot import JobKey
from holdfast.fallback.reconciler.transfers import SomethingRemains, Transfers
from holdfast.fallback.state_machine.state import Ledger, Phase, write_state
from holdfast.fallback.state_machine.transfer import CreateCopy, Stage, TransferAction
from holdfast.scheduling.labels import COPY_OF, PERMIT, STATE, TRANSFER
from tests.support.builders.fallback_objects import NAMESPACE, NOW, UID, child_job, condition, jobset, worker
from tests.support.builders.job_states import running
from tests.support.coroutines import in_event_loop
from tests.support.fakes.api_server import FakeApi, Sent
from tests.support.json_objects import obj

KEY: Final = JobKey("JobSet", NAMESPACE, "train")


class TwoApis:
    """A suspended job at home, another cluster, and operators that carry every suspension out."""

    def __init__(self) -> None:
        self.home, self.there = FakeApi(), FakeApi()
        clients = {"elsewhere": Client(self.there)}
        self.now = NOW
        self.transfers = Transfers(Client(self.home), clients, home_id="home", now=lambda: self.now)

    async def step(self, cluster: str) -> TransferAction | None:
        """Take one step, then let the operators work."""
        action = None
        with suppress(ApiError, Unreachable, SomethingRemains):
            action = await self.transfers.step(KEY, cluster=cluster, pool="spot-b")
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

    def stage(self) -> str:
        """The recorded stage."""
        job = self.home.get(JOBSET, NAMESPACE, "train") or {}
        return str(obj(obj(job["metadata"])["annotations"]).get(TRANSFER, "- - - ")).split(" ")[3]

    def permit(self) -> str:
        """The permit of the copy, empty without one."""
        copy = self.there.get(JOBSET, NAMESPACE, "train")
        return "" if copy is None else copy["metadata"]["annotations"].get(PERMIT, "")


async def operators_work(api: FakeApi) -> None:
    """Let the operators of one cluster carry out what its JobSet says, and remove what it has left."""
    job = api.get(JOBSET, NAMESPACE, "train")
    if job is None:
        for child in api.of(JOB):
            await api.drop(JOB, NAMESPACE, child["metadata"]["name"])
        return
    child = child_job(job, suspend=job["spec"]["suspend"])
    metadata = obj(child["metadata"])
    labels = {**obj(metadata["labels"]), **obj(job["metadata"].get("labels"))}
    await api.put(JOB, {**child, "metadata": {**metadata, "labels": labels}})
    conditions = [condition("Suspended", status=str(job["spec"]["suspend"]))]
    await api.put(JOBSET, {**job, "status": {"conditions": conditions}})


async def started() -> TwoApis:
    """The fixture, with the job at home."""
    fixture = TwoApis()
    await fixture.home.put(JOBSET, jobset(suspend=True))
    await operators_work(fixture.home)
    return fixture


def failing_at(number: int) -> Callable[[Sent], None]:
    """Let the request with a number fail."""
    seen = 0

    def fail(_: Sent) -> None:
        nonlocal seen
        seen += 1
        if seen == number:
            raise Unreachable("fake", "lost")

    return fail


@pytest.mark.parametrize("number", range(0, 40, 3))
@pytest.mark.parametrize("side", ["home", "there"])
@in_event_loop
async def test_a_job_goes_there_and_back_although_a_request_fails(number: int, side: str) -> None:
    fixture = await started()
    getattr(fixture, side).fail = failing_at(number)

    await fixture.drive("elsewhere", lambda: fixture.permit() == "Granted")
    assert fixture.stage() == Stage.AWAY, "the copy is recorded before it runs"
    await fixture.drive("", lambda: fixture.stage() == Stage.HOME)

    job = fixture.home.get(JOBSET, NAMESPACE, "train") or {}
    assert fixture.there.of(JOBSET) == [], "the copy is gone before the job may run at home"
    assert obj(job["metadata"])["finalizers"] == [], "nothing holds the job"
    assert obj(job["spec"])["suspend"] is True, "its ladder resumes it"


@in_event_loop
async def test_a_copy_is_not_recorded_while_a_pod_is_left_at_home() -> None:
    fixture = await started()
    await fixture.drive("elsewhere", lambda: fixture.permit() == "Waiting")
    await fixture.home.put(POD, worker("late"))

    assert await fixture.step("elsewhere") is None, "the pod may still write the checkpoint"
    assert fixture.stage() == Stage.PREPARING, "so no copy may run"


@in_event_loop
async def test_a_job_does_not_go_home_while_a_pod_of_its_copy_is_left() -> None:
    fixture = await started()
    await fixture.drive("elsewhere", lambda: fixture.permit() == "Granted")
    left = worker("left")
    await fixture.there.put(POD, {**left, "metadata": {**obj(left["metadata"]), "labels": {COPY_OF: UID}}})
    await fixture.there.drop(JOBSET, NAMESPACE, "train")
    for _ in range(5):
        await fixture.step("")
    assert fixture.stage() == Stage.RETURNING, "the copy is gone, and not all of its pods"

    await fixture.there.drop(POD, NAMESPACE, "left")
    await fixture.drive("", lambda: fixture.stage() == Stage.HOME)


@pytest.mark.parametrize(("is_included", "seconds"), [(True, 2), (False, 15)])
@in_event_loop
async def test_a_copy_is_deleted_once_its_ledger_is_in_the_jobs_unless_that_takes_too_long(
    is_included: bool, seconds: int
) -> None:
    fixture = await started()
    await fixture.drive("elsewhere", lambda: fixture.permit() == "Granted")
    copy = fixture.there.get(JOBSET, NAMESPACE, "train") or {}
    used = Ledger(counted_from=NOW, counted_until=NOW)
    of_copy = running(uid=str(obj(copy["metadata"])["uid"]), phase=Phase.STOPPED, ledger=used)
    included = replace(used, copy=of_copy.uid, copied=used) if is_included else used
    await annotate(fixture.there, {STATE: write_state(of_copy)})
    await annotate(fixture.home, {STATE: write_state(running(uid=UID, ledger=included))})

    for waited in (0, 0, 0, 0, seconds - 0.5):
        fixture.now = NOW + timedelta(seconds=waited)
        await fixture.step("")
    assert fixture.permit() == "Recalled", "what it has used is known nowhere else"
    fixture.now = NOW + timedelta(seconds=seconds)
    await fixture.drive("", lambda: fixture.stage() == Stage.HOME)
    assert fixture.there.of(JOBSET) == [], "the job comes back, whether a controller runs there or not"


async def annotate(api: FakeApi, annotations: dict[str, str]) -> None:
    """Add annotations to the cluster's JobSet."""
    job = api.get(JOBSET, NAMESPACE, "train") or {}
    metadata = obj(job["metadata"])
    await api.put(
        JOBSET,
        {**job, "metadata": {**metadata, "annotations": {**obj(metadata["annotations"]), **annotations}}},
    )


@in_event_loop
async def test_an_object_of_others_with_the_jobs_name_is_not_touched() -> None:
    fixture = await started()
    theirs = await fixture.there.put(JOBSET, jobset())
    for _ in range(4):
        assert not isinstance(await fixture.step("elsewhere"), CreateCopy), "the name is taken"
    assert fixture.stage() == Stage.PREPARING, "the ladder decides what is next"

    await fixture.drive("", lambda: fixture.stage() == Stage.HOME)
    assert (fixture.there.get(JOBSET, NAMESPACE, "train") or {})["spec"] == obj(theirs["spec"]), (
        "it is theirs"
    )


@in_event_loop
async def test_copies_of_deleted_jobs_and_of_this_cluster_alone_are_removed() -> None:
    fixture = await started()
    await fixture.drive("elsewhere", lambda: fixture.permit() == "Granted")
    await fixture.home.drop(JOBSET, NAMESPACE, "train")
    other = Transfers(
        Client(fixture.home), {"elsewhere": Client(fixture.there)}, home_id="other", now=lambda: NOW
    )
    await other.remove_leftovers("elsewhere", NAMESPACE)
    assert fixture.permit() == "Granted", "a cluster removes its own copies"

    await fixture.transfers.remove_leftovers("elsewhere", NAMESPACE)
    assert fixture.permit() == "Recalled", "a copy stops before it is deleted"
    await operators_work(fixture.there)
    await fixture.transfers.remove_leftovers("elsewhere", NAMESPACE)
    assert fixture.there.of(JOBSET) == [], "its job does not exist any more"
