"""Jobs that are away: what is asked of other clusters, by the replica that leads alone."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

import pytest

from pulumi_holdfast.controller.jobs.caches import Caches
from pulumi_holdfast.controller.jobs.kinds import KINDS
from pulumi_holdfast.controller.jobs.patches import write_state
from pulumi_holdfast.controller.jobs.pods_and_nodes import JobKey
from pulumi_holdfast.controller.jobs.state import Phase
from pulumi_holdfast.controller.kube.client import JOBSET, NAMESPACE, ApiError, Client
from pulumi_holdfast.controller.kube.objects import name_of
from pulumi_holdfast.controller.kube.work_queue import WorkQueue
from pulumi_holdfast.controller.other_clusters import copies
from pulumi_holdfast.controller.other_clusters.away_jobs import AwayJobs
from pulumi_holdfast.ladder.json import Json, JsonValue
from pulumi_holdfast.ladder.labels import COPY_OF, PERMIT, STATE, TRANSFER
from tests.support.builders.caches import training_caches
from tests.support.builders.fallback_objects import jobset, rayjob
from tests.support.builders.job_states import running
from tests.support.clusters.reconciler import policy
from tests.support.coroutines import virtually
from tests.support.fakes.api_server import FakeApi, Sent
from tests.support.fakes.jobset_operator import now

WITHIN = ("tabular", "vision")


def away_jobs(there: FakeApi, caches: Caches, home: FakeApi | None = None) -> AwayJobs:
    """Those of a cluster that has a cluster in the west."""
    home = home or FakeApi()
    first: Json = {
        "name": "kube-system",
        "uid": "home",
        "labels": {"kubernetes.io/metadata.name": "kube-system"},
    }
    asyncio.get_running_loop().create_task(home.put(NAMESPACE, {"metadata": first}))
    clients = {"west": Client(there)}
    return AwayJobs(
        Client(home), clients, caches, now=now, changed=lambda _: None, report=lambda _key, _uid, _event: None
    )


def named(name: str) -> Json:
    """A RayJob."""
    return {**rayjob(), "metadata": {"name": name, "namespace": "vision", "uid": name}}


@asynccontextmanager
async def leading(away: AwayJobs) -> AsyncGenerator["asyncio.Task[None]"]:
    """The replica leads for the length of the block."""
    task = asyncio.create_task(away.run())
    try:
        yield task
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


@virtually
async def test_a_refusal_is_for_its_kind_and_namespace_alone_and_is_logged_once() -> None:
    there, caches = FakeApi(), training_caches(*WITHIN)

    def refuse(sent: Sent) -> None:
        if "/namespaces/vision/rayjobs" in sent.path:
            raise ApiError(403, "Forbidden", "rayjobs is forbidden")

    there.fail = refuse
    away = away_jobs(there, caches)
    lines = list[str]()
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())
    logger = logging.getLogger("pulumi_holdfast.controller.other_clusters.away_jobs")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    keys = [JobKey(kind, namespace, "train") for kind in KINDS for namespace in WITHIN]
    try:
        async with leading(away):
            await asyncio.sleep(600)
            closed = [key for key in keys if not away.clusters(key)]
            assert closed == [JobKey("RayJob", "vision", "train")]
            assert sum("is forbidden" in each for each in lines) == 1

            there.fail = lambda _: None
            await asyncio.sleep(61)
            assert all(map(away.clusters, keys))
    finally:
        logger.removeHandler(handler)


@virtually
async def test_a_replica_that_does_not_lead_queues_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    queued, caches = list[JobKey](), training_caches(*WITHIN)
    away = away_jobs(FakeApi(), caches)
    add = WorkQueue[JobKey].add

    def noted(queue: WorkQueue[JobKey], key: JobKey) -> None:
        queued.append(key)
        add(queue, key)

    monkeypatch.setattr(WorkQueue, "add", noted)
    caches.jobs["RayJob"].put(named("train"))
    assert not queued

    async with leading(away):
        await asyncio.sleep(1)
        assert set(queued) == {JobKey("RayJob", "vision", "train")}
        queued.clear()
        caches.jobs["RayJob"].put(named("next"))
        assert queued == [JobKey("RayJob", "vision", "next")]
    queued.clear()
    caches.jobs["RayJob"].put(named("train"))
    assert not queued


HUGE = "9" * 5000


def named_jobset(name: str, uid: str, **metadata: JsonValue) -> Json:
    """A suspended JobSet of the namespace `vision`."""
    return {**jobset(suspend=True), "metadata": {"name": name, "namespace": "vision", "uid": uid, **metadata}}


def a_copy(name: str, *, origin: str, epoch: str, permit: str = "Waiting") -> Json:
    return named_jobset(
        name,
        f"copy-{name}",
        labels={COPY_OF: origin},
        annotations={COPY_OF: f"v1 home {origin} {epoch}", PERMIT: permit},
    )


@virtually
async def test_a_copy_that_a_tenant_writes_there_keeps_no_other_leftover_and_no_leader_from_going_on() -> (
    None
):
    there, caches = FakeApi(), training_caches(*WITHIN)
    await there.put(JOBSET, a_copy("bad", origin="gone", epoch=HUGE))
    await there.put(JOBSET, a_copy("left", origin="gone", epoch="3"))
    away = away_jobs(there, caches)
    async with leading(away) as task:
        await asyncio.sleep(600)
        assert not task.done()
    left = there.get(JOBSET, "vision", "left")
    assert left is not None
    assert left["metadata"]["annotations"][PERMIT] == "Recalled"


@virtually
async def test_an_error_in_one_copy_is_counted_and_the_next_copy_is_removed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    there, caches = FakeApi(), training_caches(*WITHIN)
    for name in ("bad", "left"):
        await there.put(JOBSET, a_copy(name, origin="gone", epoch="3"))
    home_of = copies.home_of

    def fail_for_bad(found: Json) -> str:
        if name_of(found) == "bad":
            raise OverflowError("of a kind that is not known yet")
        return home_of(found)

    monkeypatch.setattr(copies, "home_of", fail_for_bad)
    away = away_jobs(there, caches)
    async with leading(away) as task:
        await asyncio.sleep(30)
        assert not task.done()
    left = there.get(JOBSET, "vision", "left")
    assert left is not None
    assert left["metadata"]["annotations"][PERMIT] == "Recalled"
    assert list(away.errors()) == [(("jobsets",), 1)]
    assert away.clusters(JobKey("JobSet", "vision", "train"))


@virtually
async def test_a_rejected_write_to_one_leftover_closes_no_cluster() -> None:
    there, caches = FakeApi(), training_caches(*WITHIN)
    await there.put(JOBSET, a_copy("left", origin="gone", epoch="3"))

    def refuse(sent: Sent) -> None:
        if sent.method == "PATCH":
            raise ApiError(403, "Forbidden", "a webhook of a tenant there rejects it")

    there.fail = refuse
    away = away_jobs(there, caches)
    async with leading(away):
        await asyncio.sleep(90)
        assert away.clusters(JobKey("JobSet", "vision", "train"))


@virtually
async def test_a_record_that_a_user_writes_at_home_ends_no_leader() -> None:
    there, caches, home = FakeApi(), training_caches(*WITHIN), FakeApi()
    job = named_jobset(
        "train", "u", annotations={TRANSFER: f"v1 u {HUGE} Away west c"}, finalizers=[TRANSFER]
    )
    await home.put(JOBSET, job)
    await there.put(JOBSET, a_copy("train", origin="u", epoch="1", permit="Granted"))
    away = away_jobs(there, caches, home)
    async with leading(away) as task:
        caches.jobs["JobSet"].put(job)
        await asyncio.sleep(600)
        assert not task.done()
        assert not list(away.errors())
        found = there.get(JOBSET, "vision", "train")
        assert found is None or found["metadata"]["annotations"][PERMIT] == "Recalled"


@pytest.mark.parametrize("pool", ["a100", "h100"])
@virtually
async def test_a_record_takes_a_job_to_no_pool_elsewhere_that_its_ladder_does_not_have(pool: str) -> None:
    there, home, caches = FakeApi(), FakeApi(), training_caches(*WITHIN)
    state = running(uid="t", phase=Phase.AWAY, pool=f"west/{pool}", rank=1)
    job = named_jobset("train", "t", annotations={STATE: write_state(state)})
    away = away_jobs(there, caches, home)
    caches.policies.put(policy({"pool": "spot-a"}, {"pool": "a100", "cluster": "west"}, {"pool": "spot-b"}))
    await home.put(JOBSET, job)
    caches.jobs["JobSet"].put(job)
    async with leading(away):
        await asyncio.sleep(60)
    asked = any(each.path.endswith("/vision/jobsets/train") for each in there.sent)
    assert asked == (pool == "a100")
