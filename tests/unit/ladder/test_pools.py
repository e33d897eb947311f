from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulumi_holdfast.ladder.labels import CapacityType
from pulumi_holdfast.ladder.machines import Machine, machine_catalogue
from pulumi_holdfast.ladder.pools import Pool, spot_pool_warnings, weights
from pulumi_holdfast.ladder.reachability.machine_capacity import Provisioner
from pulumi_holdfast.ladder.reachability.pool_summary import summarize_pool
from tests.support.builders.configurations import pool


def test_default_pool_has_the_highest_weight() -> None:
    listed = [pool("a100-spot"), pool("cpu", is_default=True), pool("h100-spot")]
    assert weights(listed) == {"cpu": 100, "a100-spot": 99, "h100-spot": 98}


@given(st.integers(min_value=1, max_value=300))
def test_weights_are_valid_and_ordered(count: int) -> None:
    listed = [pool("cpu", is_default=True), *(pool(f"spot-{number}") for number in range(count))]
    found = [weights(listed)[each.name] for each in listed]
    assert found == sorted(found, reverse=True)
    assert all(1 <= weight <= 100 for weight in found)
    assert found.count(100) == 1, "only the default pool comes before all others"


AWS = machine_catalogue("aws")
SPOT = pool("a100-spot", capacity=CapacityType.SPOT, has_gpus=True)


def machines(*names: str) -> list[Machine]:
    return [AWS[name] for name in names]


@pytest.mark.parametrize("count", [1, 2])
def test_spot_pool_of_fewer_than_three_types_has_a_warning(count: int) -> None:
    warnings = spot_pool_warnings(SPOT, machines("p4d.24xlarge", "p4de.24xlarge")[:count])
    assert len(warnings) == 1
    assert "a100-spot" in warnings[0]
    assert "p4d.24xlarge" in warnings[0]
    assert "sells out" in warnings[0]
    assert count == 2 or "1 machine type on spot" in warnings[0]


@pytest.mark.parametrize(
    ("types", "part"),
    [
        (("p4d.24xlarge", "p4de.24xlarge", "p5.48xlarge"), "p4d.24xlarge has 8 a100, p5.48xlarge has 8 h100"),
        (("g5.12xlarge", "g5.24xlarge", "g5.48xlarge"), "g5.48xlarge has 8 a10g"),
    ],
)
def test_spot_pool_of_different_accelerators_has_a_warning(types: tuple[str, ...], part: str) -> None:
    warnings = spot_pool_warnings(SPOT, machines(*types))
    assert len(warnings) == 1
    assert part in warnings[0]
    assert "slowest" in warnings[0]


ON_DEMAND = replace(SPOT, capacity=CapacityType.ON_DEMAND)
CPU = replace(SPOT, name="cpu-spot", has_gpus=False)


@pytest.mark.parametrize(
    ("warned", "types", "warnings"),
    [
        (SPOT, ("g5.12xlarge", "g5.24xlarge", "g5.24xlarge"), 0),
        (CPU, ("c7i.4xlarge", "c7a.4xlarge", "m7i.8xlarge"), 0),
        (ON_DEMAND, ("p4d.24xlarge",), 0),
        (SPOT, ("p4d.24xlarge", "p5.48xlarge"), 2),
    ],
    ids=["three-similar-types", "no-accelerators", "on-demand", "few-and-different"],
)
def test_pool_has_a_warning_for_each_fix(warned: Pool, types: tuple[str, ...], warnings: int) -> None:
    assert len(spot_pool_warnings(warned, machines(*types))) == warnings


def test_summary_has_the_minimum_and_maximum_of_each_resource() -> None:
    summary = summarize_pool(SPOT, machines("g5.12xlarge", "m7i.xlarge"), ())
    assert (summary.machine.vcpus, summary.machine.gpus) == (4, 0)
    assert (summary.largest.vcpus, summary.largest.gpus) == (48, 4)


def test_summary_has_machine_capacities_only_with_a_provisioner() -> None:
    chosen = machines("g5.12xlarge", "m7i.xlarge")
    assert summarize_pool(SPOT, chosen, ()).machine_capacities == ()
    known = summarize_pool(SPOT, chosen, (), provisioner=Provisioner.EKS).machine_capacities
    assert [each.name for each in known] == ["g5.12xlarge", "m7i.xlarge"]
