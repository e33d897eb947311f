"""Warnings about spot pools that have too little to choose from."""

from dataclasses import replace

import pytest

from holdfast.scheduling.labels import CapacityType
from holdfast.scheduling.machines import Machine, machine_catalogue
from holdfast.scheduling.pools import spot_pool_warnings
from tests.support.builders.configurations import pool

AWS = machine_catalogue("aws")
SPOT = pool("a100-spot", capacity=CapacityType.SPOT, has_gpus=True)


def machines(*names: str) -> list[Machine]:
    return [AWS[name] for name in names]


def test_a_spot_pool_with_a_choice_of_like_machines_warns_of_nothing() -> None:
    chosen = machines("g5.12xlarge", "g5.24xlarge", "g5.24xlarge")
    assert spot_pool_warnings(SPOT, chosen) == [], "three types with four A10G each"


@pytest.mark.parametrize("count", [1, 2])
def test_a_spot_pool_of_fewer_than_three_types_warns_with_the_reason(count: int) -> None:
    warnings = spot_pool_warnings(SPOT, machines("p4d.24xlarge", "p4de.24xlarge")[:count])
    assert len(warnings) == 1, "about the one thing that is the matter"
    assert "a100-spot" in warnings[0], "which pool"
    assert "p4d.24xlarge" in warnings[0], "what it has"
    assert "sells out" in warnings[0], "what comes of it"


def test_one_type_is_counted_in_the_singular() -> None:
    assert "1 machine type on spot" in spot_pool_warnings(SPOT, machines("p4d.24xlarge"))[0], (
        "it is read by people"
    )


@pytest.mark.parametrize(
    ("types", "told"),
    [
        (("p4d.24xlarge", "p4de.24xlarge", "p5.48xlarge"), "p5.48xlarge has 8 h100"),
        (("g5.12xlarge", "g5.24xlarge", "g5.48xlarge"), "g5.48xlarge has 8 a10g"),
    ],
)
def test_a_spot_pool_of_unlike_accelerators_per_node_warns_with_the_reason(
    types: tuple[str, ...], told: str
) -> None:
    warnings = spot_pool_warnings(SPOT, machines(*types))
    assert len(warnings) == 1, "three types are enough, but they are not alike"
    assert told in warnings[0], "which machine is the odd one, and why"
    assert "slowest" in warnings[0], "what comes of it"


def test_the_first_machine_of_each_kind_stands_for_it() -> None:
    warning = spot_pool_warnings(SPOT, machines("p4d.24xlarge", "p4de.24xlarge", "p5.48xlarge"))[0]
    assert "p4d.24xlarge has 8 a100, p5.48xlarge has 8 h100" in warning, (
        "in the order in which they are listed"
    )


def test_machines_without_gpus_may_differ() -> None:
    cpu = replace(SPOT, name="cpu-spot", has_gpus=False)
    assert spot_pool_warnings(cpu, machines("c7i.4xlarge", "c7a.4xlarge", "m7i.8xlarge")) == [], (
        "none has an accelerator to be unlike in"
    )


def test_both_are_told_where_both_are_the_matter() -> None:
    assert len(spot_pool_warnings(SPOT, machines("p4d.24xlarge", "p5.48xlarge"))) == 2, "two fixes"


def test_a_pool_on_demand_warns_of_nothing() -> None:
    on_demand = replace(SPOT, capacity=CapacityType.ON_DEMAND)
    assert spot_pool_warnings(on_demand, machines("p4d.24xlarge")) == [], "its machines are not taken back"
