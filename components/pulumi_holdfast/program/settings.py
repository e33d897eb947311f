"""What a team declares of a program that its resources do not show: what another program makes, and what only this one makes."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, TypeAlias

from pulumi_holdfast.ladder.json import JsonValue

#: The values of a rule's settings by name, with defaults filled in.
Settings: TypeAlias = Mapping[str, JsonValue]

ON_DEMAND_POOLS: Final = "onDemandPools"
MADE_ELSEWHERE: Final = "madeElsewhere"
MADE_HERE: Final = "madeHere"


class Elsewhere(StrEnum):
    """What another program may make for this one."""

    POOLS = "pools"
    QUEUE = "queue"
    DEFAULT_POOL = "default pool"
    ROLE = "role"


def names_setting(settings: Settings, name: str) -> frozenset[str]:
    """Return the texts of a setting that is a list."""
    value = settings.get(name, [])
    return (
        frozenset(each for each in value if isinstance(each, str)) if isinstance(value, list) else frozenset()
    )


def is_made_elsewhere(settings: Settings, what: Elsewhere) -> bool:
    """Whether the settings declare that another program makes this."""
    return what.value in names_setting(settings, MADE_ELSEWHERE)
