"""The policies as Pulumi wants them; importing this needs Pulumi's policy SDK and serves nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulumi_policy import (
    EnforcementLevel,
    Policy,
    PolicyConfigSchema,
    ReportViolation,
    Severity,
    StackValidationArgs,
    StackValidationPolicy,
)

from policies.compute_classes import compute_class_findings
from policies.ladder_end import ladder_end_findings
from policies.pulumi_values import stack_resources

if TYPE_CHECKING:
    from policies.findings import Finding

SETTINGS = PolicyConfigSchema(
    properties={
        "onDemandPools": {
            "type": "array",
            "items": {"type": "string", "minLength": 1},
            "description": "On-demand pools that this stack's ladders end on and another program makes.",
            "default": [],
        }
    }
)

STEPS = (
    "Append a tier with an on-demand pool to the namespace's ladder, or say `maxFailures: -1` on its last tier if its "
    "jobs shall stay on spot for ever."
)


def findings(args: StackValidationArgs) -> tuple[Finding, ...]:
    """Return the findings of every rule, under the policy's own settings."""
    elsewhere = frozenset[str](args.get_config().get("onDemandPools", []))
    return ladder_end_findings(stack_resources(args.resources), elsewhere)


def report_proven(args: StackValidationArgs, report: ReportViolation) -> None:
    """Report what is wrong whatever the update brings."""
    for finding in findings(args):
        if finding.proven:
            report(finding.message, finding.urn)


def report_unproven(args: StackValidationArgs, report: ReportViolation) -> None:
    """Report what cannot be told before the update."""
    for finding in findings(args):
        if not finding.proven:
            report(finding.message, finding.urn)


def report_mixed_classes(args: StackValidationArgs, report: ReportViolation) -> None:
    """Report ComputeClasses of more than one kind of nodes, and pods that select one and spot as well."""
    for finding in compute_class_findings(stack_resources(args.resources)):
        report(finding.message, finding.urn)


def policies() -> list[Policy]:
    """Return the pack's policies.

    The rule on ladders is two of them, since a policy has one enforcement level: what it proves wrong stops the run, and
    what it cannot tell yet is advice. So one unknown value never hides a real violation beside it.
    """
    return [
        StackValidationPolicy(
            name="training-ladder-ends-on-demand",
            display_name="Training ladders end on on-demand",
            description="A training namespace carries a ladder whose last tier is an on-demand pool that exists.",
            enforcement_level=EnforcementLevel.MANDATORY,
            severity=Severity.CRITICAL,
            config_schema=SETTINGS,
            remediation_steps=STEPS,
            tags=["fallback"],
            validate=report_proven,
        ),
        StackValidationPolicy(
            name="training-ladder-end-not-known-yet",
            display_name="Training ladders whose end is not known yet",
            description="What a training namespace's ladder ends on can be told before the update.",
            enforcement_level=EnforcementLevel.ADVISORY,
            severity=Severity.LOW,
            config_schema=SETTINGS,
            remediation_steps="Nothing, if the update passes: it checks again with every value known.",
            tags=["fallback"],
            validate=report_unproven,
        ),
        StackValidationPolicy(
            name="compute-class-of-one-capacity-type",
            display_name="ComputeClasses of one capacity type",
            description="A ComputeClass of GKE has nodes of one capacity type, and pods select it by nothing beside it.",
            enforcement_level=EnforcementLevel.MANDATORY,
            severity=Severity.HIGH,
            remediation_steps="Make a ComputeClass for each capacity type, and select nodes by the class alone.",
            tags=["fallback"],
            validate=report_mixed_classes,
        ),
    ]
