"""The write to the API server at which the controller dies."""

from collections.abc import Callable
from dataclasses import dataclass

from tests.soak.fault_proxy.fates import Asked, Fate


@dataclass(kw_only=True)
class DeadlyWrite:
    """Counts what is to be changed, and has somebody killed at it."""

    _left: int = 0
    _fate: Fate = Fate.PASS
    _kill: Callable[[], None] | None = None

    def kill_at(self, write: int, kill: Callable[[], None], *, is_done: bool) -> None:
        """Have `kill` called at the `write`-th write from now; the API server never sees it, or does it nevertheless."""
        self._left, self._kill = write, kill
        self._fate = Fate.LOSE_ANSWER if is_done else Fate.LOSE

    def spare(self) -> bool:
        """Kill nobody any more; returns whether somebody would have been."""
        was_deadly, self._kill = self._kill is not None, None
        return was_deadly

    def fate(self, asked: Asked) -> Fate:
        """Count a request; returns what becomes of it."""
        kill = self._kill
        if kill is None or not asked.is_write:
            return Fate.PASS
        self._left -= 1
        if self._left:
            return Fate.PASS
        self._kill = None
        kill()
        return self._fate
