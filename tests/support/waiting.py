"""Waits for what has no watch: a process that ends, a file that appears."""

import time
from collections.abc import Callable


def wait_until(condition: Callable[[], bool], what: str, *, seconds: float = 180) -> None:
    """Wait until something is so; that it does not come about ends the test."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds:.0f} s: {what}"
        time.sleep(0.1)
