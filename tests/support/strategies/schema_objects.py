"""Objects with values drawn from the schemas by which an API server admits them: extremes of every field, in every combination."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Final, cast

import yaml
from hypothesis import strategies as st

from pulumi_holdfast.ladder.fallback_policy import POLICY_SCHEMA
from pulumi_holdfast.ladder.json import Json, JsonValue, mapping, sequence
from tests.support.json_objects import obj
from tests.support.strategies.extreme_objects import INTEGERS, TEXTS, TIMES

_CHARTS: Final = Path(__file__).parents[3] / "components/pulumi_holdfast/kubernetes/charts"
_FILES: Final = {
    "JobSet": "jobset-crds/files/jobset.x-k8s.io_jobsets.yaml",
    "RayJob": "kuberay-crds/files/ray.io_rayjobs.yaml",
    "NodePool": "karpenter-crds/files/karpenter.sh_nodepools.yaml",
    "NodeClaim": "karpenter-crds/files/karpenter.sh_nodeclaims.yaml",
}
_DEEPEST: Final = 14
_QUANTITIES: Final = ("0", "1", "-1", "1e999", "9" * 300, "0.000000001", "1Ei", "9999999999Ei", "1n")
_FLOATS: Final = (0.0, -1.0, 1e308, -1e308, 5e-324, 0.1)
_ANY: Final[tuple[JsonValue, ...]] = (None, True, 0, "x", {}, [], {"a": [{}]})

#: What every object may have in its metadata; annotations take any text, of up to 256 KiB together.
METADATA: Final[Json] = {
    "type": "object",
    "properties": {
        "creationTimestamp": {"type": "string", "format": "date-time"},
        "deletionTimestamp": {"type": "string", "format": "date-time"},
        "deletionGracePeriodSeconds": {"type": "integer"},
        "generation": {"type": "integer"},
        "finalizers": {"type": "array", "items": {"type": "string"}},
        "ownerReferences": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    **{name: {"type": "string"} for name in ("apiVersion", "kind", "name", "uid")},
                    "controller": {"type": "boolean"},
                },
            },
        },
    },
}


@cache
def schema_of(kind: str) -> Json:
    """Return the schema of a kind as its definition has it."""
    if kind == "FallbackPolicy":
        return POLICY_SCHEMA
    definition = obj(
        cast("JsonValue", yaml.load((_CHARTS / _FILES[kind]).read_text("utf-8"), yaml.CSafeLoader))
    )
    versions = [obj(each) for each in sequence(obj(definition["spec"])["versions"])]
    (stored,) = [each for each in versions if each.get("storage")]
    return obj(obj(stored["schema"])["openAPIV3Schema"])


@cache
def pod_schema() -> Json:
    """Return the schema of a pod's spec, as the template of a JobSet has it."""
    found = schema_of("JobSet")
    for name in ("spec", "replicatedJobs", "template", "spec", "template", "spec"):
        found = obj(obj(obj(found.get("items", found))["properties"])[name])
    return {"type": "object", "properties": {"spec": found}}


def admitted(valid: Json, schema: Json, *, annotations: tuple[str, ...] = ()) -> st.SearchStrategy[Json]:
    """The object with some fields that its schema has, and some of these annotations with any text; its identity stays."""
    fields = {name: each for name, each in obj(schema["properties"]).items() if name in {"spec", "status"}}
    texts: Json = {"type": "string"}
    noted: Json = {"type": "object", "properties": dict.fromkeys(annotations, texts)}
    metadata: Json = {**METADATA, "properties": {**obj(METADATA["properties"]), "annotations": noted}}
    whole: Json = {"type": "object", "properties": {**fields, "metadata": metadata}}
    return value_of(whole, least=1).map(lambda drawn: _overlaid(valid, obj(drawn)))


@st.composite
def value_of(draw: st.DrawFn, schema: Json, *, least: int = 0, depth: int = 0) -> JsonValue:
    """A value that a schema admits; of an object some of the properties, and all that it requires."""
    if "enum" in schema:
        return draw(st.sampled_from(list(sequence(schema["enum"]))))
    if schema.get("x-kubernetes-int-or-string"):
        return draw(st.sampled_from(INTEGERS) | st.sampled_from(_QUANTITIES))
    match schema.get("type"):
        case "object":
            return _object(draw, schema, least, depth) if depth < _DEEPEST else {}
        case "array":
            fewest = int(str(schema.get("minItems", 0)))
            number = draw(st.integers(fewest, max(fewest, 2))) if depth < _DEEPEST else 0
            return [draw(value_of(mapping(schema.get("items")), depth=depth + 1)) for _ in range(number)]
        case _:
            return draw(_plain(schema))


def _object(draw: st.DrawFn, schema: Json, least: int, depth: int) -> Json:
    properties = mapping(schema.get("properties"))
    if not properties:
        each = mapping(schema.get("additionalProperties")) or {"type": "string"}
        names = draw(st.lists(st.sampled_from(("a", "b.c/d", "nodes")), max_size=2, unique=True))
        return {name: draw(value_of(each, depth=depth + 1)) for name in names}
    some = st.lists(st.sampled_from(sorted(properties)), min_size=least, max_size=3, unique=True)
    wanted = sorted({*draw(some), *map(str, sequence(schema.get("required")))})
    return {name: draw(value_of(mapping(properties.get(name)), depth=depth + 1)) for name in wanted}


def _plain(schema: Json) -> st.SearchStrategy[JsonValue]:
    match schema.get("type"):
        case "integer":
            return _integers(schema)
        case "number":
            return st.sampled_from(_FLOATS) | st.sampled_from(INTEGERS)
        case "boolean":
            return st.booleans()
        case "string":
            return _texts(schema)
        case _:
            return st.sampled_from(_ANY)


def _integers(schema: Json) -> st.SearchStrategy[JsonValue]:
    size = 2**31 if schema.get("format") == "int32" else 2**63
    least, most = int(str(schema.get("minimum", -size))), int(str(schema.get("maximum", size - 1)))
    extremes = [each for each in (*INTEGERS, least, most) if least <= each <= most]
    return st.sampled_from(extremes) | st.integers(least, most)


def _texts(schema: Json) -> st.SearchStrategy[JsonValue]:
    if schema.get("format") == "date-time":
        return st.sampled_from(TIMES)
    pattern, most = schema.get("pattern"), int(str(schema.get("maxLength", 10_000)))
    extremes = [each for each in (*TEXTS, *_QUANTITIES, *TIMES) if len(each) <= most]
    if not isinstance(pattern, str):
        return st.sampled_from(extremes)
    matching = [each for each in extremes if re.search(pattern, each, re.ASCII)]
    drawn = st.from_regex(re.compile(pattern, re.ASCII)).filter(lambda each: len(each) <= most)
    return st.sampled_from(matching) | drawn if matching else drawn


def _overlaid(valid: Json, more: Json) -> Json:
    """The object with other fields; lists are replaced."""
    return {
        **valid,
        **{
            name: _overlaid(obj(valid[name]), obj(value))
            if isinstance(value, dict) and isinstance(valid.get(name), dict)
            else value
            for name, value in more.items()
        },
    }
