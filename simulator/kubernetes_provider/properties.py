"""Between the engine's property values and Kubernetes objects."""

from collections.abc import Mapping, Sequence
from typing import cast

from holdfast.scheduling.json import Json, JsonValue
from holdfast.simulator.pulumi.values import Properties, Secret, Value, has_secret, reveal

# The SDKs cannot have a dash in a property's name; these fields of a CRD's schema do.
_DASHED = {
    f"x_kubernetes_{name}": f"x-kubernetes-{name.replace('_', '-')}"
    for name in (
        "embedded_resource",
        "int_or_string",
        "list_map_keys",
        "list_type",
        "map_type",
        "preserve_unknown_fields",
        "validations",
    )
}
_UNDERSCORED = {dashed: name for name, dashed in _DASHED.items()}
_SECRET_FIELDS = ("data", "stringData")


def to_object(properties: Properties) -> Json:
    """Return wholly known properties as the object the API server takes: secrets laid open, nulls left out."""
    return cast("Json", _to_json(reveal(properties)))


def to_properties(obj: Json) -> dict[str, Value]:
    """Return an object as properties, its fields under the names the SDKs know."""
    return cast("dict[str, Value]", _to_value(obj))


def fields(properties: Properties, name: str) -> Properties:
    """Return the object at a property, looking through secretness; empty when absent or unknown."""
    value = properties.get(name)
    if isinstance(value, Secret):
        value = value.value
    return value if isinstance(value, Mapping) else {}


def mark_secrets(shown: Properties, known: Properties) -> dict[str, Value]:
    """Return `shown` with secret what is secret in `known`, and always what a Secret holds."""
    marked = dict(shown)
    if marked.get("kind") == "Secret":
        for name in _SECRET_FIELDS:
            if name in marked and not isinstance(marked[name], Secret):
                marked[name] = Secret(marked[name])
        return marked
    for name, value in known.items():
        if name in marked:
            marked[name] = _marked(marked[name], value)
    return marked


def _marked(shown: Value, known: Value) -> Value:
    if isinstance(shown, Mapping) and isinstance(known, Mapping):
        return mark_secrets(shown, known)
    if has_secret(known) and not isinstance(shown, Secret):
        return Secret(shown)
    return shown


def _to_json(value: JsonValue) -> JsonValue:
    if isinstance(value, Mapping):
        return {_DASHED.get(key, key): _to_json(item) for key, item in value.items() if item is not None}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_to_json(item) for item in value]
    return value


def _to_value(value: JsonValue) -> Value:
    if isinstance(value, Mapping):
        return {_UNDERSCORED.get(key, key): _to_value(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_to_value(item) for item in value]
    return value
