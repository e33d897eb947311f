"""The rule on what the others can read. It comes last, since it tells of those that failed too."""

from __future__ import annotations

from typing import Final

from holdfast.policies.rule import Level, Rule, Weight
from holdfast.policies.rules import readable

READING: Final = Rule(
    name="what-rules-go-by-can-be-read",
    title="Pools and ladders can be read",
    description="Pools, ladders, shapes and what admission tolerates are as the rules know them.",
    fix="Mend what the message names; until then the other rules pass over it.",
    level=Level.ADVISORY,
    weight=Weight.MEDIUM,
    find=readable.find,
)
