"""The stand-ins of one stack: its clouds' and, in front of a real API server, Kubernetes'."""

from pulumi.runtime.proto.provider_pb2_grpc import ResourceProviderServicer

from holdfast.simulator.kubernetes_provider.helm import ChartMirror
from holdfast.simulator.kubernetes_provider.provider import KubernetesProvider
from holdfast.simulator.paths import Workspace
from holdfast.simulator.pulumi.checkpoint import PendingOperation
from holdfast.simulator.pulumi.clouds import StandInClouds
from holdfast.simulator.pulumi.faults import Faults
from holdfast.simulator.pulumi.folder import EngineFolder
from holdfast.simulator.stacks.cluster_nodes import ClusterNodes
from holdfast.simulator.tools.locate import find_tool

_KUBERNETES = "kubernetes"


class StackStandIns:
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
        self.clouds = StandInClouds(
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
