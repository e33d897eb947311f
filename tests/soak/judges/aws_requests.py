"""Requests to AWS as a provider sends them, read and judged by botocore's models."""

import gzip
import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.metadata import distribution
from pathlib import Path
from typing import Final, cast
from urllib.parse import parse_qs, unquote

from tests.soak.judges.api_models import Shape
from tests.soak.judges.server import Call, Sent, Values

_KINDS: Final[Mapping[str, type]] = {
    "structure": dict,
    "map": dict,
    "list": list,
    "string": str,
    "boolean": bool,
    "integer": int,
    "long": int,
}
_LABEL: Final = re.compile(r"\\\{(\w+)(\\\+)?\\\}")


class Service:
    """The model of a service of AWS."""

    def __init__(self, name: str) -> None:
        folder = Path(str(distribution("botocore").locate_file(f"botocore/data/{name}")))
        document = json.loads(gzip.decompress(max(folder.glob("*/service-2.json.gz")).read_bytes()))
        self.protocol = str(document["metadata"]["protocol"])
        self._shapes = cast("Mapping[str, Shape]", document["shapes"])
        self._operations = cast("Mapping[str, Mapping[str, Mapping[str, str]]]", document["operations"])

    @staticmethod
    @cache
    def of(name: str) -> "Service":
        """Return the model of a service by its name in signatures."""
        return Service(name)

    def read(self, sent: Sent) -> Call:
        """Return what a request asks for. Raises LookupError where the model has no such operation."""
        form = {name: values[-1] for name, values in parse_qs(sent.body.decode(errors="replace")).items()}
        operation, labels = self._operation(sent, form)
        #: The parts of the request that no field of the model takes.
        unread = set[str]()
        shape = self.input(operation)
        match self.protocol:
            case "json":
                parameters = cast("Values", json.loads(sent.body or b"{}"))
            case "query" | "ec2":
                unread |= {*form} - {"Action", "Version"}
                parameters = cast("Values", self._of_form(shape, form, "", unread))
            case _:
                parameters = self._of_path(shape, sent, labels, unread)
        wrong = [f"{name}: no field of the request" for name in sorted(unread)]
        return Call(
            operation=operation,
            parameters=parameters,
            wrong=[f"{operation}.{one}" for one in (*wrong, *self._judged(shape, parameters, ""))],
        )

    def input(self, operation: str) -> Shape:
        """Return the shape of a request."""
        return self._shape(self._operations[operation].get("input", {"shape": ""}))

    def output(self, operation: str) -> Shape:
        """Return the shape of a response."""
        return self._shape(self._operations[operation].get("output", {"shape": ""}))

    def members(self, shape: Shape) -> Mapping[str, tuple[Mapping[str, object], Shape]]:
        """Return the fields of a structure: how each is sent, and its shape."""
        found = cast("Mapping[str, Mapping[str, object]]", shape.get("members", {}))
        return {name: (one, self._shape(one)) for name, one in found.items()}

    def _shape(self, reference: Mapping[str, object]) -> Shape:
        return self._shapes.get(str(reference["shape"]), {"type": "structure"})

    def _operation(self, sent: Sent, form: Mapping[str, str]) -> tuple[str, Mapping[str, str]]:
        if self.protocol == "json":
            named = sent.headers.get("x-amz-target", "").rpartition(".")[2]
        elif self.protocol in ("query", "ec2"):
            named = form.get("Action", "")
        else:
            return self._by_path(sent)
        if named not in self._operations:
            raise LookupError(f"{sent.service} has no operation {named!r}")
        return named, {}

    def _by_path(self, sent: Sent) -> tuple[str, Mapping[str, str]]:
        """Return the operation whose path and query fit, the one that names most of the query."""
        found: list[tuple[int, int, str, Mapping[str, str]]] = []
        for name, one in self._operations.items():
            path, _, query = one["http"]["requestUri"].partition("?")
            asked = {each.partition("=")[0]: each.partition("=")[2] for each in query.split("&") if each}
            if (
                one.get("deprecated")
                or one["http"]["method"] != sent.method
                or not all(
                    key in sent.query and value in ("", sent.query[key]) for key, value in asked.items()
                )
            ):
                continue
            labels = _labels(path, sent.path)
            if labels is not None and self._has_all(self.input(name), sent, labels):
                found.append((len(asked), -len(labels), name, labels))
        if not found:
            raise LookupError(f"{sent.service} has no operation for {sent.method} {sent.path}")
        _, _, name, labels = max(found, key=lambda one: one[:2])
        return name, labels

    def _has_all(self, shape: Shape, sent: Sent, labels: Mapping[str, str]) -> bool:
        """Whether a request has the labels, the query and the headers that an operation requires."""
        needed = {*cast("Sequence[str]", shape.get("required", ()))}
        return all(
            text is not None or name not in needed for name, _, text in self._beside(shape, sent, labels)
        )

    def _beside(
        self, shape: Shape, sent: Sent, labels: Mapping[str, str]
    ) -> Iterator[tuple[str, Shape, str | None]]:
        """Yield the fields that are sent beside the body: each with its shape and its text, None without one."""
        places = {"uri": labels, "querystring": sent.query, "header": sent.headers}
        for name, (how, one) in self.members(shape).items():
            place = places.get(str(how.get("location")))
            key = str(how.get("locationName", name))
            if place is not None:
                yield name, one, place.get(key.lower() if place is sent.headers else key)

    def _of_path(self, shape: Shape, sent: Sent, labels: Mapping[str, str], unread: set[str]) -> Values:
        """Read labels, query, headers and body of a REST request."""
        made: Values = {
            name: _scalar(text, one)
            for name, one, text in self._beside(shape, sent, labels)
            if text is not None
        }
        payload = shape.get("payload")
        if not sent.body:
            return made
        if self.protocol == "rest-json":
            return made | cast("Values", json.loads(sent.body))
        if payload is not None:
            inner = self.members(shape)[str(payload)][1]
            is_text = inner["type"] != "structure"
            text = sent.body.decode()
            made[str(payload)] = text if is_text else self._of_xml(inner, ET.fromstring(text), unread)
        return made

    def _of_form(self, shape: Shape, form: Mapping[str, str], prefix: str, unread: set[str]) -> object:
        if shape["type"] == "structure":
            made: Values = {}
            for name, (how, one) in self.members(shape).items():
                key = f"{prefix}{self._form_name(name, how)}"
                if any(each == key or each.startswith(f"{key}.") for each in form):
                    made[name] = self._of_form(one, form, f"{key}.", unread)
            return made
        if shape["type"] == "list":
            if self.protocol == "query":
                prefix += "member."
            inner = self._shape(cast("Shape", shape["member"]))
            starts = [f"{prefix}{number}" for number in range(1, len(form) + 1)]
            starts = [key for key in starts if any(f"{one}.".startswith(f"{key}.") for one in form)]
            unread.discard(prefix.removesuffix("."))
            return [self._of_form(inner, form, f"{key}.", unread) for key in starts]
        key = prefix.removesuffix(".")
        unread.discard(key)
        return _scalar(form.get(key, ""), shape)

    def _form_name(self, name: str, how: Mapping[str, object]) -> str:
        given = str(how.get("locationName", name))
        if self.protocol == "query":
            return given
        return str(how.get("queryName", given[:1].upper() + given[1:]))

    def _of_xml(self, shape: Shape, element: ET.Element, unread: set[str]) -> object:
        if shape["type"] == "list":
            inner = self._shape(cast("Shape", shape["member"]))
            return [self._of_xml(inner, one, unread) for one in element]
        if shape["type"] != "structure":
            return _scalar(element.text or "", shape)
        made: Values = {}
        known: set[str] = set()
        for name, (how, one) in self.members(shape).items():
            title = str(how.get("locationName", name))
            known.add(title)
            found = [child for child in element if _tag(child) == title]
            if found and one.get("flattened"):
                inner = self._shape(cast("Shape", one["member"]))
                made[name] = [self._of_xml(inner, child, unread) for child in found]
            elif found:
                made[name] = self._of_xml(one, found[0], unread)
        unread |= {_tag(child) for child in element} - known
        return made

    def _judged(self, shape: Shape, value: object, path: str) -> Iterator[str]:
        kind = str(shape["type"])
        if not _is(value, kind):
            yield f"{path} is {value!r}, not of the kind {kind}"
        elif kind == "structure":
            yield from self._of_structure(shape, cast("Values", value), path)
        elif kind == "list":
            inner = self._shape(cast("Shape", shape["member"]))
            for one in cast("list[object]", value):
                yield from self._judged(inner, one, path)
            yield from _bounded(len(cast("list[object]", value)), shape, path)
        elif kind == "string":
            yield from _of_text(str(value), shape, path)
        elif kind in ("integer", "long"):
            yield from _bounded(cast("int", value), shape, path)

    def _of_structure(self, shape: Shape, given: Values, path: str) -> Iterator[str]:
        members = self.members(shape)
        for name in cast("Sequence[str]", shape.get("required", ())):
            if given.get(name) is None:
                yield f"{path}{name} is required"
        for name, one in given.items():
            if name not in members:
                yield f"{path}{name}: no field of the request"
            elif one is not None:
                yield from self._judged(members[name][1], one, f"{path}{name}.")


def _is(value: object, kind: str) -> bool:
    if isinstance(value, bool) and kind != "boolean":
        return False
    return kind not in _KINDS or isinstance(value, _KINDS[kind])


def _of_text(value: str, shape: Shape, path: str) -> Iterator[str]:
    values = cast("Sequence[str]", shape.get("enum", ()))
    if values and value not in values:
        yield f"{path} is {value!r}; the values of the model are {', '.join(values)}"
    pattern = shape.get("pattern")
    try:
        if pattern is not None and re.fullmatch(str(pattern), value, re.DOTALL) is None:
            yield f"{path} is {value!r}, which does not match {pattern}"
    except re.error:
        pass  # Java knows classes such as \p{L} that Python does not.
    yield from _bounded(len(value), shape, path)


def _bounded(size: int, shape: Shape, path: str) -> Iterator[str]:
    least, most = cast("int", shape.get("min", size)), cast("int", shape.get("max", size))
    if not least <= size <= most:
        yield f"{path} has the size {size}, not {least} to {most}"


def _labels(template: str, path: str) -> Mapping[str, str] | None:
    """Return the labels of a path, None where it does not fit."""
    pattern = _LABEL.sub(
        lambda found: f"(?P<{found[1]}>{'.+' if found[2] else '[^/]+'})", re.escape(template)
    )
    fits = re.fullmatch(f"{pattern}/?", path)
    return {name: unquote(value) for name, value in fits.groupdict().items()} if fits else None


def _scalar(text: str, shape: Shape) -> object:
    """Return a text of a form, a path or a document as a value of its kind."""
    if shape["type"] == "boolean" and text in ("true", "false"):
        return text == "true"
    if shape["type"] in ("integer", "long") and text.lstrip("-").isdecimal():
        return int(text)
    return text


def _tag(element: ET.Element) -> str:
    return element.tag.rpartition("}")[2]
