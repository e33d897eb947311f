"""Conditions a program writes itself, in the annotation `pulumi.com/waitFor`."""

import json
import re
from collections.abc import Sequence
from typing import cast

from holdfast.scheduling.json import Json, JsonValue
from holdfast.simulator.errors import RehearsalError
from holdfast.simulator.kubernetes_client.objects import mapping
from holdfast.simulator.kubernetes_provider.annotations import WAIT_FOR
from holdfast.simulator.kubernetes_provider.readiness import READY, Readiness, Rule, condition, waiting

_JSONPATH = re.compile(r"jsonpath=\{(?P<path>(\.[A-Za-z0-9_-]+)+)\}(=(?P<value>.*))?")
_CONDITION = re.compile(r"condition=(?P<name>[^=]+)(=(?P<status>.+))?")


def custom_rule(text: str) -> Rule:
    """Return the rule in an annotation: one expression, or a JSON array of them that must all hold.

    Raises RehearsalError for what is neither `condition=Ready[=True]` nor `jsonpath={.a.b}[=value]`.
    """
    rules = [_rule(expression) for expression in _expressions(text)]

    def every(obj: Json) -> Readiness:
        return next((found for rule in rules if not (found := rule(obj)).is_ready), READY)

    return every


def _expressions(text: str) -> Sequence[str]:
    try:
        parsed = cast("JsonValue", json.loads(text))
    except ValueError:
        return [text]
    return [str(each) for each in parsed] if isinstance(parsed, Sequence) else [text]


def _rule(expression: str) -> Rule:
    if found := _CONDITION.fullmatch(expression):
        return _has_condition(found["name"], found["status"] or "True")
    if found := _JSONPATH.fullmatch(expression):
        return _has_value(found["path"].strip(".").split("."), found["value"])
    raise RehearsalError(
        f"annotation {WAIT_FOR}: {expression!r} cannot be rehearsed; condition=<type>[=<status>] and "
        "jsonpath={.field.field}[=<value>] can"
    )


def _has_condition(name: str, status: str) -> Rule:
    def rule(obj: Json) -> Readiness:
        found = condition(obj, name)
        if str(found.get("status")).lower() == status.lower():
            return READY
        return waiting(f"condition {name} is {found.get('status') or 'not set'}, not {status}")

    return rule


def _has_value(path: Sequence[str], wanted: str | None) -> Rule:
    def rule(obj: Json) -> Readiness:
        value: JsonValue = obj
        for field in path:
            value = mapping(value).get(field)
        is_there = value is not None if wanted is None else _text(value) == wanted
        return READY if is_there else waiting(f"{'.'.join(path)} is {_text(value)}, not {wanted or 'set'}")

    return rule


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else json.dumps(value)
