"""A stack of this project: its program, its stand-ins, and what is around it."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from holdfast.simulator.paths import Workspace
from holdfast.simulator.pulumi import Audience, Rehearsal, Subject
from holdfast.simulator.pulumi.checkpoint import Checkpoint, read_checkpoint
from holdfast.simulator.pulumi.faults import Faults
from holdfast.simulator.pulumi.folder import EngineFolder
from holdfast.simulator.pulumi.process import EngineProcess
from holdfast.simulator.stacks.stand_ins import StackStandIns
from holdfast.simulator.stacks.surroundings import Surroundings


@dataclass(frozen=True, kw_only=True)
class Stack:
    """A stack under its name, its files in the folder `place`; `audience` watches the engine."""

    name: str
    place: str
    workspace: Workspace
    subject: Subject
    surroundings: Surroundings
    audience: Audience = field(default_factory=Audience)

    @classmethod
    def named(
        cls,
        name: str,
        workspace: Workspace,
        *,
        report: Callable[[str], None],
        run_as: str | None = None,
        audience: Audience | None = None,
    ) -> "Stack":
        """Return the stack of this name; `run_as`, where given, keeps it apart from the one that is in use.

        Kept apart it has another folder and another control plane, and everything in it the same names.
        Raises ConfigError or RehearsalError before anything is started.
        """
        subject = Subject.holdfast(name, workspace)
        if run_as is not None:
            # The user's own plugin would heed the stack's kubeconfig, and with it the platform that is in use.
            subject = replace(subject, own_plugins=frozenset())
        surroundings = Surroundings(
            stack=run_as or name,
            workspace=workspace,
            report=report,
            cloud=subject.cloud,
        )
        return cls(
            name=name,
            place=run_as or name,
            workspace=workspace,
            subject=subject,
            surroundings=surroundings,
            audience=audience or Audience(),
        )

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
            audience=self.audience,
            process=process,
            place=self.place,
        ) as rehearsal:
            yield rehearsal

    def stand_ins(self, faults: Faults) -> StackStandIns:
        """Return what plays the stack's providers."""
        return StackStandIns(
            stack=self.name,
            project=self.subject.name,
            workspace=self.workspace,
            faults=faults,
            place=self.place,
        )

    @property
    def folder(self) -> EngineFolder:
        """What the engine keeps of the stack."""
        return EngineFolder.of(self.place, self.workspace)

    @property
    def kubeconfig(self) -> Path:
        """The kubeconfig of the stack's control plane."""
        return self.workspace.kubeconfig(self.place)

    def checkpoint(self) -> Checkpoint:
        """Return the engine's state."""
        return read_checkpoint(self.folder.checkpoint(self.subject.name, self.name))

    def holds_resources(self) -> bool:
        """Whether the engine has made anything for this stack, or was about to."""
        checkpoint = self.checkpoint()
        return bool(checkpoint.resources or checkpoint.pending)
