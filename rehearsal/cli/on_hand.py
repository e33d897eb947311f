"""A stack of this project as the commands handle it."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass

from rehearsal.cli.output import color, say
from rehearsal.cli.surroundings import Surroundings
from rehearsal.engine import Audience, Rehearsal, Subject
from rehearsal.engine.checkpoint import Checkpoint, read_checkpoint
from rehearsal.engine.folder import EngineFolder
from rehearsal.engine.process import EngineProcess
from rehearsal.engine.stack_stand_ins import StackStandIns
from rehearsal.paths import Workspace
from rehearsal.providers.faults import Faults


@dataclass(frozen=True, kw_only=True)
class StackOnHand:
    """A stack, what is around it, and who is told of it: `show` takes the engine's lines as they come."""

    name: str
    workspace: Workspace
    subject: Subject
    surroundings: Surroundings
    show: Callable[[str], None] = say

    @classmethod
    def named(cls, name: str, workspace: Workspace) -> "StackOnHand":
        """Return the stack of this name. Raises ConfigError or RehearsalError before anything is started."""
        subject = Subject.holdfast(name, workspace)
        surroundings = Surroundings(
            stack=name, workspace=workspace, hosts_operators=subject.hosts_operators, report=say
        )
        return cls(name=name, workspace=workspace, subject=subject, surroundings=surroundings)

    @contextmanager
    def session(
        self, faults: Faults | None = None, process: EngineProcess | None = None
    ) -> Generator[Rehearsal]:
        """Open the stack on its stand-ins, which suffer `faults`; `process` is told of the engine's process."""
        with Rehearsal.open(
            self.name,
            self.workspace,
            subject=self.subject,
            stand_ins=self.stand_ins(faults or Faults()),
            audience=Audience(show=self.show, color=color()),
            process=process,
        ) as rehearsal:
            yield rehearsal

    def stand_ins(self, faults: Faults) -> StackStandIns:
        """Return what plays the stack's providers."""
        return StackStandIns(
            stack=self.name, project=self.subject.name, workspace=self.workspace, faults=faults
        )

    def checkpoint(self) -> Checkpoint:
        """Return the engine's state."""
        folder = EngineFolder.of(self.name, self.workspace)
        return read_checkpoint(folder.checkpoint(self.subject.name, self.name))

    def holds_resources(self) -> bool:
        """Whether the engine has made anything for this stack, or was about to."""
        checkpoint = self.checkpoint()
        return bool(checkpoint.resources or checkpoint.pending)
