"""The machine table of Azure is generated from its price list and the names of VM sizes."""

import json
from dataclasses import replace
from typing import cast

import pytest

from pulumi_holdfast.ladder.machines.catalogue import AzureTable, azure_table
from pulumi_holdfast.rehearsal.errors import RehearsalError
from pulumi_holdfast.rehearsal.tools.machine_table.azure import (
    COLUMNS,
    AzureMarket,
    azure_machine_table,
    prices,
    size_of,
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


def test_table_has_a_line_for_each_machine_with_a_driver() -> None:
    lines = azure_machine_table(MARKET).splitlines()
    assert '["Standard_D4ds_v5","amd64",4,16384,0,null,0.226,"ab"],' in lines
    assert '["Standard_ND96asr_v4","amd64",96,921600,8,"a100",36.0,"b"]' in lines
    made = table()
    assert made["regions"] == {"a": "eastus", "b": "westeurope"}
    assert made["zones"] == {"eastus": "123", "westeurope": ""}
    market = replace(
        MARKET, prices={"uksouth": {"Standard_D4ds_v5": 0.3}, "ukwest": {"Standard_D4ds_v5": 0.25}}
    )
    (row,) = table(market)["machines"]
    assert row[COLUMNS.index("hourlyPrice")] == 0.25
    names = [name for name, *_ in table(replace(MARKET, drivers=frozenset()))["machines"]]
    assert names == ["Standard_D4ds_v5"]
    crowded = replace(MARKET, prices={f"r{i}": {} for i in range(63)})
    with pytest.raises(RehearsalError, match="63 regions"):
        azure_machine_table(crowded)


@pytest.mark.parametrize(
    ("reason", "name"),
    [
        ("a burstable size, which has no spot offering", "Standard_B2s"),
        ("constrained vCPUs", "Standard_E16-4ds_v5"),
        ("a confidential machine", "Standard_DC4as_v5"),
        ("a size without premium disks", "Standard_D4_v5"),
        ("a single vCPU", "Standard_F1ads_v7"),
        ("a size with less memory than its family", "Standard_E96as_v5"),
        ("a fractional GPU", "Standard_NV6ads_A10_v5"),
        ("a size with another name", "Dasv4_Type1"),
    ],
)
def test_unsupported_size_is_omitted(reason: str, name: str) -> None:
    assert size_of(name) is None, f"{name} is {reason}"


def test_price_list_zones_drivers_and_committed_table_have_the_expected_form() -> None:
    assert prices(LIST) == {
        "eastus": {"Basic_A0": 0.024, "Standard_D4ds_v5": 0.226},
        "usgovvirginia": {"Standard_E16-4ds_v5": 1.44},
    }
    mapped = [{"logicalZone": "2"}, {"logicalZone": "1"}]
    locations = [{"name": "eastus", "availabilityZoneMappings": mapped}, {"name": "westus"}]
    assert zones_of(json.dumps(locations)) == {"eastus": "12", "westus": ""}
    listed = "standard_nd96asr_v4:\n  gpu: nvidia\nstandard_nd96isr_mi300x_v5:\n  gpu: amd\n"
    assert sizes_with_drivers(listed) == {"standard_nd96asr_v4"}
    assert tuple(azure_table()["columns"]) == COLUMNS
    assert {len(row) for row in azure_table()["machines"]} == {len(COLUMNS)}
