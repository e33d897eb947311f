"""The provider server: answers the calls of the Pulumi engine with objects on a real API server.

`Session` connects to the control plane; `Objects` and `Releases` implement the operations.
"""

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol, TypeAlias

import grpc
from google.protobuf import empty_pb2
from pulumi.runtime.proto import provider_pb2

from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.rehearsal.engine.faults import Faults
from pulumi_holdfast.rehearsal.engine.values import from_struct, to_struct
from pulumi_holdfast.rehearsal.errors import RehearsalError
from pulumi_holdfast.rehearsal.kubernetes_client.client import KubeClient
from pulumi_holdfast.rehearsal.kubernetes_client.errors import Cancellation, KubeUnreachable
from pulumi_holdfast.rehearsal.kubernetes_provider.helm import ChartMirror, Helm
from pulumi_holdfast.rehearsal.kubernetes_provider.instances import Instances, Reach, everywhere
from pulumi_holdfast.rehearsal.kubernetes_provider.objects import Objects
from pulumi_holdfast.rehearsal.kubernetes_provider.operation import (
    GONE,
    RELEASE,
    Naming,
    Operation,
    ProviderSettings,
    ResourceState,
)
from pulumi_holdfast.rehearsal.kubernetes_provider.releases import Releases

# ruff: noqa: N802, ARG002 - the protocol defines names and parameters of the methods


class _Request(Protocol):
    @property
    def urn(self) -> str: ...

    @property
    def type(self) -> str: ...


#: Both sorts have the same operations. Each raises RehearsalError with the fix.
_Resources: TypeAlias = Objects | Releases

_DISABLED = provider_pb2.CheckRequest.AutonamingOptions.DISABLE


class KubernetesProvider(Instances):
    """Simulates the kubernetes provider on the local control plane.

    Objects go to the API server of `client_kubeconfig`, whatever kubeconfig the program sets: a rehearsal never
    reaches a real cluster. `reach` decides whether the cluster of the program's kubeconfig is reachable. `helm` is the
    path of the Helm program, which installs charts of `charts`; `faults` are injected into the operations.
    """

    def __init__(
        self,
        client_kubeconfig: Path,
        helm: Path,
        charts: ChartMirror,
        faults: Faults,
        reach: Reach = everywhere,
    ) -> None:
        super().__init__(reach)
        self._session = Session(client_kubeconfig)
        self._faults = faults
        self._known = set[str]()
        self._objects = Objects(faults=faults)
        self._releases = Releases(
            helm=Helm(program=helm, kubeconfig=client_kubeconfig), charts=charts, faults=faults
        )

    def made(self, urn: str, token: str, inputs: Json) -> str | None:
        """Return the id of the object that an interrupted create made, None if it made none.

        `inputs` come from the state of the engine, where secrets may be encrypted.
        """
        with self._session.call(lambda _: None) as (client, cancellation):
            operation = Operation(
                urn=urn, token=token, client=client, cancellation=cancellation, settings=ProviderSettings()
            )
            return self._resources(token).made(operation, inputs)

    def Configure(
        self, request: provider_pb2.ConfigureRequest, context: grpc.ServicerContext
    ) -> provider_pb2.ConfigureResponse:
        """Store the configuration of a provider instance after the control plane has answered."""
        with self._session.call(context.add_callback) as (client, _):
            client.server_version()
        return super().Configure(request, context)

    def Check(
        self, request: provider_pb2.CheckRequest, context: grpc.ServicerContext
    ) -> provider_pb2.CheckResponse:
        """Complete the inputs of a resource, or return what is wrong with them."""
        with self._operation(request, context) as operation:
            options = request.autonaming if request.HasField("autonaming") else None
            naming = Naming(
                logical_name=operation.name,
                seed=request.randomSeed,
                proposed=options.proposed_name or None if options else None,
                disabled=options is not None and options.mode == _DISABLED,
            )
            news, olds = from_struct(request.news), from_struct(request.olds)
            try:
                inputs = self._resources(request.type).check(operation, news, olds, naming)
            except KubeUnreachable:
                raise
            except RehearsalError as error:
                failure = provider_pb2.CheckFailure(reason=str(error))
                return provider_pb2.CheckResponse(failures=[failure])
            return provider_pb2.CheckResponse(inputs=to_struct(inputs))

    def Diff(
        self, request: provider_pb2.DiffRequest, context: grpc.ServicerContext
    ) -> provider_pb2.DiffResponse:
        """Compare the last-applied inputs of a resource with its new inputs."""
        self._known.add(request.urn)
        with self._operation(request, context) as operation:
            return self._resources(request.type).diff(
                operation,
                from_struct(request.olds),
                from_struct(request.old_inputs),
                from_struct(request.news),
            )

    def Create(
        self, request: provider_pb2.CreateRequest, context: grpc.ServicerContext
    ) -> provider_pb2.CreateResponse:
        """Create a resource and wait until it is ready; in a preview, return the planned outputs."""
        inputs = from_struct(request.properties)
        resources, unreachable = self._resources(request.type), self.unreachable(context)
        with self._operation(request, context, timeout=request.timeout) as operation:
            if request.preview:
                # Without its API server nothing completes the inputs.
                planned = inputs if unreachable else resources.plan_create(operation, inputs)
                return provider_pb2.CreateResponse(properties=to_struct(planned))
            self._faults.before_call(f"create {request.type}")
            if unreachable:
                unreachable.refuse(request.type, "create")
            outcome = resources.create(operation, inputs)
        return provider_pb2.CreateResponse(id=outcome.id, properties=to_struct(outcome.outputs))

    def Read(
        self, request: provider_pb2.ReadRequest, context: grpc.ServicerContext
    ) -> provider_pb2.ReadResponse:
        """Return the live state of a resource; an empty state removes a missing resource on refresh."""
        self._faults.before_call(f"read {request.type}")
        outputs, inputs = from_struct(request.properties), from_struct(request.inputs)
        with self._operation(request, context) as operation:
            if unreachable := self.unreachable(context):
                unreachable.refuse(request.type, "read")
                return _read_response(GONE)
            outcome = self._resources(request.type).read(operation, request.id, outputs, inputs)
        return _read_response(outcome)

    def Update(
        self, request: provider_pb2.UpdateRequest, context: grpc.ServicerContext
    ) -> provider_pb2.UpdateResponse:
        """Update a resource and wait until it is ready; in a preview, return the planned outputs."""
        inputs, outputs = from_struct(request.news), from_struct(request.olds)
        resources, unreachable = self._resources(request.type), self.unreachable(context)
        with self._operation(request, context, timeout=request.timeout) as operation:
            if request.preview:
                planned = inputs if unreachable else resources.plan_update(operation, inputs, outputs)
                return provider_pb2.UpdateResponse(properties=to_struct(planned))
            self._faults.before_call(f"update {request.type}")
            if unreachable:
                unreachable.refuse(request.type, "update")
            outcome = resources.update(operation, request.id, inputs, outputs, request.ignoreChanges)
        return provider_pb2.UpdateResponse(properties=to_struct(outcome.outputs))

    def Delete(self, request: provider_pb2.DeleteRequest, context: grpc.ServicerContext) -> empty_pb2.Empty:
        """Delete a resource and wait for its removal."""
        self._faults.before_call(f"delete {request.type}")
        with self._operation(request, context, timeout=request.timeout) as operation:
            if unreachable := self.unreachable(context):
                unreachable.refuse(request.type, "delete")
            else:
                outputs = from_struct(request.properties)
                self._resources(request.type).remove(operation, request.id, outputs)
        self._faults.after_delete(request.urn)
        return empty_pb2.Empty()

    def Invoke(
        self, request: provider_pb2.InvokeRequest, context: grpc.ServicerContext
    ) -> provider_pb2.InvokeResponse:
        """Refuse a function of the package: no stack calls one."""
        raise RehearsalError(f"function {request.tok!r} is not simulated; register resources instead")

    def Construct(
        self, request: provider_pb2.ConstructRequest, context: grpc.ServicerContext
    ) -> provider_pb2.ConstructResponse:
        """Refuse a remote component of the package: no stack uses one."""
        raise RehearsalError(f"component {request.type!r} is not simulated; register its resources instead")

    def Cancel(self, request: empty_pb2.Empty, context: grpc.ServicerContext) -> empty_pb2.Empty:
        """End all current waits."""
        self._session.cancel()
        return empty_pb2.Empty()

    def _resources(self, token: str) -> _Resources:
        return self._releases if token == RELEASE else self._objects

    @contextmanager
    def _operation(
        self, request: _Request, context: grpc.ServicerContext, *, timeout: float = 0.0
    ) -> Generator[Operation]:
        """Yield the operation of a call; its waits end with the call, on Cancel, and with the server."""
        with self._session.call(context.add_callback) as (client, cancellation):
            yield Operation(
                urn=request.urn,
                token=request.type,
                client=client,
                cancellation=cancellation,
                settings=ProviderSettings.of(self.configuration(context)),
                custom_timeout=timeout,
                has_predecessor=request.urn in self._known,
            )


def _read_response(outcome: ResourceState) -> provider_pb2.ReadResponse:
    return provider_pb2.ReadResponse(
        id=outcome.id, properties=to_struct(outcome.outputs), inputs=to_struct(outcome.inputs)
    )


class Session:
    """The connection to one API server, with a cancellation for each call. Safe to use from many threads."""

    def __init__(self, kubeconfig: Path) -> None:
        self._kubeconfig = kubeconfig
        self._guard = threading.Lock()
        self._client: KubeClient | None = None
        self._running: set[Cancellation] = set()

    @contextmanager
    def call(
        self, on_end: Callable[[Callable[[], None]], object]
    ) -> Generator[tuple[KubeClient, Cancellation]]:
        """Yield a client and the cancellation of its waits for one call of the engine.

        `on_end` registers the cancellation for an aborted call. Raises RehearsalError with the fix if the control plane
        does not answer.
        """
        cancellation = Cancellation()
        on_end(cancellation.cancel)
        with self._guard:
            self._running.add(cancellation)
        try:
            with self._reachable():
                yield self._connected().under(cancellation), cancellation
        finally:
            with self._guard:
                self._running.discard(cancellation)

    def cancel(self) -> None:
        """End all current waits; later calls work."""
        with self._guard:
            running = list(self._running)
        for cancellation in running:
            cancellation.cancel()

    def _connected(self) -> KubeClient:
        with self._guard:
            if self._client is None:
                self._client = KubeClient.from_kubeconfig(self._kubeconfig)
            return self._client

    @contextmanager
    def _reachable(self) -> Generator[None]:
        stack = self._kubeconfig.parent.name
        if not self._kubeconfig.is_file():
            raise RehearsalError(
                f"stack {stack} has no control plane: {self._kubeconfig} does not exist; run `make up`"
            )
        try:
            yield
        except KubeUnreachable as error:
            raise RehearsalError(
                f"the control plane of stack {stack} does not answer at {error.server}; start it with `make up`"
            ) from error
