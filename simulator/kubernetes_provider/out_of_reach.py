"""Resources of a cluster that cannot be called: planned as they are, refused in the plugin's words."""

# ruff: noqa: ARG002 - the parameters are those of Resources

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pulumi.runtime.proto import provider_pb2

from holdfast.scheduling.json import Json
from holdfast.simulator.errors import RehearsalError
from holdfast.simulator.kubernetes_provider.inputs import Naming
from holdfast.simulator.kubernetes_provider.operation import GONE, Operation, Outcome, Resources
from holdfast.simulator.kubernetes_provider.tokens import RELEASE
from holdfast.simulator.pulumi.values import Properties

DELETE_UNREACHABLE = "PULUMI_K8S_DELETE_UNREACHABLE"
_WAY_OUT = (
    "If the cluster was deleted, the resource can be removed from the state by running again with the environment "
    f'variable {DELETE_UNREACHABLE} set to "true"'
)


class ClusterUnreachableError(RehearsalError):
    """The API server cannot be called: it is not there, or does not know the caller."""


@dataclass(frozen=True, kw_only=True)
class OutOfReach:
    """Stands before `resources` for as long as their cluster cannot be called; `reason` is why.

    `configuration` is the provider's: it may tell to drop from the state what is out of reach, as a variable of
    `environment` may.
    """

    resources: Resources
    reason: str
    configuration: Json
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)

    def check(self, operation: Operation, news: Properties, olds: Properties, naming: Naming) -> Properties:
        """Return the inputs, complete."""
        return self.resources.check(operation, news, olds, naming)

    def diff(
        self, operation: Operation, outputs: Properties, old: Properties, new: Properties
    ) -> provider_pb2.DiffResponse:
        """Compare the inputs applied last with new ones."""
        return self.resources.diff(operation, outputs, old, new)

    def plan_create(self, operation: Operation, inputs: Properties) -> Properties:
        """Return the inputs: nobody can say more."""
        return inputs

    def plan_update(self, operation: Operation, inputs: Properties, outputs: Properties) -> Properties:
        """Return the inputs: nobody can say more."""
        return inputs

    def create(self, operation: Operation, inputs: Properties) -> Outcome:
        """Raise ClusterUnreachableError."""
        raise self._refusal(operation, "create")

    def read(
        self,
        operation: Operation,
        resource_id: str,
        outputs: Properties,
        inputs: Properties,
    ) -> Outcome:
        """Raise ClusterUnreachableError, unless told that what is out of reach is gone."""
        if self._is_dropped():
            return GONE
        raise ClusterUnreachableError(
            f"failed to read resource state due to unreachable cluster: {self.reason}. {_WAY_OUT}"
        )

    def update(
        self,
        operation: Operation,
        resource_id: str,
        inputs: Properties,
        outputs: Properties,
        ignored: Sequence[str],
    ) -> Outcome:
        """Raise ClusterUnreachableError."""
        raise self._refusal(operation, "update")

    def remove(self, operation: Operation, resource_id: str, outputs: Properties) -> None:
        """Raise ClusterUnreachableError, unless told that what is out of reach is gone; a release never is."""
        if operation.token == RELEASE or not self._is_dropped():
            raise self._refusal(operation, "delete")

    def made(self, operation: Operation, inputs: Properties) -> str | None:
        """Return the id of what an interrupted create did make, None if it made nothing."""
        return self.resources.made(operation, inputs)

    def _refusal(self, operation: Operation, verb: str) -> ClusterUnreachableError:
        if operation.token == RELEASE:
            return ClusterUnreachableError(
                f"can't {verb} Helm Release with unreachable cluster: {self.reason}"
            )
        way_out = f". {_WAY_OUT}" if verb == "delete" else ""
        return ClusterUnreachableError(
            f"configured Kubernetes cluster is unreachable: {self.reason}{way_out}"
        )

    def _is_dropped(self) -> bool:
        told = self.configuration.get("deleteUnreachable", self.environment.get(DELETE_UNREACHABLE, ""))
        return str(told).lower() == "true"
