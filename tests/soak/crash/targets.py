"""The stacks on which runs are killed: one of this project on a real API server, or one on simulated clouds only."""

import shutil
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

from pulumi_holdfast.controller.kube.objects import labels_of, name_of
from pulumi_holdfast.ladder.json import Json, mapping
from pulumi_holdfast.rehearsal.api_server import NoSuchKind
from pulumi_holdfast.rehearsal.clouds.simulated_clouds import SimulatedClouds
from pulumi_holdfast.rehearsal.engine import Audience, Rehearsal, Subject
from pulumi_holdfast.rehearsal.engine.checkpoint import Checkpoint, read_checkpoint
from pulumi_holdfast.rehearsal.engine.faults import Faults
from pulumi_holdfast.rehearsal.engine.process import EngineProcess
from pulumi_holdfast.rehearsal.engine.workspace import EngineFolder
from pulumi_holdfast.rehearsal.kubernetes import KubeClient
from pulumi_holdfast.rehearsal.paths import Workspace
from pulumi_holdfast.rehearsal.stacks import Stack
from tests.soak.crash.cloud_objects import comparable

_KUBERNETES = "kubernetes:"
_RELEASE = "kubernetes:helm.sh/v3:Release"
# The label of the program's objects, and Helm's label of the revisions of a release.
_MADE_BY_THE_PROGRAM = "app.kubernetes.io/managed-by=holdfast"
_RELEASES = "owner=helm"


@dataclass(frozen=True, kw_only=True)
class StackTarget:
    """A stack, its control plane running."""

    stack: Stack

    def session(self, faults: Faults, process: EngineProcess) -> AbstractContextManager[Rehearsal]:
        """Open the stack."""
        return self.stack.session(faults, process)

    def checkpoint(self) -> Checkpoint:
        """Return the engine's state."""
        return self.stack.checkpoint()

    def objects(self, types: frozenset[str]) -> tuple[str, ...]:
        """Return a line for each object of the clouds, of the program in Kubernetes, and for each release."""
        clouds = (one for one in self.stack.simulators(Faults()).clouds.objects() if one.type in types)
        client = KubeClient.from_kubeconfig(self.stack.kubeconfig)
        try:
            kinds = sorted(one for one in types if one.startswith(_KUBERNETES) and one != _RELEASE)
            made = [line for kind in kinds for line in _objects(client, kind)]
            return (*comparable(clouds), *made, *_releases(client))
        finally:
            client.close()

    def clear(self) -> None:
        """Remove the state of the engine and of the clouds."""
        shutil.rmtree(self.stack.folder.root, ignore_errors=True)


def _objects(client: KubeClient, type_token: str) -> list[str]:
    group_version, kind = type_token.removeprefix(_KUBERNETES).rsplit(":", 1)
    api_version = group_version.removeprefix("core/")
    try:
        found = client.list(api_version, kind, label_selector=_MADE_BY_THE_PROGRAM)
    except NoSuchKind:
        # Its definition is an object of the stack too, and may be deleted.
        return []
    return sorted(f"{api_version} {kind} {_place(one)}" for one in found)


def _releases(client: KubeClient) -> list[str]:
    """Return a line for each release, without revisions: a run that takes over a release adds one."""
    secrets = client.list("v1", "Secret", label_selector=_RELEASES)
    return sorted({f"release {_namespace(one)}/{_label(one, 'name')}" for one in secrets})


def _place(one: Json) -> str:
    namespace = _namespace(one)
    name = name_of(one)
    return f"{namespace}/{name}" if namespace else name


def _namespace(one: Json) -> str:
    return str(mapping(one.get("metadata")).get("namespace", ""))


def _label(one: Json, label: str) -> str:
    return str(labels_of(one)[label])


@dataclass(frozen=True, kw_only=True)
class CloudTarget:
    """A program that uses only simulated clouds, on a stack of its own."""

    stack: str
    workspace: Workspace
    subject: Subject

    @contextmanager
    def session(
        self, faults: Faults, process: EngineProcess, audience: Audience | None = None
    ) -> Generator[Rehearsal]:
        """Open the stack."""
        with Rehearsal.open(
            self.stack,
            self.workspace,
            subject=self.subject,
            providers=self._clouds(faults),
            process=process,
            audience=audience,
        ) as rehearsal:
            yield rehearsal

    def checkpoint(self) -> Checkpoint:
        """Return the engine's state."""
        return read_checkpoint(self._folder.checkpoint(self.subject.name, self.stack))

    def objects(self, types: frozenset[str]) -> tuple[str, ...]:
        """Return a line for each object of the clouds."""
        return comparable(one for one in self._clouds(Faults()).objects() if one.type in types)

    def clear(self) -> None:
        """Remove the state of the clouds."""
        shutil.rmtree(self._folder.root, ignore_errors=True)

    @property
    def _folder(self) -> EngineFolder:
        return EngineFolder.of(self.stack, self.workspace)

    def _clouds(self, faults: Faults) -> SimulatedClouds:
        return SimulatedClouds(
            folder=self._folder.cloud_states,
            checkpoint=self._folder.checkpoint(self.subject.name, self.stack),
            faults=faults,
        )
