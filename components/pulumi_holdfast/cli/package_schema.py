"""Generates the schema of the Pulumi package `holdfast` from the sections that parse a stack: `holdfast schemas`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Final, Literal, Union, cast, get_args, get_origin

from pulumi_holdfast import __version__
from pulumi_holdfast.cli.editor_schema import DOCUMENTS, layout, plain_text, write_schemas
from pulumi_holdfast.config.errors import allowed, sections_in
from pulumi_holdfast.config.fields import OrOutput, Section
from pulumi_holdfast.package_plugin import SCHEMA
from pulumi_holdfast.training_clusters import COMPONENTS

if TYPE_CHECKING:
    import argparse

    from pydantic.fields import FieldInfo

    from pulumi_holdfast.ladder.json import Json, JsonValue

#: Generated SDKs have it in their names: PyPI's `pulumi-holdfast` and npm's scope of Pulumi are not theirs.
NAMESPACE: Final = "holdfast-dev"
_ANY: Final[Json] = {"$ref": "pulumi.json#/Any"}
_TEXTS: Final[Json] = {"type": "object", "additionalProperties": {"type": "string"}}
_OUTPUTS: Final[Mapping[str, tuple[Json, str]]] = {
    "cluster": ({"type": "string"}, "The name of the cluster."),
    "kubeconfig": ({"type": "string"}, "A kubeconfig without a credential: it calls the cloud's own plugin."),
    "issuer": ({"type": "string"}, "The issuer of the tokens of the cluster's service accounts."),
    "checkpoints": (
        {"type": "string"},
        "The bucket of the checkpoints, on AWS those of all namespaces with spaces between, on Azure the storage account.",
    ),
    "checkpointUris": (_TEXTS, "The addresses of the checkpoints of each training namespace."),
    "identities": (_TEXTS, "The identity of the jobs of each training namespace."),
    "ladders": (
        {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "string"}}},
        "The pools of each training namespace, in the order of failover.",
    ),
    "pools": ({"type": "object", "additionalProperties": _ANY}, "The pools by their names."),
}


def add_arguments(_: argparse.ArgumentParser) -> None:
    """Add nothing: the command has no arguments."""


def run(_: argparse.Namespace) -> int:
    """Write the schema of the package, those of stack files, and the tables of the documentation."""
    SCHEMA.write_text(rendered_package(), encoding="utf-8")
    write_schemas()
    return 0


def package_schema() -> Json:
    """The schema of the package."""
    types: dict[str, Json] = {}
    resources = {
        token: {
            "description": _first_line(component.__doc__),
            "isComponent": True,
            **_arguments(component.arguments, DOCUMENTS[component.cloud], types),
            "properties": {name: {**kind, "description": text} for name, (kind, text) in _OUTPUTS.items()},
            "required": [*_OUTPUTS],
        }
        for token, component in COMPONENTS.items()
    }
    return {
        "name": "holdfast",
        "displayName": "Holdfast",
        "namespace": NAMESPACE,
        "version": __version__,
        "description": "Training clusters on EKS, AKS and GKE whose jobs run on spot and have a fallback.",
        "meta": {"supportPack": True},
        "language": {
            # Without them Go's inputs of nested types are undefined.
            "go": {"generateExtraInputTypes": True, "respectSchemaVersion": True},
            "nodejs": {"respectSchemaVersion": True},
            "python": {"respectSchemaVersion": True, "pyproject": {"enabled": True}},
        },
        "types": dict(sorted(types.items())),
        "resources": resources,
    }


def rendered_package() -> str:
    """The file with the schema of the package."""
    return layout(package_schema(), "\n") + "\n"


def _arguments(own: type[Section], document: type[Section], types: dict[str, Json]) -> Json:
    described = _described([own, document], types)
    fields = cast("dict[str, JsonValue]", described["properties"])
    required = cast("list[str]", described["required"])
    return {
        "inputProperties": {name: field for name, field in fields.items() if name != "cloud"},
        "requiredInputs": [name for name in required if name != "cloud"],
    }


def _described(sections: Sequence[type[Section]], types: dict[str, Json]) -> Json:
    """The fields of sections as one: of variants a document has the fields of any."""
    found: dict[str, FieldInfo] = {}
    for section in sections:
        for info in section.model_fields.values():
            found.setdefault(info.alias or "", info)
    inside = {name: info for name, info in found.items() if ":" not in name}
    return {
        "properties": {name: _property(info, types) for name, info in inside.items()},
        "required": [name for name, info in inside.items() if info.is_required()],
    }


def _property(info: FieldInfo, types: dict[str, Json]) -> Json:
    text = plain_text(str(info.description))
    if not list(sections_in(info.annotation)):
        text = f"{text[:1].upper()}{text[1:]}. Allowed: {allowed(info.annotation, info.metadata)}."
    return {**_kind(info.annotation, info.metadata, types), "description": text}


def _kind(kind: object, notes: Sequence[object], types: dict[str, Json]) -> Json:
    """A type of the schema; `plain` where no Output may come in."""
    if get_origin(kind) is Annotated:
        kind, *inner = get_args(kind)
        return _kind(kind, [*notes, *inner], types)
    origin = get_origin(kind)
    arguments = [each for each in get_args(kind) if each not in (NoneType, Ellipsis)]
    sections = list(sections_in(kind)) if origin is not tuple else []
    if sections:
        return _reference(sections, types)
    if origin in (Union, UnionType) and len(arguments) > 1:
        return {"oneOf": [_kind(each, (), types) for each in arguments], "plain": True}
    if origin in (Union, UnionType):
        return _kind(arguments[0], notes, types)
    if origin is tuple:
        return _container({"type": "array"}, "items", _kind(arguments[0], (), types))
    if origin is not None and origin is not Literal:
        return _container({"type": "object"}, "additionalProperties", _kind(arguments[-1], (), types))
    plain: Json = {} if any(isinstance(note, OrOutput) for note in notes) else {"plain": True}
    return {"type": _SCALARS.get(kind, "string") if isinstance(kind, type) else "string", **plain}


_SCALARS: Final[Mapping[type, str]] = {bool: "boolean", int: "integer", float: "number"}


def _container(kind: Json, inside: str, of: Json) -> Json:
    return {**kind, inside: of, **({"plain": True} if of.get("plain") else {})}


def _reference(sections: Sequence[type[Section]], types: dict[str, Json]) -> Json:
    """The type of a section, or of the first of several variants with the fields of all."""
    first = sections[0]
    token = f"holdfast:index:{first.__name__.removesuffix('Section')}"
    if token not in types:
        types[token] = {}
        described = _described(sections, types)
        required = [
            name
            for name in cast("list[str]", described["required"])
            if all(_requires(each, name) for each in sections)
        ]
        types[token] = {
            "type": "object",
            "description": _first_line(first.__doc__),
            "properties": described["properties"],
            "required": required,
        }
    return {"$ref": f"#/types/{token}", **({} if _takes_outputs(sections) else {"plain": True})}


def _requires(section: type[Section], name: str) -> bool:
    return any(info.alias == name and info.is_required() for info in section.model_fields.values())


def _takes_outputs(sections: Sequence[type[Section]]) -> bool:
    return any(
        any(isinstance(note, OrOutput) for note in _notes(info.annotation, info.metadata))
        or _takes_outputs(list(sections_in(info.annotation)))
        for section in sections
        for info in section.model_fields.values()
    )


def _notes(kind: object, notes: Sequence[object]) -> Iterator[object]:
    """What a type is annotated with, and each type in it."""
    yield from notes
    if get_origin(kind) is Annotated:
        kind, *inner = get_args(kind)
        yield from inner
    for each in () if isinstance(kind, type) and issubclass(kind, Enum) else get_args(kind):
        yield from _notes(each, ())


def _first_line(text: str | None) -> str:
    return (text or "").strip().partition("\n")[0]
