"""Serves a stand-in provider to the engine over gRPC on loopback."""

import threading
from collections.abc import Callable
from concurrent import futures
from typing import Any, NoReturn, TypeAlias

import grpc
from google.protobuf import any_pb2
from google.protobuf.message import Message
from pulumi.runtime.proto import provider_pb2, status_pb2
from pulumi.runtime.proto.provider_pb2_grpc import (
    ResourceProviderServicer,
    add_ResourceProviderServicer_to_server,
)

from holdfast.simulator.errors import RehearsalError
from holdfast.simulator.pulumi.faults import EngineCrashedError
from holdfast.simulator.pulumi.values import Properties, to_struct

# The engine's own limit: a stack's CRDs pass gRPC's default of 4 MB.
_MAX_MESSAGE_BYTES = 400 * 1024 * 1024
_THREADS = 32

_Handler: TypeAlias = Callable[[Message, grpc.ServicerContext], Message]


class InitFailedError(RehearsalError):
    """A resource was created or updated but did not come up: the engine records it and retries on the next run.

    `reasons` are the messages shown, one a line; `properties` is its state as far as known.
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
        """Return the failure as the engine reads it beside the error."""
        packed = any_pb2.Any(
            type_url="type.googleapis.com/pulumirpc.ErrorResourceInitFailed",
            value=self._detail.SerializeToString(),
        )
        status = status_pb2.Status(code=grpc.StatusCode.UNKNOWN.value[0], message=str(self), details=[packed])
        return status.SerializeToString()


class Served:
    """A provider being served; closes at the end of its `with` block."""

    def __init__(self, server: grpc.Server, port: int) -> None:
        self._server = server
        self.port = port

    def close(self) -> None:
        """Stop serving; calls still open are cancelled. Harmless when repeated."""
        self._server.stop(grace=None).wait()

    def __enter__(self) -> "Served":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def serve(servicer: ResourceProviderServicer) -> Served:
    """Serve a provider on an ephemeral loopback port.

    What a method raises reaches the user as one message: RehearsalError as it is, InitFailedError with the state
    of the resource, anything else as an internal error. EngineCrashedError leaves the call unanswered.
    """
    server = grpc.server(
        futures.ThreadPoolExecutor(_THREADS),
        interceptors=[_Answering()],
        options=[
            ("grpc.max_receive_message_length", _MAX_MESSAGE_BYTES),
            ("grpc.max_send_message_length", _MAX_MESSAGE_BYTES),
        ],
    )
    add_ResourceProviderServicer_to_server(servicer, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    return Served(server, port)


class _Answering(grpc.ServerInterceptor):
    """Turns what a provider's method raises into the answer the engine understands."""

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
            _wait_until_nobody_listens(context)
            context.abort(grpc.StatusCode.CANCELLED, "the engine is gone")
        except Exception as failure:  # noqa: BLE001 - the last frame before the wire: nothing else could report it
            _abort(context, failure, method)

    return answer


def _abort(context: grpc.ServicerContext, failure: Exception, method: str) -> NoReturn:
    if isinstance(failure, InitFailedError):
        context.set_trailing_metadata((("grpc-status-details-bin", failure.status()),))
    if isinstance(failure, RehearsalError):
        context.abort(grpc.StatusCode.UNKNOWN, str(failure))
    if isinstance(failure, NotImplementedError):
        context.abort(grpc.StatusCode.UNIMPLEMENTED, "Method not implemented!")
    context.abort(grpc.StatusCode.INTERNAL, _internal_error(method, failure))


def _wait_until_nobody_listens(context: grpc.ServicerContext) -> None:
    ended = threading.Event()
    if context.add_callback(ended.set):
        ended.wait()


def _internal_error(method: str, failure: Exception) -> str:
    """Say where it was raised: there is no traceback to look that up in."""
    frame = failure.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    where = f" at {frame.tb_frame.f_code.co_filename}:{frame.tb_lineno}" if frame else ""
    return f"the stand-in provider failed in {method.rsplit('/', 1)[-1]}: {type(failure).__name__}: {failure}{where}"
