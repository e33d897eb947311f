"""A rule: what it finds in a stack, and how Pulumi is told of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias

from holdfast.scheduling.json import Json, JsonValue

if TYPE_CHECKING:
    from holdfast.policies.findings import Finding, StackResource

#: What a rule's settings are, by name, defaults filled in.
Settings: TypeAlias = Mapping[str, JsonValue]


class Level(StrEnum):
    """Whether a finding stops the run. A team may set another level for a rule in its own configuration of the pack."""

    ADVISORY = "advisory"
    MANDATORY = "mandatory"


class Weight(StrEnum):
    """How much hangs on a rule, as reports show it."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    CRITICAL = "critical"


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What a team may set for a rule: its JSON schema, which carries the description, and its default."""

    schema: Json
    default: JsonValue


@dataclass(frozen=True, kw_only=True)
class Rule:
    """One rule of the pack.

    `name` is how configuration names it, `title` how a report does; `description` says what holds where it is kept,
    `fix` what to do where it is not. `find` returns what is wrong with a stack; it is never shown anything but values
    and UNKNOWN, and never raises.
    """

    name: str
    title: str
    description: str
    fix: str
    level: Level
    weight: Weight
    find: Callable[[Sequence[StackResource], Settings], Sequence[Finding]]
    settings: Mapping[str, Setting] = field(default_factory=dict[str, Setting])


def numbers(settings: Settings, name: str) -> int:
    """A whole number among the settings; the engine's wire knows only floats."""
    value = settings[name]
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"setting {name} is no number, and its schema let it pass")
    return int(value)


def names(settings: Settings, name: str) -> frozenset[str]:
    """A list of texts among the settings."""
    value = settings[name]
    return (
        frozenset(each for each in value if isinstance(each, str)) if isinstance(value, list) else frozenset()
    )


NAMES_SCHEMA: Json = {"type": "array", "items": {"type": "string", "minLength": 1}}
