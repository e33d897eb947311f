"""The smallest policy pack: one policy that reports nothing, as Pulumi's SDK serves it."""

from pulumi_policy import PolicyPack, ReportViolation, StackValidationArgs, StackValidationPolicy


def validate(args: StackValidationArgs, report_violation: ReportViolation) -> None:
    """Report nothing."""


PolicyPack(
    name="empty",
    policies=[StackValidationPolicy(name="empty", description="Reports nothing.", validate=validate)],
)
