"""Reads fields of Kubernetes objects, any of which may be missing or of an unexpected type."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from pulumi_holdfast.ladder.json import Json, JsonValue, mapping, sequence


def metadata_of(obj: Json) -> Json:
    """Return an object's metadata, empty where it has none."""
    found = obj.get("metadata")
    return found if isinstance(found, dict) else mapping(found)


def text(value: JsonValue) -> str:
    """Return `value` if it is a string, else an empty one."""
    return value if isinstance(value, str) else ""


def count(value: JsonValue, default: int = 0) -> int:
    """Return `value` if it is an integer, else `default`."""
    return value if isinstance(value, int) and not isinstance(value, bool) else default


_MOST: Final = 2**31 - 1


def counter(value: JsonValue) -> int:
    """Return the counter of a status within the limits of the schemas, 0 if there is none."""
    return min(max(0, count(value)), _MOST)


#: No time outside of these is read: sums with it would overflow. Users may write any time, and the API server's own sums wrap.
EARLIEST: Final = datetime(2000, 1, 1, tzinfo=UTC)
LATEST: Final = datetime(2200, 1, 1, tzinfo=UTC)


def moment(value: JsonValue) -> datetime | None:
    """Return the time in a string, in UTC; None if it is not a time between 2000 and 2200."""
    try:
        found = datetime.fromisoformat(text(value))
        found = found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return None
    return found if EARLIEST <= found < LATEST else None


def stamp(at: datetime) -> str:
    """Return a time in Kubernetes' format, with its fractional seconds."""
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")


def objects(value: JsonValue) -> tuple[Json, ...]:
    """Return the objects in a list, none if there is no list."""
    return tuple(map(mapping, sequence(value)))


def labels_of(obj: Json) -> Json:
    """Return an object's labels, empty where it has none."""
    return mapping(metadata_of(obj).get("labels"))


def annotations_of(obj: Json) -> Json:
    """Return an object's annotations, empty where it has none."""
    return mapping(metadata_of(obj).get("annotations"))


def uid_of(obj: Json) -> str:
    """Return an object's uid."""
    return text(metadata_of(obj).get("uid"))


def name_of(obj: Json) -> str:
    """Return an object's name."""
    return text(metadata_of(obj).get("name"))


def namespace_of(obj: Json) -> str:
    """Return an object's namespace, empty where it has none."""
    return text(metadata_of(obj).get("namespace"))


def owner_of(obj: Json) -> Json:
    """Return the owner reference of an object's controller, empty without one."""
    for each in sequence(metadata_of(obj).get("ownerReferences")):
        owner = mapping(each)
        if owner.get("controller") is True:
            return owner
    return {}


def condition_of(obj: Json, kind: str) -> Json:
    """Return a condition of an object's status, empty if it has none of that type."""
    for each in sequence(mapping(obj.get("status")).get("conditions")):
        condition = mapping(each)
        if condition.get("type") == kind:
            return condition
    return {}
