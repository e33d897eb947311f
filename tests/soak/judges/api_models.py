"""What AWS and Google publish about their requests: botocore's models and discovery documents."""

import gzip
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias, cast

from pulumi_holdfast.rehearsal.errors import RehearsalError

Shape: TypeAlias = Mapping[str, object]
Field: TypeAlias = dict[str, object]


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
            named = next((one for one in self.members(shape).items() if folded(one[0]) == folded(step)), None)
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


def folded(name: str) -> str:
    """Return a name without case and plural."""
    return name.lower().removesuffix("s")
