"""One run at a time."""

import fcntl
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from holdfast.simulator.errors import RehearsalError


@contextmanager
def held(lock: Path, *, doing: str) -> Generator[None]:
    """Hold the lock file `lock` for the length of the block. It frees itself when its holder dies.

    Raises RehearsalError where another run holds it; `doing` says what this one wanted.
    """
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RehearsalError(
                f"cannot {doing}: another run is starting or stopping it right now ({lock} is held); "
                "wait until that one has ended, then try again"
            ) from None
        yield
