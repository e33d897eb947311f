"""The stand-in for the kubernetes provider plugin: answers the engine's calls from a real API server."""

# ruff: noqa: N802, ARG002 - names and parameters of the methods are the protocol's

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import grpc
from google.protobuf import empty_pb2
from pulumi.runtime.proto import provider_pb2

from holdfast.scheduling.json import Json
from holdfast.simulator.errors import RehearsalError
from holdfast.simulator.kubernetes_client.errors import KubeUnreachable
from holdfast.simulator.kubernetes_provider.charts import ChartMirror
from holdfast.simulator.kubernetes_provider.helm import Helm
from holdfast.simulator.kubernetes_provider.inputs import Naming
from holdfast.simulator.kubernetes_provider.instances import Instances, Reach, everywhere
from holdfast.simulator.kubernetes_provider.invoking import invoke, refusal
from holdfast.simulator.kubernetes_provider.objects import Objects
from holdfast.simulator.kubernetes_provider.operation import Operation, Outcome, Resources
from holdfast.simulator.kubernetes_provider.out_of_reach import OutOfReach
from holdfast.simulator.kubernetes_provider.releases import Releases
from holdfast.simulator.kubernetes_provider.session import Session
from holdfast.simulator.kubernetes_provider.settings import Settings
from holdfast.simulator.kubernetes_provider.tokens import RELEASE
from holdfast.simulator.pulumi.faults import Faults
from holdfast.simulator.pulumi.values import from_struct, to_struct


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
