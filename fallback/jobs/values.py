"""Numbers and times in JSON documents of which any part may be absent or not what it should be."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from holdfast.fallback.api.reading import mapping, metadata_of, sequence, text

if TYPE_CHECKING:
    from holdfast.scheduling.json import Json, JsonValue

__all__ = [
    "condition_of",
    "count",
    "mapping",
    "metadata_of",
    "moment",
    "name_of",
    "namespace_of",
    "objects",
    "owner_of",
    "stamp",
    "text",
    "uid_of",
]


def count(value: JsonValue, default: int = 0) -> int:
    """Return `value` if it is a whole number, else `default`."""
    return value if isinstance(value, int) and not isinstance(value, bool) else default


def moment(value: JsonValue) -> datetime | None:
    """Return the time a text tells, in UTC; None where it tells none."""
    try:
        found = datetime.fromisoformat(text(value))
    except ValueError:
        return None
    return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)


def stamp(at: datetime) -> str:
    """Return a time as Kubernetes writes it, with as many digits as it has."""
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")


def objects(value: JsonValue) -> tuple[Json, ...]:
    """Return the objects in a list, none where there is no list."""
    return tuple(map(mapping, sequence(value)))


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
    """Return the reference to the controller that owns an object, empty where none does."""
    owners = objects(metadata_of(obj).get("ownerReferences"))
    return next((each for each in owners if each.get("controller") is True), mapping(None))


def condition_of(obj: Json, kind: str) -> Json:
    """Return a condition of an object's status, empty where it has none of that type."""
    conditions = objects(mapping(obj.get("status")).get("conditions"))
    return next((each for each in conditions if each.get("type") == kind), mapping(None))
