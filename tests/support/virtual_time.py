"""An event loop whose clock jumps to the next thing that is due: hours of waiting in no time, in order."""

from __future__ import annotations

import asyncio
import selectors
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Coroutine

T = TypeVar("T")


class _Selector(selectors.SelectSelector):
    """Waits for nothing: what would be waited for is added to the clock."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 1000.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready:
            # A loop with nothing due and nothing to come would stand still for ever: a test waits for what never is.
            assert timeout is not None, "nothing will ever happen any more"
            self.now += timeout
        return ready


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self.jumping = _Selector()
        super().__init__(self.jumping)

    def time(self) -> float:
        return self.jumping.now


def run_virtually(main: Coroutine[object, object, T]) -> T:
    """Run a coroutine to its end; `loop.time()` tells how long it would have taken."""
    with asyncio.Runner(loop_factory=_Loop) as runner:
        return runner.run(main)
