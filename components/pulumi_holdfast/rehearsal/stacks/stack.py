"""A stack on this machine: its program, the simulators of its providers, its control plane and its operators.

`Stack` is the entry point of the rehearsal: `environment` starts the processes, `session` runs the Pulumi engine.
"""

import time
from collections.abc import Callable, Generator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Final

import yaml
from pulumi.runtime.proto.provider_pb2_grpc import ResourceProviderServicer

from pulumi_holdfast.controller.kube.client import ApiError
from pulumi_holdfast.controller.kube.objects import name_of
from pulumi_holdfast.ladder.json import Json, JsonValue, mapping
from pulumi_holdfast.ladder.labels import TRAINING, TRAINING_VALUE
from pulumi_holdfast.rehearsal.clouds.answers import NO_ANSWERS, Answers
from pulumi_holdfast.rehearsal.clouds.simulated_clouds import SimulatedClouds
from pulumi_holdfast.rehearsal.control_plane import ControlPlane, Layout
from pulumi_holdfast.rehearsal.engine import Audience, Rehearsal, Subject
from pulumi_holdfast.rehearsal.engine.charts import ChartMirror
from pulumi_holdfast.rehearsal.engine.checkpoint import Checkpoint, PendingOperation, read_checkpoint
from pulumi_holdfast.rehearsal.engine.faults import Faults
from pulumi_holdfast.rehearsal.engine.kubernetes_plugin import (
    KubernetesPlugin,
    PluginFiles,
    Reach,
    find_created,
)
from pulumi_holdfast.rehearsal.engine.process import EngineProcess
from pulumi_holdfast.rehearsal.engine.workspace import EngineFolder
from pulumi_holdfast.rehearsal.kubernetes import KubeClient
from pulumi_holdfast.rehearsal.operator_runner import OperatorRunner
from pulumi_holdfast.rehearsal.paths import Workspace
from pulumi_holdfast.rehearsal.stacks.cluster_nodes import ClusterNodes
from pulumi_holdfast.rehearsal.tools.locate import find_tool

_KUBERNETES = "kubernetes"


class StackSimulators:
    """Provides every provider of a stack: simulated clouds, and the real plugin of Kubernetes.

    The engine stores the state under the name of the `project`; `faults` are injected into them; `place` is the
    folder of the stack, by default its name, and `backend` that of the engine's state, by default the same; `reach` decides
    which API servers are reachable, by default those of the simulated clouds; `answers` precede the functions of the clouds;
    `charts` is the folder of charts, by default that of the tools. Kubernetes objects and the machines of node
    groups go to the control plane of the stack.
    """

    def __init__(
        self,
        *,
        stack: str,
        project: str,
        workspace: Workspace,
        faults: Faults,
        place: str | None = None,
        backend: str | None = None,
        reach: Reach | None = None,
        answers: Answers = NO_ANSWERS,
        charts: Path | None = None,
    ) -> None:
        place = place or stack
        self._kubeconfig = workspace.kubeconfig(place)
        self._log = workspace.logs_dir(place) / "kubernetes-plugin.log"
        self._workspace = workspace
        self._faults = faults
        self.clouds = SimulatedClouds(
            folder=EngineFolder.of(place, workspace).cloud_states,
            checkpoint=EngineFolder.of(backend or place, workspace).checkpoint(project, stack),
            faults=faults,
            nodes=lambda package: ClusterNodes(self._kubeconfig, package),
            answers=answers,
        )
        self._charts = charts or workspace.charts_dir
        self._reach = reach or self.clouds.refuse_connection

    def provider(self, package: str) -> ResourceProviderServicer:
        """Return the provider of a package. Raises RehearsalError if the plugin of Kubernetes is not built."""
        if package != _KUBERNETES:
            return self.clouds.provider(package)
        files = PluginFiles(
            program=find_tool("pulumi-resource-kubernetes", self._workspace),
            kubeconfig=self._kubeconfig,
            folder=self._workspace.project_root,
            log=self._log,
        )
        charts = ChartMirror(self._charts)
        return KubernetesPlugin(files, charts, self._faults, reach=self._reach)

    def made(self, operation: PendingOperation) -> str | None:
        """Return the id of the object that an interrupted create made, None if it made none."""
        if operation.type.partition(":")[0] == _KUBERNETES:
            return find_created(operation, self._kubeconfig)
        return self.clouds.made(operation)


_FIELD_MANAGER: Final = "holdfast-cloud"


@dataclass(frozen=True, kw_only=True)
class ApiServerProfile:
    """The additional flags and objects of a cloud's API servers; `objects` is a file in this folder.

    A flag may contain `{issuer}` and `{authentication}`, which are those of a control plane's layout.
    """

    arguments: tuple[tuple[str, str], ...] = ()
    objects: str = ""

    def arguments_of(self, layout: Layout) -> tuple[tuple[str, str], ...]:
        """Return the flags of one control plane."""
        return tuple(
            (flag, value.format(issuer=layout.issuer, authentication=layout.authentication))
            for flag, value in self.arguments
        )

    def apply_to(self, kubeconfig: Path) -> None:
        """Apply the objects to a cluster."""
        if not self.objects:
            return
        text = files("pulumi_holdfast.rehearsal.stacks").joinpath(self.objects).read_text(encoding="utf-8")
        documents: list[JsonValue] = list(yaml.safe_load_all(text))
        with closing(KubeClient.from_kubeconfig(kubeconfig)) as client:
            for document in documents:
                client.apply(mapping(document), field_manager=_FIELD_MANAGER, force=True)


# An EKS cluster has an issuer of its own, and may trust another one beside it. The API servers of GKE add a toleration for
# the GPU taint to pods that request GPUs; other plugins are not documented.
_CLOUDS: Final[Mapping[str, ApiServerProfile]] = {
    "aws": ApiServerProfile(
        arguments=(
            ("service-account-issuer", "{issuer}"),
            ("external-hostname", "127.0.0.1"),
            ("authentication-config", "{authentication}"),
        ),
        objects="eks_objects.yaml",
    ),
    "gcp": ApiServerProfile(
        arguments=(("enable-admission-plugins", "ExtendedResourceToleration"),), objects="gke_objects.yaml"
    ),
    "local": ApiServerProfile(objects="local_objects.yaml"),
}


def api_server_profile(cloud: str) -> ApiServerProfile:
    """Return the profile of the API servers of a cloud; an empty profile for an unknown cloud."""
    return _CLOUDS.get(cloud, ApiServerProfile())


class StackEnvironment:
    """The control plane of a stack and its operator runner; `start` starts both.

    `report` receives one line for each step; `cloud` selects the API server profile.
    """

    def __init__(
        self, *, stack: str, workspace: Workspace, report: Callable[[str], None], cloud: str = ""
    ) -> None:
        self._stack = stack
        self._profile = api_server_profile(cloud)
        arguments = self._profile.arguments_of(Layout.of(stack, workspace))
        self._control_plane = ControlPlane(stack, workspace, report=report, arguments=arguments)
        self._operators = OperatorRunner(workspace, stack, report=report)
        self._report = report

    def start(self) -> None:
        """Start both; does nothing for a healthy process."""
        if not self._control_plane.healthy():
            self._report(f"Starting the control plane of {self._stack}.")
        self._start_control_plane()
        self._operators.start()

    def _start_control_plane(self) -> None:
        self._profile.apply_to(self._control_plane.start())

    def wait_until_jobs_are_admitted(self, kubeconfig: Path) -> None:
        """Wait until the API server checks JobSets in a training namespace; does nothing on a platform without both.

        A started API server knows the ladders, which are the parameters of its admission, only after some 20 s, and
        refuses every job until then.
        """
        with closing(KubeClient.from_kubeconfig(kubeconfig)) as client:
            namespaces = client.list("v1", "Namespace", label_selector=f"{TRAINING}={TRAINING_VALUE}")
            deadline = time.monotonic() + _ADMITTED_SECONDS
            while namespaces and time.monotonic() < deadline:
                try:
                    client.create(_probe(name_of(namespaces[0])), dry_run=True)
                except ApiError as error:
                    if _NO_PARAMETERS in error.message:
                        time.sleep(1)
                        continue
                return

    def remove(self) -> None:
        """End every process and remove the data of the API server. Does nothing if there is none."""
        self._operators.stop()
        self._control_plane.delete()

    def answers(self) -> bool:
        """Whether the control plane runs and its API server is ready."""
        return self._control_plane.healthy()

    @contextmanager
    def lent(self) -> Generator[None]:
        """Provide a control plane during the block; remove it afterwards if it did not exist before."""
        was_there = self.answers()
        try:
            if not was_there:
                self._report(f"Starting a control plane for {self._stack}.")
                self._start_control_plane()
            yield
        finally:
            if not was_there:
                self._control_plane.delete()


_ADMITTED_SECONDS: Final = 60
# What the API server answers until it knows the kind of a policy's parameters.
_NO_PARAMETERS: Final = "failed to find resource referenced by paramKind"


def _probe(namespace: str) -> Json:
    """A JobSet that is tried only: whether it is a valid one does not matter."""
    metadata: Json = {"name": "probe", "namespace": namespace}
    return {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": metadata, "spec": {}}


@dataclass(frozen=True, kw_only=True)
class Stack:
    """A stack by its name, with its files in the folder `place`.

    `backend` is the folder of the engine's state, by default `place`: stacks that refer to each other share one.
    `audience` receives the events of the engine; `reach` decides which API servers are reachable, by default those of
    the simulated clouds. `answers` and `charts` are those of StackSimulators.
    """

    name: str
    place: str
    workspace: Workspace
    subject: Subject
    environment: StackEnvironment
    audience: Audience = field(default_factory=Audience)
    reach: Reach | None = None
    backend: str | None = None
    answers: Answers = NO_ANSWERS
    charts: Path | None = None

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
        """Return the stack with this name; `run_as` isolates it from the stack that is in use.

        An isolated stack has its own folder and control plane; its resources have the same names. Raises ConfigError or
        RehearsalError before anything starts.
        """
        subject = Subject.holdfast(name, workspace)
        environment = StackEnvironment(
            stack=run_as or name, workspace=workspace, report=report, cloud=subject.cloud
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
        """Open the stack on its simulators with injected `faults`; `process` observes the process of the engine."""
        with Rehearsal.open(
            self.name,
            self.workspace,
            subject=self.subject,
            providers=self.simulators(faults or Faults()),
            audience=self.audience,
            process=process,
            place=self.backend or self.place,
        ) as rehearsal:
            yield rehearsal

    def simulators(self, faults: Faults) -> StackSimulators:
        """Return the simulators of the stack's providers."""
        return StackSimulators(
            stack=self.name,
            project=self.subject.name,
            workspace=self.workspace,
            faults=faults,
            place=self.place,
            backend=self.backend,
            reach=self.reach,
            answers=self.answers,
            charts=self.charts,
        )

    @property
    def folder(self) -> EngineFolder:
        """The folder of the engine's state."""
        return EngineFolder.of(self.backend or self.place, self.workspace)

    @property
    def kubeconfig(self) -> Path:
        """The kubeconfig of the control plane."""
        return self.workspace.kubeconfig(self.place)

    def checkpoint(self) -> Checkpoint:
        """Return the state of the engine."""
        return read_checkpoint(self.folder.checkpoint(self.subject.name, self.name))

    def holds_resources(self) -> bool:
        """Whether the engine has created resources of this stack, or has pending operations."""
        checkpoint = self.checkpoint()
        return bool(checkpoint.resources or checkpoint.pending)
