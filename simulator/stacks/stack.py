"""A stack of this project: its program, its stand-ins, and what is around it."""

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Final

import yaml

from holdfast.simulator.control_plane import ControlPlane
from holdfast.simulator.kubernetes_client.client import KubeClient
from holdfast.simulator.kubernetes_client.objects import mapping
from holdfast.simulator.operator_runner import OperatorRunner
from holdfast.simulator.paths import Workspace
from holdfast.simulator.pulumi import Audience, Rehearsal, Subject
from holdfast.simulator.pulumi.checkpoint import Checkpoint, read_checkpoint
from holdfast.simulator.pulumi.faults import Faults
from holdfast.simulator.pulumi.process import EngineProcess
from holdfast.simulator.pulumi.workspace import EngineFolder

if TYPE_CHECKING:
    from holdfast.scheduling.json import JsonValue
from pulumi.runtime.proto.provider_pb2_grpc import ResourceProviderServicer

from holdfast.simulator.clouds.simulated_clouds import SimulatedClouds
from holdfast.simulator.kubernetes_provider.helm import ChartMirror
from holdfast.simulator.kubernetes_provider.provider import KubernetesProvider
from holdfast.simulator.pulumi.checkpoint import PendingOperation
from holdfast.simulator.stacks.cluster_nodes import ClusterNodes
from holdfast.simulator.tools.locate import find_tool

_KUBERNETES = "kubernetes"


class StackSimulators:
    """Plays every provider of a stack.

    Arguments: `project`, the project's name, under which the engine keeps the stack's state; `faults`, what
    the stand-ins shall suffer; `place`, the folder the stack is kept in, by default that of its name. Kubernetes
    objects, and the machines of node groups, go to the API server of the stack's own control plane.
    """

    def __init__(
        self, *, stack: str, project: str, workspace: Workspace, faults: Faults, place: str | None = None
    ) -> None:
        folder = EngineFolder.of(place or stack, workspace)
        self._kubeconfig = workspace.kubeconfig(place or stack)
        self._workspace = workspace
        self._faults = faults
        self.clouds = SimulatedClouds(
            folder=folder.stand_ins,
            checkpoint=folder.checkpoint(project, stack),
            faults=faults,
            nodes=lambda package: ClusterNodes(self._kubeconfig, package),
        )

    def provider(self, package: str) -> ResourceProviderServicer:
        """Return the stand-in of a package. Raises RehearsalError where helm is missing."""
        return self._kubernetes() if package == _KUBERNETES else self.clouds.provider(package)

    def made(self, operation: PendingOperation) -> str | None:
        """Return the id of the object an interrupted create did make, None where it made nothing."""
        if operation.type.partition(":")[0] == _KUBERNETES:
            return self._kubernetes().made(operation.urn, operation.type, operation.inputs)
        return self.clouds.made(operation)

    def _kubernetes(self) -> KubernetesProvider:
        return KubernetesProvider(
            self._kubeconfig,
            find_tool("helm", self._workspace),
            ChartMirror(self._workspace.charts_dir, base=self._workspace.project_root),
            self._faults,
            reach=self.clouds.refuse_connection,
        )


_FIELD_MANAGER: Final = "holdfast-cloud"


@dataclass(frozen=True, kw_only=True)
class ApiServerProfile:
    """What an API server has beside Kubernetes' own: admission plugins, and objects, in a file beside this module."""

    admission_plugins: tuple[str, ...] = ()
    objects: str = ""

    def put_into(self, kubeconfig: Path) -> None:
        """Have the objects in a cluster. Harmless when they are."""
        if not self.objects:
            return
        text = files("holdfast.simulator.stacks").joinpath(self.objects).read_text(encoding="utf-8")
        documents: list[JsonValue] = list(yaml.safe_load_all(text))
        client = KubeClient.from_kubeconfig(kubeconfig)
        try:
            for document in documents:
                client.apply(mapping(document), field_manager=_FIELD_MANAGER, force=True)
        finally:
            client.close()


# GKE's API servers let pods that ask for GPUs tolerate the taint it puts on machines with GPUs; which other plugins they
# have on is not told.
_CLOUDS: Final[Mapping[str, ApiServerProfile]] = {
    "gcp": ApiServerProfile(admission_plugins=("ExtendedResourceToleration",), objects="gke_objects.yaml")
}


def api_server_profile(cloud: str) -> ApiServerProfile:
    """Return what the API servers of a cloud have of their own; nothing for one of which nothing is known."""
    return _CLOUDS.get(cloud, ApiServerProfile())


class StackEnvironment:
    """The control plane of a stack, and the host of its operators.

    `report` is told, a line at a time, what is being done; `cloud` is whose API server it is to be like. Nothing is
    started before it is asked for.
    """

    def __init__(
        self, *, stack: str, workspace: Workspace, report: Callable[[str], None], cloud: str = ""
    ) -> None:
        self._stack = stack
        self._likeness = api_server_profile(cloud)
        self._control_plane = ControlPlane(
            stack, workspace, report=report, admission_plugins=self._likeness.admission_plugins
        )
        self._host = OperatorRunner(workspace, stack, report=report)
        self._report = report

    def start(self) -> None:
        """Bring both up; what is up is left as it is."""
        if not self._control_plane.healthy():
            self._report(f"Starting the control plane of {self._stack}.")
        self._start_control_plane()
        self._host.start()

    def _start_control_plane(self) -> None:
        self._likeness.put_into(self._control_plane.start())

    def remove(self) -> None:
        """End every process and drop what the API server held. Harmless when nothing is there."""
        self._host.stop()
        self._control_plane.delete()

    def answers(self) -> bool:
        """Whether the control plane runs and its API server answers."""
        return self._control_plane.healthy()

    @contextmanager
    def lent(self) -> Generator[None]:
        """Have a control plane for the length of the block; one that was not there is removed again."""
        was_there = self.answers()
        try:
            if not was_there:
                self._report(f"Starting a control plane for {self._stack}.")
                self._start_control_plane()
            yield
        finally:
            if not was_there:
                self._control_plane.delete()


@dataclass(frozen=True, kw_only=True)
class Stack:
    """A stack under its name, its files in the folder `place`; `audience` watches the engine."""

    name: str
    place: str
    workspace: Workspace
    subject: Subject
    environment: StackEnvironment
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
        environment = StackEnvironment(
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
            environment=environment,
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
            stand_ins=self.simulators(faults or Faults()),
            audience=self.audience,
            process=process,
            place=self.place,
        ) as rehearsal:
            yield rehearsal

    def simulators(self, faults: Faults) -> StackSimulators:
        """Return what plays the stack's providers."""
        return StackSimulators(
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
