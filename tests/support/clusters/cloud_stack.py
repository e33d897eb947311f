"""A stack of a test program: its cloud is simulated, its Kubernetes objects are on a real control plane."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.rehearsal.clouds.state import CloudObject, CloudState
from pulumi_holdfast.rehearsal.engine import CommandOutcome, Rehearsal, Subject
from pulumi_holdfast.rehearsal.engine.checkpoint import Checkpoint, read_checkpoint
from pulumi_holdfast.rehearsal.engine.faults import Faults
from pulumi_holdfast.rehearsal.engine.process import EngineProcess
from pulumi_holdfast.rehearsal.engine.workspace import EngineFolder
from pulumi_holdfast.rehearsal.kubernetes import KubeClient
from pulumi_holdfast.rehearsal.paths import Workspace
from pulumi_holdfast.rehearsal.stacks.stack import StackSimulators
from tests.support.command_line import Program, StackCommands

_PROJECT = "clouds"
_SETTINGS: Mapping[str, Json] = {
    "aws": {"aws:region": "eu-west-1"},
    "gcp": {"gcp:project": "team-ml", "gcp:region": "europe-west4"},
}


@dataclass(frozen=True, kw_only=True)
class CloudStack(StackCommands):
    """A stack kept in the folder `place`, whose control plane runs; `package` is its cloud's."""

    name: str
    place: str
    workspace: Workspace
    package: str = "aws"
    process: EngineProcess = field(default_factory=EngineProcess)

    def cloud(self) -> CloudState:
        """Return the stack's cloud, to look at or to change as its console would."""
        return CloudState(self._folder.cloud_states / f"{self.package}.json")

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

    def _run(
        self, program: Program, faults: Faults, command: Callable[[Rehearsal], CommandOutcome]
    ) -> CommandOutcome:
        subject = Subject(
            program=program,
            project={"name": _PROJECT, "runtime": "python"},
            settings={"config": _SETTINGS[self.package]},
            packages=(self.package, "kubernetes"),
        )
        providers = StackSimulators(
            stack=self.name, project=_PROJECT, workspace=self.workspace, faults=faults, place=self.place
        )
        with Rehearsal.open(
            self.name,
            self.workspace,
            subject=subject,
            providers=providers,
            process=self.process,
            place=self.place,
        ) as rehearsal:
            return command(rehearsal)
