"""Chores are done once for all who asked, and again when they fail."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from holdfast.fallback.api.client import FALLBACK_POLICY, ApiError, Client, Unreachable
from holdfast.fallback.jobs.snapshot import JobKey
from holdfast.fallback.reconciler.caches import Caches
from holdfast.fallback.reconciler.policy_status import DebouncedTask, JobIndex, PolicyStatusWriter
from holdfast.fallback.state_machine.state import JobState, Phase
from holdfast.scheduling.labels import TRAINING
from tests.support.clusters.reconciler import policy
from tests.support.fake_api import FakeApi
from tests.support.fallback_objects import NAMESPACE, NOW
from tests.support.virtual_time import run_virtually

if TYPE_CHECKING:
    from holdfast.fallback.reconciler.cached_objects import CachedPolicy


def test_a_chore_is_done_once_for_all_who_asked_meanwhile() -> None:
    async def run() -> None:
        done: list[float] = []

        async def do() -> None:
            done.append(asyncio.get_running_loop().time())

        chore = DebouncedTask("sweeping", do, seconds=3)
        task = asyncio.create_task(chore.run())
        for _ in range(10):
            chore.request()
            await asyncio.sleep(0.1)
        await asyncio.sleep(10)
        assert len(done) == 1, "after a while"
        chore.request()
        await asyncio.sleep(5)
        assert len(done) == 2, "and again when somebody asks again"
        task.cancel()

    run_virtually(run())


def test_a_chore_that_fails_is_done_again_later_and_later() -> None:
    async def run() -> None:
        tries: list[float] = []

        async def do() -> None:
            tries.append(asyncio.get_running_loop().time())
            if len(tries) < 5:
                raise Unreachable("server", "gone")

        chore = DebouncedTask("sweeping", do, seconds=1)
        task = asyncio.create_task(chore.run())
        chore.request()
        await asyncio.sleep(200)
        assert len(tries) == 5, "until it is done"
        assert tries[4] - tries[3] > tries[1] - tries[0], "not all at once"
        task.cancel()

    run_virtually(run())


class Told:
    """A FallbackPolicy on an API server in memory, and what keeps its status."""

    def __init__(self) -> None:
        self.api, self.caches = FakeApi(), Caches()
        self.caches.namespaces.put({"metadata": {"name": NAMESPACE, "labels": {TRAINING: "true"}}})
        self.roster = JobIndex(lambda namespace: self.summaries.changed(namespace))
        self.summaries = PolicyStatusWriter(Client(self.api), self.caches, self.roster)

    async def put(self) -> None:
        """Put the policy there."""
        self.caches.policies.put(await self.api.put(FALLBACK_POLICY, policy()))

    def patches(self) -> int:
        """How often its status was written."""
        return sum(each.method == "PATCH" for each in self.api.sent)


def test_a_status_is_written_when_it_differs_and_not_else() -> None:
    async def run() -> None:
        told = Told()
        await told.put()
        key = JobKey("JobSet", NAMESPACE, "train")
        told.roster.set(key, JobState(uid="u", phase=Phase.RUNNING, pool="spot-a", rank=0, since=NOW))
        await told.summaries.write()
        assert told.patches() == 1, "a job is new"
        told.caches.policies.put(told.api.of(FALLBACK_POLICY)[0])
        kept: CachedPolicy | None = told.caches.policies.get(NAMESPACE, "ladder")
        assert kept is not None, "it is kept"
        assert kept.status["summary"] == "1 running", "with what was written"
        told.summaries.changed(NAMESPACE)
        await told.summaries.write()
        assert told.patches() == 1, "nothing has changed"

    run_virtually(run())


def test_a_status_that_could_not_be_written_is_written_later() -> None:
    async def run() -> None:
        told = Told()
        await told.put()
        told.summaries.changed(NAMESPACE)

        def refuse(_: object) -> None:
            raise ApiError(500, "InternalError", "no")

        told.api.fail = refuse
        try:
            await told.summaries.write()
        except ApiError:
            told.api.fail = lambda _: None
        await told.summaries.write()
        assert told.api.of(FALLBACK_POLICY)[0]["status"], "the namespace was not forgotten"

    run_virtually(run())


def test_a_namespace_without_a_ladder_has_no_status() -> None:
    async def run() -> None:
        told = Told()
        told.summaries.changed("nowhere")
        await told.summaries.write()
        assert told.patches() == 0, "there is nothing to write it in"

    run_virtually(run())
