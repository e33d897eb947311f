"""What a rule is: a predicate over the resources of a stack, and the metadata of its policy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias

from holdfast.scheduling.json import Json, JsonValue

if TYPE_CHECKING:
    from holdfast.policies.resources import StackResource

#: The values of a rule's settings by name, with defaults filled in.
Settings: TypeAlias = Mapping[str, JsonValue]


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One statement of a rule about one resource.

    Unless `proven`, it depends on a value that only the update will know: it is shown, and does not stop the run.
    """

    urn: str
    message: str
    proven: bool = True


class Level(StrEnum):
    """Whether a finding stops the run, unless a team sets another level in its configuration of the pack."""

    ADVISORY = "advisory"
    MANDATORY = "mandatory"


class RuleSeverity(StrEnum):
    """How severe a violation is, as reports show it."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    CRITICAL = "critical"


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What a team may set for a rule: its JSON schema, which contains the description, and its default."""

    schema: Json
    default: JsonValue


@dataclass(frozen=True, kw_only=True)
class Rule:
    """One rule of the pack.

    `name` identifies it in configuration, `title` in reports; `description` states what holds if the rule is followed,
    `fix` what to do if it is not. `find` returns the violations in a stack, and does not raise.
    """

    name: str
    title: str
    description: str
    fix: str
    level: Level
    severity: RuleSeverity
    find: Callable[[Sequence[StackResource], Settings], Sequence[Finding]]
    settings: Mapping[str, Setting] = field(default_factory=dict[str, Setting])


def number_setting(settings: Settings, name: str) -> int:
    """Return the integer value of a setting; the engine sends only floats."""
    value = settings[name]
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"setting {name} is {value!r}, not a number, although its schema requires one")
    return int(value)


def names_setting(settings: Settings, name: str) -> frozenset[str]:
    """Return the texts of a setting that is a list."""
    value = settings[name]
    return (
        frozenset(each for each in value if isinstance(each, str)) if isinstance(value, list) else frozenset()
    )


NAMES_SCHEMA: Json = {"type": "array", "items": {"type": "string", "minLength": 1}}
