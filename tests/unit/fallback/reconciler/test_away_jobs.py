"""Jobs that are away: what is asked of other clusters, by the replica that leads alone."""

import asyncio
import logging
from collections.abc import Generator
from contextlib import contextmanager, suppress

import pytest

from holdfast.fallback.api.client import NAMESPACE, ApiError, Client
from holdfast.fallback.jobs.kinds import KINDS
from holdfast.fallback.jobs.snapshot import JobKey
from holdfast.fallback.reconciler.away_jobs import AwayJobs
from holdfast.fallback.reconciler.caches import Caches
from holdfast.fallback.reconciler.work_queue import WorkQueue
from holdfast.scheduling.json import Json
from holdfast.scheduling.labels import TRAINING
from tests.support.builders.fallback_objects import rayjob
from tests.support.coroutines import virtually
from tests.support.fakes.api_server import FakeApi, Sent
from tests.support.fakes.jobset_operator import now

WITHIN = ("tabular", "vision")


def away_jobs(there: FakeApi, caches: Caches) -> AwayJobs:
    """Those of a cluster with the training namespaces, beside a cluster in the west."""
    for name in WITHIN:
        caches.namespaces.put({"metadata": {"name": name, "labels": {TRAINING: "true"}}})
    home = FakeApi()
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


@contextmanager
def leading(away: AwayJobs) -> Generator["asyncio.Task[None]"]:
    """The replica leads for the length of the block."""
    task = asyncio.get_running_loop().create_task(away.run())
    try:
        yield task
    finally:
        task.cancel()


@virtually
async def test_a_refusal_is_for_its_kind_and_namespace_alone_and_is_logged_once() -> None:
    there, caches = FakeApi(), Caches()

    def refuse(sent: Sent) -> None:
        if "/namespaces/vision/rayjobs" in sent.path:
            raise ApiError(403, "Forbidden", "rayjobs is forbidden")

    there.fail = refuse
    away = away_jobs(there, caches)
    lines = list[str]()
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())
    logger = logging.getLogger("holdfast.fallback.reconciler.away_jobs")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    keys = [JobKey(kind, namespace, "train") for kind in KINDS for namespace in WITHIN]
    try:
        with leading(away) as task:
            await asyncio.sleep(600)
            closed = [key for key in keys if not away.clusters(key)]
            assert closed == [JobKey("RayJob", "vision", "train")], "the others may move there"
            assert sum("is forbidden" in each for each in lines) == 1, (
                f"most namespaces need no access: {lines}"
            )

            there.fail = lambda _: None
            await asyncio.sleep(61)
            assert all(map(away.clusters, keys)), "what is accepted later is noticed"
        with suppress(asyncio.CancelledError):
            await task
    finally:
        logger.removeHandler(handler)


@virtually
async def test_a_replica_that_does_not_lead_queues_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    queued, caches = list[JobKey](), Caches()
    away = away_jobs(FakeApi(), caches)
    add = WorkQueue[JobKey].add

    def noted(queue: WorkQueue[JobKey], key: JobKey) -> None:
        queued.append(key)
        add(queue, key)

    monkeypatch.setattr(WorkQueue, "add", noted)
    caches.jobs["RayJob"].put(named("train"))
    assert not queued, "nothing takes it from the queue, which grows for weeks"

    with leading(away) as task:
        await asyncio.sleep(1)
        assert set(queued) == {JobKey("RayJob", "vision", "train")}, "the jobs that are there when it leads"
        queued.clear()
        caches.jobs["RayJob"].put(named("next"))
        assert queued == [JobKey("RayJob", "vision", "next")], "and each change from then on"
    with suppress(asyncio.CancelledError):
        await task
    queued.clear()
    caches.jobs["RayJob"].put(named("train"))
    assert not queued, "it leads no more"
