"""A stack of a test's own program on the real engine, its objects on a real control plane."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from holdfast.simulator.kubernetes_provider import ChartMirror, KubernetesProvider
from holdfast.simulator.paths import Workspace
from holdfast.simulator.pulumi import Outcome, Rehearsal, Subject
from holdfast.simulator.pulumi.checkpoint import PendingOperation
from holdfast.simulator.pulumi.faults import Faults
from holdfast.simulator.pulumi.folder import EngineFolder
from holdfast.simulator.pulumi.process import EngineProcess

TOOLS = Path(__file__).resolve().parents[2] / ".tools" / "bin"
Program = Callable[[], None]


def _nothing() -> None:
    """Register no resource."""


@dataclass(frozen=True, kw_only=True)
class KubernetesStandIn:
    """Plays the one provider of a stack on the control plane of a kubeconfig."""

    kubeconfig: Path
    faults: Faults

    def provider(self, package: str) -> KubernetesProvider:
        """Return the stand-in."""
        assert package == "kubernetes", "the stack has no other provider"
        charts = ChartMirror(TOOLS.parent / "charts")
        return KubernetesProvider(self.kubeconfig, TOOLS / "helm", charts, self.faults)

    def made(self, operation: PendingOperation) -> str | None:
        """Return the id of the object an interrupted create did make."""
        return self.provider("kubernetes").made(operation.urn, operation.type, operation.inputs)


@dataclass(frozen=True, kw_only=True)
class KubernetesStack:
    """A stack whose state is in `workspace`; each command is a run of its own, as a user's would be."""

    name: str
    workspace: Workspace
    kubeconfig: Path
    process: EngineProcess = field(default_factory=EngineProcess)

    def preview(self, program: Program) -> Mapping[str, int]:
        """Return how many resources `up` would create, update and so on."""
        return _changes(self._run(program, Faults(), lambda rehearsal: rehearsal.preview()))

    def up(self, program: Program, *, faults: Faults | None = None) -> Mapping[str, int]:
        """Bring the stack up and return how many resources were created, updated and so on."""
        return _changes(self._run(program, faults or Faults(), lambda rehearsal: rehearsal.up()))

    def refresh(self) -> Mapping[str, int]:
        """Read everything back and return how many resources had changed."""
        return _changes(self._run(_nothing, Faults(), lambda rehearsal: rehearsal.refresh()))

    def destroy(self) -> Mapping[str, int]:
        """Delete everything and return how many resources were deleted."""
        return _changes(self._run(_nothing, Faults(), lambda rehearsal: rehearsal.destroy()))

    def state(self) -> str:
        """Return the stack's state as it is on disk."""
        return EngineFolder.of(self.name, self.workspace).checkpoint("test", self.name).read_text()

    def _run(self, program: Program, faults: Faults, command: Callable[[Rehearsal], Outcome]) -> Outcome:
        subject = Subject(
            program=program,
            project={"name": "test", "runtime": "python"},
            settings={"config": {}},
            packages=("kubernetes",),
        )
        stand_ins = KubernetesStandIn(kubeconfig=self.kubeconfig, faults=faults)
        with Rehearsal.open(
            self.name, self.workspace, subject=subject, stand_ins=stand_ins, process=self.process
        ) as rehearsal:
            return command(rehearsal)


def _changes(outcome: Outcome) -> Mapping[str, int]:
    return {operation: count for operation, count in outcome.changes.items() if operation != "same"}
