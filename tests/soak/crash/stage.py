"""What runs are killed on: a stack on stand-ins, run again and again."""

from contextlib import AbstractContextManager
from typing import Protocol

from holdfast.simulator.pulumi import Outcome, Rehearsal
from holdfast.simulator.pulumi.checkpoint import Checkpoint
from holdfast.simulator.pulumi.faults import Faults
from holdfast.simulator.pulumi.process import EngineProcess


class Stage(Protocol):
    """A stack on stand-ins, which can be run again and again from an empty beginning."""

    def session(self, faults: Faults, process: EngineProcess) -> AbstractContextManager[Rehearsal]:
        """Open the stack."""
        ...

    def checkpoint(self) -> Checkpoint:
        """Return the engine's state."""
        ...

    def objects(self, types: frozenset[str]) -> tuple[str, ...]:
        """Return what exists outside the engine of these types: a line for each object, the same in every run."""
        ...

    def clear(self) -> None:
        """Remove what a destroyed stack may leave on purpose."""
        ...


def run_up(stage: Stage) -> Outcome:
    """Bring the stack up, undisturbed."""
    process = EngineProcess()
    with stage.session(Faults(on_crash=process.kill), process) as rehearsal:
        return rehearsal.up()


def run_destroy(stage: Stage) -> Outcome:
    """Take the stack down, undisturbed."""
    process = EngineProcess()
    with stage.session(Faults(on_crash=process.kill), process) as rehearsal:
        return rehearsal.destroy()
