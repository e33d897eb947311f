"""Finds what the API server refuses of an object, because its definition does not allow the value: the update would fail.

`definitions.json` has the published definitions of the kinds that verdicts rest on, as `holdfast schemas` writes it: types, forms, ranges
and what is required, without rules in CEL. That of FallbackPolicies is in `ladder`. What only a webhook or admission refuses is taken for
granted by the verdict on a namespace.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final, cast

from pulumi_holdfast.ladder.fallback_policy import POLICY_SCHEMA
from pulumi_holdfast.ladder.json import UNKNOWN, Json, mapping
from pulumi_holdfast.ladder.quantities import CPU_PATTERN, DURATION_PATTERN, MEMORY_PATTERN
from pulumi_holdfast.program.fields import unversioned
from pulumi_holdfast.program.resources import (
    StackResource,
    Value,
    at,
    is_fallback_policy,
    is_list,
    is_object,
    whole_number,
)

#: Written by `holdfast schemas`.
FILE: Final = Path(__file__).with_suffix(".json")
#: Fields that map names to texts: in the metadata of every object, in pods, and in the shapes of a FallbackPolicy.
_TEXTS: Final = ("labels", "annotations", "nodeSelector", "matchLabels", "selector")
_UNQUOTED: Final = (
    "{field} has {value} for {key}, which is no text, and the API server refuses it: quote the value"
)
_REFUSED: Final = "`{path}` is {value}, which its definition refuses: write {allowed}"
_MISSING: Final = "it has no `{path}`, which its definition asks for"
_INT_OR_STRING: Final = "x-kubernetes-int-or-string"
_QUANTITY: Final[Json] = {
    _INT_OR_STRING: True,
    "pattern": r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?$",
}
_LABEL: Final[Json] = {
    "type": "string",
    "maxLength": 63,
    "pattern": "^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$",
}
#: Of every object, and of the kinds of Kubernetes itself.
_METADATA: Final[Json] = {
    "type": "object",
    "properties": {
        "name": {
            "type": "string",
            "maxLength": 253,
            "pattern": r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$",
        },
        "labels": {"type": "object", "additionalProperties": _LABEL},
    },
}
_NAMESPACE: Final[Json] = {
    **_METADATA,
    "properties": {
        **mapping(_METADATA["properties"]),
        "name": {"type": "string", "maxLength": 63, "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"},
    },
}
_NAMESPACE_KIND: Final = "kubernetes:core:Namespace"
_QUANTITIES: Final[Json] = {"type": "object", "additionalProperties": _QUANTITY}
_OF_KUBERNETES: Final[Mapping[str, Json]] = {
    "kubernetes:core:ResourceQuota": {"properties": {"hard": _QUANTITIES}},
    "kubernetes:core:LimitRange": {
        "properties": {
            "limits": {
                "type": "array",
                "items": {
                    "properties": dict.fromkeys(("default", "defaultRequest", "max", "min"), _QUANTITIES)
                },
            }
        }
    },
}
#: What a form allows, in words, by a part of its pattern.
_FORMS: Final = {
    "(s|m|h))+)|(Never)": "hours, minutes or seconds, such as 720h, or Never",
    "(s|m|h))+|Never": "hours, minutes or seconds, such as 720h, or Never",
    "(s|m|h))+": "hours, minutes or seconds, such as 10m",
    f"^never$|{DURATION_PATTERN}": "a duration, such as 20m or 1h30m, or never",
    DURATION_PATTERN: "a duration, such as 20m or 1h30m",
    CPU_PATTERN: "CPUs, such as 96, 0.5 or 500m, as a text",
    MEMORY_PATTERN: "an amount of memory, such as 1152Gi",
    "[KMGTPE]i": "a quantity, such as 96, 500m or 1152Gi",
    "%|[0-9]+)$": "a number of nodes as a text, such as '0', or a share, such as 10%",
    r"(\/))?([A-Za-z0-9]": "a label, such as team or example.com/team",
    "[-A-Za-z0-9_.]*)?[A-Za-z0-9])": "letters, digits, hyphens, underscores and dots, with a letter or a digit at both ends",
    "^[a-z0-9](": "lower-case letters, digits and hyphens, with no hyphen at an end",
}
_TYPES: Final = {"object": "an object", "array": "a list", "string": "a text", "boolean": "true or false"}


def refusals(resource: StackResource) -> tuple[str, ...]:
    """Return why the API server refuses an object; providers of clouds make texts of the labels of their own pools."""
    if not resource.type.startswith("kubernetes:"):
        return ()
    kind = unversioned(resource.type)
    spec = at(resource.props, "spec")
    found = (
        *_unquoted(resource.props),
        *_refused(
            at(resource.props, "metadata"), _NAMESPACE if kind == _NAMESPACE_KIND else _METADATA, "metadata"
        ),
        *_refused({} if spec is None else spec, _definition(resource.type, kind), "spec"),
        *(_repeated_pools(resource) if is_fallback_policy(resource.type) else ()),
    )
    return tuple(dict.fromkeys(found))


def _definition(type_token: str, kind: str) -> Json:
    """Return what is known of the specification of a kind."""
    if is_fallback_policy(type_token):
        return mapping(mapping(POLICY_SCHEMA["properties"])["spec"])
    return _OF_KUBERNETES.get(kind) or mapping(published().get(kind))


@cache
def published() -> Json:
    """Return the definitions of operators, by kind, and the parts that they share, by number."""
    return cast("Json", json.loads(FILE.read_text("utf-8")))


def _refused(value: Value, schema: Json, path: str) -> Iterator[str]:
    """Yield what of a value a schema refuses; what is not known, or not set, is not refused."""
    if value is UNKNOWN or value is None:
        return
    schema = mapping(published().get(str(schema["$ref"]))) if "$ref" in schema else schema
    if not _is_allowed(value, schema):
        yield _REFUSED.format(path=path, value=_shown(value), allowed=_allowed(schema, value))
    elif is_object(value):
        # What deeper parts lack, the API server says: verdicts rest on what is set.
        for name in cast("Sequence[str]", schema.get("required", ())) if path == "spec" else ():
            if value.get(name) is None:
                yield _MISSING.format(path=f"{path}.{name}")
        named, others = mapping(schema.get("properties")), mapping(schema.get("additionalProperties"))
        is_text = path.rpartition(".")[2] in _TEXTS
        for name, each in value.items():
            if not is_text or isinstance(each, str):
                yield from _refused(each, mapping(named.get(name)) or others, f"{path}.{name}")
    elif is_list(value):
        for each in value:
            yield from _refused(each, mapping(schema.get("items")), path)


def _is_allowed(value: Value, schema: Json) -> bool:
    if _INT_OR_STRING in schema:
        is_typed = isinstance(value, str | int | float) and not isinstance(value, bool)
    else:
        is_typed = {
            "object": is_object(value),
            "array": is_list(value),
            "string": isinstance(value, str),
            "boolean": isinstance(value, bool),
            "integer": whole_number(value) is not None,
            "number": isinstance(value, int | float) and not isinstance(value, bool),
        }.get(str(schema.get("type")), True)
    if not is_typed:
        return False
    if isinstance(value, str):
        pattern, members = schema.get("pattern"), schema.get("enum")
        return (
            (not isinstance(pattern, str) or re.search(pattern, value) is not None)
            and (not isinstance(members, list) or value in members)
            and _is_between(len(value), schema, "Length")
        )
    if is_list(value):
        return _is_between(len(value), schema, "Items")
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _is_between(value, schema, "imum")
    return True


def _is_between(amount: float, schema: Json, what: str) -> bool:
    least, most = schema.get(f"min{what}"), schema.get(f"max{what}")
    is_enough = not isinstance(least, int | float) or amount >= least
    return is_enough and (not isinstance(most, int | float) or amount <= most)


def _allowed(schema: Json, value: Value) -> str:
    members, pattern, kind = schema.get("enum"), str(schema.get("pattern", "")), str(schema.get("type", ""))
    if isinstance(members, list):
        return f"one of {', '.join(map(str, members))}"
    form = next((words for part, words in _FORMS.items() if pattern and part in pattern), "")
    least, most = (
        next((schema[f"{end}{of}"] for of in ("imum", "Items", "Length") if f"{end}{of}" in schema), None)
        for end in ("min", "max")
    )
    span = f"{'' if least is None else f' from {least}'}{'' if most is None else f' up to {most}'}"
    if kind in {"integer", "number"}:
        return f"a {'whole ' if kind == 'integer' else ''}number{span}"
    if is_list(value) and span:
        return f"a list of{span} items"
    is_long = isinstance(value, str) and not _is_between(len(value), schema, "Length")
    matching = f"a text that matches {pattern}" if pattern else _TYPES.get(kind, "a quantity")
    return f"{form or matching}{f', of{span} characters' if is_long else ''}"


def _shown(value: Value) -> str:
    return "an object" if is_object(value) else "a list" if is_list(value) else json.dumps(value)


def _unquoted(value: Value) -> Iterator[str]:
    if is_object(value):
        for field, part in value.items():
            texts = part.items() if field in _TEXTS and is_object(part) else ()
            for key, given in texts:
                if isinstance(given, bool | int | float):
                    yield _UNQUOTED.format(field=f"`{field}`", value=json.dumps(given), key=key)
            yield from _unquoted(part)
    elif is_list(value):
        for each in value:
            yield from _unquoted(each)


def _repeated_pools(ladder: StackResource) -> Iterator[str]:
    """Yield the pools that a ladder names twice: a job cannot distinguish the two tiers."""
    first: dict[tuple[str, str], int] = {}
    tiers = at(ladder.props, "spec", "tiers")
    for number, tier in enumerate(tiers if is_list(tiers) else (), start=1):
        pool, cluster = at(tier, "pool"), at(tier, "cluster") or ""
        if isinstance(pool, str) and isinstance(cluster, str):
            if (cluster, pool) in first:
                yield (
                    f"tier {number} names pool {pool!r}, which is already tier {first[cluster, pool]}: name each pool once, and raise "
                    "its `maxFailures` instead"
                )
            first.setdefault((cluster, pool), number)
