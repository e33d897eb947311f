"""The whole controller against an in-memory API server: killed, disconnected and rejected at random, it completes moves."""

import asyncio
import random
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress

import pytest

from pulumi_holdfast.controller.jobs.patches import read_state
from pulumi_holdfast.controller.jobs.state import JobState, Phase
from pulumi_holdfast.controller.kube.client import FALLBACK_POLICY, JOBSET, NAMESPACE, NODE
from pulumi_holdfast.controller.kube.events import EventRecorder, WebhookNotifier
from pulumi_holdfast.controller.kube.leader_election import Fence
from pulumi_holdfast.controller.loop.controller import Controller
from pulumi_holdfast.controller.loop.metrics import Metrics
from pulumi_holdfast.controller.loop.policy_status import DebouncedTask
from pulumi_holdfast.controller.loop.settings import parse_settings
from pulumi_holdfast.controller.other_clusters.away_jobs import AwayJobs
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import POOL, STATE, TRAINING
from tests.support.clusters.reconciler import jobset, policy
from tests.support.coroutines import until, virtually
from tests.support.fakes.api_server import FakeApi
from tests.support.fakes.faulty_connection import FaultyConnection
from tests.support.fakes.jobset_operator import NAMESPACE as WITHIN
from tests.support.fakes.jobset_operator import PlayingJobSet, now, stamp
from tests.support.json_objects import obj
from tests.support.soak import sized

POOLS = ("spot-a", "spot-b", "on-demand")
ABSENT = {"rayjobs", "rayclusters", "nodeclaims", "nodepools", "workloads"}


class Process:
    """A process of the controller."""

    def __init__(self, api: FakeApi, **others: FaultyConnection) -> None:
        loop = asyncio.get_running_loop()
        self.connection = FaultyConnection(api)
        self.fence = Fence(loop.time)
        settings = parse_settings(["--workers", "4"], {})
        self.controller = Controller(
            settings,
            self.connection,
            Metrics(process=False),
            self.fence,
            others=others,
            now=now,
            monotonic=loop.time,
        )
        self.task = asyncio.create_task(self.controller.run())

    async def kill(self) -> None:
        """End it as kill -9 does: nothing it still has to say arrives."""
        self.connection.is_dead = True
        await self.end()

    async def end(self) -> None:
        """End it as SIGTERM does."""
        self.task.cancel()
        with suppress(asyncio.CancelledError):
            await self.task


class Cluster:
    """An API server in which JobSet plays, with a ladder and a node for each pool."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.api = FakeApi(absent=set(ABSENT), page=50)
        self.operator = PlayingJobSet(self.api, self.chance)

    async def begin(self, *names: str, ladder: Sequence[Json] = ()) -> None:
        """Put everything there, and start the operator."""
        first: Json = {"name": "kube-system", "labels": {"kubernetes.io/metadata.name": "kube-system"}}
        await self.api.put(NAMESPACE, {"metadata": first})
        training: Json = {"metadata": {"name": WITHIN, "labels": {TRAINING: "true"}}}
        await self.api.put(NAMESPACE, training)
        await self.api.put(FALLBACK_POLICY, policy(*ladder))
        for pool in POOLS:
            ready: Json = {"conditions": [{"type": "Ready", "status": "True"}]}
            node: Json = {"metadata": {"name": f"node-{pool}", "labels": {POOL: pool}}, "status": ready}
            await self.api.put(NODE, node)
        for name in names:
            job = jobset(name)
            metadata: Json = {**obj(job["metadata"]), "creationTimestamp": stamp(now())}
            await self.api.put(JOBSET, {**job, "metadata": metadata, "status": {}})
        self._playing = asyncio.create_task(self.operator.run())

    async def end(self) -> None:
        """Stop the operator."""
        assert not self._playing.done()
        self._playing.cancel()

    def state(self, name: str) -> JobState | None:
        """What is kept of a job."""
        job = self.api.get(JOBSET, WITHIN, name)
        text = (job or {}).get("metadata", {}).get("annotations", {}).get(STATE)
        state = read_state(text)
        return state if isinstance(state, JobState) else None

    def runs_on(self, name: str, pool: str) -> bool:
        """Whether a job is known to run on a pool, and does."""
        state = self.state(name)
        pods = self.operator.pods(name)
        placed = [pod for pod in pods if pod["spec"].get("nodeName") == f"node-{pool}"]
        return (
            state is not None
            and (state.phase, state.pool) == (Phase.RUNNING, pool)
            and len(pods) == len(placed) == 2
        )

    async def evict_one(self, name: str) -> None:
        """Evict a pod of a job, if there is one to evict."""
        pods = [pod for pod in self.operator.pods(name) if "deletionTimestamp" not in pod["metadata"]]
        if pods:
            await self.operator.evict(self.chance.choice(pods))


@asynccontextmanager
async def moving_job(seed: int = 1) -> AsyncGenerator[tuple[Cluster, Process]]:
    """A cluster in which the job `train` runs on its first tier, and the process that moves it."""
    cluster = Cluster(seed)
    await cluster.begin("train")
    process = Process(cluster.api)
    await until(lambda: cluster.runs_on("train", "spot-a"), "it runs")
    yield cluster, process
    await process.end()
    assert not cluster.operator.overlaps
    await cluster.end()


@virtually
async def test_a_task_of_the_leader_that_fails_begins_again_and_ends_no_move(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun = list[str]()

    def failing(name: str) -> Callable[[object], Awaitable[None]]:
        async def fail(_: object) -> None:
            begun.append(name)
            await asyncio.sleep(1)
            raise OverflowError("of a kind that is not known yet")

        return fail

    tasks = (EventRecorder, WebhookNotifier, DebouncedTask, AwayJobs)
    for task in tasks:
        monkeypatch.setattr(task, "run", failing(task.__name__))
    async with moving_job() as (cluster, process):
        await asyncio.sleep(120)
        assert not process.task.done()
        await cluster.evict_one("train")
        await until(lambda: cluster.runs_on("train", "spot-b"), "the job moves")
        assert all(begun.count(task.__name__) > 1 for task in tasks)


@virtually
async def test_a_child_job_whose_status_changes_before_its_deletion_does_not_stop_the_move() -> None:
    conflicts = iter(["conflict"])

    def refuse_first_deletion(method: str, path: str) -> str:
        return next(conflicts, "pass") if method == "DELETE" and "/jobs/" in path else "pass"

    async with moving_job() as (cluster, process):
        process.connection.fault = refuse_first_deletion
        await cluster.evict_one("train")
        await until(
            lambda: cluster.runs_on("train", "spot-b"),
            "no other event of the job follows: the controller itself must try again",
        )
        assert next(conflicts, None) is None


@pytest.mark.parametrize("seed", range(sized(8, soak=40)))
@virtually
async def test_jobs_reach_their_tier_whatever_requests_are_lost(seed: int) -> None:
    cluster = Cluster(seed)
    chance, names = cluster.chance, [f"job-{number}" for number in range(4)]
    await cluster.begin(*names)

    def fault(method: str, _: str) -> str:
        if chance.random() > 0.1:
            return "pass"
        return chance.choice(["lose", "lose answer", "throttle", "fail"])

    process = Process(cluster.api)
    for _ in range(25):
        process.connection.fault = fault
        await asyncio.sleep(chance.uniform(0.2, 12))
        match chance.choice(["evict", "evict", "evict", "kill", "break", "forget"]):
            case "evict":
                await cluster.evict_one(chance.choice(names))
            case "kill":
                await process.kill()
                process = Process(cluster.api)
            case "break":
                await cluster.api.break_watches()
            case _:
                await cluster.api.break_watches(forget=True)
    process.connection.fault = lambda _method, _path: "pass"
    for name in names:
        await until(
            lambda name=name: any(cluster.runs_on(name, pool) for pool in POOLS), f"{name} runs", seconds=900
        )
    assert not cluster.operator.overlaps
    await process.end()
    await cluster.end()
