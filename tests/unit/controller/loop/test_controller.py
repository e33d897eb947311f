"""The whole controller against an in-memory API server: killed, disconnected and rejected at random, it completes moves."""

import asyncio
import random
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import timedelta

import pytest

from pulumi_holdfast.controller.jobs.patches import read_state
from pulumi_holdfast.controller.jobs.state import JobState, Ledger, Phase, PoolUse
from pulumi_holdfast.controller.kube.client import EVENT, FALLBACK_POLICY, JOBSET, NAMESPACE, NODE, ApiError
from pulumi_holdfast.controller.kube.events import EventRecorder, WebhookNotifier
from pulumi_holdfast.controller.kube.leader_election import Fence
from pulumi_holdfast.controller.loop.controller import Controller
from pulumi_holdfast.controller.loop.metrics import Metrics
from pulumi_holdfast.controller.loop.policy_status import DebouncedTask
from pulumi_holdfast.controller.loop.settings import parse_settings
from pulumi_holdfast.controller.other_clusters.away_jobs import AwayJobs
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import POOL, STATE, TRAINING
from pulumi_holdfast.ladder.ladder import cluster_of
from tests.support.clusters.reconciler import jobset, policy
from tests.support.coroutines import until, virtually
from tests.support.fakes.api_server import FakeApi, Sent
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
async def test_a_job_whose_pods_the_server_refuses_is_suspended_at_once_and_runs_when_it_accepts_them() -> (
    None
):
    why = 'pods "train-w-0-0-" is forbidden: violates PodSecurity "baseline:latest": privileged'
    is_forbidden = True

    def refuse(sent: Sent) -> None:
        if is_forbidden and sent.query.get("dryRun") and sent.path.endswith("/pods"):
            raise ApiError(403, "Forbidden", why)

    cluster = Cluster(1)
    await cluster.begin()
    cluster.api.fail = refuse
    process = Process(cluster.api)
    await until(lambda: process.fence.is_open, "it leads")
    job = jobset("train")
    created: Json = {**obj(job["metadata"]), "creationTimestamp": stamp(now())}
    await cluster.api.put(JOBSET, {**job, "metadata": created, "status": {}})

    def is_refused() -> bool:
        state = cluster.state("train")
        return state is not None and state.phase is Phase.REFUSED and why in state.refusal

    assert await until(is_refused, "it is refused") < 10
    assert cluster.api.of(JOBSET)[0]["spec"]["suspend"] is True
    assert "Refused" in {event["reason"] for event in cluster.api.of(EVENT)}
    await asyncio.sleep(3600)
    assert is_refused()
    is_forbidden = False
    await until(lambda: cluster.runs_on("train", "spot-a"), "it runs", seconds=900)
    state = cluster.state("train")
    assert state is not None
    assert (state.moves, state.refusal) == (0, "")
    await process.end()
    await cluster.end()


@virtually
async def test_a_job_fails_over_along_its_ladder() -> None:
    async with moving_job() as (cluster, _):
        for pool in ("spot-b", "on-demand"):
            await cluster.evict_one("train")
            await until(lambda pool=pool: cluster.runs_on("train", pool), f"it runs on {pool}")
        state = cluster.state("train")
        assert state is not None
        assert state.moves == 2
        await until(lambda: bool(cluster.api.of(FALLBACK_POLICY)[0].get("status")), "the policy tells")
        reasons = {event["reason"] for event in cluster.api.of(EVENT)}
        assert {"Placed", "Moved", "MaxFailuresReached"} <= reasons


@pytest.mark.parametrize("write", range(6))
@pytest.mark.parametrize("fault", ["lose", "lose answer"])
@virtually
async def test_a_kill_at_any_write_completes_the_move_once(write: int, fault: str) -> None:
    writes = iter(range(1000))

    def die(method: str, path: str) -> str:
        if method == "GET" or "/leases/" in path or "/events" in path or next(writes) != write:
            return "pass"
        process.connection.is_dead = True
        return fault

    async with moving_job(write) as (cluster, process):
        process.connection.fault = die
        await cluster.evict_one("train")
        await asyncio.sleep(20)
        await process.kill()
        following = Process(cluster.api)
        await until(lambda: cluster.runs_on("train", "spot-b"), "the next process ends the move")
        state = cluster.state("train")
        assert state is not None
        assert state.moves == 1
        await following.end()


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


LADDER_WITH_WEST: Sequence[Json] = (
    {"pool": "spot-a", "maxFailures": 1},
    {"cluster": "west", "pool": "spot-b", "maxFailures": 1},
    {"pool": "on-demand"},
)


class TwoClusters:
    """Jobs at home, a second cluster in the west, and a controller in each.

    `twice`: when a job had pods in both. `ledgers`: the last of each copy, by job and uid.
    """

    def __init__(self, seed: int, *names: str) -> None:
        self.names = names
        self.home, self.west = Cluster(seed), Cluster(100 + seed)
        self.between = FaultyConnection(self.west.api)
        self.twice, self.went = list[str](), set[str]()
        self.ledgers: dict[str, dict[str, Ledger]] = {name: {} for name in names}

    async def begin(self) -> None:
        """Start everything."""
        await self.home.begin(*self.names, ladder=LADDER_WITH_WEST)
        await self.west.begin()
        self.at_home, self.there = Process(self.home.api, west=self.between), Process(self.west.api)
        self._watcher = asyncio.create_task(self._watch())

    async def _watch(self) -> None:
        while True:
            for name in filter(self.west.operator.pods, self.names):
                self.went.add(name)
                self.twice.extend([f"{name} at {now()}"] if self.home.operator.pods(name) else [])
            for name, copies in self.ledgers.items():
                state = self.west.state(name)
                if state is not None and state.ledger is not None:
                    copies[state.uid] = state.ledger
            await asyncio.sleep(0.05)

    def set_fault(self, fault: Callable[[str, str], str]) -> None:
        """Let every connection meet this."""
        self.at_home.connection.fault = self.there.connection.fault = self.between.fault = fault

    async def disturb(self) -> None:
        """Let one thing happen that is drawn."""
        chance = self.home.chance
        match chance.choice(["evict", "evict", "evict there", "kill", "kill there", "separate"]):
            case "evict":
                await self.home.evict_one(chance.choice(self.names))
            case "evict there":
                await self.west.evict_one(chance.choice(self.names))
            case "kill":
                await self.at_home.kill()
                self.at_home = Process(self.home.api, west=self.between)
            case "kill there":
                await self.there.kill()
                self.there = Process(self.west.api)
            case _:
                self.between.fault = lambda _method, _path: "lose"
                await asyncio.sleep(chance.uniform(10, 200))

    def is_at_rest(self, name: str) -> bool:
        """Whether a job runs where its home's ladder has it, and nowhere else."""
        state = self.home.state(name)
        if state is None or state.phase is not Phase.AWAY:
            is_copied = self.west.api.get(JOBSET, WITHIN, name) is not None
            return not is_copied and any(self.home.runs_on(name, pool) for pool in POOLS)
        placed = [pod for pod in self.west.operator.pods(name) if pod["spec"].get("nodeName")]
        return not self.home.operator.pods(name) and len(placed) == 2 and state.waiting_since is None

    def used_in_west(self) -> tuple[list[timedelta], list[timedelta]]:
        """The node time of each job there: by its ledger at home, and by those of its copies."""
        states = [self.home.state(name) for name in self.names]
        uses = [
            state.ledger.uses if state is not None and state.ledger is not None else () for state in states
        ]
        copies = [
            [use for ledger in self.ledgers[name].values() for use in ledger.uses] for name in self.names
        ]
        at_home = [[use for use in each if cluster_of(use.pool)] for each in uses]
        return (_node_time(at_home), _node_time(copies))

    async def end(self) -> None:
        """Stop everything."""
        self._watcher.cancel()
        for each in (self.at_home, self.there, self.home, self.west):
            await each.end()


def _node_time(uses: Sequence[Sequence[PoolUse]]) -> list[timedelta]:
    return [sum((use.node_time for use in each), timedelta(0)) for each in uses]


@pytest.mark.parametrize("seed", range(sized(2, soak=60)))
@virtually
async def test_jobs_with_a_tier_elsewhere_never_run_twice_whatever_is_lost(seed: int) -> None:
    both = TwoClusters(seed, "job-0", "job-1", "job-2")
    chance = both.home.chance
    await both.begin()

    def fault(_method: str, _path: str) -> str:
        return "pass" if chance.random() > 0.1 else chance.choice(["lose", "lose answer", "throttle", "fail"])

    disturbances = 0
    # Waits of the processes are drawn without the seed: in one run of a hundred no job has left after 20 disturbances.
    while disturbances < 20 or not both.went:
        both.set_fault(fault)
        await asyncio.sleep(chance.uniform(0.2, 20))
        await both.disturb()
        disturbances += 1
    both.set_fault(lambda _method, _path: "pass")
    for name in both.names:
        await until(lambda name=name: both.is_at_rest(name), f"{name} runs in one place", seconds=1800)
    assert not both.twice, "two generations would write one checkpoint"
    overlaps = both.home.operator.overlaps + both.west.operator.overlaps
    assert not overlaps
    # A copy that was disturbed at once used nothing.
    await until(
        lambda: any(both.used_in_west()[0]) or not any(both.used_in_west()[1]),
        "home says what copies used",
        seconds=1800,
    )
    told, there = both.used_in_west()
    assert all(home <= copies for home, copies in zip(told, there, strict=True))
    await both.end()
