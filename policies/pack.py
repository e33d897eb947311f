"""The rules as Pulumi wants them; importing this needs Pulumi's policy SDK and serves nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from pulumi_policy import (
    EnforcementLevel,
    Policy,
    PolicyConfigSchema,
    ReportViolation,
    ResourceValidationPolicy,
    Severity,
    StackValidationArgs,
    StackValidationPolicy,
)

from policies.run import Run
from policies.tables import RULES

if TYPE_CHECKING:
    from collections.abc import Callable

    from policies.rule import Rule, Settings
    from scheduling.json import JsonValue


def policies() -> list[Policy]:
    """Return the pack's policies: one that reads every resource as it is asked for, and one for each rule."""
    run = Run()
    return [reader(run), *(policy(rule, place, run) for place, rule in enumerate(RULES))]


def reader(run: Run) -> ResourceValidationPolicy:
    """Return the policy that reads and reports nothing."""
    return ResourceValidationPolicy(
        name="resources-are-read",
        display_name="Resources are read",
        description="Reads what every resource is asked to be: before a cluster exists no more is known of its objects.",
        enforcement_level=EnforcementLevel.ADVISORY,
        validate=run.remember,
    )


def policy(rule: Rule, place: int, run: Run) -> StackValidationPolicy:
    """Return the policy that reports what the rule at this place finds."""
    return StackValidationPolicy(
        name=rule.name,
        display_name=rule.title,
        description=rule.description,
        enforcement_level=EnforcementLevel(rule.level.value),
        severity=Severity(rule.weight.value),
        config_schema=schema(rule),
        remediation_steps=rule.mend,
        tags=["fallback"],
        validate=reporting(rule, place, run),
    )


def schema(rule: Rule) -> PolicyConfigSchema | None:
    """Return what a team may set for a rule, None where there is nothing."""
    if not rule.settings:
        return None
    return PolicyConfigSchema(
        properties={
            name: {**setting.schema, "default": setting.default} for name, setting in rule.settings.items()
        }
    )


def reporting(rule: Rule, place: int, run: Run) -> Callable[[StackValidationArgs, ReportViolation], None]:
    """Return the function that reports what a rule finds in a stack."""

    def report_findings(args: StackValidationArgs, report: ReportViolation) -> None:
        for finding in rule.find(run.resources(place, args.resources), settings(rule, args)):
            report(finding.message, finding.urn)

    return report_findings


def settings(rule: Rule, args: StackValidationArgs) -> Settings:
    """Return a rule's settings; the engine fills in defaults only where a policy is configured at all."""
    given = cast("dict[str, JsonValue]", dict(args.get_config()))
    return {name: given.get(name, setting.default) for name, setting in rule.settings.items()}
