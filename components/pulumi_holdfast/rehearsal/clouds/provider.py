"""The simulated provider of one package: connects the engine's calls to a simulated cloud."""

import hashlib
import re
import threading
from collections.abc import Iterable
from pathlib import Path

import grpc
from google.protobuf import empty_pb2
from pulumi.runtime.proto import provider_pb2

from pulumi_holdfast.rehearsal.clouds.answers import NO_ANSWERS, Answers
from pulumi_holdfast.rehearsal.clouds.catalogue import Autonaming, ResourceType, catalogue_of
from pulumi_holdfast.rehearsal.clouds.cloud import ResourceReference, SimulatedCloud
from pulumi_holdfast.rehearsal.clouds.machines import Nodes, NoNodes
from pulumi_holdfast.rehearsal.clouds.schema import Schema, Violation, violations
from pulumi_holdfast.rehearsal.clouds.state import CloudState
from pulumi_holdfast.rehearsal.engine.diff import changes, diff_response
from pulumi_holdfast.rehearsal.engine.faults import Faults
from pulumi_holdfast.rehearsal.engine.plugin import InitFailedError, Plugin
from pulumi_holdfast.rehearsal.engine.values import (
    Properties,
    Secret,
    Value,
    from_struct,
    has_secret,
    has_unknown,
    reveal,
    strip_secrets,
    to_struct,
)
from pulumi_holdfast.rehearsal.errors import FAILURES, RehearsalError

# ruff: noqa: N802, ARG002 - names and parameters of the methods are the protocol's


class CloudProvider(Plugin):
    """Replaces the provider plugin of one package, such as "aws" or "azure-native".

    `state_file` persists the objects between runs; `faults` are injected failures; `nodes` receives the machines of
    node groups; `answers` precede the functions of the simulated cloud. Raises RehearsalError where the package's SDK is not installed.
    """

    def __init__(
        self,
        package: str,
        state_file: Path,
        faults: Faults,
        *,
        nodes: Nodes | None = None,
        answers: Answers = NO_ANSWERS,
    ) -> None:
        schema = Schema.for_package(package)
        super().__init__(schema.version)
        self._catalogue = catalogue_of(package)
        self._cloud = SimulatedCloud(schema, self._catalogue, CloudState(state_file), answers)
        self._faults = faults
        self._nodes = nodes or NoNodes()
        self._settling = threading.Lock()

    def Check(
        self, request: provider_pb2.CheckRequest, context: grpc.ServicerContext
    ) -> provider_pb2.CheckResponse:
        """Validate inputs with the schema, and generate the physical name where it is missing."""
        kind = self._cloud.kind(request.type)
        given = {name: value for name, value in from_struct(request.news).items() if value is not None}
        found = violations(given, kind.schema)
        if found:
            return provider_pb2.CheckResponse(failures=check_failures(found))
        inputs = with_name(
            kind, request.name, inputs=given, old_inputs=from_struct(request.olds), seed=request.randomSeed
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
        """Create an object, or return its planned outputs in a preview."""
        inputs = from_struct(request.properties)
        if request.preview:
            planned = self._cloud.plan(request.type, inputs)
            return provider_pb2.CreateResponse(properties=to_struct(planned))
        self._faults.before_create(request.urn)
        made = self._cloud.create(self._reference(request, context), inputs)
        outputs = _keeping_secrets(made.outputs, inputs)
        try:
            self._settle_machines(request.type)
        except FAILURES as error:
            # As in a real cloud the object exists although its machines fail, so the engine must record it.
            raise InitFailedError(
                resource_id=made.id, properties=outputs, inputs=inputs, reasons=[str(error)]
            ) from error
        self._faults.after_create(request.urn)
        return provider_pb2.CreateResponse(id=made.id, properties=to_struct(outputs))

    def Read(
        self, request: provider_pb2.ReadRequest, context: grpc.ServicerContext
    ) -> provider_pb2.ReadResponse:
        """Return an object; nothing for a missing one, which a refresh then drops.

        A refresh passes inputs and gets the current values of these; an import passes none and gets all.
        """
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
        """Update an object, or return its planned outputs in a preview."""
        inputs = from_struct(request.news)
        reference = self._reference(request, context)
        if request.preview:
            planned = self._cloud.plan_update(reference, request.id, inputs)
            return provider_pb2.UpdateResponse(properties=to_struct(planned))
        changed = self._cloud.update(reference, request.id, inputs)
        self._settle_machines(request.type)
        return provider_pb2.UpdateResponse(properties=to_struct(_keeping_secrets(changed.outputs, inputs)))

    def Delete(self, request: provider_pb2.DeleteRequest, context: grpc.ServicerContext) -> empty_pb2.Empty:
        """Delete an object."""
        self._cloud.delete(request.type, request.id)
        self._settle_machines(request.type)
        self._faults.after_delete(request.urn)
        return empty_pb2.Empty()

    def Invoke(
        self, request: provider_pb2.InvokeRequest, context: grpc.ServicerContext
    ) -> provider_pb2.InvokeResponse:
        """Call a function of the cloud."""
        result = self._cloud.invoke(request.tok, from_struct(request.args), self.configuration(context))
        response = provider_pb2.InvokeResponse()
        getattr(response, "return").CopyFrom(to_struct(result))
        return response

    def Construct(
        self, request: provider_pb2.ConstructRequest, context: grpc.ServicerContext
    ) -> provider_pb2.ConstructResponse:
        """Refuse the components of packages, which only their plugins implement."""
        raise RehearsalError(
            f"component {request.type!r} is not simulated; register its resources in the program"
        )

    def Call(
        self, request: provider_pb2.CallRequest, context: grpc.ServicerContext
    ) -> provider_pb2.CallResponse:
        """Refuse the methods of components."""
        raise RehearsalError(f"method {request.tok!r} is not simulated; use the component's outputs instead")

    def _settle_machines(self, token: str) -> None:
        """Reconcile the nodes with the machines of all groups."""
        if self._cloud.keeps_machines(token):
            with self._settling:
                self._nodes.keep(self._cloud.machines)

    def _reference(
        self, request: provider_pb2.CreateRequest | provider_pb2.UpdateRequest, context: grpc.ServicerContext
    ) -> ResourceReference:
        return ResourceReference(
            type=request.type, urn=request.urn, configuration=self.configuration(context)
        )


def _keeping_secrets(shown: Properties, known: Properties) -> dict[str, Value]:
    """Mark values as secret that are secret in `known`; the cloud does not store secrecy."""
    return {name: Secret(value) if has_secret(known.get(name)) else value for name, value in shown.items()}


def with_name(
    kind: ResourceType, logical_name: str, *, inputs: Properties, old_inputs: Properties, seed: bytes
) -> dict[str, Value]:
    """Return inputs with a physical name: the given one, the previously generated one, or a new one from the seed.

    Raises RehearsalError where a generated name is longer than the cloud allows.
    """
    prop = kind.name_property
    if not prop or prop in inputs or f"{prop}Prefix" in inputs:
        return dict(inputs)
    old = strip_secrets(old_inputs.get(prop))
    # Found under an alias, a resource has a name that was generated from its former logical name.
    if isinstance(old, str) and is_autoname(old, None, kind.catalogue.autonaming):
        return {**inputs, prop: old}
    return {**inputs, prop: _new_name(kind, logical_name, seed)}


def is_autoname(name: str, logical_name: str | None, autonaming: Autonaming) -> bool:
    """Whether a physical name was generated from a logical one, or from any."""
    begins = ".+" if logical_name is None else re.escape(logical_name)
    shape = f"{begins}{re.escape(autonaming.separator)}[0-9a-f]{{{autonaming.digits}}}"
    return re.fullmatch(shape, name) is not None


def _new_name(kind: ResourceType, logical_name: str, seed: bytes) -> str:
    autonaming = kind.catalogue.autonaming
    digest = hashlib.sha256(seed + kind.token.encode() + logical_name.encode()).hexdigest()
    name = f"{logical_name}{autonaming.separator}{digest[: autonaming.digits]}"
    longest = kind.rules.longest_name
    if longest is not None and len(name) > longest:
        raise RehearsalError(
            f"{kind.token} {logical_name!r}: the generated name {name!r} has {len(name)} characters of at "
            f"most {longest}; shorten the resource's name or set {kind.name_property!r}"
        )
    return name


def resource_diff(
    kind: ResourceType, logical_name: str, *, old: Properties, new: Properties
) -> provider_pb2.DiffResponse:
    """Return the effect of changed inputs on a resource.

    A replacement is created before the delete, unless both would have the name that the program sets.
    """
    keeps = _given_name(kind, logical_name, old)
    clashes = keeps is not None and keeps == _given_name(kind, logical_name, new)
    found = changes(old, new)
    fixed = kind.immutable | kind.rules.force_replace(old, new)
    replacing = [change for change in found if change.within(fixed)]
    return diff_response(found, replacing=replacing, deletes_first=clashes)


def check_failures(found: Iterable[Violation]) -> list[provider_pb2.CheckFailure]:
    """Return violations as the engine's message."""
    return [provider_pb2.CheckFailure(property=one.path, reason=one.reason) for one in found]


def _given_name(kind: ResourceType, logical_name: str, inputs: Properties) -> tuple[str, ...] | None:
    """Return the name and its scope where the program sets them, None for a generated name."""
    known = {name: reveal(value) for name, value in inputs.items() if not has_unknown(value)}
    name = kind.physical_name(known)
    if not name or is_autoname(name, logical_name, kind.catalogue.autonaming):
        return None
    return (name, *kind.scope(known))
