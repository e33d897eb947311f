"""The machine table out of EC2's answers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, cast

import pytest

from holdfast.scheduling.machines.catalogue import AwsTable, aws_table
from holdfast.simulator.errors import RehearsalError
from holdfast.simulator.tools.machine_table.aws import COLUMNS, Market, machine_table, prices

if TYPE_CHECKING:
    from holdfast.scheduling.json import Json, JsonValue

MARKET = Market(
    types={"us-east-1": frozenset({"p4d.24xlarge"}), "eu-west-1": frozenset({"p4d.24xlarge", "m7i.large"})},
    zones={"us-east-1": frozenset({"us-east-1b", "us-east-1a"})},
    prices={"p4d.24xlarge": 21.957642},
)

LISTS = """
var InitialOnDemandPrices = map[string]map[ec2types.InstanceType]float64{
\t// us-gov-east-1
\t"us-gov-east-1": {
\t\t// c5 family
\t\t"c5.large": 0.102000, "c5.metal": 4.896000,
\t},
\t"us-gov-west-1": {
\t\t"u-6tb1.56xlarge": 46.400000,
\t},
}
"""


def described(name: str = "p4d.24xlarge", **changes: JsonValue) -> Json:
    """EC2's description of a machine with GPUs, after some changes to it."""
    return {
        "InstanceType": name,
        "CurrentGeneration": True,
        "Hypervisor": "nitro",
        "ProcessorInfo": {"SupportedArchitectures": ["x86_64"]},
        "VCpuInfo": {"DefaultVCpus": 96},
        "MemoryInfo": {"SizeInMiB": 1179648},
        "GpuInfo": {"Gpus": [{"Name": "A100", "Count": 8}]},
        "NetworkInfo": {"EfaInfo": {"MaximumEfaInterfaces": 4}},
        "SupportedUsageClasses": ["on-demand", "spot"],
        **changes,
    }


def table(*machines: Json, market: Market = MARKET) -> AwsTable:
    return cast("AwsTable", json.loads(machine_table(machines, market)))


def test_a_machine_is_one_line_of_what_a_pool_needs_to_know() -> None:
    text = machine_table([described()], MARKET)
    assert '["p4d.24xlarge","amd64",96,1179648,8,"a100",4,true,21.957642,"ab"]' in text.splitlines(), (
        "a change of one machine is a change of one line"
    )


def test_each_region_is_one_letter_that_the_table_explains() -> None:
    made = table(described(), described("m7i.large", GpuInfo=None))
    sold = {name: [made["regions"][letter] for letter in letters] for name, *_, letters in made["machines"]}
    assert sold == {"m7i.large": ["eu-west-1"], "p4d.24xlarge": ["eu-west-1", "us-east-1"]}, (
        "where each is sold"
    )


def test_zones_are_named_by_their_last_letters() -> None:
    assert table(described())["zones"] == {"eu-west-1": "", "us-east-1": "ab"}, (
        "in order; none where none are known"
    )


def test_machines_are_in_order_of_their_names() -> None:
    made = table(described("p4d.24xlarge"), described("m7i.large"))
    assert [name for name, *_ in made["machines"]] == ["m7i.large", "p4d.24xlarge"], (
        "else the same answers would give another table"
    )


def test_a_price_that_is_not_known_is_not_made_up() -> None:
    (row,) = table(described("m7i.large"))["machines"]
    assert row[COLUMNS.index("hourlyPrice")] is None, "the table holds facts"


@pytest.mark.parametrize(
    ("what", "changes"),
    [
        ("a Mac", {"ProcessorInfo": {"SupportedArchitectures": ["arm64_mac"]}}),
        ("an FPGA", {"FpgaInfo": {"Fpgas": []}}),
        ("Inferentia", {"InferenceAcceleratorInfo": {"Accelerators": [{"Name": "Inferentia"}]}}),
        ("Trainium", {"NeuronInfo": {"NeuronDevices": [{"Name": "Trainium"}]}}),
        ("a transcoder", {"MediaAcceleratorInfo": {"Accelerators": [{"Name": "U30"}]}}),
        ("a share of a GPU", {"GpuInfo": {"Gpus": [{"Name": "L4", "Count": 0}]}}),
        ("a generation before Nitro that EC2 has retired", {"CurrentGeneration": False, "Hypervisor": "xen"}),
    ],
)
def test_what_cannot_be_a_node_here_is_left_out(what: str, changes: dict[str, JsonValue]) -> None:
    assert table({**described(), **changes})["machines"] == [], f"{what} has nothing that a pod here asks for"


def test_an_older_generation_on_nitro_stays() -> None:
    assert table(described(CurrentGeneration=False))["machines"], "EC2 sells c5 and g5 as before"


def test_more_regions_than_letters_are_refused() -> None:
    crowded = Market(types={f"r-{i}": frozenset() for i in range(53)}, zones={}, prices={})
    with pytest.raises(RehearsalError, match="53 regions"):
        machine_table([described()], crowded)


def test_price_lists_are_read_by_region_and_type() -> None:
    assert prices(LISTS) == {
        "us-gov-east-1": {"c5.large": 0.102, "c5.metal": 4.896},
        "us-gov-west-1": {"u-6tb1.56xlarge": 46.4},
    }, "several types stand on one line, comments between"


def test_the_table_that_is_there_has_the_columns_of_this_generator() -> None:
    assert tuple(aws_table()["columns"]) == COLUMNS, "run `python -m holdfast.simulator.tools.machine_table`"
    assert {len(row) for row in aws_table()["machines"]} == {len(COLUMNS)}, "a cell for each column"
