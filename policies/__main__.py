"""Serves the pack to Pulumi's engine: `PolicyPack` starts a server in its constructor and never returns."""

from pulumi_policy import EnforcementLevel, PolicyPack

from policies.pack import policies

PolicyPack(
    name="holdfast",
    policies=policies(),
    # A rule that is added without a word on its level stops the run rather than be overlooked.
    enforcement_level=EnforcementLevel.MANDATORY,
)
