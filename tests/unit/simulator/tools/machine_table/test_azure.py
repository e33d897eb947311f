"""The table of Azure's machines out of its price list."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import cast

import pytest

from holdfast.scheduling.machines.catalogue import AzureTable, azure_table
from holdfast.simulator.errors import RehearsalError
from holdfast.simulator.tools.machine_table.azure import (
    COLUMNS,
    AzureMarket,
    azure_machine_table,
    prices,
    shape_of,
    sizes_with_drivers,
    zones_of,
)

MARKET = AzureMarket(
    prices={
        "eastus": {"Standard_D4ds_v5": 0.226, "Standard_B2s": 0.04},
        "westeurope": {"Standard_D4ds_v5": 0.272, "Standard_ND96asr_v4": 36.0},
    },
    zones={"eastus": "123", "asia": ""},
    drivers=frozenset({"standard_nd96asr_v4"}),
)

LIST = """
func init() {
\t// eastus
\tinitialOnDemandPrices["eastus"] = map[string]float64{
\t\t"Basic_A0":         0.024000,
\t\t"Standard_D4ds_v5": 0.226000,
\t}

\t// usgovvirginia
\tinitialOnDemandPrices["usgovvirginia"] = map[string]float64{
\t\t"Standard_E16-4ds_v5": 1.440000,
\t}
}
"""


def table(market: AzureMarket = MARKET) -> AzureTable:
    return cast("AzureTable", json.loads(azure_machine_table(market)))


def test_a_machine_is_one_line_of_what_a_pool_needs_to_know() -> None:
    lines = azure_machine_table(MARKET).splitlines()
    assert '["Standard_D4ds_v5","amd64",4,16384,0,null,0.226,"ab"],' in lines, (
        "a change of one machine is one line"
    )
    assert '["Standard_ND96asr_v4","amd64",96,921600,8,"a100",36.0,"b"]' in lines, "with its GPUs"


def test_each_region_is_one_character_that_the_table_explains() -> None:
    made = table()
    assert made["regions"] == {"a": "eastus", "b": "westeurope"}, "in order"
    assert made["zones"] == {"eastus": "123", "westeurope": ""}, "of those that sell, and of no others"


def test_what_is_not_sold_where_prices_are_from_has_its_lowest_price() -> None:
    market = replace(
        MARKET, prices={"uksouth": {"Standard_D4ds_v5": 0.3}, "ukwest": {"Standard_D4ds_v5": 0.25}}
    )
    (row,) = table(market)["machines"]
    assert row[COLUMNS.index("hourlyPrice")] == 0.25, "prices do nothing but put machines in order"


def test_gpus_without_a_driver_are_left_out() -> None:
    names = [name for name, *_ in table(replace(MARKET, drivers=frozenset()))["machines"]]
    assert names == ["Standard_D4ds_v5"], "node auto-provisioning would never buy one"


@pytest.mark.parametrize(
    ("what", "name"),
    [
        ("a burstable size, which is never on spot", "Standard_B2s"),
        ("constrained vCPUs", "Standard_E16-4ds_v5"),
        ("a confidential machine", "Standard_DC4as_v5"),
        ("one without premium disks", "Standard_D4_v5"),
        ("a single vCPU", "Standard_F1ads_v7"),
        ("less memory than its family's others", "Standard_E96as_v5"),
        ("a share of a GPU", "Standard_NV6ads_A10_v5"),
        ("another name altogether", "Dasv4_Type1"),
    ],
)
def test_what_cannot_be_a_node_here_is_left_out(what: str, name: str) -> None:
    assert shape_of(name) is None, f"{name} is {what}"


def test_more_regions_than_characters_are_refused() -> None:
    crowded = replace(MARKET, prices={f"r{i}": {} for i in range(63)})
    with pytest.raises(RehearsalError, match="63 regions"):
        azure_machine_table(crowded)


def test_the_price_list_is_read_by_region_and_size() -> None:
    assert prices(LIST) == {
        "eastus": {"Basic_A0": 0.024, "Standard_D4ds_v5": 0.226},
        "usgovvirginia": {"Standard_E16-4ds_v5": 1.44},
    }, "as it is written, for the table to choose"


def test_zones_are_read_from_what_azure_tells_a_subscription() -> None:
    mapped = [{"logicalZone": "2"}, {"logicalZone": "1"}]
    told = [{"name": "eastus", "availabilityZoneMappings": mapped}, {"name": "westus"}]
    assert zones_of(json.dumps(told)) == {"eastus": "12", "westus": ""}, "in order; none where there are none"


def test_drivers_are_nvidias() -> None:
    listed = "standard_nd96asr_v4:\n  gpu: nvidia\nstandard_nd96isr_mi300x_v5:\n  gpu: amd\n"
    assert sizes_with_drivers(listed) == {"standard_nd96asr_v4"}, "no device plugin here knows others"


def test_the_table_that_is_there_has_the_columns_of_this_generator() -> None:
    assert tuple(azure_table()["columns"]) == COLUMNS, (
        "run `python -m holdfast.simulator.tools.machine_table`"
    )
    assert {len(row) for row in azure_table()["machines"]} == {len(COLUMNS)}, "a cell for each column"
