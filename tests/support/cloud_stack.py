"""A stack of a test's own program: its cloud is a stand-in, its Kubernetes objects are on a real control plane."""

from collections.abc import Callable
from dataclasses import dataclass, field

from rehearsal.engine import Outcome, Rehearsal, Subject
from rehearsal.engine.checkpoint import Checkpoint, read_checkpoint
from rehearsal.engine.folder import EngineFolder
from rehearsal.engine.process import EngineProcess
from rehearsal.kube.client import KubeClient
from rehearsal.paths import Workspace
from rehearsal.providers.cloud.state import CloudObject, CloudState
from rehearsal.providers.faults import Faults
from rehearsal.stacks.stand_ins import StackStandIns

Program = Callable[[], None]
_PROJECT = "clouds"


def nothing() -> None:
    """Register no resource."""


@dataclass(frozen=True, kw_only=True)
class CloudStack:
    """A stack kept in the folder `place`, whose control plane runs; each command is a run of its own."""

    name: str
    place: str
    workspace: Workspace
    process: EngineProcess = field(default_factory=EngineProcess)

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

    def cloud(self) -> CloudState:
        """Return AWS, to look at or to change as its console would."""
        return CloudState(self._folder.stand_ins / "aws.json")

    def objects(self, type_token: str) -> list[CloudObject]:
        """Return the objects of a type that exist."""
        return self.cloud().read().of_type(type_token)

    def checkpoint(self) -> Checkpoint:
        """Return the engine's state."""
        return read_checkpoint(self._folder.checkpoint(_PROJECT, self.name))

    def client(self) -> KubeClient:
        """Return a client of the control plane, which answers whatever the cloud says."""
        return KubeClient.from_kubeconfig(self.workspace.kubeconfig(self.place))

    @property
    def _folder(self) -> EngineFolder:
        return EngineFolder.of(self.place, self.workspace)

    def _run(self, program: Program, faults: Faults, command: Callable[[Rehearsal], Outcome]) -> Outcome:
        subject = Subject(
            program=program,
            project={"name": _PROJECT, "runtime": "python"},
            settings={"config": {"aws:region": "eu-west-1"}},
            packages=("aws", "kubernetes"),
        )
        stand_ins = StackStandIns(
            stack=self.name, project=_PROJECT, workspace=self.workspace, faults=faults, place=self.place
        )
        with Rehearsal.open(
            self.name,
            self.workspace,
            subject=subject,
            stand_ins=stand_ins,
            process=self.process,
            place=self.place,
        ) as rehearsal:
            return command(rehearsal)
