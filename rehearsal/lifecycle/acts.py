"""What each act of a rehearsal came to, at a glance."""

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field

from holdfast.rehearsal.scenarios.table import render_table


@dataclass(frozen=True, kw_only=True)
class Act:
    """One act: `seen` is what came of it, empty where it failed."""

    name: str
    seen: str
    seconds: float

    @property
    def row(self) -> tuple[str, str, str]:
        """The act as a line of the table."""
        return (self.name, self.seen or "FAILED", f"{self.seconds:.0f} s")


@dataclass(kw_only=True)
class Programme:
    """The acts of one rehearsal; `announce` is told of each before it begins."""

    announce: Callable[[str], None]
    acts: list[Act] = field(default_factory=list[Act])

    @contextmanager
    def act(self, name: str) -> Generator[list[str]]:
        """Play one act; what the block puts into the list is what was seen. One that raises has failed."""
        self.announce(name)
        seen, began = list[str](), time.monotonic()
        try:
            yield seen
        except BaseException:
            self._note(name, "", began)
            raise
        self._note(name, "; ".join(seen), began)

    def table(self) -> str:
        """Return every act played so far, a line each."""
        return render_table(("act", "seen", "took"), [act.row for act in self.acts])

    def _note(self, name: str, seen: str, began: float) -> None:
        self.acts.append(Act(name=name, seen=seen, seconds=time.monotonic() - began))
