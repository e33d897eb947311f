"""What is done to a stack of a test's own program."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TypeAlias

from holdfast.simulator.pulumi import Outcome, Rehearsal
from holdfast.simulator.pulumi.faults import Faults

Program: TypeAlias = Callable[[], None]


def nothing() -> None:
    """Register no resource."""


class StackCommands(ABC):
    """The commands of a stack; each is a run of its own, as a user's would be."""

    def preview(self, program: Program) -> Outcome:
        """Return what an `up` would do."""
        return self._run(program, Faults(), lambda rehearsal: rehearsal.preview())

    def up(self, program: Program, *, faults: Faults | None = None) -> Outcome:
        """Make everything as the program says."""
        return self._run(program, faults or Faults(), lambda rehearsal: rehearsal.up())

    def refresh(self, program: Program = nothing) -> Outcome:
        """Read what there is."""
        return self._run(program, Faults(), lambda rehearsal: rehearsal.refresh())

    def destroy(self, program: Program = nothing) -> Outcome:
        """Remove everything."""
        return self._run(program, Faults(), lambda rehearsal: rehearsal.destroy())

    @abstractmethod
    def _run(self, program: Program, faults: Faults, command: Callable[[Rehearsal], Outcome]) -> Outcome:
        """Run one command on the real engine."""
