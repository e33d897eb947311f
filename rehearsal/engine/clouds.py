"""The stand-ins of a stack's clouds: each keeps what it made in a file."""

from pathlib import Path

from pulumi.runtime.proto.provider_pb2_grpc import ResourceProviderServicer

from rehearsal.engine.checkpoint import PendingOperation, read_checkpoint
from rehearsal.providers.cloud import CloudProvider
from rehearsal.providers.cloud.state import CloudObject, CloudState
from rehearsal.providers.faults import Faults


class StandInClouds:
    """Stand-ins for cloud providers, one a package.

    Arguments: `folder`, where they keep their objects; `checkpoint`, the engine's state of the stack; `faults`,
    what they shall suffer.
    """

    def __init__(self, *, folder: Path, checkpoint: Path, faults: Faults) -> None:
        self._folder = folder
        self._checkpoint = checkpoint
        self._faults = faults

    def provider(self, package: str) -> ResourceProviderServicer:
        """Return the stand-in of a package."""
        return CloudProvider(package, self._file(package), self._faults)

    def made(self, operation: PendingOperation) -> str | None:
        """Return the id of the object an interrupted create did make: one of its URN the engine does not know.

        The engine does know one of the same URN while it replaces it.
        """
        known = {(entry.urn, entry.id) for entry in read_checkpoint(self._checkpoint).resources}
        package = operation.type.partition(":")[0]
        for one in CloudState(self._file(package)).read().all():
            if one.urn == operation.urn and (one.urn, one.id) not in known:
                return one.id
        return None

    def objects(self) -> list[CloudObject]:
        """Return everything that exists."""
        files = sorted(self._folder.glob("*.json"))
        return [one for file in files for one in CloudState(file).read().all()]

    def _file(self, package: str) -> Path:
        return self._folder / f"{package}.json"
