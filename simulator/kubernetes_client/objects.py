"""One line that says what state an object is in, for messages about waits."""

from collections.abc import Mapping, Sequence
from typing import cast

from holdfast.scheduling.json import Json, JsonValue


def mapping(value: JsonValue) -> Json:
    """Return `value` if it is an object, else an empty one: absent and null read alike."""
    return value if isinstance(value, Mapping) else {}


def sequence(value: JsonValue) -> "Sequence[JsonValue]":
    """Return `value` if it is an array, else an empty one: absent and null read alike."""
    if isinstance(value, str) or not isinstance(value, Sequence):
        return ()
    return cast("Sequence[JsonValue]", value)


def identity(obj: Json) -> str:
    """Return `Kind namespace/name`, or `Kind name` for an object of the cluster's scope."""
    metadata = mapping(obj.get("metadata"))
    name, namespace = metadata.get("name"), metadata.get("namespace")
    return f"{obj.get('kind')} {namespace}/{name}" if namespace else f"{obj.get('kind')} {name}"


def summarize(obj: "Json | None") -> str:
    """Return what a reader wants to know of an object that is not in the state it should be in."""
    if obj is None:
        return "it does not exist"
    metadata, status = mapping(obj.get("metadata")), mapping(obj.get("status"))
    facts: list[str] = []
    if metadata.get("deletionTimestamp"):
        finalizers = ", ".join(map(str, sequence(metadata.get("finalizers"))))
        facts.append(f"being deleted, finalizers [{finalizers}]")
    if status.get("phase"):
        facts.append(f"phase {status['phase']}")
    facts += [_condition(mapping(each)) for each in sequence(status.get("conditions"))]
    return f"{identity(obj)}: {'; '.join(facts) or 'no status'}"


def _condition(condition: Json) -> str:
    words = f"{condition.get('type')}={condition.get('status')}"
    detail = condition.get("message") or condition.get("reason")
    return f"{words} ({detail})" if detail else words
