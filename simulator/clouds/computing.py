"""The outputs a cloud adds to what it was told."""

from holdfast.scheduling.json import JsonValue
from holdfast.simulator.clouds.catalogue import Making
from holdfast.simulator.clouds.resource_type import ResourceType
from holdfast.simulator.clouds.schema.annotations import output_properties
from holdfast.simulator.clouds.schema.types import Kind, Property, PropertyType
from holdfast.simulator.pulumi.values import UNKNOWN, Properties, Value

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
