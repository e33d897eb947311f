"""Converts the engine's property values between protobuf structs and Python."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from google.protobuf import struct_pb2

from pulumi_holdfast.ladder.json import JsonValue
from pulumi_holdfast.rehearsal.errors import RehearsalError

# Fixed by the engine's wire format (sdk/go/common/resource/properties.go and .../components/pulumi_holdfast/cli/kubectl/rpc.go).
_SIGNATURE_KEY = "4dabf18193072939515e22adb298388d"
_SECRET = "1b47061264138c4ac30d75fd1eb44270"  # noqa: S105 - a tag of the wire format, not a password
_OUTPUT = "d0e6a833031e9bbcd3f4e8bde6ca49a4"
_RESOURCE = "5cf8f73096256a8f31e491e813e4eb8e"
_ASSET = "c44067f5952c0a294b673a41bacd8c17"
_ARCHIVE = "0def7320c3a5731c473e5ecbe6d01bc7"
_UNKNOWN_STRING = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
UNKNOWN_STRINGS = frozenset(
    {
        _UNKNOWN_STRING,
        "1c4a061d-8072-4f0a-a4cb-0ff528b18fe7",  # bool
        "3eeb2bf0-c639-47a8-9e75-3b44932eb421",  # number
        "6a19a0b0-7e62-4c92-b797-7f8e31da9cc2",  # array
        "030794c1-ac77-496b-92df-f27374a8bd58",  # asset
        "e48ece36-62e2-4504-bad9-02848725956a",  # archive
        "dd056dcd-154b-4c76-9bd3-c8f88648b5ff",  # object
    }
)


class Unknown(Enum):
    """The type of `UNKNOWN`, a value that exists only after `up`."""

    UNKNOWN = _UNKNOWN_STRING

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN = Unknown.UNKNOWN


@dataclass(frozen=True)
class Secret:
    """A value that the engine encrypts; never shown in a message."""

    value: "Value"

    def __repr__(self) -> str:
        return "Secret(…)"


Value: TypeAlias = (
    "bool | int | float | str | Unknown | Secret | Sequence[Value] | Mapping[str, Value] | None"
)
Properties: TypeAlias = Mapping[str, Value]


def from_struct(struct: struct_pb2.Struct) -> dict[str, Value]:
    """Return the properties in a struct, whole numbers as `int`.

    Raises RehearsalError for a file asset or archive: the simulated clouds store only JSON.
    """
    return {key: _decode(value, key) for key, value in struct.fields.items()}


def to_struct(properties: Properties) -> struct_pb2.Struct:
    """Return properties as a struct."""
    return struct_pb2.Struct(fields={key: _encode(value) for key, value in properties.items()})


def has_unknown(value: Value) -> bool:
    """Whether any part of a value is known only after `up`."""
    if isinstance(value, Secret):
        return has_unknown(value.value)
    if isinstance(value, Mapping):
        return any(has_unknown(item) for item in value.values())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return any(has_unknown(item) for item in value)
    return value is UNKNOWN


def has_secret(value: Value) -> bool:
    """Whether any part of a value is secret."""
    if isinstance(value, Mapping):
        return any(has_secret(item) for item in value.values())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return any(has_secret(item) for item in value)
    return isinstance(value, Secret)


def strip_secrets(value: Value) -> Value:
    """Return a value with its secrets unwrapped; unknown values stay."""
    if isinstance(value, Secret):
        return strip_secrets(value.value)
    if isinstance(value, Mapping):
        return {key: strip_secrets(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [strip_secrets(item) for item in value]
    return value


def reveal(value: Value) -> JsonValue:
    """Return a known value as JSON, with its secrets unwrapped.

    Raises ValueError where a part is unknown.
    """
    if isinstance(value, Unknown):
        raise ValueError(f"{value!r} has no JSON form")  # noqa: TRY004 - the value is wrong, not its type
    if isinstance(value, Secret):
        return reveal(value.value)
    if isinstance(value, Mapping):
        return {key: reveal(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [reveal(item) for item in value]
    return value


def _decode(value: struct_pb2.Value, path: str) -> Value:
    kind = value.WhichOneof("kind")
    if kind == "string_value":
        return UNKNOWN if value.string_value in UNKNOWN_STRINGS else value.string_value
    if kind == "number_value":
        number = value.number_value
        return int(number) if number.is_integer() else number
    if kind == "bool_value":
        return value.bool_value
    if kind == "list_value":
        return [_decode(item, f"{path}[{at}]") for at, item in enumerate(value.list_value.values)]
    if kind == "struct_value":
        return _decode_object(value.struct_value, path)
    return None


def _decode_object(struct: struct_pb2.Struct, path: str) -> Value:
    signature = struct.fields[_SIGNATURE_KEY].string_value if _SIGNATURE_KEY in struct.fields else ""
    if signature == _SECRET:
        return Secret(_decode(struct.fields["value"], path))
    if signature == _OUTPUT:
        return _decode_output(struct, path)
    if signature == _RESOURCE:
        return _decode_reference(struct, path)
    if signature in (_ASSET, _ARCHIVE):
        raise RehearsalError(
            f"{path}: a file asset or archive cannot be simulated; pass its content as text, "
            "or remove the resource from simulated stacks"
        )
    return {key: _decode(item, f"{path}.{key}") for key, item in struct.fields.items()}


def _decode_output(struct: struct_pb2.Struct, path: str) -> Value:
    value = _decode(struct.fields["value"], path) if "value" in struct.fields else UNKNOWN
    is_secret = "secret" in struct.fields and struct.fields["secret"].bool_value
    return Secret(value) if is_secret else value


def _decode_reference(struct: struct_pb2.Struct, path: str) -> Value:
    """Return the id of a resource, or the URN of a component, which has no id."""
    name = "id" if "id" in struct.fields else "urn"
    return _decode(struct.fields[name], path)


def _encode(value: Value) -> struct_pb2.Value:
    if value is None:
        return struct_pb2.Value(null_value=struct_pb2.NULL_VALUE)
    if isinstance(value, Unknown):
        return struct_pb2.Value(string_value=_UNKNOWN_STRING)
    if isinstance(value, Secret):
        fields = {_SIGNATURE_KEY: struct_pb2.Value(string_value=_SECRET), "value": _encode(value.value)}
        return struct_pb2.Value(struct_value=struct_pb2.Struct(fields=fields))
    if isinstance(value, bool):
        return struct_pb2.Value(bool_value=value)
    if isinstance(value, int | float):
        return struct_pb2.Value(number_value=value)
    if isinstance(value, str):
        return struct_pb2.Value(string_value=value)
    if isinstance(value, Mapping):
        return struct_pb2.Value(struct_value=to_struct(value))
    items = [_encode(item) for item in value]
    return struct_pb2.Value(list_value=struct_pb2.ListValue(values=items))
