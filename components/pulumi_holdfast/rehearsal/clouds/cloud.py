"""A simulated cloud: applies a provider's calls to the stored objects."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import cast

from pulumi_holdfast.ladder.json import Json, JsonValue
from pulumi_holdfast.rehearsal.clouds.answers import NO_ANSWERS, Answers, how_to_answer
from pulumi_holdfast.rehearsal.clouds.catalogue import (
    Call,
    Catalogue,
    Deletion,
    ResourceRequest,
    ResourceType,
    Rules,
)
from pulumi_holdfast.rehearsal.clouds.machines import SimulatedMachine, machines_in
from pulumi_holdfast.rehearsal.clouds.schema import Schema, fits
from pulumi_holdfast.rehearsal.clouds.sdk import Property, PropertyType, ValueKind, output_properties
from pulumi_holdfast.rehearsal.clouds.state import CloudObject, CloudState, Inventory
from pulumi_holdfast.rehearsal.engine.values import UNKNOWN, Properties, Value, has_unknown, reveal
from pulumi_holdfast.rehearsal.errors import RehearsalError


@dataclass(frozen=True, kw_only=True)
class ResourceReference:
    """The type and URN of a resource, and the configuration of its provider instance."""

    type: str
    urn: str
    configuration: Json


class SimulatedCloud:
    """The cloud of one package. Each call reads and writes the state file."""

    def __init__(
        self, schema: Schema, catalogue: Catalogue, state: CloudState, answers: Answers = NO_ANSWERS
    ) -> None:
        self.schema = schema
        self.catalogue = catalogue
        self.state = state
        self._answers = answers

    def kind(self, token: str) -> ResourceType:
        """Return a resource type. Raises UnknownTypeError."""
        rules = self.catalogue.resources.get(token, Rules())
        return ResourceType(schema=self.schema.resource(token), rules=rules, catalogue=self.catalogue)

    def plan(self, token: str, inputs: Properties) -> dict[str, Value]:
        """Return the outputs of a create in a preview."""
        return {**inputs, **planned_values(self.kind(token), inputs)}

    def create(self, reference: ResourceReference, inputs: Properties) -> CloudObject:
        """Create an object. Raises RehearsalError with the cloud's error."""
        kind = self.kind(reference.type)
        with self.state.changing() as inventory:
            digest = _digest(f"{reference.urn}|{inventory.next_generation(reference.urn)}")
            nameless = self._request(kind, reference, _json(inputs), digest, inventory)
            request = replace(nameless, id=(kind.rules.identify or self.catalogue.identify)(nameless))
            self._refuse_taken(kind, request)
            _refuse(refusal(request) for refusal in kind.rules.refuse_create)
            made = _made(kind, request, reference.urn)
            inventory.put(made)
        return made

    def read(self, token: str, object_id: str) -> CloudObject | None:
        """Return an object, None where it does not exist."""
        self.kind(token)
        return self.state.read().find(token, object_id)

    def plan_update(
        self, reference: ResourceReference, object_id: str, inputs: Properties
    ) -> dict[str, Value]:
        """Return the outputs of an update in a preview."""
        kind = self.kind(reference.type)
        inventory = self.state.read()
        current = self._existing(reference.type, object_id, inventory)
        known = self.catalogue.known_while_updating
        if has_unknown(inputs):
            planned = {**current.computed, **inputs, **planned_computed(kind, inputs)}
        else:
            planned = {**inputs, **self._updated(kind, reference, current, inputs, inventory).computed}
        if known is None:
            return planned
        return {
            name: value if name in inputs or name in known else UNKNOWN for name, value in planned.items()
        }

    def update(self, reference: ResourceReference, object_id: str, inputs: Properties) -> CloudObject:
        """Update an object. Raises RehearsalError where it does not exist or the cloud refuses."""
        with self.state.changing() as inventory:
            current = self._existing(reference.type, object_id, inventory)
            changed = self._updated(self.kind(reference.type), reference, current, inputs, inventory)
            inventory.put(changed)
        return changed

    def delete(self, token: str, object_id: str) -> None:
        """Delete an object, where it exists.

        Raises RehearsalError where the cloud refuses.
        """
        kind = self.kind(token)
        with self.state.changing() as inventory:
            target = inventory.find(token, object_id)
            if target is not None:
                deletion = Deletion(target=target, inventory=inventory)
                _refuse(refusal(deletion) for refusal in kind.rules.refuse_delete)
                inventory.remove(token, object_id)

    def invoke(self, token: str, arguments: Properties, configuration: Json) -> Json:
        """Call a function of the cloud. Raises RehearsalError for one that is neither answered nor simulated."""
        answer = self._answers.find(token, _json(arguments))
        if answer is not None:
            return answer
        function = self.catalogue.invokes.get(token)
        if function is None:
            raise RehearsalError(
                f"function {token!r} of {self.schema.package} is not simulated. Write its result into a file, "
                f"{how_to_answer(token, _json(arguments))}, and pass it with --answers FILE"
            )
        return function(
            Call(
                token=token,
                arguments=_json(arguments),
                configuration=configuration,
                inventory=self.state.read(),
            )
        )

    def keeps_machines(self, token: str) -> bool:
        """Whether objects of a type have machines."""
        return token in self.catalogue.fleets

    def machines(self) -> list[SimulatedMachine]:
        """Return all machines of the cloud."""
        return machines_in(self.state.read(), self.catalogue.fleets)

    def _updated(
        self,
        kind: ResourceType,
        reference: ResourceReference,
        current: CloudObject,
        inputs: Properties,
        inventory: Inventory,
    ) -> CloudObject:
        digest = current.digest or _digest(f"{current.type}|{current.id}")
        request = replace(self._request(kind, reference, _json(inputs), digest, inventory), id=current.id)
        _refuse(refusal(request) for refusal in kind.rules.refuse_update)
        return _made(kind, request, current.urn)

    def _request(
        self,
        kind: ResourceType,
        reference: ResourceReference,
        inputs: Json,
        digest: str,
        inventory: Inventory,
    ) -> ResourceRequest:
        prefix = inputs.get(f"{kind.name_property}Prefix")
        made_up = f"{prefix}{digest[:10]}" if isinstance(prefix, str) and kind.name_property else ""
        return ResourceRequest(
            type=kind.token,
            name=kind.physical_name(inputs) or made_up,
            scope=kind.scope(inputs),
            digest=digest,
            inputs=inputs,
            configuration=reference.configuration,
            inventory=inventory,
        )

    def _existing(self, token: str, object_id: str, inventory: Inventory) -> CloudObject:
        current = inventory.find(token, object_id)
        if current is None:
            raise RehearsalError(self.catalogue.messages.missing.format(type=token, id=object_id))
        return current

    def _refuse_taken(self, kind: ResourceType, request: ResourceRequest) -> None:
        def is_same(other: CloudObject) -> bool:
            names = (kind.physical_name(other.outputs), kind.scope(other.outputs))
            return other.id == request.id or bool(request.name and names == (request.name, request.scope))

        if kind.rules.overwrites:
            return
        if any(is_same(other) for other in request.inventory.of_type(request.type)):
            message = kind.rules.taken or self.catalogue.messages.taken
            raise RehearsalError(message.format(type=request.type, name=request.name or request.id))


def _made(kind: ResourceType, request: ResourceRequest, urn: str) -> CloudObject:
    return CloudObject(
        type=request.type,
        id=request.id,
        urn=urn,
        inputs=kind.rules.keeps(request),
        computed=computed_values(kind, request),
        digest=request.digest,
    )


def _refuse(refusals: Iterable[str | None]) -> None:
    message = next((one for one in refusals if one is not None), None)
    if message is not None:
        raise RehearsalError(message)


def _json(properties: Properties) -> Json:
    return cast("Json", reveal(properties))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


# Types can be recursive (IAM statements, JSON schemas); below this depth values are empty.
_DEEPEST = 4


def computed_values(kind: ResourceType, request: ResourceRequest) -> dict[str, JsonValue]:
    """Return the outputs that the cloud adds to an object's inputs, in the types of the SDK.

    Without a rule, an output that is also an input is empty; others are placeholders, zeros, or objects of these.
    """
    values = {name: rule(request) for name, rule in kind.computed.items()}
    for name in _filled_in(kind, request.inputs):
        is_name = name == kind.name_property
        values[name] = request.name if is_name else _made_up(kind, request, kind.schema.outputs[name])
    return {name: value for name, value in values.items() if value is not None}


def planned_values(kind: ResourceType, inputs: Properties) -> dict[str, Value]:
    """Return the computed outputs of a preview, most of them unknown."""
    return {**dict.fromkeys(_filled_in(kind, inputs), UNKNOWN), **planned_computed(kind, inputs)}


def planned_computed(kind: ResourceType, inputs: Properties) -> dict[str, Value]:
    """Return the outputs with a rule in a preview: the rule's planned value, or else what the program sets, the rest unknown."""
    planned = {name: plan(inputs) for name, plan in kind.rules.planned.items()}
    outputs = kind.schema.outputs
    return {**{name: _rest_unknown(inputs.get(name), outputs.get(name)) for name in kind.computed}, **planned}


def _rest_unknown(given: Value, output: Property | None) -> Value:
    """Return an input as an output of a preview.

    The cloud may fill in what an object leaves out (`clusterSecurityGroupId`), and the SDK refuses what has another kind in the
    outputs: the ids of an identity are a list in a program, and then a mapping.
    """
    if given is None:
        return UNKNOWN
    shapes = [each.shape for each in output.types if each.shape is not None] if output else []
    if not isinstance(given, Mapping) or not shapes:
        return given
    members = output_properties(shapes[0])
    kept = {name: each for name, each in given.items() if name in members and fits(each, members[name].types)}
    return {**dict.fromkeys(members, UNKNOWN), **kept}


def _filled_in(kind: ResourceType, inputs: Properties) -> list[str]:
    ruled = kind.computed
    return [
        name
        for name, output in kind.schema.outputs.items()
        if output.required and name not in ruled and inputs.get(name) is None
    ]


def _made_up(kind: ResourceType, request: ResourceRequest, output: Property) -> JsonValue:
    first = output.types[0] if output.types else PropertyType(kind=ValueKind.ANY)
    if output.name in kind.schema.inputs:
        return _empty(first)
    return _invented(kind, request, output.name, first, depth=0)


def _empty(shape: PropertyType) -> JsonValue:
    empties: dict[ValueKind, JsonValue] = {
        ValueKind.STRING: "",
        ValueKind.NUMBER: 0,
        ValueKind.BOOL: False,
        ValueKind.LIST: [],
        ValueKind.MAP: {},
    }
    return empties.get(shape.kind)


def _invented(
    kind: ResourceType, request: ResourceRequest, path: str, shape: PropertyType, *, depth: int
) -> JsonValue:
    if shape.kind is ValueKind.STRING:
        return kind.catalogue.text(request, path)
    if shape.kind is ValueKind.OBJECT and shape.shape is not None and depth < _DEEPEST:
        members = output_properties(shape.shape).values()
        return {
            one.name: _invented(kind, request, f"{path}.{one.name}", one.types[0], depth=depth + 1)
            for one in members
            if one.required and one.types
        }
    if (
        shape.kind is ValueKind.LIST
        and shape.item
        and shape.item[0].kind is ValueKind.OBJECT
        and depth < _DEEPEST
    ):
        return [_invented(kind, request, f"{path}[0]", shape.item[0], depth=depth + 1)]
    return _empty(shape)
