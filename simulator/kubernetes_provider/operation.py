"""What every operation on a resource has at hand, and what it answers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from pulumi.runtime.proto import provider_pb2

from holdfast.scheduling.json import Json
from holdfast.simulator.kubernetes_client.client import KubeClient
from holdfast.simulator.kubernetes_client.errors import Cancellation
from holdfast.simulator.kubernetes_client.objects import mapping
from holdfast.simulator.kubernetes_provider.inputs import Naming
from holdfast.simulator.kubernetes_provider.settings import Settings
from holdfast.simulator.pulumi.values import Properties


@dataclass(frozen=True, kw_only=True)
class Operation:
    """One call of the engine about one resource.

    `client` and `cancellation` end with the call. `custom_timeout` is in seconds, 0 where none is set.
    `has_predecessor`: the engine knows the resource already, so its create replaces what there is.
    """

    urn: str
    token: str
    client: KubeClient
    cancellation: Cancellation
    settings: Settings
    preview: bool = False
    has_predecessor: bool = False
    custom_timeout: float = 0.0

    @property
    def name(self) -> str:
        """The resource's logical name."""
        return self.urn.rsplit("::", 1)[-1]


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """A resource as it is now: its id (empty when there is none, or on preview), outputs and inputs."""

    id: str = ""
    outputs: Properties
    inputs: Properties


GONE = Outcome(outputs={}, inputs={})


class Resources(Protocol):
    """What the engine can ask of resources of one sort. Each raises RehearsalError with the fix."""

    def check(self, operation: Operation, news: Properties, olds: Properties, naming: Naming) -> Properties:
        """Return the inputs, complete."""
        ...

    def diff(
        self, operation: Operation, outputs: Properties, old: Properties, new: Properties
    ) -> provider_pb2.DiffResponse:
        """Compare the inputs applied last with new ones."""
        ...

    def plan_create(self, operation: Operation, inputs: Properties) -> Properties:
        """Return the outputs that a create would give, as far as known."""
        ...

    def plan_update(self, operation: Operation, inputs: Properties, outputs: Properties) -> Properties:
        """Return the outputs that an update would give, as far as known."""
        ...

    def create(self, operation: Operation, inputs: Properties) -> Outcome:
        """Make it, and wait until it works."""
        ...

    def read(
        self, operation: Operation, resource_id: str, outputs: Properties, inputs: Properties
    ) -> Outcome:
        """Return it as it is now; GONE when it is not there."""
        ...

    def update(
        self,
        operation: Operation,
        resource_id: str,
        inputs: Properties,
        outputs: Properties,
        ignored: Sequence[str],
    ) -> Outcome:
        """Bring it up to new inputs, and wait until it works."""
        ...

    def remove(self, operation: Operation, resource_id: str, outputs: Properties) -> None:
        """Delete it, and wait until it is gone."""
        ...

    def made(self, operation: Operation, inputs: Properties) -> str | None:
        """Return the id of what an interrupted create did make, None if it made nothing."""
        ...


def object_id(obj: Json) -> str:
    """Return `namespace/name`, or `name` for an object of the cluster's scope."""
    metadata = mapping(obj.get("metadata"))
    namespace, name = metadata.get("namespace"), str(metadata["name"])
    return f"{namespace}/{name}" if namespace else name


def place_of(resource_id: str) -> tuple[str | None, str]:
    """Return the namespace (None: cluster scope) and name in an id."""
    namespace, _, name = resource_id.rpartition("/")
    return namespace or None, name
