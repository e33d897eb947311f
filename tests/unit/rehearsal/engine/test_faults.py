"""Ordered failures strike where they were ordered, once, and nowhere else."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from pulumi_holdfast.rehearsal.engine.faults import CreateRefusedError, EngineCrashedError, Faults

_URN = "urn:pulumi:dev::holdfast::aws:s3/bucket:Bucket::checkpoints"


def test_the_ordered_create_fails_once_with_its_message() -> None:
    faults = Faults()
    faults.fail_create(2, "InsufficientCapacity")
    faults.before_create(_URN)
    with pytest.raises(CreateRefusedError, match="creating checkpoints: InsufficientCapacity"):
        faults.before_create(_URN)
    faults.before_create(_URN)
    assert faults.creates == 3


def test_creates_on_many_threads_are_each_counted_once() -> None:
    faults = Faults()
    faults.fail_create(50, "ordered")

    def is_refused(_: int) -> bool:
        try:
            faults.before_create(_URN)
        except CreateRefusedError:
            return True
        return False

    with ThreadPoolExecutor(16) as threads:
        refused = sum(threads.map(is_refused, range(100)))
    assert (refused, faults.creates) == (1, 100)


@pytest.mark.parametrize("at", [1, _URN])
def test_a_crash_after_a_create_kills_the_engine_and_ends_the_call(at: int | str) -> None:
    killed: list[str] = []
    faults = Faults(on_crash=lambda: killed.append("engine"))
    faults.crash_after_create(at)
    with pytest.raises(EngineCrashedError):
        faults.after_create(_URN)
    faults.after_create(_URN)
    assert killed == ["engine"]


def test_a_crash_after_a_delete_is_counted_apart_from_creates() -> None:
    killed: list[str] = []
    faults = Faults(on_crash=lambda: killed.append("engine"))
    faults.crash_after_delete(1)
    faults.after_create(_URN)
    assert killed == []
    with pytest.raises(EngineCrashedError):
        faults.after_delete(_URN)


def test_a_crash_without_a_way_to_kill_the_engine_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="on_crash"):
        Faults().crash_after_create(1)
