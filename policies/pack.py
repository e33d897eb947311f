"""The rules as Pulumi's policies: their names, levels, settings and words."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from pulumi_policy import (
    EnforcementLevel,
    Policy,
    PolicyConfigSchema,
    Severity,
    StackValidationPolicy,
)

from holdfast.policies.findings import Finding
from holdfast.policies.mending import remediations
from holdfast.policies.tables import RULES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from holdfast.policies.rule import Rule, Settings
    from holdfast.scheduling.json import JsonValue


#: What a configuration calls all policies by.
_ALL = "all"


class RulePolicy(StackValidationPolicy):
    """A rule as Pulumi's policy: what the engine is told of it. `policies.serving` runs it."""

    def __init__(self, rule: Rule) -> None:
        super().__init__(  # pyright: ignore[reportUnknownMemberType] - half typed in the SDK
            name=rule.name,
            display_name=rule.title,
            description=rule.description,
            enforcement_level=EnforcementLevel(rule.level.value),
            severity=Severity(rule.weight.value),
            config_schema=schema(rule),
            remediation_steps=rule.fix,
            tags=["fallback"],
        )
        self.rule = rule


def policies() -> list[Policy]:
    """Return the pack's policies: one for each rule, then what fixes."""
    return [*map(RulePolicy, RULES), *remediations()]


def schema(rule: Rule) -> PolicyConfigSchema | None:
    """Return what a team may set for a rule, None where there is nothing."""
    if not rule.settings:
        return None
    return PolicyConfigSchema(
        properties={
            name: {**setting.schema, "default": setting.default} for name, setting in rule.settings.items()
        }
    )


def misspelt(given: Mapping[str, Iterable[str]]) -> Iterator[Finding]:
    """Yield what names no policy of the pack, or no setting of its: the engine passes over both.

    `given` are the names of settings, by that of their policy.
    """
    settings_of = {rule.name: {*rule.settings} for rule in RULES}
    settings_of.update((fix.name, set[str]()) for fix in remediations())
    for name, given_settings in sorted(given.items()):
        if name not in settings_of and name != _ALL:
            yield _misspelt(f"the configuration names {name!r}, which is no policy of this pack.")
        for setting in sorted({*given_settings} - settings_of.get(name, {*given_settings})):
            known = ", ".join(sorted(settings_of[name])) or "none"
            yield _misspelt(
                f"the configuration sets {setting!r} of {name!r}, which has no such setting (it has: {known})."
            )


def _misspelt(message: str) -> Finding:
    return Finding(urn="", message=message, proven=False)


def settings(rule: Rule, given: Mapping[str, object] | None) -> Settings:
    """Return a rule's settings: those that are given, and the defaults of the others."""
    known = cast("Mapping[str, JsonValue]", given or {})
    return {name: known.get(name, setting.default) for name, setting in rule.settings.items()}
