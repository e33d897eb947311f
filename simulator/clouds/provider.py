"""The stand-in for one cloud provider: answers the engine's calls from a stand-in cloud."""

# ruff: noqa: N802, ARG002 - names and parameters of the methods are the protocol's

import threading
from pathlib import Path

import grpc
from google.protobuf import empty_pb2
from pulumi.runtime.proto import provider_pb2

from holdfast.simulator.clouds.answers import check_failures, resource_diff
from holdfast.simulator.clouds.catalogues import catalogue_of
from holdfast.simulator.clouds.cloud import Asked, Cloud
from holdfast.simulator.clouds.machines import Nodes, NoNodes
from holdfast.simulator.clouds.naming import with_name
from holdfast.simulator.clouds.schema.checking import violations
from holdfast.simulator.clouds.schema.package import Schema
from holdfast.simulator.clouds.state import CloudState
from holdfast.simulator.errors import RehearsalError
from holdfast.simulator.pulumi.faults import Faults
from holdfast.simulator.pulumi.plugin import Plugin
from holdfast.simulator.pulumi.serving import InitFailedError
from holdfast.simulator.pulumi.values import Properties, Secret, Value, from_struct, has_secret, to_struct


class CloudProvider(Plugin):
    """Stands in for the provider plugin of one package, such as "aws" or "azure-native".

    What it creates is kept in `state_file`, which outlives the run; `faults` are the failures it is to
    suffer; `nodes` is where the machines of node groups go. Raises RehearsalError where the package's SDK is not
    installed.
    """

    def __init__(self, package: str, state_file: Path, faults: Faults, *, nodes: Nodes | None = None) -> None:
        schema = Schema.for_package(package)
        super().__init__(schema.version)
        self._catalogue = catalogue_of(package)
        self._cloud = Cloud(schema, self._catalogue, CloudState(state_file))
        self._faults = faults
        self._nodes = nodes or NoNodes()
        self._settling = threading.Lock()

    def Check(
        self, request: provider_pb2.CheckRequest, context: grpc.ServicerContext
    ) -> provider_pb2.CheckResponse:
        """Refuse what the schema refuses; give a physical name to what has none."""
        kind = self._cloud.kind(request.type)
        given = {name: value for name, value in from_struct(request.news).items() if value is not None}
        found = violations(given, kind.schema)
        if found:
            return provider_pb2.CheckResponse(failures=check_failures(found))
        inputs = with_name(
            kind,
            request.name,
            inputs=given,
            old_inputs=from_struct(request.olds),
            seed=request.randomSeed,
        )
        return provider_pb2.CheckResponse(inputs=to_struct(inputs))

    def Diff(
        self, request: provider_pb2.DiffRequest, context: grpc.ServicerContext
    ) -> provider_pb2.DiffResponse:
        """Compare inputs property by property."""
        old, new = from_struct(request.old_inputs), from_struct(request.news)
        return resource_diff(self._cloud.kind(request.type), request.name, old=old, new=new)

    def Create(
        self, request: provider_pb2.CreateRequest, context: grpc.ServicerContext
    ) -> provider_pb2.CreateResponse:
        """Make an object, or on preview say what is known of it."""
        inputs = from_struct(request.properties)
        if request.preview:
            planned = self._cloud.plan(request.type, inputs)
            return provider_pb2.CreateResponse(properties=to_struct(planned))
        self._before_call("create", request.type)
        self._faults.before_create(request.urn)
        made = self._cloud.create(self._asked(request, context), inputs)
        outputs = _keeping_secrets(made.outputs, inputs)
        try:
            self._settle_machines(request.type)
        except RehearsalError as error:
            # The object is there, as one in a cloud whose machines fail: the engine must know of it.
            raise InitFailedError(
                resource_id=made.id, properties=outputs, inputs=inputs, reasons=[str(error)]
            ) from error
        self._faults.after_create(request.urn)
        return provider_pb2.CreateResponse(id=made.id, properties=to_struct(outputs))

    def Read(
        self, request: provider_pb2.ReadRequest, context: grpc.ServicerContext
    ) -> provider_pb2.ReadResponse:
        """Show an object as it is now; of a missing one nothing, so that a refresh drops it.

        With inputs it is a refresh: the same inputs are shown as they are now. Without, an import: all are.
        """
        self._before_call("read", request.type)
        found = self._cloud.read(request.type, request.id)
        if found is None:
            return provider_pb2.ReadResponse()
        before = from_struct(request.inputs)
        now = {name: value for name, value in found.inputs.items() if not before or name in before}
        return provider_pb2.ReadResponse(
            id=found.id,
            properties=to_struct(_keeping_secrets(found.outputs, from_struct(request.properties))),
            inputs=to_struct(_keeping_secrets(now, before)),
        )

    def Update(
        self, request: provider_pb2.UpdateRequest, context: grpc.ServicerContext
    ) -> provider_pb2.UpdateResponse:
        """Change an object in place, or on preview say what is known of the outcome."""
        inputs = from_struct(request.news)
        asked = self._asked(request, context)
        if request.preview:
            planned = self._cloud.plan_update(asked, request.id, inputs)
            return provider_pb2.UpdateResponse(properties=to_struct(planned))
        self._before_call("update", request.type)
        changed = self._cloud.update(asked, request.id, inputs)
        self._settle_machines(request.type)
        return provider_pb2.UpdateResponse(properties=to_struct(_keeping_secrets(changed.outputs, inputs)))

    def Delete(self, request: provider_pb2.DeleteRequest, context: grpc.ServicerContext) -> empty_pb2.Empty:
        """Remove an object."""
        self._before_call("delete", request.type)
        self._cloud.delete(request.type, request.id)
        self._settle_machines(request.type)
        self._faults.after_delete(request.urn)
        return empty_pb2.Empty()

    def Invoke(
        self, request: provider_pb2.InvokeRequest, context: grpc.ServicerContext
    ) -> provider_pb2.InvokeResponse:
        """Call a function of the cloud."""
        self._before_call("invoke", request.tok)
        result = self._cloud.invoke(request.tok, from_struct(request.args), self.configuration(context))
        response = provider_pb2.InvokeResponse()
        getattr(response, "return").CopyFrom(to_struct(result))
        return response

    def Construct(
        self, request: provider_pb2.ConstructRequest, context: grpc.ServicerContext
    ) -> provider_pb2.ConstructResponse:
        """Refuse the components of packages: what they would make is known to their plugins alone."""
        raise RehearsalError(
            f"component {request.type!r} is not rehearsed; make the resources it is made of in the program"
        )

    def Call(
        self, request: provider_pb2.CallRequest, context: grpc.ServicerContext
    ) -> provider_pb2.CallResponse:
        """Refuse the methods of components: none is rehearsed."""
        raise RehearsalError(
            f"method {request.tok!r} is not rehearsed; use the component's outputs instead of calling it"
        )

    def _settle_machines(self, token: str) -> None:
        """Bring the nodes in line with what now keeps machines running: whatever was left undone is done as well."""
        if self._cloud.keeps_machines(token):
            with self._settling:
                self._nodes.keep(self._cloud.machines)

    def _before_call(self, verb: str, token: str) -> None:
        self._faults.before_call(f"{verb} {token}", reason=self._catalogue.messages.throttled)

    def _asked(
        self, request: provider_pb2.CreateRequest | provider_pb2.UpdateRequest, context: grpc.ServicerContext
    ) -> Asked:
        return Asked(type=request.type, urn=request.urn, configuration=self.configuration(context))


def _keeping_secrets(shown: Properties, known: Properties) -> dict[str, Value]:
    """Mark as secret what is known to be: a cloud does not remember which of its values are."""
    return {name: Secret(value) if has_secret(known.get(name)) else value for name, value in shown.items()}
