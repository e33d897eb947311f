"""Quotas and capacity reservations of an AWS account: what counts against what, and what EC2 has otherwise."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from pulumi_holdfast.aws.preflight.checks import preflight_problems
from pulumi_holdfast.aws.preflight.quotas import quota_demands, quota_of, quota_uses
from pulumi_holdfast.aws.preflight.reservations import Ec2Reservation, read_reservation
from pulumi_holdfast.config.preflight import CommandResult, QuotaUse, report
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import CapacityType
from pulumi_holdfast.ladder.machines import machine_catalogue
from tests.support.builders.configurations import Document, aws_platform, entry
from tests.support.fakes.aws_account import account

P4_SPOT = "L-7212CCBC"


@pytest.mark.parametrize(
    ("instance_type", "capacity", "code"),
    [
        ("m7i.large", CapacityType.ON_DEMAND, "L-1216C47A"),
        ("im4gn.large", CapacityType.SPOT, "L-34B43A08"),
        ("g6.12xlarge", CapacityType.SPOT, "L-3819A6DF"),
        ("gr6.4xlarge", CapacityType.ON_DEMAND, "L-DB2E81BA"),
        ("p4d.24xlarge", CapacityType.SPOT, "L-7212CCBC"),
        ("p4d.24xlarge", CapacityType.ON_DEMAND, "L-417A185B"),
        ("p5en.48xlarge", CapacityType.SPOT, "L-C4BD4855"),
        ("p5.48xlarge", CapacityType.ON_DEMAND, "L-417A185B"),
        ("trn1.32xlarge", CapacityType.SPOT, "L-6B0D517C"),
        ("dl1.24xlarge", CapacityType.ON_DEMAND, "L-6E869C2A"),
        ("hpc6a.48xlarge", CapacityType.ON_DEMAND, "L-F7808C92"),
        ("x2idn.16xlarge", CapacityType.ON_DEMAND, "L-7295265B"),
        ("u-6tb1.56xlarge", CapacityType.ON_DEMAND, "L-43DA4232"),
    ],
)
def test_a_machine_counts_against_its_familys_quota(
    instance_type: str, capacity: CapacityType, code: str
) -> None:
    quota = quota_of(instance_type, capacity)
    assert quota is not None, f"{instance_type} counts against one"
    assert quota.code == code


def test_every_machine_on_demand_has_a_quota() -> None:
    without = [name for name in machine_catalogue("aws") if quota_of(name, CapacityType.ON_DEMAND) is None]
    assert not [name for name in without if not name.startswith("mac")], "a shortage would stay unseen"
    assert quota_of("p6-b200.48xlarge", CapacityType.SPOT) is None


def test_a_pool_of_two_quotas_causes_no_problem_for_one() -> None:
    platform = aws_platform(
        lambda d: entry(d, "pools", 2).update(instanceTypes=["p4d.24xlarge", "p5.48xlarge"])
    )
    assert [need.is_all for need in quota_demands(platform) if need.field.endswith("pools[2]")] == [
        False,
        False,
    ]
    assert not list(preflight_problems(platform, account(quotas={P4_SPOT: 0})))


def reserved(document: Document) -> None:
    entry(document, "pools", 2).update(
        capacity="reserved",
        instanceTypes=["p5.48xlarge"],
        zones=["us-west-2a"],
        maxNodes=4,
        reservation={"id": "cr-0123456789abcdef0", "ends": "2126-01-08T11:30:00Z"},
    )


BLOCK = Ec2Reservation(
    instance_type="p5.48xlarge", zone="us-west-2a", count=4, ends=datetime(2126, 1, 8, 11, 30, tzinfo=UTC)
)


def reservation_faults(found: Ec2Reservation) -> dict[str, str]:
    """The fields of the problems, with the fixes, of a stack whose reservation is this one in EC2."""
    platform = aws_platform(reserved)
    there = replace(account(), reservations={"cr-0123456789abcdef0": found})
    return {problem.field.rpartition("].")[2]: problem.fix for problem in preflight_problems(platform, there)}


def test_a_reservation_as_ec2_has_it_is_accepted() -> None:
    assert not reservation_faults(BLOCK)


@pytest.mark.parametrize(
    ("found", "field", "fix"),
    [
        (Ec2Reservation(exists=False), "reservation.id", "describe-capacity-reservations"),
        (
            replace(BLOCK, ends=datetime(2020, 1, 1, tzinfo=UTC)),
            "reservation.id",
            "describe-capacity-reservations",
        ),
        (replace(BLOCK, instance_type="p5e.48xlarge"), "instanceTypes", "[p5e.48xlarge]"),
        (replace(BLOCK, zone="us-west-2b"), "zones", "[us-west-2b]"),
        (replace(BLOCK, count=2), "maxNodes", "maxNodes: 2"),
        (
            replace(BLOCK, ends=datetime(2126, 1, 7, 11, 30, tzinfo=UTC)),
            "reservation.ends",
            "2126-01-07T11:30:00Z",
        ),
    ],
)
def test_a_reservation_that_ec2_has_otherwise_is_a_problem(
    found: Ec2Reservation, field: str, fix: str
) -> None:
    faults = reservation_faults(found)
    assert list(faults) == [field], "EC2 would launch nothing, or take it back early"
    assert fix in faults[field]


def test_a_reservation_that_may_not_be_read_is_not_checked() -> None:
    platform = aws_platform(reserved)
    assert not list(preflight_problems(platform, account()))


@pytest.mark.parametrize(
    ("properties", "found"),
    [
        (
            {
                "InstanceType": "p5.48xlarge",
                "AvailabilityZone": "us-west-2a",
                "TotalInstanceCount": 4,
                "EndDate": "2126-01-08T11:30:00Z",
            },
            BLOCK,
        ),
        (
            {"InstanceType": "p5.48xlarge", "EndDate": "never", "InstanceCount": 2},
            Ec2Reservation(instance_type="p5.48xlarge", count=2),
        ),
        ({}, Ec2Reservation()),
    ],
)
def test_the_properties_of_a_reservation_are_read_as_far_as_they_are_there(
    properties: Json, found: Ec2Reservation
) -> None:
    assert read_reservation(properties) == found


def test_reserved_machines_count_against_no_quota() -> None:
    assert quota_of("p5.48xlarge", CapacityType.RESERVED) is None


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
