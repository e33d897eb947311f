"""What AWS and Google publish about the requests that the providers send: botocore's models and discovery documents.

A provider names some fields otherwise than the API, or takes them from several requests: `REQUESTS` has the place of
each. A field that belongs to the provider alone is recorded with its kind only.
"""

import gzip
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Final, TypeAlias, cast

from holdfast.simulator.clouds.schema import Schema
from holdfast.simulator.clouds.sdk import Kind, Property, PropertyType, argument_properties
from holdfast.simulator.errors import RehearsalError
from tests.soak.judges.openapi import Field, Fields, items_of, shape_of, write
from tests.soak.judges.requests import PROVIDER_ONLY, REQUESTS, Request
from tests.support.published import FOLDER

Shape: TypeAlias = Mapping[str, object]

_KINDS: Final = {
    Kind.STRING: "string",
    Kind.NUMBER: "number",
    Kind.BOOL: "bool",
    Kind.LIST: "list",
    Kind.MAP: "map",
    Kind.OBJECT: "map",
    Kind.ANY: "any",
}
#: What the provider fills in where a program does not: names.
_FILLED_IN: Final = frozenset({"name", "namePrefix", "bucket", "nodeGroupName", "description"})


class Model(ABC):
    """The shapes of an API, which refer to each other by name."""

    @abstractmethod
    def shape(self, name: str) -> Shape:
        """Return the shape of a request."""

    @abstractmethod
    def members(self, shape: Shape) -> Mapping[str, Shape]:
        """Return the fields that a client sets; those of the items of a list or map."""

    @abstractmethod
    def required(self, shape: Shape, name: str) -> bool:
        """Whether a request needs a field."""

    @abstractmethod
    def rules(self, shape: Shape) -> Field:
        """Return the values, pattern and bounds of a scalar, or of the items of a list."""

    def find(self, shape: Shape, path: str) -> tuple[Shape, bool] | None:
        """Return the field at a dotted path, and whether the request needs it; case and plural do not matter."""
        needed = True
        for step in path.split("."):
            named = next(
                (one for one in self.members(shape).items() if _folded(one[0]) == _folded(step)), None
            )
            if named is None:
                return None
            needed = needed and self.required(shape, named[0])
            shape = named[1]
        return shape, needed


class Botocore(Model):
    """A service of AWS, as botocore describes it."""

    def __init__(self, folder: Path, service: str) -> None:
        versions = sorted((folder / "data" / service).glob("*/service-2.json.gz"))
        if not versions:
            raise RehearsalError(f"{folder} has no model of {service}")
        document = json.loads(gzip.decompress(versions[-1].read_bytes()))
        self._shapes = cast("Mapping[str, Shape]", document["shapes"])
        self._operations = cast("Mapping[str, Mapping[str, Shape]]", document["operations"])

    def shape(self, name: str) -> Shape:
        return self._follow(self._operations[name]["input"])

    def members(self, shape: Shape) -> Mapping[str, Shape]:
        found = cast("Mapping[str, Shape]", self._inner(shape).get("members", {}))
        return {name: self._follow(one) for name, one in found.items()}

    def required(self, shape: Shape, name: str) -> bool:
        return name in cast("Sequence[str]", self._inner(shape).get("required", ()))

    def rules(self, shape: Shape) -> Field:
        inner = self._inner(shape)
        made: Field = {}
        if inner.get("enum"):
            made["values"] = inner["enum"]
        if inner["type"] == "string":
            made |= _given(inner, {"pattern": "pattern", "min": "shortest", "max": "longest"})
        elif inner["type"] in ("integer", "long"):
            made |= _given(inner, {"min": "least", "max": "most"})
        return made

    def _inner(self, shape: Shape) -> Shape:
        while shape["type"] == "list":
            shape = self._follow(shape["member"])
        return shape

    def _follow(self, reference: object) -> Shape:
        return self._shapes[str(cast("Shape", reference)["shape"])]


class Discovery(Model):
    """An API of Google, as its discovery document describes it."""

    def __init__(self, folder: Path, service: str) -> None:
        file = folder / f"discovery_cache/documents/{service}.json"
        if not file.is_file():
            raise RehearsalError(f"{folder} has no document of {service}")
        self._schemas = cast("Mapping[str, Shape]", json.loads(file.read_text(encoding="utf-8"))["schemas"])

    def shape(self, name: str) -> Shape:
        return self._schemas[name]

    def members(self, shape: Shape) -> Mapping[str, Shape]:
        found = cast("Mapping[str, Shape]", self._inner(shape).get("properties", {}))
        return {name: self._follow(one) for name, one in found.items() if not one.get("readOnly")}

    def required(self, shape: Shape, name: str) -> bool:
        return False

    def rules(self, shape: Shape) -> Field:
        inner = self._inner(shape)
        made = _given(inner, {"pattern": "pattern"})
        if inner.get("enum"):
            made["values"] = inner["enum"]
        return made

    def _inner(self, shape: Shape) -> Shape:
        shape = self._follow(shape)
        while "items" in shape or isinstance(shape.get("additionalProperties"), dict):
            shape = self._follow(shape.get("items") or shape.get("additionalProperties"))
        return shape

    def _follow(self, shape: object) -> Shape:
        found = cast("Shape", shape)
        return self._schemas[str(found["$ref"])] if "$ref" in found else found


def _given(shape: Shape, names: Mapping[str, str]) -> Field:
    made = {ours: shape[theirs] for theirs, ours in names.items() if theirs in shape}
    if "pattern" in made:
        whole = f"^(?:{made.pop('pattern')})$"
        # Java knows classes such as \p{L} that Python does not.
        with suppress(re.error):
            re.compile(whole)
            made["pattern"] = whole
    return made


class _Recorder:
    """Records the inputs of one type."""

    def __init__(self, request: Request, model: Model, shapes: dict[str, Fields]) -> None:
        self._request = request
        self._model = model
        self._shapes = shapes

    def fields(self, properties: Mapping[str, Property], within: Sequence[Shape], path: str = "") -> Fields:
        """Return what is published about properties; one that is not is left out."""
        made: Fields = {}
        for name, one in properties.items():
            found = self._field(name, one, within, f"{path}{name}")
            if found is not None:
                made[name] = found
        return made

    def _field(self, name: str, one: Property, within: Sequence[Shape], path: str) -> Field | None:
        where = self._request.where(path)
        if where == PROVIDER_ONLY:
            return self._of_provider(one.types)
        for shape in within:
            found = self._model.find(shape, where or name)
            if found is not None:
                made = self._value(found[0], one.types, path)
                if found[1] and name not in _FILLED_IN:
                    made["required"] = True
                return made
        return None

    def _of_provider(self, types: Sequence[PropertyType]) -> Field:
        kinds = {_KINDS[each.kind] for each in types}
        kind = kinds.pop() if len(kinds) == 1 else "any"
        return {"kind": kind} if kind != "list" else {"kind": "list", "item": {"kind": "any"}}

    def _value(self, shape: Shape, types: tuple[PropertyType, ...], path: str) -> Field:
        kinds = {each.kind for each in types}
        # An IAM document is a text, or an object that the SDK turns into one.
        kind = Kind.STRING if Kind.STRING in kinds else next(iter(kinds), Kind.ANY)
        cls = shape_of(types) if kind is Kind.OBJECT else None
        if cls is not None:
            key = f"{self._request.token}/{cls.name.removesuffix('Args')}"
            if key not in self._shapes:
                self._shapes[key] = {}
                self._shapes[key] |= self.fields(argument_properties(cls), [shape], f"{path}.")
            return {"kind": "object", "shape": key}
        if kind is Kind.LIST:
            return {"kind": "list", "item": self._value(shape, items_of(types), path)}
        if kind in (Kind.MAP, Kind.ANY):
            return {"kind": _KINDS[kind]}
        return {"kind": _KINDS[kind], **(self._model.rules(shape) if kind is not Kind.BOOL else {})}


def record(cloud: str, folder: Path, source: str) -> None:
    """Write what is recorded in the repository for a cloud.

    `folder` is of the installed package botocore for aws, and googleapiclient for gcp; `source` names its version.
    """
    shapes: dict[str, Fields] = {}
    types: dict[str, Field] = {}
    for request in REQUESTS[cloud]:
        model = _model(cloud, folder, request.service)
        within = [model.shape(name) for name in request.shapes]
        inputs = Schema.for_package(cloud).resource(request.token).inputs
        fields = _Recorder(request, model, shapes).fields(inputs, within)
        types[request.token] = {"type": f"{request.service} {' '.join(request.shapes)}", "fields": fields}
    used = {name: shapes[name] for name in sorted({*_named(types, shapes)})}
    write(
        FOLDER / f"{cloud}.json",
        source,
        {"replacing": {}, "types": dict(sorted(types.items())), "shapes": used},
    )


def _named(types: Mapping[str, Field], shapes: Mapping[str, Fields]) -> Iterator[str]:
    for one in (*shapes.values(), *(cast("Fields", each["fields"]) for each in types.values())):
        for field in one.values():
            while "item" in field:
                field = cast("Field", field["item"])
            if "shape" in field:
                yield str(field["shape"])


@cache
def _model(cloud: str, folder: Path, service: str) -> Model:
    return Botocore(folder, service) if cloud == "aws" else Discovery(folder, service)


def _folded(name: str) -> str:
    return name.lower().removesuffix("s")
