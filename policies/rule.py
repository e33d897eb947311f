"""What a rule is: a predicate over the resources of a stack, and the metadata of its policy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from pulumi_holdfast.ladder.json import Json, JsonValue
from pulumi_holdfast.program.settings import MADE_ELSEWHERE, MADE_HERE, ON_DEMAND_POOLS, Elsewhere, Settings

if TYPE_CHECKING:
    from pulumi_holdfast.program.resources import StackResource


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One statement of a rule about one resource.

    Unless `proven`, it is shown and does not stop the run: it depends on a value that only the update will know, on another
    program, or it is about a pool that no ladder names. `repeats` names a rule that makes the same statement about the same
    resource: where that rule reports it at the same level or higher, it is dropped.
    """

    urn: str
    message: str
    proven: bool = True
    repeats: str = ""


class Level(StrEnum):
    """Whether a finding stops the run, unless a team sets another level in its configuration of the pack."""

    ADVISORY = "advisory"
    MANDATORY = "mandatory"


class Group(StrEnum):
    """What a rule is about."""

    REACHABILITY = "reachability"  #: whether training can fall back
    PLATFORM = "platform"  #: what a sound platform has beside it


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
    `fix` what to do if it is not. `find` returns the violations in a stack, and does not raise. `level` is the level by
    default, `strict` the level in the profile of that name, if it differs.
    """

    name: str
    title: str
    description: str
    fix: str
    level: Level
    severity: RuleSeverity
    find: Callable[[Sequence[StackResource], Settings], Sequence[Finding]]
    group: Group = Group.REACHABILITY
    strict: Level | None = None
    settings: Mapping[str, Setting] = field(default_factory=dict[str, Setting])


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A rule that is not disabled, with what it receives. `stops`: what it proves stops the run."""

    rule: Rule
    settings: Settings
    stops: bool = True


NAMES_SCHEMA: Json = {"type": "array", "items": {"type": "string", "minLength": 1}}

STOP_ON_FAULT: Final = "stopOnFault"


#: Settings of the whole pack: every rule receives them beside its own.
PACK_SETTINGS: Final[Mapping[str, Setting]] = {
    ON_DEMAND_POOLS: Setting(
        schema={
            **NAMES_SCHEMA,
            "description": "On-demand pools that ladders of this program end on and another program makes.",
        },
        default=[],
    ),
    MADE_ELSEWHERE: Setting(
        schema={
            "type": "array",
            "items": {"type": "string", "enum": [each.value for each in Elsewhere]},
            "description": "What another program makes: `pools` that ladders name, the interruption `queue`, the "
            "`default pool`, the `role` of EC2 Spot. It is assumed, not judged.",
        },
        default=[],
    ),
    MADE_HERE: Setting(
        schema={
            "type": "array",
            "items": {"type": "string", "enum": [Elsewhere.POOLS.value]},
            "description": "Resources that only this program makes: with `pools`, a pool that a ladder names and this program does not "
            "make is missing. Otherwise another program may make it.",
        },
        default=[],
    ),
    STOP_ON_FAULT: Setting(
        schema={
            "type": "boolean",
            "description": "Whether an internal error of a mandatory rule stops the run.",
        },
        default=True,
    ),
}


#: The same without any of them set.
PACK_DEFAULTS: Final[Settings] = {name: setting.default for name, setting in PACK_SETTINGS.items()}
