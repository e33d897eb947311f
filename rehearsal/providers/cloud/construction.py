"""Remote components: registers their children with the engine, as a provider written for it would."""

# ruff: noqa: N802 - the methods are named by the protocol

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol, cast

import grpc
from google.protobuf import empty_pb2
from pulumi.runtime.proto import provider_pb2, resource_pb2, resource_pb2_grpc

from rehearsal.errors import RehearsalError
from rehearsal.providers.values import UNKNOWN, Properties, Value, from_struct, to_struct

_MAX_MESSAGE_BYTES = 400 * 1024 * 1024


class Monitor(Protocol):
    """What is used of the engine's resource monitor."""

    def RegisterResource(
        self, request: resource_pb2.RegisterResourceRequest
    ) -> resource_pb2.RegisterResourceResponse:
        """Register a resource and wait until the engine is done with it."""
        ...

    def RegisterResourceOutputs(
        self, request: resource_pb2.RegisterResourceOutputsRequest
    ) -> empty_pb2.Empty:
        """Record a component's outputs."""
        ...


@dataclass(frozen=True, kw_only=True)
class Child:
    """A registered resource: `outputs` are unknown where they are on preview."""

    urn: str
    id: Value
    outputs: Properties = field(default_factory=dict[str, Value])


class Construction:
    """A remote component being built: what its program passed, and the engine to register children with."""

    def __init__(self, request: provider_pb2.ConstructRequest, monitor: Monitor) -> None:
        self._request = request
        self._monitor = monitor
        self._children: list[str] = []
        self.name = request.name
        self.inputs: Properties = from_struct(request.inputs)
        self.is_preview = request.dryRun
        self.urn = self._register_component()

    @property
    def children(self) -> Sequence[str]:
        """The URNs registered so far: the component's outputs depend on them all."""
        return tuple(self._children)

    def child(self, token: str, name: str, inputs: Properties, *, depends_on: Sequence[Child] = ()) -> Child:
        """Register a resource under the component and wait for it.

        It gets the provider the component was given for its package. Raises RehearsalError where it fails.
        """
        request = resource_pb2.RegisterResourceRequest(
            type=token,
            name=name,
            parent=self.urn,
            custom=True,
            object=to_struct(inputs),
            provider=self._request.providers.get(token.split(":")[0], ""),
            dependencies=[one.urn for one in depends_on],
            protect=self._request.protect,
            retainOnDelete=self._request.retainOnDelete,
        )
        answer = self._send(request)
        self._children.append(answer.urn)
        return Child(urn=answer.urn, id=answer.id or UNKNOWN, outputs=from_struct(answer.object))

    def finish(self, outputs: Properties) -> provider_pb2.ConstructResponse:
        """Record the component's outputs and return the answer the engine waits for."""
        state = to_struct(outputs)
        with _failures_named(self.name):
            self._monitor.RegisterResourceOutputs(
                resource_pb2.RegisterResourceOutputsRequest(urn=self.urn, outputs=state)
            )
        dependencies: Mapping[str, provider_pb2.ConstructResponse.PropertyDependencies] = {
            name: provider_pb2.ConstructResponse.PropertyDependencies(urns=self._children) for name in outputs
        }
        return provider_pb2.ConstructResponse(urn=self.urn, state=state, stateDependencies=dependencies)

    def _register_component(self) -> str:
        request = resource_pb2.RegisterResourceRequest(
            type=self._request.type,
            name=self._request.name,
            parent=self._request.parent,
            custom=False,
            dependencies=self._request.dependencies,
            providers=self._request.providers,
            aliases=self._request.aliases,  # pyright: ignore[reportUnknownMemberType] - its stub imports a module that is not there
            protect=self._request.protect,
            retainOnDelete=self._request.retainOnDelete,
            deletedWith=self._request.deletedWith,
        )
        return self._send(request).urn

    def _send(self, request: resource_pb2.RegisterResourceRequest) -> resource_pb2.RegisterResourceResponse:
        request.acceptSecrets = True
        request.aliasSpecs = True
        request.supportsPartialValues = True
        with _failures_named(request.name):
            return self._monitor.RegisterResource(request)


@contextmanager
def monitor_at(endpoint: str) -> Generator[Monitor]:
    """Connect to the engine's resource monitor for the length of one construction."""
    options = [
        ("grpc.max_receive_message_length", _MAX_MESSAGE_BYTES),
        ("grpc.max_send_message_length", _MAX_MESSAGE_BYTES),
    ]
    with grpc.insecure_channel(endpoint, options=options) as channel:
        yield cast("Monitor", resource_pb2_grpc.ResourceMonitorStub(channel))


@contextmanager
def _failures_named(name: str) -> Generator[None]:
    try:
        yield
    except grpc.RpcError as error:
        details = error.details() if isinstance(error, grpc.Call) else str(error)
        raise RehearsalError(f"registering {name!r}: {details}") from error
