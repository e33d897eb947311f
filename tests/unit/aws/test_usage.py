"""Quotas of an AWS account as `holdfast preflight` shows them: asked, granted, and used by others."""

import json
from collections.abc import Mapping, Sequence

from pulumi_holdfast.aws.preflight.usage import quota_uses
from pulumi_holdfast.config.preflight import CommandResult, QuotaUse, report
from tests.support.builders.configurations import aws_platform

STANDARD = "Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances"
STANDARD_SPOT = "All Standard (A, C, D, H, I, M, R, T, Z) Spot Instance Requests"
INSTANCES = [
    ["m7i.xlarge", None, None],
    ["c7i.2xlarge", "spot", "another"],
    ["c7i.4xlarge", "spot", "aws-dev"],
    ["mac2.metal", None, None],
]


def uses(
    quota: str | None = "100.0", instances: Sequence[object] | None = INSTANCES
) -> Mapping[str, QuotaUse]:
    def run(words: tuple[str, ...]) -> CommandResult:
        given = (
            quota if words[1] == "service-quotas" else None if instances is None else json.dumps(instances)
        )
        if given is None:
            return CommandResult(
                code=254, output="", errors="An error occurred (AccessDeniedException): not authorized"
            )
        return CommandResult(code=0, output=given, errors="")

    return {use.name: use for use in quota_uses(aws_platform(), "aws-dev", run)}


def test_each_quota_counts_system_nodes_spot_and_fallback_and_what_others_use() -> None:
    found = uses()
    standard, spot = found[STANDARD], found[STANDARD_SPOT]
    assert standard.fields == ("cluster.systemNodes", "pools[0]")
    assert (standard.asked, standard.granted, standard.used) == (84, 100.0, 4.0)
    assert spot.used == 8.0
    assert {use.name for use in found.values()} >= {"All P4, P3 and P2 Spot Instance Requests"}


def test_a_quota_below_one_machine_fails_and_one_below_full_pools_warns() -> None:
    assert uses("5.0", [])[STANDARD].blocks is False
    assert uses("3.0", [])[STANDARD].blocks
    assert uses("5.0", [])[STANDARD].is_short
    assert uses("8.0")[STANDARD_SPOT].blocks
    lines = list(report(list(uses("8.0").values())))
    assert any(line.startswith("error: ") and "--desired-value" in line for line in lines)
    assert lines[0].split()[:3] == ["quota", "unit", "asked"]


def test_quotas_that_may_not_be_queried_are_warnings() -> None:
    found = uses(None, None)
    assert not any(use.blocks or use.is_short for use in found.values())
    lines = [line for line in report(list(found.values())) if line.startswith("warning: ")]
    assert len(lines) == len(found)
    assert "AccessDeniedException" in lines[0]
