"""Records what the clouds publish about the requests that the providers send.

A provider names some fields otherwise than the API, or takes them from several requests: `REQUESTS` has the place of
each. A field that belongs to the provider alone is recorded with its kind only.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final, TypeAlias, cast

from pulumi_holdfast.rehearsal.clouds.schema import Schema
from pulumi_holdfast.rehearsal.clouds.sdk import (
    Property,
    PropertyType,
    SdkClass,
    ValueKind,
    argument_properties,
)
from tests.soak.judges.api_models import Botocore, Discovery, Field, Model, Shape
from tests.soak.judges.azure_models import AzurePackage, api_version
from tests.soak.judges.requests import PROVIDER_ONLY, REQUESTS, Request
from tests.support.published import FOLDER

Fields: TypeAlias = dict[str, Field]

_KINDS: Final = {
    ValueKind.STRING: "string",
    ValueKind.NUMBER: "number",
    ValueKind.BOOL: "bool",
    ValueKind.LIST: "list",
    ValueKind.MAP: "map",
    ValueKind.OBJECT: "map",
    ValueKind.ANY: "any",
}
#: What the provider fills in where a program does not: names.
_FILLED_IN: Final = frozenset({"name", "namePrefix", "bucket", "nodeGroupName", "description", "location"})


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
        kind = ValueKind.STRING if ValueKind.STRING in kinds else next(iter(kinds), ValueKind.ANY)
        cls = _shape_of(types) if kind is ValueKind.OBJECT else None
        if cls is not None:
            key = f"{self._request.token}/{cls.name.removesuffix('Args')}"
            if key not in self._shapes:
                self._shapes[key] = {}
                self._shapes[key] |= self.fields(argument_properties(cls), [shape], f"{path}.")
            return {"kind": "object", "shape": key}
        if kind is ValueKind.LIST:
            return {"kind": "list", "item": self._value(shape, _items_of(types), path)}
        if kind in (ValueKind.MAP, ValueKind.ANY):
            return {"kind": _KINDS[kind]}
        return {"kind": _KINDS[kind], **(self._model.rules(shape) if kind is not ValueKind.BOOL else {})}


def record(cloud: str, folder: Path, source: str) -> None:
    """Write what is recorded in the repository for a cloud.

    `folder` is of the installed package botocore for aws, and googleapiclient for gcp; for azure-native that in which
    the packages azure-mgmt-* are installed. `source` names the versions.
    """
    shapes: dict[str, Fields] = {}
    types: dict[str, Field] = {}
    for request in REQUESTS[cloud]:
        model = _model(folder, request)
        within = [model.shape(name) for name in request.shapes]
        inputs = Schema.for_package(cloud).resource(request.token).inputs
        fields = _Recorder(request, model, shapes).fields(inputs, within)
        types[request.token] = {"type": f"{request.service} {' '.join(request.shapes)}", "fields": fields}
        if isinstance(model, AzurePackage):
            types[request.token]["version"] = model.version(request.shapes[-1])
    used = {name: shapes[name] for name in sorted({*_named(types, shapes)})}
    _write(FOLDER / f"{cloud}.json", source, {"types": dict(sorted(types.items())), "shapes": used})


def _named(types: Mapping[str, Field], shapes: Mapping[str, Fields]) -> Iterator[str]:
    for one in (*shapes.values(), *(cast("Fields", each["fields"]) for each in types.values())):
        for field in one.values():
            while "item" in field:
                field = cast("Field", field["item"])
            if "shape" in field:
                yield str(field["shape"])


def _model(folder: Path, request: Request) -> Model:
    match request.token.partition(":")[0]:
        case "aws":
            return _botocore(folder, request.service)
        case "gcp":
            return _discovery(folder, request.service)
        case _:
            return _azure_package(folder, request.service, api_version(request.token))


_botocore, _discovery, _azure_package = cache(Botocore), cache(Discovery), cache(AzurePackage)


def _items_of(types: tuple[PropertyType, ...]) -> tuple[PropertyType, ...]:
    """Return the types of the items of a list or map."""
    return next((one.item for one in types if one.kind in (ValueKind.LIST, ValueKind.MAP)), ())


def _shape_of(types: tuple[PropertyType, ...]) -> SdkClass | None:
    """Return the class of an object."""
    return next((one.shape for one in types if one.kind is ValueKind.OBJECT), None)


def _write(file: Path, source: str, parts: Mapping[str, Mapping[str, object]]) -> None:
    """Write the recording of a provider package, one line for each type and nested object."""
    text = [f'"source": {json.dumps(source)}']
    for name, entries in parts.items():
        lines = [f"{json.dumps(key)}: {json.dumps(one, sort_keys=True)}" for key, one in entries.items()]
        text.append(f"{json.dumps(name)}: {{\n" + ",\n".join(lines) + "\n}")
    file.write_text("{\n" + ",\n".join(text) + "\n}\n", encoding="utf-8")
