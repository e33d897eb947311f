"""Reads registered inputs by path."""

from collections.abc import Mapping, Sequence
from typing import cast

from pulumi_holdfast.ladder.json import Json, JsonValue
from tests.support.fakes.pulumi_engine import Recorded


def value(source: Recorded | Json, *steps: str) -> JsonValue:
    """The value at a path, None if there is none."""
    found: JsonValue = source if isinstance(source, Mapping) else source.inputs
    for step in steps:
        found = found.get(step) if isinstance(found, Mapping) else None
    return found


def text(source: Recorded | Json, *steps: str) -> str:
    """The string at a path."""
    found = value(source, *steps)
    assert isinstance(found, str), f"{'.'.join(steps)} is {found!r}, not a string"
    return found


def mapping(source: Recorded | Json, *steps: str) -> Json:
    """The mapping at a path."""
    found = value(source, *steps)
    assert isinstance(found, Mapping), f"{'.'.join(steps)} is {found!r}, not a mapping"
    return found


def objects(source: Recorded | Json, *steps: str) -> Sequence[Json]:
    """The list of mappings at a path."""
    found = value(source, *steps)
    assert isinstance(found, Sequence), f"{'.'.join(steps)} is {found!r}, not a list"
    return cast("Sequence[Json]", found)
