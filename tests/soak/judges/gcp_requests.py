"""Requests to Google Cloud as a provider sends them, read and judged by the discovery documents."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final, cast

from tests.soak.judges.api_models import Shape
from tests.soak.judges.server import CLOUDS, Call, Sent, Values

_DOCUMENTS: Final = "lib/python*/site-packages/googleapiclient/discovery_cache/documents"
_LABEL: Final = re.compile(r"\\\{\w+\\\}")
_KINDS: Final[Mapping[str, type | tuple[type, ...]]] = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "integer": int,
    "number": (int, float),
}
_INTEGERS: Final = ("int64", "uint64")


@dataclass(frozen=True, kw_only=True)
class Method:
    """A method of an API: its name in the collection of resources, its path, and the names of its shapes, if any."""

    name: str
    collection: str
    verb: str
    path: str
    query: Mapping[str, Shape]
    request: str
    response: str

    @property
    def id(self) -> str:
        """The name that the document uses in notes on fields."""
        return f"{self.collection}.{self.name}"

    def fits(self, path: str) -> bool:
        """Whether a path is one of the method."""
        return re.fullmatch(_LABEL.sub("[^/:]+", re.escape(self.path)), path) is not None


class Api:
    """An API of Google, as its discovery document describes it."""

    def __init__(self, document: Mapping[str, object]) -> None:
        self.document = f"{document['name']}.{document['version']}"
        self._shapes = cast("Mapping[str, Shape]", document["schemas"])
        self._common = cast("Mapping[str, Shape]", document["parameters"])
        self.methods = list(_methods(document, str(document["name"]), f"/{document['servicePath']}"))

    @staticmethod
    @cache
    def of(name: str) -> "Api":
        """Return an API by the name of its document."""
        (folder,) = CLOUDS.glob(_DOCUMENTS)
        return Api(json.loads((folder / f"{name}.json").read_text(encoding="utf-8")))

    def read(self, sent: Sent) -> Call:
        """Return what a request asks for. Raises LookupError where the document has no such method."""
        method = self.method(sent)
        body = cast("Values", json.loads(sent.body or b"{}"))
        wrong = [*self._judged_query(method, sent.query)]
        if method.request:
            wrong += self._judged(self._shapes[method.request], body, "", method)
        elif body:
            wrong.append("takes no body")
        return Call(operation=method.id, parameters=body, wrong=[f"{method.id}: {one}" for one in wrong])

    def method(self, sent: Sent) -> Method:
        """Return the method of a request. Raises LookupError where the document has none."""
        fitting = (one for one in self.methods if one.verb == sent.method and one.fits(sent.path))
        # A path with fewer labels is the more exact one.
        found = min(fitting, key=lambda one: one.path.count("{"), default=None)
        if found is None:
            raise LookupError(f"{self.document} has no method for {sent.method} {sent.path}")
        return found

    def creates(self, path: str) -> bool:
        """Whether a path is that of a resource that the API creates."""
        made = {one.collection for one in self.methods if one.name in ("insert", "create")}
        return any(one.name == "get" and one.collection in made and one.fits(path) for one in self.methods)

    def fields(self, shape: str) -> Mapping[str, Shape]:
        """Return the fields of a shape."""
        return cast("Mapping[str, Shape]", self._shapes[shape].get("properties", {}))

    def _follow(self, shape: Shape) -> Shape:
        return self._shapes[str(shape["$ref"])] if "$ref" in shape else shape

    def _judged_query(self, method: Method, query: Mapping[str, str]) -> Iterator[str]:
        known = {**self._common, **method.query}
        for name, value in query.items():
            if name not in known:
                yield f"?{name}: no parameter of the request"
            else:
                yield from _of_text(value, known[name], f"?{name}")
        yield from (
            f"?{name} is required"
            for name, one in method.query.items()
            if one.get("required") and name not in query
        )

    def _judged(self, reference: Shape, value: object, path: str, method: Method) -> Iterator[str]:
        shape = self._follow(reference)
        kind = str(shape["type"])
        if value is None or kind == "any":
            return
        if not _is(value, shape):
            yield f"{path} is {value!r}, not of the kind {kind}"
        elif kind == "object":
            yield from self._of_object(shape, cast("Values", value), path, method)
        elif kind == "array":
            for one in cast("list[object]", value):
                yield from self._judged(cast("Shape", shape["items"]), one, path, method)
        elif kind == "string":
            yield from _of_text(str(value), shape, path)

    def _of_object(self, shape: Shape, given: Values, path: str, method: Method) -> Iterator[str]:
        fields = cast("Mapping[str, Shape]", shape.get("properties", {}))
        others = cast("Shape | None", shape.get("additionalProperties"))
        prefix = f"{path}." if path else ""
        for name, one in given.items():
            found = fields.get(name, others)
            if found is None:
                yield f"{prefix}{name}: no field of the request"
            elif found.get("readOnly") and one is not None:
                yield f"{prefix}{name}: only Google sets it"
            else:
                yield from self._judged(found, one, f"{prefix}{name}", method)
        for name, one in fields.items():
            notes = cast("Mapping[str, Sequence[str]]", one.get("annotations", {}))
            if method.id in notes.get("required", ()) and name not in given:
                yield f"{prefix}{name} is required"


def _methods(owner: Mapping[str, object], collection: str, service: str) -> Iterator[Method]:
    for name, one in cast("Mapping[str, Mapping[str, object]]", owner.get("methods", {})).items():
        parameters = cast("Mapping[str, Shape]", one.get("parameters", {}))
        request, response = (cast("Mapping[str, str]", one.get(side, {})) for side in ("request", "response"))
        yield Method(
            name=name,
            collection=collection,
            verb=str(one["httpMethod"]),
            path=f"{service}{one.get('flatPath', one['path'])}",
            query={key: each for key, each in parameters.items() if each["location"] == "query"},
            request=request.get("$ref", ""),
            response=response.get("$ref", ""),
        )
    for name, one in cast("Mapping[str, Mapping[str, object]]", owner.get("resources", {})).items():
        yield from _methods(one, f"{collection}.{name}", service)


def _is(value: object, shape: Shape) -> bool:
    kind = str(shape["type"])
    if isinstance(value, bool) and kind != "boolean":
        return False
    # A number of 64 bits is a text in JSON; the APIs take both.
    if shape.get("format") in _INTEGERS and isinstance(value, int):
        return True
    return isinstance(value, _KINDS[kind])


def _of_text(value: str, shape: Shape, path: str) -> Iterator[str]:
    values = cast("Sequence[str]", shape.get("enum", ()))
    if values and value not in values:
        yield f"{path} is {value!r}; the values of the document are {', '.join(values)}"
    pattern = shape.get("pattern")
    if pattern is not None and re.fullmatch(str(pattern), value) is None:
        yield f"{path} is {value!r}, which does not match {pattern}"
