"""The instances of the kubernetes plugin: their settings, and where these lead."""

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
    Outcome,
    Resources,
    unheeded,
)
from holdfast.simulator.pulumi.diff_answers import diff_response
from holdfast.simulator.pulumi.diffing import Change, changes
from holdfast.simulator.pulumi.kubeconfig import Connection, read_connection
from holdfast.simulator.pulumi.plugin import Plugin
from holdfast.simulator.pulumi.values import Properties, from_struct, has_unknown, reveal

# ruff: noqa: N802, ARG002 - names and parameters of the methods are the protocol's


#: Why an API server cannot be called, in a client's words; None where it can.
Reach: TypeAlias = Callable[[Connection], str | None]

# Settings a change of which can lead to another cluster.
_LEADING = ("kubeconfig", "context", "cluster")

# Where it is set it alone tells clusters apart.
_IDENTIFIER = "clusterIdentifier"


def everywhere(_: Connection) -> str | None:
    """Return None: wherever a kubeconfig leads, somebody answers."""
    return None


class Instances(Plugin):
    """Takes the settings of each instance of the plugin; `reach` says which of them lead nowhere."""

    def __init__(self, reach: Reach) -> None:
        super().__init__(version("pulumi-kubernetes"))
        self._reach = reach

    def unreachable(self, context: grpc.ServicerContext) -> str | None:
        """Return why the cluster of a call's instance cannot be called, as the plugin puts it; None where it can."""
        connection = read_connection(self.configuration(context))
        reason = self._reach(connection) if connection else None
        return f"unable to load schema information from the API server: {reason}" if reason else None

    def CheckConfig(
        self, request: provider_pb2.CheckRequest, context: grpc.ServicerContext
    ) -> provider_pb2.CheckResponse:
        """Refuse settings that cannot be rehearsed."""
        news = from_struct(request.news)
        known = {name: reveal(value) for name, value in news.items() if isinstance(value, str | bool)}
        failures = [
            provider_pb2.CheckFailure(property=name, reason=f"{name} is not rehearsed; {reason}")
            for name, reason in unheeded(known).items()
        ]
        return provider_pb2.CheckResponse(inputs=request.news, failures=failures)

    def DiffConfig(
        self, request: provider_pb2.DiffRequest, context: grpc.ServicerContext
    ) -> provider_pb2.DiffResponse:
        """Say what changed in an instance's settings; one that leads to another cluster is another instance."""
        old, new = from_struct(request.old_inputs), from_struct(request.news)
        return diff_response(changes(old, new), replacing=replacing(old, new))


def replacing(old: Properties, new: Properties) -> list[Change]:
    """Return which changes of an instance's settings replace it, and with it everything that it made.

    Those that lead to another cluster: its address and certificates are all it is known by. What is not known yet
    may lead anywhere. With an identifier before and after, a change of that and of nothing else.
    """
    if old.get(_IDENTIFIER) and new.get(_IDENTIFIER):
        return [change for change in changes(old, new) if change.top == _IDENTIFIER]
    leading = [change for change in changes(old, new) if change.top in _LEADING]
    unknown = [change for change in leading if has_unknown(new.get(change.top))]
    if unknown:
        return unknown
    before, after = (read_connection(_known(each)) for each in (old, new))
    is_another = before is not None and after is not None and before.cluster != after.cluster
    return leading if is_another else []


def _known(properties: Properties) -> Json:
    return {name: reveal(value) for name, value in properties.items() if not has_unknown(value)}


# ruff: noqa: ARG002 - the parameters are those of Resources


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
