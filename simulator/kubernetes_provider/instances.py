"""The instances of the kubernetes plugin: their settings, and where these lead."""

# ruff: noqa: N802, ARG002 - names and parameters of the methods are the protocol's

from collections.abc import Callable
from importlib.metadata import version
from typing import TypeAlias

import grpc
from pulumi.runtime.proto import provider_pb2

from holdfast.scheduling.json import Json
from holdfast.simulator.kubernetes_provider.settings import unheeded
from holdfast.simulator.pulumi.diff_answers import diff_response
from holdfast.simulator.pulumi.diffing import Change, changes
from holdfast.simulator.pulumi.kubeconfig import Connection, read_connection
from holdfast.simulator.pulumi.plugin import Plugin
from holdfast.simulator.pulumi.values import Properties, from_struct, has_unknown, reveal

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
