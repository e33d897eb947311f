"""The stand-in for the kubernetes provider plugin: answers the engine's calls from a real API server."""

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import grpc
from google.protobuf import empty_pb2
from pulumi.runtime.proto import provider_pb2

from holdfast.scheduling.json import Json
from holdfast.simulator.errors import RehearsalError
from holdfast.simulator.kubernetes_client.client import KubeClient
from holdfast.simulator.kubernetes_client.errors import Cancellation, KubeUnreachable
from holdfast.simulator.kubernetes_provider.helm import ChartMirror, Helm
from holdfast.simulator.kubernetes_provider.inputs import fields, objects_in, to_properties
from holdfast.simulator.kubernetes_provider.instances import Instances, OutOfReach, Reach, everywhere
from holdfast.simulator.kubernetes_provider.objects import Objects
from holdfast.simulator.kubernetes_provider.operation import (
    RELEASE,
    Naming,
    Operation,
    Outcome,
    Resources,
    Settings,
)
from holdfast.simulator.kubernetes_provider.releases import Releases
from holdfast.simulator.pulumi.faults import Faults
from holdfast.simulator.pulumi.values import Properties, Value, from_struct, reveal, to_struct

# ruff: noqa: N802, ARG002 - names and parameters of the methods are the protocol's


class _Request(Protocol):
    @property
    def urn(self) -> str: ...

    @property
    def type(self) -> str: ...


_DISABLED = provider_pb2.CheckRequest.AutonamingOptions.DISABLE


class KubernetesProvider(Instances):
    """Stands in for the kubernetes provider plugin on the control plane of a rehearsal.

    Whatever kubeconfig a program gives its provider, objects go to the API server of `client_kubeconfig`: a
    rehearsal never reaches a cluster that somebody uses. They go there as long as, by `reach`, the program's own
    kubeconfig leads somewhere. `helm` is the program that makes releases, from the charts of `charts`; `faults`
    are the failures to suffer.
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
        """Return the id of what an interrupted create of a resource did make, None if it made nothing.

        `inputs` are the resource's in the engine's state, in which secrets may be encrypted.
        """
        with self._session.call(lambda _: None) as (client, cancellation):
            operation = Operation(
                urn=urn, token=token, client=client, cancellation=cancellation, settings=Settings()
            )
            return self._known_resources(token).made(operation, inputs)

    def Configure(
        self, request: provider_pb2.ConfigureRequest, context: grpc.ServicerContext
    ) -> provider_pb2.ConfigureResponse:
        """Keep the settings of one instance, once the control plane has answered."""
        with self._session.call(context.add_callback) as (client, _):
            client.server_version()
        return super().Configure(request, context)

    def Check(
        self, request: provider_pb2.CheckRequest, context: grpc.ServicerContext
    ) -> provider_pb2.CheckResponse:
        """Complete a resource's inputs, or say what is wrong with them."""
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
                inputs = self._resources(request, context).check(operation, news, olds, naming)
            except KubeUnreachable:
                raise
            except RehearsalError as error:
                failure = provider_pb2.CheckFailure(reason=str(error))
                return provider_pb2.CheckResponse(failures=[failure])
            return provider_pb2.CheckResponse(inputs=to_struct(inputs))

    def Diff(
        self, request: provider_pb2.DiffRequest, context: grpc.ServicerContext
    ) -> provider_pb2.DiffResponse:
        """Compare a resource's last-applied inputs with its new ones."""
        self._known.add(request.urn)
        with self._operation(request, context) as operation:
            return self._resources(request, context).diff(
                operation,
                from_struct(request.olds),
                from_struct(request.old_inputs),
                from_struct(request.news),
            )

    def Create(
        self, request: provider_pb2.CreateRequest, context: grpc.ServicerContext
    ) -> provider_pb2.CreateResponse:
        """Make a resource and wait until it works, or on preview say what it will be."""
        inputs = from_struct(request.properties)
        resources = self._resources(request, context)
        with self._operation(request, context, timeout=request.timeout) as operation:
            if request.preview:
                planned = resources.plan_create(operation, inputs)
                return provider_pb2.CreateResponse(properties=to_struct(planned))
            self._faults.before_call(f"create {request.type}")
            outcome = resources.create(operation, inputs)
        return provider_pb2.CreateResponse(id=outcome.id, properties=to_struct(outcome.outputs))

    def Read(
        self, request: provider_pb2.ReadRequest, context: grpc.ServicerContext
    ) -> provider_pb2.ReadResponse:
        """Show a resource as it is now; of a missing one nothing, so that a refresh drops it."""
        self._faults.before_call(f"read {request.type}")
        outputs, inputs = from_struct(request.properties), from_struct(request.inputs)
        with self._operation(request, context) as operation:
            outcome = self._resources(request, context).read(operation, request.id, outputs, inputs)
        return _read_response(outcome)

    def Update(
        self, request: provider_pb2.UpdateRequest, context: grpc.ServicerContext
    ) -> provider_pb2.UpdateResponse:
        """Bring a resource up to its new inputs, or on preview say what it will be."""
        inputs, outputs = from_struct(request.news), from_struct(request.olds)
        resources = self._resources(request, context)
        with self._operation(request, context, timeout=request.timeout) as operation:
            if request.preview:
                planned = resources.plan_update(operation, inputs, outputs)
                return provider_pb2.UpdateResponse(properties=to_struct(planned))
            self._faults.before_call(f"update {request.type}")
            outcome = resources.update(operation, request.id, inputs, outputs, request.ignoreChanges)
        return provider_pb2.UpdateResponse(properties=to_struct(outcome.outputs))

    def Delete(self, request: provider_pb2.DeleteRequest, context: grpc.ServicerContext) -> empty_pb2.Empty:
        """Delete a resource and wait until it is gone."""
        self._faults.before_call(f"delete {request.type}")
        with self._operation(request, context, timeout=request.timeout) as operation:
            self._resources(request, context).remove(operation, request.id, from_struct(request.properties))
        self._faults.after_delete(request.urn)
        return empty_pb2.Empty()

    def Invoke(
        self, request: provider_pb2.InvokeRequest, context: grpc.ServicerContext
    ) -> provider_pb2.InvokeResponse:
        """Call a function of the package."""
        response = provider_pb2.InvokeResponse()
        getattr(response, "return").CopyFrom(to_struct(invoke(request.tok, from_struct(request.args))))
        return response

    def Construct(
        self, request: provider_pb2.ConstructRequest, context: grpc.ServicerContext
    ) -> provider_pb2.ConstructResponse:
        """Refuse a remote component of the package, and name what to use instead."""
        raise refusal("component", request.type)

    def Cancel(self, request: empty_pb2.Empty, context: grpc.ServicerContext) -> empty_pb2.Empty:
        """End every wait under way."""
        self._session.cancel()
        return empty_pb2.Empty()

    def _resources(self, request: _Request, context: grpc.ServicerContext) -> Resources:
        found = self._known_resources(request.type)
        reason = self.unreachable(context)
        if reason is None:
            return found
        return OutOfReach(resources=found, reason=reason, configuration=self.configuration(context))

    def _known_resources(self, token: str) -> Resources:
        return self._releases if token == RELEASE else self._objects

    @contextmanager
    def _operation(
        self, request: _Request, context: grpc.ServicerContext, *, timeout: float = 0.0
    ) -> Generator[Operation]:
        """Yield what a call needs; its waits end with the call, with Cancel, and with the server."""
        with self._session.call(context.add_callback) as (client, cancellation):
            yield Operation(
                urn=request.urn,
                token=request.type,
                client=client,
                cancellation=cancellation,
                settings=Settings.of(self.configuration(context)),
                custom_timeout=timeout,
                has_predecessor=request.urn in self._known,
            )


def _read_response(outcome: Outcome) -> provider_pb2.ReadResponse:
    return provider_pb2.ReadResponse(
        id=outcome.id, properties=to_struct(outcome.outputs), inputs=to_struct(outcome.inputs)
    )


class Session:
    """One API server, and a cancellation for each call that talks to it. Safe to use from many threads."""

    def __init__(self, kubeconfig: Path) -> None:
        self._kubeconfig = kubeconfig
        self._guard = threading.Lock()
        self._client: KubeClient | None = None
        self._running: set[Cancellation] = set()

    @contextmanager
    def call(
        self, on_end: Callable[[Callable[[], None]], object]
    ) -> Generator[tuple[KubeClient, Cancellation]]:
        """Yield a client and the cancellation of its waits, for one call of the engine.

        `on_end` is told what to do when the call ends from outside. Raises RehearsalError with the one thing
        to do when the control plane does not answer.
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
        """End every wait under way; later calls work."""
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


_DECODE = "kubernetes:yaml:decode"
_INSTEAD = {
    "kubernetes:helm:template": "register the chart as a helm.v3.Release",
    "kubernetes:kustomize:directory": "render it beforehand, and register the YAML as a yaml.ConfigGroup",
    "kubernetes:helm.sh/v4:Chart": "register the chart as a helm.v3.Release",
    "kubernetes:kustomize/v2:Directory": "render it beforehand, and register the YAML as a yaml.ConfigGroup",
    "kubernetes:yaml/v2:ConfigFile": "use yaml.ConfigFile, or apiextensions.CustomResource for each object",
    "kubernetes:yaml/v2:ConfigGroup": "use yaml.ConfigGroup, or apiextensions.CustomResource for each object",
}


def invoke(token: str, arguments: Properties) -> dict[str, Value]:
    """Return what a function returns. Raises RehearsalError for one that cannot be rehearsed."""
    if token != _DECODE:
        raise refusal("function", token)
    text, namespace = arguments.get("text"), arguments.get("defaultNamespace")
    objects = objects_in(str(reveal(text)))
    found = [_placed(to_properties(obj), str(namespace) if namespace else None) for obj in objects]
    return {"result": found}


def refusal(what: str, token: str) -> RehearsalError:
    """Return the error for a function or component that cannot be rehearsed, with what to use instead."""
    instead = _INSTEAD.get(token, f"{_DECODE} is the only function that is")
    return RehearsalError(f"{what} {token!r} is not rehearsed; {instead}")


def _placed(obj: dict[str, Value], namespace: str | None) -> Value:
    """Give an object the namespace that its text leaves out."""
    metadata = fields(obj, "metadata")
    if namespace and not metadata.get("namespace"):
        return {**obj, "metadata": {**metadata, "namespace": namespace}}
    return obj
