"""Names what of a program no rule judges and can reach its training jobs, one finding for each: `program.unjudged` has the table.

A field that no rule reads is named in the verdict on what depends on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pulumi_holdfast.program.resources import StackResource
from pulumi_holdfast.program.settings import Settings
from pulumi_holdfast.program.unjudged import unjudged
from rule import Finding, Level, Rule, RuleSeverity


def find(resources: Sequence[StackResource], _: Settings) -> tuple[Finding, ...]:
    """Return what is not judged, and why it is named."""
    return tuple(
        Finding(urn=each.urn, message=f"{each}.", proven=False) for each in dict.fromkeys(unjudged(resources))
    )


RULE: Final = Rule(
    name="training-not-judged",
    title="What no rule judges",
    description="Nothing beside the kinds that the rules read can reach training jobs.",
    fix="None, if it lets training jobs run on every tier: the verdicts take that for granted.",
    level=Level.ADVISORY,
    severity=RuleSeverity.LOW,
    find=find,
)
