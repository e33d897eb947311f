"""Finds IAM documents among what is registered, wherever a resource takes one."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.scheduling.json import JsonValue
    from tests.support.fakes.pulumi_engine import Recorded


def documents_of(resource: Recorded) -> Iterator[tuple[str, str]]:
    """Each document of a resource, with the resource's name and the input that holds it."""
    for path, text in _texts(resource.inputs, ()):
        if _is_document(text):
            yield f"{resource.name}:{'.'.join(path)}", text


def _texts(value: JsonValue, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, Mapping):
        for key, one in value.items():
            yield from _texts(one, (*path, key))
    elif isinstance(value, Sequence):
        for index, one in enumerate(value):
            yield from _texts(one, (*path, str(index)))


def _is_document(text: str) -> bool:
    if "Statement" not in text:
        return False
    try:
        return "Statement" in json.loads(text)
    except ValueError:
        return False
