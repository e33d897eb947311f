"""The stand-ins of a stack's clouds: each keeps what it made in a file."""

from collections.abc import Callable
from pathlib import Path

from pulumi.runtime.proto.provider_pb2_grpc import ResourceProviderServicer

from holdfast.simulator.clouds import CloudProvider
from holdfast.simulator.clouds.catalogue import ConnectionAttempt, catalogue_of, package_of_command
from holdfast.simulator.clouds.machines import Nodes, NoNodes
from holdfast.simulator.clouds.state import CloudObject, CloudState
from holdfast.simulator.pulumi.checkpoint import PendingOperation, read_checkpoint
from holdfast.simulator.pulumi.faults import Faults
from holdfast.simulator.pulumi.kubeconfig import Connection


def no_nodes(_: str) -> Nodes:
    """Return nowhere: the machines of this package's node groups join no cluster."""
    return NoNodes()


class SimulatedClouds:
    """Stand-ins for cloud providers, one a package.

    Arguments: `folder`, where they keep their objects; `checkpoint`, the engine's state of the stack; `faults`,
    what they shall suffer; `nodes`, where the machines of a package's node groups go.
    """

    def __init__(
        self, *, folder: Path, checkpoint: Path, faults: Faults, nodes: Callable[[str], Nodes] = no_nodes
    ) -> None:
        self._folder = folder
        self._checkpoint = checkpoint
        self._faults = faults
        self._nodes = nodes

    def provider(self, package: str) -> ResourceProviderServicer:
        """Return the stand-in of a package."""
        return CloudProvider(package, self._file(package), self._faults, nodes=self._nodes(package))

    def state(self, package: str) -> CloudState:
        """Return what exists in the cloud of a package."""
        return CloudState(self._file(package))

    def made(self, operation: PendingOperation) -> str | None:
        """Return the id of the object an interrupted create did make: one of its URN the engine does not know.

        The engine does know one of the same URN while it replaces it.
        """
        known = {(entry.urn, entry.id) for entry in read_checkpoint(self._checkpoint).resources}
        package = operation.type.partition(":")[0]
        for one in self.state(package).read().all():
            if one.urn == operation.urn and (one.urn, one.id) not in known:
                return one.id
        return None

    def refuse_connection(self, connection: Connection) -> str | None:
        """Return why an API server cannot be called, in a client's words; None where it can, or is no cloud's."""
        package = package_of_command(connection.command)
        if package is None:
            return None
        inventory = self.state(package).read()
        return catalogue_of(package).refuse_connection(
            ConnectionAttempt(connection=connection, inventory=inventory)
        )

    def remarks(self) -> list[str]:
        """Return what a rehearsal cannot show of what exists."""
        return [
            remark
            for file in sorted(self._folder.glob("*.json"))
            for remark in catalogue_of(file.stem).remarks(CloudState(file).read())
        ]

    def objects(self) -> list[CloudObject]:
        """Return everything that exists."""
        files = sorted(self._folder.glob("*.json"))
        return [one for file in files for one in CloudState(file).read().all()]

    def _file(self, package: str) -> Path:
        return self._folder / f"{package}.json"
