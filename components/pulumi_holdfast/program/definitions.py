"""Finds what the API server refuses of an object, because its definition does not allow the value: the update would fail.

Of every object: texts that are given as a number or a boolean. Of NodePools and FallbackPolicies, which verdicts rest on: the values that
their definitions give a form. A test compares this table with the published definitions.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from pulumi_holdfast.ladder.json import UNKNOWN
from pulumi_holdfast.ladder.quantities import DurationError, parse_duration
from pulumi_holdfast.program.resources import (
    StackResource,
    Value,
    amount,
    at,
    is_fallback_policy,
    is_list,
    is_object,
    whole_number,
)

#: Fields that map names to texts: in the metadata of every object, in pods, and in the shapes of a FallbackPolicy.
_TEXTS: Final = ("labels", "annotations", "nodeSelector", "matchLabels", "selector")
_UNQUOTED: Final = (
    "{field} has {value} for {key}, which is no text, and the API server refuses it: quote the value"
)
_REFUSED: Final = "`{path}` is {value}, which its definition refuses: write {allowed}"
_NODE_POOL: Final = re.compile(r"kubernetes:karpenter\.sh/v\w+:NodePool")

#: Whether a value that is known is allowed, with what is.
_Form: TypeAlias = tuple[str, Callable[[Value], bool]]


def _is_duration(value: Value) -> bool:
    try:
        return isinstance(value, str) and bool(parse_duration(value))
    except DurationError:
        return False


def _matches(allowed: str, pattern: str) -> _Form:
    return allowed, lambda value: isinstance(value, str) and re.fullmatch(pattern, value) is not None


def _one_of(*values: str) -> _Form:
    return f"one of {', '.join(values)}", lambda value: value in values


_LIST: Final[_Form] = ("a list", is_list)
_OBJECT: Final[_Form] = ("an object", is_object)
_TEXT: Final[_Form] = ("a text", lambda value: isinstance(value, str))
_INTEGER: Final[_Form] = ("a whole number", lambda value: whole_number(value) is not None)
_QUANTITY: Final[_Form] = ("a quantity, such as 96, 500m or 1152Gi", lambda value: amount(value) is not None)
_DURATION: Final[_Form] = ("a duration, such as 20m or 1h30m", _is_duration)
_LIFETIME: Final = _matches("hours, minutes or seconds, such as 720h, or Never", r"(?:\d+[smh])+|Never")

#: By path, with lists as transparent and `*` for each value of a map.
NODE_POOL: Final[Mapping[str, _Form]] = {
    "spec.template": _OBJECT,
    "spec.template.metadata.labels": _OBJECT,
    "spec.limits": _OBJECT,
    "spec.limits.*": _QUANTITY,
    "spec.weight": _INTEGER,
    "spec.replicas": _INTEGER,
    "spec.template.spec.expireAfter": _LIFETIME,
    "spec.template.spec.terminationGracePeriod": _matches(
        "hours, minutes or seconds, such as 10m", r"(?:\d+[smh])+"
    ),
    "spec.template.spec.requirements": _LIST,
    "spec.template.spec.requirements.key": _TEXT,
    "spec.template.spec.requirements.operator": _one_of(
        "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Gte", "Lte"
    ),
    "spec.template.spec.requirements.values": _LIST,
    "spec.template.spec.taints": _LIST,
    "spec.template.spec.taints.key": _TEXT,
    "spec.template.spec.taints.effect": _one_of("NoSchedule", "PreferNoSchedule", "NoExecute"),
    "spec.template.spec.startupTaints.effect": _one_of("NoSchedule", "PreferNoSchedule", "NoExecute"),
    "spec.disruption.consolidationPolicy": _one_of("WhenEmpty", "WhenEmptyOrUnderutilized"),
    "spec.disruption.consolidateAfter": _LIFETIME,
    "spec.disruption.budgets": _LIST,
}
LADDER: Final[Mapping[str, _Form]] = {
    "spec.tiers": _LIST,
    "spec.tiers.pool": _TEXT,
    "spec.tiers.maxFailures": _INTEGER,
    "spec.tiers.procurementTimeout": _DURATION,
    "spec.giveUpAfter": _DURATION,
    "spec.failureWindow": _DURATION,
    "spec.holdTimeout": _DURATION,
    "spec.outageWindow": _DURATION,
    "spec.restartCost": _DURATION,
    "spec.startTimeout": _DURATION,
    "spec.shapes": _LIST,
    "spec.shapes.pods": _INTEGER,
    "spec.shapes.cpu": _QUANTITY,
    "spec.shapes.memory": _QUANTITY,
    "spec.shapes.gpus": _INTEGER,
    "spec.shapes.efa": _INTEGER,
    "spec.shapes.devices.*": _QUANTITY,
}
#: What a definition asks for: a list without which there is nothing to judge.
_REQUIRED: Final = {"spec.template": NODE_POOL, "spec.tiers": LADDER}


def refusals(resource: StackResource) -> tuple[str, ...]:
    """Return why the API server refuses an object; providers of clouds make texts of the labels of their own pools."""
    if not resource.type.startswith("kubernetes:"):
        return ()
    forms = (
        NODE_POOL
        if _NODE_POOL.fullmatch(resource.type)
        else LADDER
        if is_fallback_policy(resource.type)
        else {}
    )
    return (
        *_unquoted(resource.props),
        *(
            _REFUSED.format(path=path, value=_shown(value), allowed=allowed)
            for path, (allowed, is_allowed) in forms.items()
            for value in _values(resource.props, path.split("."))
            if value is not UNKNOWN and not is_allowed(value)
        ),
        *(
            f"it has no `{path}`, which its definition asks for"
            for path, of in _REQUIRED.items()
            if of is forms and at(resource.props, *path.split(".")) is None
        ),
        *(_repeated_pools(resource) if forms is LADDER else ()),
    )


def _shown(value: Value) -> str:
    return "an object" if is_object(value) else "a list" if is_list(value) else json.dumps(value)


def _values(value: Value, path: Sequence[str]) -> Iterator[Value]:
    """Yield what an object sets at a path."""
    if not path:
        if value is not None:
            yield value
        return
    if is_list(value):
        for each in value:
            yield from _values(each, path)
    elif is_object(value):
        for each in value.values() if path[0] == "*" else (value.get(path[0]),):
            yield from _values(each, path[1:])


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
