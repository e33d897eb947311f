"""The simulated clouds of a stack, one for each package, with one state file each."""

from collections.abc import Callable
from pathlib import Path

from pulumi.runtime.proto.provider_pb2_grpc import ResourceProviderServicer

from pulumi_holdfast.rehearsal.clouds import CloudProvider
from pulumi_holdfast.rehearsal.clouds.answers import NO_ANSWERS, Answers
from pulumi_holdfast.rehearsal.clouds.catalogue import ConnectionAttempt, catalogue_of, package_of_command
from pulumi_holdfast.rehearsal.clouds.machines import Nodes, NoNodes
from pulumi_holdfast.rehearsal.clouds.state import CloudObject, CloudState
from pulumi_holdfast.rehearsal.engine.checkpoint import PendingOperation, read_checkpoint
from pulumi_holdfast.rehearsal.engine.faults import Faults
from pulumi_holdfast.rehearsal.engine.kubeconfig import KubeconfigContext


def no_nodes(_: str) -> Nodes:
    """Return no cluster for the machines of a package."""
    return NoNodes()


class SimulatedClouds:
    """The simulated clouds of a stack.

    `folder` contains the state files; `checkpoint` is the stack's; `faults` are injected; `nodes` returns the cluster
    of the machines of a package's node groups; `answers` precede the functions of the clouds.
    """

    def __init__(
        self,
        *,
        folder: Path,
        checkpoint: Path,
        faults: Faults,
        nodes: Callable[[str], Nodes] = no_nodes,
        answers: Answers = NO_ANSWERS,
    ) -> None:
        self._folder = folder
        self._checkpoint = checkpoint
        self._faults = faults
        self._nodes = nodes
        self._answers = answers

    def provider(self, package: str) -> ResourceProviderServicer:
        """Return the simulated provider of a package."""
        return CloudProvider(
            package, self._file(package), self._faults, nodes=self._nodes(package), answers=self._answers
        )

    def state(self, package: str) -> CloudState:
        """Return the state of a package's cloud."""
        return CloudState(self._file(package))

    def made(self, operation: PendingOperation) -> str | None:
        """Return the id of the object that an interrupted create left: one with its URN that is not in the checkpoint.

        During a replacement the checkpoint contains another object with the URN.
        """
        known = {(entry.urn, entry.id) for entry in read_checkpoint(self._checkpoint).resources}
        package = operation.type.partition(":")[0]
        for one in self.state(package).read().all():
            if one.urn == operation.urn and (one.urn, one.id) not in known:
                return one.id
        return None

    def refuse_connection(self, connection: KubeconfigContext) -> str | None:
        """Return the client's error for an unreachable API server; None for a reachable or unknown one."""
        package = package_of_command(connection.command)
        if package is None:
            return None
        inventory = self.state(package).read()
        return catalogue_of(package).refuse_connection(
            ConnectionAttempt(connection=connection, inventory=inventory)
        )

    def remarks(self) -> list[str]:
        """Return the limits of the simulation for the existing objects."""
        return [
            remark
            for file in sorted(self._folder.glob("*.json"))
            for remark in catalogue_of(file.stem).remarks(CloudState(file).read())
        ]

    def objects(self) -> list[CloudObject]:
        """Return all objects of all clouds."""
        files = sorted(self._folder.glob("*.json"))
        return [one for file in files for one in CloudState(file).read().all()]

    def _file(self, package: str) -> Path:
        return self._folder / f"{package}.json"
