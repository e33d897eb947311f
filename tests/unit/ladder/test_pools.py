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
    assert weights(listed) == {"cpu": 100, "a100-spot": 99, "h100-spot": 98}, "the others keep their order"


@given(st.integers(min_value=1, max_value=300))
def test_weights_are_valid_and_ordered(count: int) -> None:
    listed = [pool("cpu", is_default=True), *(pool(f"spot-{number}") for number in range(count))]
    found = [weights(listed)[each.name] for each in listed]
    assert found == sorted(found, reverse=True), "a pool never outranks an earlier one"
    assert all(1 <= weight <= 100 for weight in found), "the API server rejects any other"
    assert found.count(100) == 1, "only the default pool comes before all others"


AWS = machine_catalogue("aws")
SPOT = pool("a100-spot", capacity=CapacityType.SPOT, has_gpus=True)


def machines(*names: str) -> list[Machine]:
    return [AWS[name] for name in names]


@pytest.mark.parametrize("count", [1, 2])
def test_spot_pool_of_fewer_than_three_types_has_a_warning(count: int) -> None:
    warnings = spot_pool_warnings(SPOT, machines("p4d.24xlarge", "p4de.24xlarge")[:count])
    assert len(warnings) == 1, "one warning"
    assert "a100-spot" in warnings[0], "the pool"
    assert "p4d.24xlarge" in warnings[0], "its types"
    assert "sells out" in warnings[0], "the consequence"
    assert count == 2 or "1 machine type on spot" in warnings[0], "one type is singular"


@pytest.mark.parametrize(
    ("types", "part"),
    [
        (("p4d.24xlarge", "p4de.24xlarge", "p5.48xlarge"), "p4d.24xlarge has 8 a100, p5.48xlarge has 8 h100"),
        (("g5.12xlarge", "g5.24xlarge", "g5.48xlarge"), "g5.48xlarge has 8 a10g"),
    ],
)
def test_spot_pool_of_different_accelerators_has_a_warning(types: tuple[str, ...], part: str) -> None:
    warnings = spot_pool_warnings(SPOT, machines(*types))
    assert len(warnings) == 1, "the number of types is enough"
    assert part in warnings[0], "the first machine of each kind"
    assert "slowest" in warnings[0], "the consequence"


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
    assert len(spot_pool_warnings(warned, machines(*types))) == warnings, "only spot pools can sell out"


def test_summary_has_the_minimum_and_maximum_of_each_resource() -> None:
    summary = summarize_pool(SPOT, machines("g5.12xlarge", "m7i.xlarge"), ())
    assert (summary.machine.vcpus, summary.machine.gpus) == (4, 0), "the minimum over both types"
    assert (summary.largest.vcpus, summary.largest.gpus) == (48, 4), "the maximum over both types"


def test_summary_has_machine_capacities_only_with_a_provisioner() -> None:
    chosen = machines("g5.12xlarge", "m7i.xlarge")
    assert summarize_pool(SPOT, chosen, ()).machine_capacities == (), "reservations are not known"
    known = summarize_pool(SPOT, chosen, (), provisioner=Provisioner.EKS).machine_capacities
    assert [each.name for each in known] == ["g5.12xlarge", "m7i.xlarge"], "every type"
