"""Makes the objects of two runs comparable: random names are replaced by the resource they belong to."""

import hashlib
import json
import re
from collections.abc import Iterable
from typing import Final

from pulumi_holdfast.ladder.json import JsonValue
from pulumi_holdfast.rehearsal.clouds.state import CloudObject

_GUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def comparable(objects: Iterable[CloudObject]) -> tuple[str, ...]:
    """Return a sorted line for each object: its URN and a digest of its content, equal in every run."""
    kept = list(objects)
    drawn = _drawn_names(kept)
    return tuple(sorted(f"{one.urn} ({_digest(one, drawn)})" for one in kept))


def _digest(one: CloudObject, drawn: dict[str, str]) -> str:
    content = json.dumps([one.id, one.inputs, one.computed], sort_keys=True)
    # The longest first: a name can be part of another.
    for name in sorted(drawn, key=len, reverse=True):
        content = content.replace(name, drawn[name])
    return hashlib.sha256(content.encode()).hexdigest()[:12]


def _drawn_names(objects: Iterable[CloudObject]) -> dict[str, str]:
    claims: dict[str, set[str]] = {}
    for one in objects:
        for value in one.inputs.values():
            if isinstance(value, str) and (
                _is_drawn(value, _logical_name(one.urn)) or _is_its_guid(value, one)
            ):
                claims.setdefault(value, set()).add(one.urn)
    return {value: f"<name of {_owner(urns)}>" for value, urns in claims.items()}


def _owner(urns: Iterable[str]) -> str:
    """Return the resource of a name; of several candidates the one with the shortest logical name."""
    return min(urns, key=lambda urn: (len(_logical_name(urn)), urn))


def _logical_name(urn: str) -> str:
    return urn.rsplit("::", 1)[-1]


def _is_its_guid(value: str, one: CloudObject) -> bool:
    """Whether a value is a GUID in the id of its object, which a program derives from other, also random, names."""
    return _GUID.fullmatch(value) is not None and one.id.endswith(f"/{value}")


def _is_drawn(value: JsonValue, logical_name: str) -> bool:
    """Whether a value is an autoname: the logical name, possibly truncated, with six or more random digits."""
    match = re.fullmatch(r"(.+?)[-_]?[0-9a-f]{6,}", str(value))
    return match is not None and _letters(logical_name).startswith(_letters(match.group(1)))


def _letters(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())
