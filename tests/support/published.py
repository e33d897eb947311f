"""Judges the inputs of resources by what a cloud publishes about its API, as recorded in `tests/fixtures/published`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final, Protocol, TypeAlias, cast

from pulumi_holdfast.rehearsal.engine.values import Unknown

Field: TypeAlias = Mapping[str, object]
Fields: TypeAlias = Mapping[str, Field]

#: The recordings, one file for each provider package.
FOLDER: Final = Path(__file__).parents[1] / "fixtures/published"
_RECORD: Final = "record it as docs/judges.md says"
_KINDS: Final = {
    "string": str,
    "bool": bool,
    "number": int | float,
    "list": list,
    "map": Mapping,
    "object": Mapping,
}


class Registered(Protocol):
    """A resource that a program registers."""

    @property
    def type(self) -> str: ...

    @property
    def name(self) -> str: ...

    @property
    def inputs(self) -> Mapping[str, object]: ...


@dataclass(frozen=True, kw_only=True)
class Published:
    """What is published about the resource types of a cloud, with the source and its version."""

    source: str
    types: Mapping[str, Field]
    shapes: Mapping[str, Fields]

    @staticmethod
    @cache
    def of(package: str) -> Published:
        """Return what the repository has recorded of a provider package, such as "aws"."""
        return Published(**json.loads((FOLDER / f"{package}.json").read_text(encoding="utf-8")))

    def complaints_of(self, package: str, resources: Iterable[Registered]) -> list[str]:
        """Return what is wrong with the resources of a provider package."""
        return [
            f"{one.name}: {complaint}"
            for one in resources
            if one.type.startswith(f"{package}:")
            for complaint in self.complaints(one.type, one.inputs)
        ]

    def complaints(self, token: str, inputs: Mapping[str, object]) -> list[str]:
        """Return what is wrong with the inputs of a resource; unknown values are right."""
        if token not in self.types:
            return [f"{token}: no judge knows this type; {_RECORD}"]
        return list(self._of_object(inputs, cast("Fields", self.types[token]["fields"]), token))

    def _of_object(self, given: Mapping[str, object], fields: Fields, path: str) -> Iterator[str]:
        for name, field in fields.items():
            if field.get("required") and given.get(name) is None:
                yield f"{path}.{name} is required"
        for name, value in given.items():
            if value is None or isinstance(value, Unknown):
                continue
            if name not in fields:
                yield f"{path}.{name}: no judge knows this field; the published ones are {', '.join(fields)}"
            else:
                yield from self._of_value(value, fields[name], f"{path}.{name}")

    def _of_value(self, value: object, field: Field, path: str) -> Iterator[str]:
        kind = str(field["kind"])
        if isinstance(value, Unknown) or kind == "any":
            return
        if kind == "map" and _is(value, "list"):
            # azure-native takes the ids of identities as a list, and sends a map.
            return
        if not _is(value, kind):
            yield f"{path} is {value!r}, not of the kind {kind}"
        elif kind == "object":
            fields = self.shapes[str(field["shape"])]
            yield from self._of_object(cast("Mapping[str, object]", value), fields, path)
        elif kind == "list":
            for index, item in enumerate(cast("Sequence[object]", value)):
                yield from self._of_value(item, cast("Field", field["item"]), f"{path}[{index}]")
        else:
            yield from _of_scalar(value, field, path)


def _is(value: object, kind: str) -> bool:
    if kind == "number" and isinstance(value, bool):
        return False
    return isinstance(value, _KINDS[kind])


def _of_scalar(value: object, field: Field, path: str) -> Iterator[str]:
    values = cast("Sequence[str]", field.get("values", ()))
    if values and value not in values:
        yield f"{path} is {value!r}; the published values are {', '.join(values)}"
    pattern = field.get("pattern")
    if isinstance(value, str) and pattern is not None and re.search(str(pattern), value) is None:
        yield f"{path} is {value!r}, which does not match {pattern}"
    size = len(value) if isinstance(value, str) else value
    least, most = field.get("shortest", field.get("least")), field.get("longest", field.get("most"))
    if isinstance(size, int | float) and not isinstance(size, bool):
        if isinstance(least, int) and size < least:
            yield f"{path} is {value!r}, less than {least}"
        if isinstance(most, int) and size > most:
            yield f"{path} is {value!r}, more than {most}"
