"""Each key is worked on once, by one worker at a time, and at its time by a clock that may be set."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta

from pulumi_holdfast.controller.kube.work_queue import SOON_SECONDS, WorkQueue
from tests.support.coroutines import virtually

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


class WallClock:
    """A clock on the wall, which may be set."""

    def __init__(self) -> None:
        self._began = asyncio.get_running_loop().time()
        self.off = timedelta(0)

    def now(self) -> datetime:
        """What it shows."""
        return NOON + self.off + timedelta(seconds=asyncio.get_running_loop().time() - self._began)


@asynccontextmanager
async def working(queue: WorkQueue[str], done: list[str]) -> AsyncGenerator[None]:
    """A worker that notes what it was given, and the queue's own clock."""

    async def work() -> None:
        while True:
            key = await queue.get()
            done.append(key)
            queue.done(key)

    tasks = [asyncio.create_task(queue.run()), asyncio.create_task(work())]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


@virtually
async def test_a_key_added_several_times_is_queued_once() -> None:
    queue, done = WorkQueue[str](), list[str]()
    for key in "abaacb":
        queue.add(key)
    async with working(queue, done):
        await asyncio.sleep(1)
    assert done == ["a", "b", "c"]


@virtually
async def test_a_key_added_while_in_work_is_queued_after_it() -> None:
    queue = WorkQueue[str]()
    queue.add("a")
    assert await queue.get() == "a"
    queue.add("a")
    queue.add("a")
    assert len(queue) == 0
    queue.done("a")
    assert len(queue) == 1


@virtually
async def test_a_key_added_soon_is_queued_once_unless_it_is_taken_before() -> None:
    queue, done = WorkQueue[str](), list[str]()
    async with working(queue, done):
        for _ in range(9):
            queue.add_soon("a")
            queue.add_soon("b")
            await asyncio.sleep(SOON_SECONDS / 10)
        queue.add("b")
        await asyncio.sleep(SOON_SECONDS / 20)
        assert done == ["b"]
        await asyncio.sleep(SOON_SECONDS / 10)
        assert done == ["b", "a"]
        await asyncio.sleep(9 * SOON_SECONDS)
        assert done == ["b", "a"]


@virtually
async def test_a_key_is_queued_at_its_latest_time() -> None:
    wall, done = WallClock(), list[str]()
    queue = WorkQueue[str](now=wall.now)
    async with working(queue, done):
        queue.add_at("a", NOON + timedelta(hours=1))
        queue.add_at("a", NOON + timedelta(minutes=1))
        queue.add_at("b", NOON + timedelta(minutes=2))
        queue.add_at("b", None)
        await asyncio.sleep(59)
        assert not done
        await asyncio.sleep(2)
        assert done == ["a"]
        await asyncio.sleep(4000)
        assert done == ["a"]


@virtually
async def test_a_clock_set_forward_queues_due_keys() -> None:
    wall, done = WallClock(), list[str]()
    queue = WorkQueue[str](now=wall.now)
    async with working(queue, done):
        queue.add_at("a", NOON + timedelta(hours=1))
        await asyncio.sleep(10)
        wall.off = timedelta(hours=1)
        await asyncio.sleep(6)
        assert done == ["a"]


@virtually
async def test_a_clock_set_back_does_not_queue_early() -> None:
    wall, done = WallClock(), list[str]()
    queue = WorkQueue[str](now=wall.now)
    async with working(queue, done):
        queue.add_at("a", NOON + timedelta(minutes=1))
        wall.off = timedelta(hours=-1)
        await asyncio.sleep(120)
        assert not done


@virtually
async def test_retries_back_off() -> None:
    queue, done = WorkQueue[str](), list[str]()
    async with working(queue, done):
        for _ in range(12):
            queue.retry("a")
            await asyncio.sleep(0.3)
        assert len(done) < 6
        await asyncio.sleep(300)
        done.clear()
        queue.succeed("a")
        queue.retry("a")
        await asyncio.sleep(0.3)
        assert done == ["a"]


@virtually
async def test_replaced_timers_are_removed() -> None:
    wall, done = WallClock(), list[str]()
    queue = WorkQueue[str](now=wall.now)
    async with working(queue, done):
        for number in range(10_000):
            queue.add_at("a", NOON + timedelta(days=1, seconds=number))
        await asyncio.sleep(1)
        assert queue.planned <= 100


@virtually
async def test_a_group_with_many_keys_delays_another_by_one_key() -> None:
    queue = WorkQueue[str](group=lambda key: key.partition("/")[0])
    for number in range(300):
        queue.add(f"hostile/{number}")
    queue.add("vision/train")
    assert len(queue) == 301
    assert [await queue.get() for _ in range(3)] == ["hostile/0", "vision/train", "hostile/1"]


@virtually
async def test_a_group_leaves_workers_to_the_others() -> None:
    queue = WorkQueue[str](group=lambda key: key.partition("/")[0], most_at_once=2)
    for number in range(3):
        queue.add(f"hostile/{number}")
    taken = [await queue.get() for _ in range(2)]
    waiting = asyncio.create_task(queue.get())
    await asyncio.sleep(1)
    assert not waiting.done()
    queue.add("vision/train")
    assert await waiting == "vision/train"
    queue.done(taken[0])
    assert await queue.get() == "hostile/2"
