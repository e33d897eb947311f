"""Generates the schemas with which editors complete and check stack files: `holdfast schemas`.

Types, ranges and required fields come from the sections that parse a stack, and the text shown for a field comes from the
tables of docs/configuration.md. A schema checks single values only; the program also checks combinations of them.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias, cast

import yaml
from pydantic.json_schema import models_json_schema

from pulumi_holdfast.aws.config.stack import AwsDocument
from pulumi_holdfast.azure.config.stack import FixedDocument, NapDocument
from pulumi_holdfast.config.loader import PLATFORM
from pulumi_holdfast.gcp.config.stack import GcpDocument
from pulumi_holdfast.local.config.stack import LocalPlatform

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping

    from pulumi_holdfast.config.base import Section
    from pulumi_holdfast.ladder.json import Json, JsonValue

_ROOT: Final = Path(__file__).resolve().parents[3]
REFERENCE: Final = _ROOT / "docs/configuration.md"
FOLDER: Final = _ROOT / "stacks/schema"
DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"

#: The sections of a whole document: on Azure, `scaling` decides which of two it is.
DOCUMENTS: Final[Mapping[str, tuple[type[Section], ...]]] = {
    "aws": (AwsDocument,),
    "azure": (NapDocument, FixedDocument),
    "gcp": (GcpDocument,),
    "local": (LocalPlatform,),
}

#: The headings of the fields that all clouds have. The chapter of a cloud has its own, and they come first.
_SHARED: Final[Mapping[tuple[str, ...], str]] = {
    ("pools",): "`pools`",
    ("pools", "reservation"): "Reserved capacity",
    ("namespaces",): "`namespaces`",
    ("namespaces", "ladder"): "`namespaces`",
    ("namespaces", "shapes"): "Shapes",
    ("namespaces", "quota"): "Quota",
    ("namespaces", "fallback"): "How jobs move along their ladder",
    ("clusters",): "`clusters`",
    ("acceptsFrom",): "`acceptsFrom`",
    ("fallback",): "`fallback`",
    ("fallback", "monitoring"): "Monitoring",
}

_WIDTH: Final = 240
#: Links to what is on the page itself say nothing in an editor.
_LINK_ON_PAGE: Final = re.compile(r" ?\(?\[(?:below|how to create both)\]\([^)]*\)\)?")
_LINK: Final = re.compile(r"\[([^\]]+)\]\([^)]*\)")

#: The meanings of the fields in the tables below one heading.
Meanings: TypeAlias = "dict[str, str]"
_Schema: TypeAlias = "dict[str, JsonValue]"


def add_arguments(_: argparse.ArgumentParser) -> None:
    """Add nothing: the command has no arguments."""


def run(_: argparse.Namespace) -> int:
    """Write the schemas."""
    write_schemas()
    return 0


def write_schemas() -> None:
    """Write the schema of each cloud's stack files."""
    FOLDER.mkdir(exist_ok=True)
    for cloud in DOCUMENTS:
        (FOLDER / f"{cloud}.json").write_text(rendered(cloud), encoding="utf-8")


def rendered(cloud: str) -> str:
    """The file with the schema of a cloud's stack files."""
    return _layout(stack_schema(cloud), "\n") + "\n"


def _layout(value: JsonValue, line: str) -> str:
    """JSON in which a mapping that fits is on one line, so that a changed field is a changed line."""
    text = json.dumps(value, ensure_ascii=False)
    if len(text) <= _WIDTH or not isinstance(value, dict):
        return text
    inner = f"{line} "
    fields = (f"{json.dumps(name)}: {_layout(field, inner)}" for name, field in value.items())
    return f"{{{inner}{f',{inner}'.join(fields)}{line}}}"


def stack_schema(cloud: str) -> Json:
    """The schema of a cloud's stack files."""
    chapters = reference(REFERENCE.read_text("utf-8"))
    variants, parts = models_json_schema([(section, "validation") for section in DOCUMENTS[cloud]])
    definitions = cast("dict[str, _Schema]", parts["$defs"])
    document: _Schema = {"anyOf": cast("list[JsonValue]", list(variants.values()))}
    _describe(document, (), cloud, chapters, definitions)
    settings = {
        name: {"description": meaning}
        for name, meaning in chapters.get((f"`{cloud}` only", ""), {}).items()
        if ":" in name
    }
    return {
        "$schema": DIALECT,
        "title": f"A stack of Holdfast on {cloud}",
        "type": "object",
        "required": ["config"],
        "properties": {
            "config": {
                "type": "object",
                "required": [PLATFORM],
                "properties": {**cast("Json", settings), PLATFORM: document},
            }
        },
        "$defs": cast("Json", definitions),
    }


def reference(text: str) -> Mapping[tuple[str, str], Meanings]:
    """The meanings of the fields in the tables of the reference, by chapter and heading."""
    found: dict[tuple[str, str], Meanings] = {}
    chapter, heading, table = "", "", False
    for line in text.splitlines():
        if line.startswith("## "):
            chapter, heading = line[3:], ""
        elif line.startswith("### "):
            heading = line[4:]
        cells = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else []
        if not cells:
            table = False
        elif not table:
            table = cells[0].startswith(("field", "key")) and cells[-1] == "meaning"
        else:
            for name in re.findall(r"`([^`]+)`", cells[0]):
                found.setdefault((chapter, heading), {}).setdefault(name, _plain(cells[-1]))
    return found


def _plain(text: str) -> str:
    """A cell of a table as an editor shows it: without the links, which lead nowhere from a stack file."""
    return _LINK.sub(r"\1", _LINK_ON_PAGE.sub("", text))


def _describe(
    node: _Schema,
    path: tuple[str, ...],
    cloud: str,
    chapters: Mapping[tuple[str, str], Meanings],
    definitions: Mapping[str, _Schema],
) -> None:
    """Give the fields of a section, and of those inside it, the texts of the reference."""
    node.pop("title", None)
    node.pop("discriminator", None)
    if "oneOf" in node:
        # An empty mapping is valid as several of them, and means the first.
        node["anyOf"] = node.pop("oneOf")
    for name, field in cast("dict[str, _Schema]", node.get("properties", {})).items():
        place = (*path, name)
        meaning = _meaning(place, cloud, chapters)
        if meaning:
            field["description"] = meaning
        if "examples" in field:
            field["examples"] = [_example(str(text)) for text in cast("list[JsonValue]", field["examples"])]
        _describe(field, place, cloud, chapters, definitions)
    for inner in _inner(node):
        target = cast("str", inner.get("$ref", "")).rpartition("/")[2]
        _describe(definitions[target] if target else inner, path, cloud, chapters, definitions)


def _example(text: str) -> JsonValue:
    """An example of a field as a value; YAML reads a date as one, and JSON has none."""
    return cast("JsonValue", json.loads(json.dumps(yaml.safe_load(text), default=str)))


def _inner(node: _Schema) -> Iterator[_Schema]:
    """The parts of a schema beside its fields: variants, the items of a list, the definition that it refers to."""
    if "$ref" in node:
        yield {"$ref": node["$ref"]}
    yield from cast("list[_Schema]", node.get("anyOf", []))
    for key in ("items", "additionalProperties"):
        if isinstance(node.get(key), dict):
            yield cast("_Schema", node[key])


def _meaning(place: tuple[str, ...], cloud: str, chapters: Mapping[tuple[str, str], Meanings]) -> str | None:
    """The text of the reference about a field; None if the reference explains it together with another field."""
    own = f"`{cloud}` only"
    dotted = ".".join(place)
    for (chapter, heading), meanings in chapters.items():
        if chapter != own:
            continue
        # A field of the document is not the field of the same name in a section with a heading.
        if dotted in meanings and ("." in dotted or not heading):
            return meanings[dotted]
        below = ".".join(place[1:])
        if f"`{place[0]}`" in heading and below in meanings:
            return meanings[below]
    heading = _SHARED.get(place[:-1])
    shared = (meanings for key, meanings in chapters.items() if heading in (key[1] or key[0], key[1]))
    return next((meanings[place[-1]] for meanings in shared if place[-1] in meanings), None)
