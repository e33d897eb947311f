"""The provider protocol without resources: configuration of the plugin, and the gRPC server."""

import json
import threading
from collections.abc import Callable
from concurrent import futures
from typing import Any, NoReturn, Protocol, TypeAlias, cast, runtime_checkable

import grpc
from google.protobuf import any_pb2, empty_pb2
from google.protobuf.message import Message
from pulumi.runtime.proto import plugin_pb2, provider_pb2, status_pb2
from pulumi.runtime.proto.provider_pb2_grpc import (
    ResourceProviderServicer,
    add_ResourceProviderServicer_to_server,
)

from pulumi_holdfast.ladder.json import Json, JsonValue
from pulumi_holdfast.rehearsal.engine.diff import changes, diff_response
from pulumi_holdfast.rehearsal.engine.faults import EngineCrashedError
from pulumi_holdfast.rehearsal.engine.values import Properties, from_struct, has_unknown, reveal, to_struct
from pulumi_holdfast.rehearsal.errors import FAILURES, RehearsalError

# ruff: noqa: N802, ARG002 - names and parameters of the methods are the protocol's


class Plugin(ResourceProviderServicer):
    """Implements the plugin's methods of the protocol, and stores the configuration of each provider instance.

    All instances of a package, default and explicit, use this server; each has its own connection.
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
        """Accept the engine, which knows this server's port from its environment."""
        return empty_pb2.Empty()

    def Handshake(
        self, request: provider_pb2.ProviderHandshakeRequest, context: grpc.ServicerContext
    ) -> provider_pb2.ProviderHandshakeResponse:
        """Announce support for secrets."""
        return provider_pb2.ProviderHandshakeResponse(accept_secrets=True)

    def GetPluginInfo(self, request: empty_pb2.Empty, context: grpc.ServicerContext) -> plugin_pb2.PluginInfo:
        """Return the version of the installed SDK, which the program uses."""
        return plugin_pb2.PluginInfo(version=self._version)

    def CheckConfig(
        self, request: provider_pb2.CheckRequest, context: grpc.ServicerContext
    ) -> provider_pb2.CheckResponse:
        """Accept any configuration."""
        return provider_pb2.CheckResponse(inputs=request.news)

    def DiffConfig(
        self, request: provider_pb2.DiffRequest, context: grpc.ServicerContext
    ) -> provider_pb2.DiffResponse:
        """Return the changes of a provider's configuration; none replaces the provider."""
        return diff_response(changes(from_struct(request.old_inputs), from_struct(request.news)))

    def Configure(
        self, request: provider_pb2.ConfigureRequest, context: grpc.ServicerContext
    ) -> provider_pb2.ConfigureResponse:
        """Store the configuration of one provider instance."""
        given = from_struct(request.args)
        configuration = {
            name: _parsed(reveal(value)) for name, value in given.items() if not has_unknown(value)
        }
        with self._lock:
            self._configurations[context.peer()] = configuration
        return provider_pb2.ConfigureResponse(acceptSecrets=True, supportsPreview=True)

    def Cancel(self, request: empty_pb2.Empty, context: grpc.ServicerContext) -> empty_pb2.Empty:
        """Do nothing: no call here waits."""
        return empty_pb2.Empty()


def _parsed(value: JsonValue) -> JsonValue:
    """Parse the JSON text in which the engine passes nested configuration."""
    if not isinstance(value, str):
        return value
    try:
        return cast("JsonValue", json.loads(value))
    except ValueError:
        return value


# The engine's own limit: a stack's CRDs pass gRPC's default of 4 MB.
_MAX_MESSAGE_BYTES = 400 * 1024 * 1024
MESSAGE_SIZES = (
    ("grpc.max_receive_message_length", _MAX_MESSAGE_BYTES),
    ("grpc.max_send_message_length", _MAX_MESSAGE_BYTES),
    # A refused delete carries the object with it: 12 kB where 8 are the limit.
    ("grpc.max_metadata_size", _MAX_MESSAGE_BYTES),
)
_THREADS = 32

_Handler: TypeAlias = Callable[[Message, grpc.ServicerContext], Message]


class InitFailedError(RehearsalError):
    """A resource was created or updated but failed to initialize: the engine records it and retries in the next run.

    `reasons` are the messages to show; `properties` are the known outputs.
    """

    def __init__(
        self, *, resource_id: str, properties: Properties, inputs: Properties, reasons: list[str]
    ) -> None:
        super().__init__(
            f"resource {resource_id!r} was created but failed to initialize: {'; '.join(reasons)}"
        )
        self._detail = provider_pb2.ErrorResourceInitFailed(
            id=resource_id, properties=to_struct(properties), inputs=to_struct(inputs), reasons=reasons
        )

    def status(self) -> bytes:
        """Return the failure as the details of a gRPC status."""
        packed = any_pb2.Any(
            type_url="type.googleapis.com/pulumirpc.ErrorResourceInitFailed",
            value=self._detail.SerializeToString(),
        )
        status = status_pb2.Status(code=grpc.StatusCode.UNKNOWN.value[0], message=str(self), details=[packed])
        return status.SerializeToString()


@runtime_checkable
class Closable(Protocol):
    """A provider with processes of its own."""

    def close(self) -> None:
        """End them; idempotent."""
        ...


class Served:
    """A running provider server; it stops at the end of its `with` block."""

    def __init__(self, servicer: ResourceProviderServicer, server: grpc.Server, port: int) -> None:
        self._servicer = servicer
        self._server = server
        self.port = port

    def close(self) -> None:
        """End the provider's processes, stop the server and cancel open calls; idempotent."""
        if isinstance(self._servicer, Closable):
            self._servicer.close()
        self._server.stop(grace=None).wait()

    def __enter__(self) -> "Served":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def serve(servicer: ResourceProviderServicer) -> Served:
    """Serve a provider on an ephemeral loopback port.

    Exceptions reach the user as one message: RehearsalError unchanged, InitFailedError with the state of the
    resource, the answer of another server unchanged, all others as internal errors. A call that raises EngineCrashedError is not answered.
    """
    server = grpc.server(
        futures.ThreadPoolExecutor(_THREADS), interceptors=[_Answering()], options=MESSAGE_SIZES
    )
    add_ResourceProviderServicer_to_server(servicer, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    return Served(servicer, server, port)


class _Answering(grpc.ServerInterceptor):
    """Converts the exceptions of a provider's methods to gRPC errors."""

    def intercept_service(
        self,
        continuation: "Callable[[grpc.HandlerCallDetails], grpc.RpcMethodHandler[Any, Any] | None]",
        handler_call_details: grpc.HandlerCallDetails,
    ) -> "grpc.RpcMethodHandler[Any, Any] | None":
        handler = continuation(handler_call_details)
        if handler is None or handler.unary_unary is None:
            return handler
        return grpc.unary_unary_rpc_method_handler(
            _answering(handler.unary_unary, handler_call_details.method),
            request_deserializer=handler.request_deserializer,
            response_serializer=handler.response_serializer,
        )


def _answering(behaviour: _Handler, method: str) -> _Handler:
    def answer(request: Message, context: grpc.ServicerContext) -> Message:
        try:
            return behaviour(request, context)
        except EngineCrashedError:
            _wait_until_disconnected(context)
            context.abort(grpc.StatusCode.CANCELLED, "the engine is gone")
        except Exception as failure:  # noqa: BLE001 - the last frame before the wire: nothing else could report it
            _abort(context, failure, method)

    return answer


def _abort(context: grpc.ServicerContext, failure: Exception, method: str) -> NoReturn:
    if isinstance(failure, InitFailedError):
        context.set_trailing_metadata((("grpc-status-details-bin", failure.status()),))
    if isinstance(failure, grpc.Call):
        context.set_trailing_metadata(tuple(failure.trailing_metadata() or ()))
        context.abort(failure.code() or grpc.StatusCode.UNKNOWN, failure.details() or "")
    if isinstance(failure, FAILURES):
        context.abort(grpc.StatusCode.UNKNOWN, str(failure))
    if isinstance(failure, NotImplementedError):
        context.abort(grpc.StatusCode.UNIMPLEMENTED, "Method not implemented!")
    context.abort(grpc.StatusCode.INTERNAL, _internal_error(method, failure))


def _wait_until_disconnected(context: grpc.ServicerContext) -> None:
    ended = threading.Event()
    if context.add_callback(ended.set):
        ended.wait()


def _internal_error(method: str, failure: Exception) -> str:
    """Include the source line, because the engine shows no traceback."""
    frame = failure.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    where = f" at {frame.tb_frame.f_code.co_filename}:{frame.tb_lineno}" if frame else ""
    return f"the simulated provider failed in {method.rsplit('/', 1)[-1]}: {type(failure).__name__}: {failure}{where}"
