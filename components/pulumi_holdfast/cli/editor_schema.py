"""Generates what is said about the fields of stack files: `holdfast schemas`.

The schemas with which editors complete and check stack files, and the tables of docs/configuration.md, between markers that
name a part of the document. Both come from the sections that parse a stack: their types, ranges, defaults and descriptions. A
schema checks single values only; the program also checks combinations of them. The tables of docs/fallback.md come from the table
of a FallbackPolicy's fields, and what the policy pack reads of published definitions from the charts of operators.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias, cast

import yaml
from pydantic.json_schema import models_json_schema

from pulumi_holdfast.aws.config.sections import AwsPlatform
from pulumi_holdfast.azure.config.sections import AzurePlatform
from pulumi_holdfast.config import versions
from pulumi_holdfast.config.errors import allowed, in_yaml, sections_in
from pulumi_holdfast.config.fields import Section
from pulumi_holdfast.config.loader import PLATFORM
from pulumi_holdfast.gcp.config.sections import GcpPlatform
from pulumi_holdfast.ladder import fallback_policy
from pulumi_holdfast.ladder.fields import ObjectKind
from pulumi_holdfast.ladder.ladder import Policy
from pulumi_holdfast.local.config.sections import LocalPlatform
from pulumi_holdfast.program import definitions

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pydantic.fields import FieldInfo

    from pulumi_holdfast.ladder.json import Json, JsonValue

_ROOT: Final = Path(__file__).resolve().parents[3]
REFERENCE: Final = _ROOT / "docs/configuration.md"
FALLBACK: Final = _ROOT / "docs/fallback.md"
FOLDER: Final = _ROOT / "stacks/schema"
DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"

#: The section of a whole document.
DOCUMENTS: Final[Mapping[str, type[Section]]] = {
    "aws": AwsPlatform,
    "gcp": GcpPlatform,
    "azure": AzurePlatform,
    "local": LocalPlatform,
}
#: The parts of a FallbackPolicy with tables of their own, and what has the defaults of their fields.
POLICY_TABLES: Final[Mapping[str, tuple[ObjectKind, object]]] = {
    "spec": (fallback_policy.SPEC, Policy),
    "spec.tiers": (fallback_policy.TIER, None),
    "spec.tiers.facts": (fallback_policy.FACTS, None),
    "spec.shapes": (fallback_policy.SHAPE, None),
}
_NAMES: Final = {"aws": "AWS", "gcp": "Google Cloud", "azure": "Azure", "local": "local"}

#: A table's markers, with the path of a part of the document.
_TABLE: Final = re.compile(r"(<!-- fields of (\S+) -->\n).*?(<!-- end of fields -->)", re.DOTALL)
_WIDTH: Final = 240
#: Links to what is on the page itself say nothing in an editor.
_LINK_ON_PAGE: Final = re.compile(r" \(\[below\]\([^)]*\)\)")
_LINK: Final = re.compile(r"\[([^\]]+)\]\([^)]*\)")

_Schema: TypeAlias = "dict[str, JsonValue]"


def write_schemas() -> None:
    """Write the schema of each cloud's stack files, and the tables of the reference."""
    FOLDER.mkdir(exist_ok=True)
    for cloud in DOCUMENTS:
        (FOLDER / f"{cloud}.json").write_text(rendered(cloud), encoding="utf-8")
    REFERENCE.write_text(with_tables(REFERENCE.read_text("utf-8")), encoding="utf-8")
    FALLBACK.write_text(with_policy_tables(FALLBACK.read_text("utf-8")), encoding="utf-8")
    definitions.FILE.write_text(published_definitions(), encoding="utf-8")


#: The definitions that the policy pack reads, below the folder of charts.
_DEFINITIONS: Final[Mapping[str, str]] = {
    "kubernetes:karpenter.sh:NodePool": "karpenter-crds/files/karpenter.sh_nodepools.yaml",
    "kubernetes:jobset.x-k8s.io:JobSet": "jobset-crds/files/jobset.x-k8s.io_jobsets.yaml",
    "kubernetes:ray.io:RayJob": "kuberay-crds/files/ray.io_rayjobs.yaml",
}
_CHARTS: Final = _ROOT / "components/pulumi_holdfast/kubernetes/charts"
_CHECKED: Final = frozenset({"type", "enum", "pattern", "minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "x-kubernetes-int-or-string"})  # fmt: skip
#: A part of a definition that is longer than this, and there twice, is written once.
_SHARED_FROM: Final = 400


def published_definitions() -> str:
    """The specifications of the definitions that the policy pack reads: what it checks of them, one line for each kind or shared part."""
    found: dict[str, Json] = {}
    for kind, file in _DEFINITIONS.items():
        document = yaml.load((_CHARTS / file).read_text("utf-8"), yaml.CSafeLoader)
        stored = next(each for each in document["spec"]["versions"] if each["storage"])
        found[kind] = _checked(stored["schema"]["openAPIV3Schema"]["properties"]["spec"])
    counted: Counter[str] = Counter()
    for each in found.values():
        _count_parts(each, counted)
    numbers = {
        text: str(number) for number, text in enumerate(each for each, times in counted.items() if times > 1)
    }
    written = {kind: _with_references(each, numbers, is_whole=True) for kind, each in found.items()}
    for text, number in numbers.items():
        written[number] = _with_references(json.loads(text), numbers, is_whole=True)
    lines = (f"{json.dumps(name)}: {_compact(each)}" for name, each in written.items())
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _checked(schema: Json) -> Json:
    """The part of a schema that is checked: a field with a default is never missing."""
    fields, items, others = (schema.get(each) for each in ("properties", "items", "additionalProperties"))
    found: _Schema = {name: schema[name] for name in _CHECKED & schema.keys()}
    if fields:
        named = cast("dict[str, Json]", fields)
        found["properties"] = {name: _checked(each) for name, each in named.items()}
        found["required"] = [
            name
            for name in cast("list[str]", schema.get("required", []))
            if "default" not in named.get(name, {})
        ]
    if isinstance(items, dict):
        found["items"] = _checked(items)
    if isinstance(others, dict):
        found["additionalProperties"] = _checked(others)
    return {name: each for name, each in found.items() if each != []}


def _compact(value: JsonValue) -> str:
    return json.dumps(value, separators=(",", ":"), sort_keys=True)


def _count_parts(schema: Json, counted: Counter[str]) -> None:
    text = _compact(schema)
    if len(text) > _SHARED_FROM:
        counted[text] += 1
        if counted[text] > 1:
            return
    for each in _parts(schema):
        _count_parts(each, counted)


def _parts(schema: Json) -> Iterator[Json]:
    yield from cast("Json", schema.get("properties", {})).values()  # type: ignore[misc]
    for name in ("items", "additionalProperties"):
        if isinstance(each := schema.get(name), dict):
            yield each


def _with_references(schema: Json, numbers: Mapping[str, str], *, is_whole: bool = False) -> Json:
    """The schema with a reference for each part that is written once."""
    number = numbers.get(_compact(schema))
    if number is not None and not is_whole:
        return {"$ref": number}
    found: _Schema = dict(schema)
    if "properties" in schema:
        named = cast("dict[str, Json]", schema["properties"])
        found["properties"] = {name: _with_references(each, numbers) for name, each in named.items()}
    for name in ("items", "additionalProperties"):
        if isinstance(each := schema.get(name), dict):
            found[name] = _with_references(each, numbers)
    return found


def rendered(cloud: str) -> str:
    """The file with the schema of a cloud's stack files."""
    return layout(stack_schema(cloud), "\n") + "\n"


def layout(value: JsonValue, line: str) -> str:
    """JSON in which a mapping that fits is on one line, so that a changed field is a changed line."""
    text = json.dumps(value, ensure_ascii=False)
    if len(text) <= _WIDTH or not isinstance(value, dict):
        return text
    inner = f"{line} "
    fields = (f"{json.dumps(name)}: {layout(field, inner)}" for name, field in value.items())
    return f"{{{inner}{f',{inner}'.join(fields)}{line}}}"


def stack_schema(cloud: str) -> Json:
    """The schema of a cloud's stack files."""
    variants, parts = models_json_schema([(DOCUMENTS[cloud], "validation")])
    settings: _Schema = {}
    sections = cast("dict[str, _Schema]", parts["$defs"])
    for section in sections.values():
        _describe(section)
        fields = cast("_Schema", section.get("properties", {}))
        beside = {name: fields.pop(name) for name in list(fields) if ":" in name}
        # The engine gives the values of a provider in another form.
        settings |= {
            name: {"description": cast("Json", field)["description"]} for name, field in beside.items()
        }
        if "required" in section:
            section["required"] = [
                name for name in cast("list[str]", section["required"]) if name not in beside
            ]
    return {
        "$schema": DIALECT,
        "title": f"A stack of Holdfast on {cloud}",
        "type": "object",
        "required": ["config"],
        "properties": {
            "config": {
                "type": "object",
                "required": [PLATFORM],
                "properties": {
                    **cast("Json", settings),
                    PLATFORM: {"anyOf": cast("list[JsonValue]", list(variants.values()))},
                },
            }
        },
        "$defs": cast("Json", sections),
    }


def _describe(node: _Schema) -> None:
    """Give the fields of a section their texts without links, and their examples as values."""
    node.pop("title", None)
    node.pop("discriminator", None)
    if "oneOf" in node:
        # An empty mapping is valid as several of them, and means the first.
        node["anyOf"] = node.pop("oneOf")
    for field in cast("dict[str, _Schema]", node.get("properties", {})).values():
        if "description" in field:
            field["description"] = plain_text(str(field["description"]))
        if "examples" in field:
            field["examples"] = [_example(str(text)) for text in cast("list[JsonValue]", field["examples"])]
        _describe(field)


def plain_text(description: str) -> str:
    """A description without links."""
    return _LINK.sub(r"\1", _LINK_ON_PAGE.sub("", description))


def _example(text: str) -> JsonValue:
    """An example of a field as a value; YAML reads a date as one, and JSON has none."""
    return cast("JsonValue", json.loads(json.dumps(yaml.safe_load(text), default=str)))


def with_tables(page: str) -> str:
    """A page with the table between each pair of markers written again."""
    places = [found[2] for found in _TABLE.finditer(page)]
    return _TABLE.sub(lambda found: f"{found[1]}{_table(found[2], places)}\n{found[3]}", page)


def with_policy_tables(page: str) -> str:
    """A page with the tables of the fields of a FallbackPolicy written again."""
    return _TABLE.sub(lambda found: f"{found[1]}{_policy_table(*POLICY_TABLES[found[2]])}\n{found[3]}", page)


def _policy_table(kind: ObjectKind, defaults: object) -> str:
    """The fields of an object; `defaults` has their defaults as class attributes."""
    lines = ["| field | value | default | meaning |", "|---|---|---|---|"]
    for each in kind.fields:
        default = getattr(defaults, each.attribute, None)
        cell = "required" if each.is_required else "" if default is None else f"`{each.kind.write(default)}`"
        lines.append(f"| `{each.name}` | {each.kind.allowed} | {cell} | {each.meaning} |")
    return "\n".join(lines)


def _table(place: str, places: Sequence[str]) -> str:
    """The table of the fields at a place, such as `namespaces.shapes`; those of other `places` have their own tables."""
    rows: dict[str, dict[str, tuple[str, str, str]]] = {}
    having: set[str] = set()
    at = "" if place == "document" else place
    for cloud, document in DOCUMENTS.items():
        for section in _sections_at(document, at):
            having.add(cloud)
            for name, cells in _rows(section, at, places):
                rows.setdefault(name, {}).setdefault(cloud, cells)
    everywhere = all(found.keys() == having for found in rows.values())
    columns = ["field", *([] if everywhere else ["cloud"]), "value", "default", "meaning"]
    lines = [f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}"]
    for name, found in rows.items():
        clouds = "all" if found.keys() == having else ", ".join(_NAMES[cloud] for cloud in found)
        texts = (_by_cloud({cloud: cells[column] for cloud, cells in found.items()}) for column in range(3))
        lines.append(f"| {' | '.join([f'`{name}`', *([] if everywhere else [clouds]), *texts])} |")
    return "\n".join(lines)


def _by_cloud(texts: Mapping[str, str]) -> str:
    """A cell that says for each cloud what it has, if they differ."""
    clouds: dict[str, list[str]] = {}
    for cloud, text in texts.items():
        clouds.setdefault(text, []).append(_NAMES[cloud])
    if len(clouds) == 1:
        return next(iter(clouds))
    return ". ".join(f"{', '.join(names)}: {text or 'none'}" for text, names in clouds.items())


def _sections_at(section: type[Section], place: str) -> Iterator[type[Section]]:
    """The sections at a place below a section; several where the document decides between them."""
    if not place:
        yield section
        return
    name, _, below = place.partition(".")
    info = next((info for info in section.model_fields.values() if info.alias == name), None)
    for inner in sections_in(info.annotation) if info is not None else ():
        yield from _sections_at(inner, below)


def _rows(
    section: type[Section], place: str, places: Sequence[str], prefix: str = ""
) -> Iterator[tuple[str, tuple[str, str, str]]]:
    """The rows of a section's fields: name; value, default and meaning. A mapping of plain values is one row."""
    defaults = _defaults(section)
    for info in section.model_fields.values():
        name = f"{prefix}{info.alias}"
        path = f"{place}.{name}" if place else name
        inner = list(sections_in(info.annotation))
        if path in places:
            continue
        if any(_is_deep(each) for each in inner):
            yield from _rows(inner[0], place, places, f"{name}.")
        else:
            yield (
                name,
                (_value(info, inner), _default(info, defaults), f"{info.description}{_fields_in(inner)}"),
            )


def _is_deep(section: type[Section]) -> bool:
    """Whether a section has a mapping of several fields."""
    return any(
        len(inner.model_fields) > 1
        for info in section.model_fields.values()
        for inner in sections_in(info.annotation)
    )


def _value(info: FieldInfo, inner: Sequence[type[Section]]) -> str:
    if not inner:
        return allowed(info.annotation, info.metadata).replace("|", "\\|")
    return "a list of mappings" if "tuple" in str(info.annotation) else "a mapping"


def _fields_in(inner: Sequence[type[Section]]) -> str:
    """The fields of the mappings that have no table of their own."""
    texts: dict[str, None] = {}
    for section in inner:
        defaults = _defaults(section)
        for info in section.model_fields.values():
            below = list(sections_in(info.annotation))
            value = _value(info, below)
            default = _default(info, defaults)
            said = f"{value}{f', {default} by default' if default.startswith('`') else ''}"
            texts.setdefault(f"`{info.alias}` ({said}): {info.description}{_fields_in(below)}")
    return f". {'; '.join(texts)}" if texts else ""


def _defaults(section: type[Section]) -> Json:
    """The defaults of a section's fields, as a document has them."""
    plain = {
        name
        for name, info in section.model_fields.items()
        if not info.is_required() and not info.default_factory
    }
    return cast("Json", section.model_construct().model_dump(mode="json", by_alias=True, include=plain))


def _default(info: FieldInfo, defaults: Json) -> str:
    if info.is_required():
        return "required"
    found = defaults.get(info.alias or "")
    if found == versions.KUBERNETES:
        return "[this release's](../components/pulumi_holdfast/config/versions.py)"
    return "" if found in (None, [], "", {}) else f"`{in_yaml(found)}`"
