"""A stand-in cloud: what a provider's calls do to the objects it keeps."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import cast

from holdfast.scheduling.json import Json, JsonValue
from holdfast.simulator.clouds.catalogue import Call, Catalogue, Making, Removal, ResourceType, Rules
from holdfast.simulator.clouds.machines import Machine, machines_in
from holdfast.simulator.clouds.schema import Schema
from holdfast.simulator.clouds.sdk import Kind, Property, PropertyType, output_properties
from holdfast.simulator.clouds.state import CloudObject, CloudState, Inventory
from holdfast.simulator.errors import RehearsalError
from holdfast.simulator.pulumi.values import UNKNOWN, Properties, Value, has_unknown, reveal


@dataclass(frozen=True, kw_only=True)
class Asked:
    """Who a call is about, and the configuration of the provider instance it came through."""

    type: str
    urn: str
    configuration: Json


class Cloud:
    """One package's cloud. Every call reads and writes the state file: nothing is remembered in between."""

    def __init__(self, schema: Schema, catalogue: Catalogue, state: CloudState) -> None:
        self.schema = schema
        self.catalogue = catalogue
        self.state = state

    def kind(self, token: str) -> ResourceType:
        """Return what is known of a type. Raises UnknownTypeError."""
        rules = self.catalogue.resources.get(token, Rules())
        return ResourceType(schema=self.schema.resource(token), rules=rules, catalogue=self.catalogue)

    def plan(self, token: str, inputs: Properties) -> dict[str, Value]:
        """Return the outputs of a create that is only previewed."""
        return {**inputs, **planned_values(self.kind(token), inputs)}

    def create(self, asked: Asked, inputs: Properties) -> CloudObject:
        """Make an object. Raises RehearsalError, in the cloud's words, where the cloud refuses."""
        kind = self.kind(asked.type)
        with self.state.changing() as inventory:
            digest = _digest(f"{asked.urn}|{inventory.next_generation(asked.urn)}")
            nameless = self._making(kind, asked, _json(inputs), digest, inventory)
            making = replace(nameless, id=(kind.rules.identify or self.catalogue.identify)(nameless))
            self._refuse_taken(kind, making)
            _refuse(refusal(making) for refusal in kind.rules.refuse_create)
            made = _made(kind, making, asked.urn)
            inventory.put(made)
        return made

    def read(self, token: str, object_id: str) -> CloudObject | None:
        """Return an object as it is, None where there is none."""
        self.kind(token)
        return self.state.read().find(token, object_id)

    def plan_update(self, asked: Asked, object_id: str, inputs: Properties) -> dict[str, Value]:
        """Return the outputs of an update that is only previewed."""
        kind = self.kind(asked.type)
        inventory = self.state.read()
        current = self._existing(asked.type, object_id, inventory)
        known = self.catalogue.known_while_updating
        if has_unknown(inputs):
            planned = {**current.computed, **inputs, **planned_computed(kind, inputs)}
        else:
            planned = {**inputs, **self._updated(kind, asked, current, inputs, inventory).computed}
        if known is None:
            return planned
        return {
            name: value if name in inputs or name in known else UNKNOWN for name, value in planned.items()
        }

    def update(self, asked: Asked, object_id: str, inputs: Properties) -> CloudObject:
        """Change an object in place. Raises RehearsalError where it is gone or the cloud refuses."""
        with self.state.changing() as inventory:
            current = self._existing(asked.type, object_id, inventory)
            changed = self._updated(self.kind(asked.type), asked, current, inputs, inventory)
            inventory.put(changed)
        return changed

    def delete(self, token: str, object_id: str) -> None:
        """Remove an object; one that is gone already is as good as removed.

        Raises RehearsalError where the cloud refuses.
        """
        kind = self.kind(token)
        with self.state.changing() as inventory:
            target = inventory.find(token, object_id)
            if target is not None:
                removal = Removal(target=target, inventory=inventory)
                _refuse(refusal(removal) for refusal in kind.rules.refuse_delete)
                inventory.remove(token, object_id)

    def invoke(self, token: str, arguments: Properties, configuration: Json) -> Json:
        """Call a function of the cloud. Raises RehearsalError for one that is not rehearsed."""
        function = self.catalogue.invokes.get(token)
        if function is None:
            known = ", ".join(sorted(self.catalogue.invokes)) or "none"
            raise RehearsalError(
                f"function {token!r} is not rehearsed; of {self.schema.package} these are: {known}. "
                "Pass its result as configuration, or add it to the package's invokes in simulator/clouds"
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
        """Whether objects of a type keep machines running."""
        return token in self.catalogue.fleets

    def machines(self) -> list[Machine]:
        """Return every machine that runs now because some object keeps it running."""
        return machines_in(self.state.read(), self.catalogue.fleets)

    def _updated(
        self, kind: ResourceType, asked: Asked, current: CloudObject, inputs: Properties, inventory: Inventory
    ) -> CloudObject:
        digest = current.digest or _digest(f"{current.type}|{current.id}")
        making = replace(self._making(kind, asked, _json(inputs), digest, inventory), id=current.id)
        _refuse(refusal(making) for refusal in kind.rules.refuse_update)
        return _made(kind, making, current.urn)

    def _making(
        self, kind: ResourceType, asked: Asked, inputs: Json, digest: str, inventory: Inventory
    ) -> Making:
        prefix = inputs.get(f"{kind.name_property}Prefix")
        made_up = f"{prefix}{digest[:10]}" if isinstance(prefix, str) and kind.name_property else ""
        return Making(
            type=kind.token,
            name=kind.physical_name(inputs) or made_up,
            scope=kind.scope(inputs),
            digest=digest,
            inputs=inputs,
            configuration=asked.configuration,
            inventory=inventory,
        )

    def _existing(self, token: str, object_id: str, inventory: Inventory) -> CloudObject:
        current = inventory.find(token, object_id)
        if current is None:
            raise RehearsalError(self.catalogue.messages.missing.format(type=token, id=object_id))
        return current

    def _refuse_taken(self, kind: ResourceType, making: Making) -> None:
        def is_same(other: CloudObject) -> bool:
            names = (kind.physical_name(other.outputs), kind.scope(other.outputs))
            return other.id == making.id or bool(making.name and names == (making.name, making.scope))

        if kind.rules.overwrites:
            return
        if any(is_same(other) for other in making.inventory.of_type(making.type)):
            message = kind.rules.taken or self.catalogue.messages.taken
            raise RehearsalError(message.format(type=making.type, name=making.name or making.id))


def _made(kind: ResourceType, making: Making, urn: str) -> CloudObject:
    return CloudObject(
        type=making.type,
        id=making.id,
        urn=urn,
        inputs=kind.rules.keeps(making),
        computed=computed_values(kind, making),
        digest=making.digest,
    )


def _refuse(refusals: Iterable[str | None]) -> None:
    message = next((one for one in refusals if one is not None), None)
    if message is not None:
        raise RehearsalError(message)


def _json(properties: Properties) -> Json:
    return cast("Json", reveal(properties))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


# A shape may hold itself (IAM statements, JSON schemas): deeper than this nothing is made up.
_DEEPEST = 4


def computed_values(kind: ResourceType, making: Making) -> dict[str, JsonValue]:
    """Return everything the cloud adds to an object's inputs, typed as the SDK says.

    A rule of the cloud's own decides; else an output that could have been set is empty, and one that could
    not is a text saying whose it is, a zero, or an object of such.
    """
    values = {name: rule(making) for name, rule in kind.computed.items()}
    for name in _filled_in(kind, making.inputs):
        is_name = name == kind.name_property
        values[name] = making.name if is_name else _made_up(kind, making, kind.schema.outputs[name])
    return {name: value for name, value in values.items() if value is not None}


def planned_values(kind: ResourceType, inputs: Properties) -> dict[str, Value]:
    """Return what is known of the outputs before a create: that the computed ones are not known."""
    return {**dict.fromkeys(_filled_in(kind, inputs), UNKNOWN), **planned_computed(kind, inputs)}


def planned_computed(kind: ResourceType, inputs: Properties) -> dict[str, Value]:
    """Return what is known of the outputs for which the cloud has a rule: nothing, unless the cloud says how much."""
    planned = {name: plan(inputs) for name, plan in kind.rules.planned.items()}
    return {**dict.fromkeys(kind.computed, UNKNOWN), **planned}


def _filled_in(kind: ResourceType, inputs: Properties) -> list[str]:
    ruled = kind.computed
    return [
        name
        for name, output in kind.schema.outputs.items()
        if output.required and name not in ruled and inputs.get(name) is None
    ]


def _made_up(kind: ResourceType, making: Making, output: Property) -> JsonValue:
    first = output.types[0] if output.types else PropertyType(kind=Kind.ANY)
    if output.name in kind.schema.inputs:
        return _empty(first)
    return _invented(kind, making, output.name, first, depth=0)


def _empty(shape: PropertyType) -> JsonValue:
    empties: dict[Kind, JsonValue] = {
        Kind.STRING: "",
        Kind.NUMBER: 0,
        Kind.BOOL: False,
        Kind.LIST: [],
        Kind.MAP: {},
    }
    return empties.get(shape.kind)


def _invented(kind: ResourceType, making: Making, path: str, shape: PropertyType, *, depth: int) -> JsonValue:
    if shape.kind is Kind.STRING:
        return kind.catalogue.text(making, path)
    if shape.kind is Kind.OBJECT and shape.shape is not None and depth < _DEEPEST:
        members = output_properties(shape.shape).values()
        return {
            one.name: _invented(kind, making, f"{path}.{one.name}", one.types[0], depth=depth + 1)
            for one in members
            if one.required and one.types
        }
    if shape.kind is Kind.LIST and shape.item and shape.item[0].kind is Kind.OBJECT and depth < _DEEPEST:
        return [_invented(kind, making, f"{path}[0]", shape.item[0], depth=depth + 1)]
    return _empty(shape)
