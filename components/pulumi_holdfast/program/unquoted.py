"""Finds texts of Kubernetes objects that are given as a number or a boolean, which the API server refuses with the whole object.

Readers of labels and selectors skip such a value, so that without this check it would be judged as absent.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from pulumi_holdfast.program.resources import is_list, is_object

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pulumi_holdfast.program.resources import StackResource, Value

#: Fields that map names to texts: in the metadata of every object, in pods, and in the shapes of a FallbackPolicy.
_TEXTS: Final = ("labels", "annotations", "nodeSelector", "matchLabels", "selector")
_UNQUOTED: Final = (
    "{field} has {value} for {key}, which is no text, and the API server refuses it: quote the value"
)


def unquoted(resource: StackResource) -> tuple[str, ...]:
    """Return why the API server refuses an object; providers of clouds make texts of the labels of their own pools."""
    return tuple(_unquoted(resource.props)) if resource.type.startswith("kubernetes:") else ()


def _unquoted(value: Value) -> Iterator[str]:
    if is_object(value):
        for field, part in value.items():
            texts = part.items() if field in _TEXTS and is_object(part) else ()
            for key, given in texts:
                if isinstance(given, bool | int | float):
                    yield _UNQUOTED.format(field=f"`{field}`", value=json.dumps(given), key=key)
            yield from _unquoted(part)
    elif is_list(value):
        for each in value:
            yield from _unquoted(each)
