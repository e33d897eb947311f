"""The engine's resources, as they come over the wire, turned into ours.

Pulumi's policy SDK reads them anew for every policy, and raises at the touch of a property that a preview cannot know,
which turns the whole policy into advice, real violations beside it included. Here they are read once, and what is unknown
becomes `UNKNOWN`: each rule decides what hangs on it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pulumi_policy import proxy
from pulumi_policy.deserialize import SPECIAL_SECRET_SIG, SPECIAL_SIG_KEY

from holdfast.policies.findings import StackResource
from holdfast.policies.known_values import UNKNOWN, Value

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from google.protobuf.struct_pb2 import Struct
    from google.protobuf.struct_pb2 import Value as WireValue
    from pulumi.runtime.proto.analyzer_pb2 import AnalyzerResource

_UNKNOWNS: Final = frozenset(
    {
        proxy.UNKNOWN_BOOLEAN_VALUE,
        proxy.UNKNOWN_NUMBER_VALUE,
        proxy.UNKNOWN_STRING_VALUE,
        proxy.UNKNOWN_ARRAY_VALUE,
        proxy.UNKNOWN_ASSET_VALUE,
        proxy.UNKNOWN_ARCHIVE_VALUE,
        proxy.UNKNOWN_OBJECT_VALUE,
    }
)
# Objects below that depth are no resource's: it protects the rules, which follow values down.
_DEEPEST: Final = 64


def stack_resources(
    shown: Iterable[AnalyzerResource], asked: Mapping[str, Struct]
) -> Iterable[StackResource]:
    """Yield the engine's resources.

    `asked` is what they were asked to be, by URN: it stands in for properties that are not shown.
    """
    for resource in shown:
        props = known_props(resource.properties)
        before = asked.get(resource.urn)
        if before is not None:
            missing = {key: value(given) for key, given in before.fields.items() if key not in props}
            props = {**missing, **props}
        yield StackResource(
            type=resource.type,
            urn=resource.urn,
            props=props,
            is_protected=resource.options.protect,
            parent=resource.parent,
            refers_to={name: tuple(made_of.urns) for name, made_of in resource.propertyDependencies.items()},
        )


def known_props(properties: Struct) -> dict[str, Value]:
    """Return a resource's properties with what is unknown explicit."""
    return {key: value(given) for key, given in properties.fields.items()}


def value(given: WireValue, depth: int = 0) -> Value:
    """Return a property value with everything unknown beneath it explicit."""
    match given.WhichOneof("kind"):
        case "string_value":
            return UNKNOWN if given.string_value in _UNKNOWNS else given.string_value
        case "struct_value":
            return _of_object(given.struct_value, depth + 1)
        case "list_value":
            return [value(each, depth + 1) for each in given.list_value.values] if depth < _DEEPEST else []
        case "number_value":
            return given.number_value
        case "bool_value":
            return given.bool_value
        case _:
            return None


def _of_object(given: Struct, depth: int) -> Value:
    fields = given.fields
    if SPECIAL_SIG_KEY not in fields:
        return {key: value(each, depth) for key, each in fields.items()} if depth < _DEEPEST else {}
    if fields[SPECIAL_SIG_KEY].string_value == SPECIAL_SECRET_SIG:
        return value(fields["value"], depth)
    # Assets and archives: no rule looks inside one.
    return "an asset"
