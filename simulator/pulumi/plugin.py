"""The part of the provider protocol that is about the plugin and its configuration, not about resources."""

# ruff: noqa: N802, ARG002 - names and parameters of the methods are the protocol's

import json
import threading
from typing import cast

import grpc
from google.protobuf import empty_pb2
from pulumi.runtime.proto import plugin_pb2, provider_pb2
from pulumi.runtime.proto.provider_pb2_grpc import ResourceProviderServicer

from holdfast.scheduling.json import Json, JsonValue
from holdfast.simulator.pulumi.diff_answers import diff_response
from holdfast.simulator.pulumi.diffing import changes
from holdfast.simulator.pulumi.values import from_struct, has_unknown, reveal


class Plugin(ResourceProviderServicer):
    """Answers the engine's questions about the plugin, and keeps the configuration of each instance.

    The engine attaches every instance of a package, default and explicit, to this one server. What tells
    them apart is the connection: each instance dials its own.
    """

    def __init__(self, version: str) -> None:
        self._version = version
        self._configurations: dict[str, Json] = {}
        self._lock = threading.Lock()

    def configuration(self, context: grpc.ServicerContext) -> Json:
        """Return the configuration of the provider instance a call comes from."""
        with self._lock:
            return self._configurations.get(context.peer(), {})

    def Attach(self, request: plugin_pb2.PluginAttach, context: grpc.ServicerContext) -> empty_pb2.Empty:
        """Accept the engine that found this server's port in its settings."""
        return empty_pb2.Empty()

    def Handshake(
        self, request: provider_pb2.ProviderHandshakeRequest, context: grpc.ServicerContext
    ) -> provider_pb2.ProviderHandshakeResponse:
        """Tell the engine what kinds of values may be sent."""
        return provider_pb2.ProviderHandshakeResponse(accept_secrets=True)

    def GetPluginInfo(self, request: empty_pb2.Empty, context: grpc.ServicerContext) -> plugin_pb2.PluginInfo:
        """Give the version of the installed SDK: it is what the program was written against."""
        return plugin_pb2.PluginInfo(version=self._version)

    def CheckConfig(
        self, request: provider_pb2.CheckRequest, context: grpc.ServicerContext
    ) -> provider_pb2.CheckResponse:
        """Take a provider's configuration as it is."""
        return provider_pb2.CheckResponse(inputs=request.news)

    def DiffConfig(
        self, request: provider_pb2.DiffRequest, context: grpc.ServicerContext
    ) -> provider_pb2.DiffResponse:
        """Say what changed in a provider's configuration; it never needs replacing."""
        return diff_response(changes(from_struct(request.old_inputs), from_struct(request.news)))

    def Configure(
        self, request: provider_pb2.ConfigureRequest, context: grpc.ServicerContext
    ) -> provider_pb2.ConfigureResponse:
        """Keep the configuration of one provider instance."""
        given = from_struct(request.args)
        configuration = {
            name: _parsed(reveal(value)) for name, value in given.items() if not has_unknown(value)
        }
        with self._lock:
            self._configurations[context.peer()] = configuration
        return provider_pb2.ConfigureResponse(acceptSecrets=True, supportsPreview=True)

    def Cancel(self, request: empty_pb2.Empty, context: grpc.ServicerContext) -> empty_pb2.Empty:
        """Take note that the run is being cancelled: no call here waits for anything."""
        return empty_pb2.Empty()


def _parsed(value: JsonValue) -> JsonValue:
    """Undo the text form in which the engine passes nested configuration."""
    if not isinstance(value, str):
        return value
    try:
        return cast("JsonValue", json.loads(value))
    except ValueError:
        return value
