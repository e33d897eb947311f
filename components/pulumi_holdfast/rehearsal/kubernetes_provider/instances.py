"""The configuration of provider instances, and clusters that are unreachable.

`Instances` checks and compares the configuration; `UnreachableCluster` refuses operations like the real provider.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import TypeAlias

import grpc
from pulumi.runtime.proto import provider_pb2

from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.rehearsal.engine.diff import PropertyChange, changes, diff_response
from pulumi_holdfast.rehearsal.engine.kubeconfig import KubeconfigContext, read_connection
from pulumi_holdfast.rehearsal.engine.plugin import Plugin
from pulumi_holdfast.rehearsal.engine.values import Properties, from_struct, has_unknown, reveal
from pulumi_holdfast.rehearsal.errors import RehearsalError
from pulumi_holdfast.rehearsal.kubernetes_provider.operation import RELEASE, unsupported_settings

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


DELETE_UNREACHABLE = "PULUMI_K8S_DELETE_UNREACHABLE"
_WAY_OUT = (
    "If the cluster was deleted, the resource can be removed from the state by running again with the environment "
    f'variable {DELETE_UNREACHABLE} set to "true"'
)


class ClusterUnreachableError(RehearsalError):
    """The API server does not exist, or does not authenticate the caller."""


@dataclass(frozen=True, kw_only=True)
class UnreachableCluster:
    """A cluster that is unreachable because of `reason`; `drops`: its resources may be dropped from the state."""

    reason: str
    drops: bool

    def refuse(self, token: str, verb: str) -> None:
        """Raise ClusterUnreachableError for an operation, unless it drops the resource; no delete drops a release."""
        is_release = token == RELEASE
        if self.drops and (verb == "read" or (verb == "delete" and not is_release)):
            return
        if verb == "read":
            message = f"failed to read resource state due to unreachable cluster: {self.reason}. {_WAY_OUT}"
        elif is_release:
            message = f"can't {verb} Helm Release with unreachable cluster: {self.reason}"
        else:
            way_out = f". {_WAY_OUT}" if verb == "delete" else ""
            message = f"configured Kubernetes cluster is unreachable: {self.reason}{way_out}"
        raise ClusterUnreachableError(message)


def drops_unreachable(configuration: Json, environment: Mapping[str, str]) -> bool:
    """Whether the configuration of a provider, otherwise the environment, lets unreachable resources be dropped."""
    setting = configuration.get("deleteUnreachable", environment.get(DELETE_UNREACHABLE, ""))
    return str(setting).lower() == "true"


class Instances(Plugin):
    """Handles the configuration of each provider instance; `reach` decides which clusters are reachable."""

    def __init__(self, reach: Reach) -> None:
        super().__init__(version("pulumi-kubernetes"))
        self._reach = reach

    def unreachable(self, context: grpc.ServicerContext) -> UnreachableCluster | None:
        """Return the cluster of the instance if it is unreachable, otherwise None."""
        configuration = self.configuration(context)
        connection = read_connection(configuration)
        reason = self._reach(connection) if connection else None
        if reason is None:
            return None
        return UnreachableCluster(
            reason=f"unable to load schema information from the API server: {reason}",
            drops=drops_unreachable(configuration, os.environ),
        )

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
