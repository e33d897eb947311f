"""A mistake in a document: the change that makes it, the field of the problem, and a part of the fix."""

import re
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias, cast

from pulumi_holdfast.ladder.json import JsonValue
from tests.support.builders.configurations import Document

Change: TypeAlias = Callable[[Document], object]
Mistake: TypeAlias = tuple[Change, str, str]

#: A cluster whose jobs a stack accepts.
HOME: Document = {
    "name": "us-east-1",
    "issuer": "https://oidc.eks.us-east-1.amazonaws.com/id/0123456789ABCDEF",
    "namespaces": ["vision"],
}


def changed(at: str, **values: JsonValue) -> Change:
    """Set these values in the section at a path such as `.pools[1]`."""
    return lambda document: _section(document, at).update(values)


def wrong(
    field: str, value: JsonValue, fix: str, *, at: str = "", without: Iterable[str] = (), **others: JsonValue
) -> Mistake:
    """A value that causes a problem of the field; `at` is where it is when that is not the field itself.

    `without` are the fields that are removed, and `others` the values beside it.
    """
    where, _, name = (at or re.sub(r"\[\d+]$", "", field)).rpartition(".")

    def change(document: Document) -> None:
        for path in without:
            missing(path, "")[0](document)
        _section(document, where).update({name: value, **others})

    return change, field, fix


def missing(path: str, fix: str, *, field: str = "") -> Mistake:
    """A field that is not there; `field` is the one of the problem when that is another."""
    where, _, name = path.rpartition(".")
    return (lambda document: _section(document, where).pop(name)), field or path, fix


def reserved(at: str, field: str, fix: str, source: Document, **others: JsonValue) -> Mistake:
    """A pool of reserved machines with these sources and a mistake; `field` is that of the problem, below the pool."""
    change = changed(at, **{"capacity": "reserved", **source, **others})
    return change, f"{at}.{field}" if field else at, fix


def volume(field: str, fix: str, **given: JsonValue) -> Mistake:
    """A volume with a mistake."""
    return wrong(f".storage[0].{field}", [{**VOLUME, **given}], fix, at=".storage")


VOLUME: Document = {"name": "data", "kind": "bucket", "namespaces": ["vision"]}

#: Of volumes on every cloud.
INVALID_VOLUMES: dict[str, Mistake] = {
    "a volume for a namespace with a typo": volume("namespaces[0]", 'Write "vision".', namespaces=["vison"]),
    "two volumes of one name": wrong(".storage[1].name", [VOLUME, VOLUME], "Rename", at=".storage"),
    "a volume with a long name": volume("name", "Write a shorter name", name="d" * 21),
    "the size of a volume by another name": volume("capacity", "Write sizeGiB.", capacity="1Ti"),
    "a bucket with a size": volume("sizeGiB", "Leave it out.", sizeGiB=1200),
    "a bucket with a throughput": volume("throughput", "Leave it out.", throughput=125),
}

#: A reservation that ended long ago.
ENDED: Document = {"begins": "2020-01-01T11:30:00Z", "ends": "2020-01-08T11:30:00Z"}


def _section(document: Document, path: str) -> Document:
    """The mapping at a path, made where it is not there."""
    found: Any = document
    for name, index in re.findall(r"(\w+)(?:\[(\d+)])?", path):
        found = found[name][int(index)] if index else found.setdefault(name, {})
    return cast("Document", found)
