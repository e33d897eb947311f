"""Two builds in one checkout do not trample each other."""

import os
import threading
from pathlib import Path

import pytest

from holdfast.simulator.tools.stamps import exclusive


def test_the_second_build_waits_and_learns_whom_for(tmp_path: Path) -> None:
    waiting, order = threading.Event(), list[str]()

    def on_wait(holder: str) -> None:
        order.append(f"waits for {holder}")
        waiting.set()

    def second() -> None:
        with exclusive(tmp_path / "lock", on_wait):
            order.append("second runs")

    thread = threading.Thread(target=second)
    with exclusive(tmp_path / "lock", on_wait):
        thread.start()
        assert waiting.wait(timeout=10), "the second must notice that the first holds the lock"
        order.append("first ends")
    thread.join(timeout=10)
    assert order == [f"waits for {os.getpid()}", "first ends", "second runs"], "one after the other"


def test_the_lock_is_free_again_after_a_failure(tmp_path: Path) -> None:
    def never(_: str) -> None:
        raise AssertionError("nobody holds the lock any more")

    with pytest.raises(RuntimeError), exclusive(tmp_path / "lock", never):
        raise RuntimeError
    with exclusive(tmp_path / "lock", never):
        assert (tmp_path / "lock").read_text(encoding="utf-8") == str(os.getpid()), "the holder names itself"
