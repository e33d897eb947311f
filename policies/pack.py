"""The policy pack: its rules as Pulumi policies, and their configuration."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, cast

from pulumi_policy import EnforcementLevel, Policy, PolicyConfigSchema, Severity, StackValidationPolicy

from pulumi_holdfast.ladder.json import JsonValue
from pulumi_holdfast.program.settings import Settings
from rule import PACK_SETTINGS, Finding, Rule
from rules import (
    accelerators,
    aks_scaling,
    checkpoints,
    default_pool,
    disruption,
    interruption_queue,
    ladder_end,
    not_judged,
    quotas,
    reachability,
    spot_pools,
    spot_role,
    verdicts,
)

#: The pack's rules, in the order in which a report shows them.
RULES: Final[Sequence[Rule]] = (
    verdicts.RULE,
    not_judged.RULE,
    *ladder_end.RULES,
    *reachability.RULES,
    accelerators.RULE,
    quotas.RULE,
    aks_scaling.RULE,
    *spot_pools.RULES,
    default_pool.RULE,
    disruption.RULE,
    interruption_queue.RULE,
    spot_role.RULE,
    checkpoints.RULE,
)

#: The name in a configuration that means every policy.
_ALL: Final = "all"


class RulePolicy(StackValidationPolicy):
    """A rule as a Pulumi policy: what the engine sees of it. `policies.server` runs it."""

    def __init__(self, rule: Rule) -> None:
        super().__init__(  # pyright: ignore[reportUnknownMemberType] - half typed in the SDK
            name=rule.name,
            display_name=rule.title,
            description=rule.description,
            enforcement_level=EnforcementLevel(rule.level.value),
            severity=Severity(rule.severity.value),
            config_schema=schema(rule),
            remediation_steps=rule.fix,
            tags=["fallback", rule.group.value],
        )
        self.rule = rule


def policies() -> list[Policy]:
    """Return the pack's policies: one for each rule."""
    return [*map(RulePolicy, RULES)]


def schema(rule: Rule) -> PolicyConfigSchema | None:
    """Return the schema of a rule's settings; None if it has none."""
    if not rule.settings:
        return None
    return PolicyConfigSchema(
        properties={
            name: {**setting.schema, "default": setting.default} for name, setting in rule.settings.items()
        }
    )


def misspelled(given: Mapping[str, Iterable[str]]) -> Iterator[Finding]:
    """Yield the names in a configuration that are no policy of the pack, or no setting of its policy.

    The engine ignores both. `given` maps the names of policies to the names of settings.
    """
    settings_of = {rule.name: {*rule.settings} for rule in RULES}
    for name, given_settings in sorted(given.items()):
        if name not in settings_of and name != _ALL:
            yield _misspelled(f"the configuration names {name!r}, which is not a policy of this pack.")
        for setting in sorted({*given_settings} - settings_of.get(name, {*given_settings})):
            known = ", ".join(sorted(settings_of[name])) or "none"
            yield _misspelled(
                f"the configuration sets {setting!r} of {name!r}, which has no such setting (it has: {known})."
            )


def _misspelled(message: str) -> Finding:
    return Finding(urn="", message=message, proven=False)


def settings(
    rule: Rule, given: Mapping[str, object] | None, of_pack: Mapping[str, object] | None = None
) -> Settings:
    """Return what a rule receives: its settings and those of the pack, given ones and the defaults of the others."""
    own, common = (cast("Mapping[str, JsonValue]", each or {}) for each in (given, of_pack))
    return {
        **{name: common.get(name, setting.default) for name, setting in PACK_SETTINGS.items()},
        **{name: own.get(name, setting.default) for name, setting in rule.settings.items()},
    }
