"""One control plane for all tests of the Kubernetes plugin, and a stack for each."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from uuid import uuid4

import pytest

from pulumi_holdfast.rehearsal.engine import CommandOutcome, Rehearsal, Subject
from pulumi_holdfast.rehearsal.engine.faults import Faults
from pulumi_holdfast.rehearsal.engine.kubernetes_plugin import Reach
from pulumi_holdfast.rehearsal.engine.process import EngineProcess
from pulumi_holdfast.rehearsal.kubernetes import KubeClient
from pulumi_holdfast.rehearsal.paths import Workspace
from pulumi_holdfast.rehearsal.stacks.stack import StackSimulators
from tests.support.clusters.control_plane import running_control_plane

Program = Callable[[], None]


def _nothing() -> None:
    """Register no resource."""


@dataclass(frozen=True, kw_only=True)
class KubernetesStack:
    """A stack on the control plane of `local` in `workspace`; each command is a run of its own, as a user's would be."""

    name: str
    workspace: Workspace
    process: EngineProcess = field(default_factory=EngineProcess)

    def preview(self, program: Program, *, reach: Reach | None = None) -> Mapping[str, int]:
        """Return how many resources `up` would create, update and so on."""
        return _changes(self._run(program, Faults(), lambda rehearsal: rehearsal.preview(), reach))

    def up(
        self, program: Program, *, faults: Faults | None = None, reach: Reach | None = None
    ) -> Mapping[str, int]:
        """Bring the stack up and return how many resources were created, updated and so on."""
        return _changes(self._run(program, faults or Faults(), lambda rehearsal: rehearsal.up(), reach))

    def destroy(self) -> Mapping[str, int]:
        """Delete everything and return how many resources were deleted."""
        return _changes(self._run(_nothing, Faults(), lambda rehearsal: rehearsal.destroy()))

    def _run(
        self,
        program: Program,
        faults: Faults,
        command: Callable[[Rehearsal], CommandOutcome],
        reach: Reach | None = None,
    ) -> CommandOutcome:
        subject = Subject(
            program=program,
            project={"name": "test", "runtime": "python"},
            settings={"config": {}},
            packages=("kubernetes",),
        )
        providers = StackSimulators(
            stack=self.name,
            project="test",
            workspace=self.workspace,
            faults=faults,
            place="local",
            backend=self.name,
            reach=reach,
        )
        with Rehearsal.open(
            self.name, self.workspace, subject=subject, providers=providers, process=self.process
        ) as rehearsal:
            return command(rehearsal)


def _changes(outcome: CommandOutcome) -> Mapping[str, int]:
    return {operation: count for operation, count in outcome.changes.items() if operation != "same"}


@pytest.fixture(scope="package")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Generator[Workspace]:
    """A workspace of the tests' own, in which a control plane runs as that of stack `local`."""
    with running_control_plane(tmp_path_factory.mktemp("kubernetes-plugin")) as workspace:
        yield workspace


@pytest.fixture(scope="package")
def client(workspace: Workspace) -> Generator[KubeClient]:
    """A client of the control plane, on which there is one simulated node."""
    client = KubeClient.from_kubeconfig(workspace.kubeconfig("local"))
    client.apply(
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": "one", "annotations": {"kwok.x-k8s.io/node": "fake"}},
        },
        field_manager="tests",
    )
    yield client
    client.close()


@pytest.fixture
def name() -> str:
    """A name that no other test has, for the stack and for its namespace."""
    return f"team-{uuid4().hex[:8]}"


@pytest.fixture
def stack(workspace: Workspace, name: str) -> KubernetesStack:
    """A stack without resources."""
    return KubernetesStack(name=name, workspace=workspace)
