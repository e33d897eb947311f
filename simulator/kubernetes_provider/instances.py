"""The configuration of provider instances, and resources whose cluster is unreachable.

`Instances` checks and compares the configuration; `UnreachableResources` refuses operations like the real provider.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import TypeAlias

import grpc
from pulumi.runtime.proto import provider_pb2

from holdfast.scheduling.json import Json
from holdfast.simulator.errors import RehearsalError
from holdfast.simulator.kubernetes_provider.operation import (
    GONE,
    RELEASE,
    Naming,
    Operation,
    ResourceOperations,
    ResourceState,
    unsupported_settings,
)
from holdfast.simulator.pulumi.diff import PropertyChange, changes, diff_response
from holdfast.simulator.pulumi.kubeconfig import KubeconfigContext, read_connection
from holdfast.simulator.pulumi.plugin import Plugin
from holdfast.simulator.pulumi.values import Properties, from_struct, has_unknown, reveal

# ruff: noqa: N802, ARG002 - the protocols define names and parameters of the methods


#: Returns the client error for an unreachable API server, None for a reachable one.
Reach: TypeAlias = Callable[[KubeconfigContext], str | None]

# A change of these settings can select another cluster.
_CLUSTER_SETTINGS = ("kubeconfig", "context", "cluster")

# If it is set, only this setting identifies the cluster.
_IDENTIFIER = "clusterIdentifier"


def everywhere(_: KubeconfigContext) -> str | None:
    """Return None: every cluster is reachable."""
    return None


class Instances(Plugin):
    """Handles the configuration of each provider instance; `reach` decides which clusters are reachable."""

    def __init__(self, reach: Reach) -> None:
        super().__init__(version("pulumi-kubernetes"))
        self._reach = reach

    def unreachable(self, context: grpc.ServicerContext) -> str | None:
        """Return the plugin's error if the cluster of the instance is unreachable, otherwise None."""
        connection = read_connection(self.configuration(context))
        reason = self._reach(connection) if connection else None
        return f"unable to load schema information from the API server: {reason}" if reason else None

    def CheckConfig(
        self, request: provider_pb2.CheckRequest, context: grpc.ServicerContext
    ) -> provider_pb2.CheckResponse:
        """Refuse settings that the simulator does not support."""
        news = from_struct(request.news)
        known = {name: reveal(value) for name, value in news.items() if isinstance(value, str | bool)}
        failures = [
            provider_pb2.CheckFailure(property=name, reason=f"{name} is not simulated; {reason}")
            for name, reason in unsupported_settings(known).items()
        ]
        return provider_pb2.CheckResponse(inputs=request.news, failures=failures)

    def DiffConfig(
        self, request: provider_pb2.DiffRequest, context: grpc.ServicerContext
    ) -> provider_pb2.DiffResponse:
        """Compare the configuration of an instance; another cluster replaces the instance."""
        old, new = from_struct(request.old_inputs), from_struct(request.news)
        return diff_response(changes(old, new), replacing=replacing(old, new))


def replacing(old: Properties, new: Properties) -> list[PropertyChange]:
    """Return the changes that replace an instance and every resource it created.

    A change replaces the instance if it selects another cluster, which address and certificates identify. An unknown
    value may select any cluster. With a cluster identifier before and after, only its change replaces.
    """
    if old.get(_IDENTIFIER) and new.get(_IDENTIFIER):
        return [change for change in changes(old, new) if change.top == _IDENTIFIER]
    selecting = [change for change in changes(old, new) if change.top in _CLUSTER_SETTINGS]
    unknown = [change for change in selecting if has_unknown(new.get(change.top))]
    if unknown:
        return unknown
    before, after = (read_connection(_known(each)) for each in (old, new))
    is_another = before is not None and after is not None and before.cluster != after.cluster
    return selecting if is_another else []


def _known(properties: Properties) -> Json:
    return {name: reveal(value) for name, value in properties.items() if not has_unknown(value)}


# ruff: noqa: ARG002 - the parameters are those of ResourceOperations


DELETE_UNREACHABLE = "PULUMI_K8S_DELETE_UNREACHABLE"
_WAY_OUT = (
    "If the cluster was deleted, the resource can be removed from the state by running again with the environment "
    f'variable {DELETE_UNREACHABLE} set to "true"'
)


class ClusterUnreachableError(RehearsalError):
    """The API server does not exist, or does not authenticate the caller."""


@dataclass(frozen=True, kw_only=True)
class UnreachableResources:
    """Replaces `resources` while their cluster is unreachable because of `reason`.

    `configuration` of the provider, or a variable of `environment`, can request to drop unreachable resources from the
    state.
    """

    resources: ResourceOperations
    reason: str
    configuration: Json
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)

    def check(self, operation: Operation, news: Properties, olds: Properties, naming: Naming) -> Properties:
        """Return the inputs, complete."""
        return self.resources.check(operation, news, olds, naming)

    def diff(
        self, operation: Operation, outputs: Properties, old: Properties, new: Properties
    ) -> provider_pb2.DiffResponse:
        """Compare the last-applied inputs with new inputs."""
        return self.resources.diff(operation, outputs, old, new)

    def plan_create(self, operation: Operation, inputs: Properties) -> Properties:
        """Return the inputs, because the API server cannot complete them."""
        return inputs

    def plan_update(self, operation: Operation, inputs: Properties, outputs: Properties) -> Properties:
        """Return the inputs, because the API server cannot complete them."""
        return inputs

    def create(self, operation: Operation, inputs: Properties) -> ResourceState:
        """Raise ClusterUnreachableError."""
        raise self._refusal(operation, "create")

    def read(
        self, operation: Operation, resource_id: str, outputs: Properties, inputs: Properties
    ) -> ResourceState:
        """Raise ClusterUnreachableError unless unreachable resources are dropped."""
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
    ) -> ResourceState:
        """Raise ClusterUnreachableError."""
        raise self._refusal(operation, "update")

    def remove(self, operation: Operation, resource_id: str, outputs: Properties) -> None:
        """Raise ClusterUnreachableError unless unreachable resources are dropped; a release is never dropped."""
        if operation.token == RELEASE or not self._is_dropped():
            raise self._refusal(operation, "delete")

    def made(self, operation: Operation, inputs: Properties) -> str | None:
        """Return the id of the object that an interrupted create made, None if it made none."""
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
        setting = self.configuration.get("deleteUnreachable", self.environment.get(DELETE_UNREACHABLE, ""))
        return str(setting).lower() == "true"
