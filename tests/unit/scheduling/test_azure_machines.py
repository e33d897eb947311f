"""Azure's VM sizes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.scheduling.machines import (
    Machine,
    family_of,
    is_sold_in,
    machine_catalogue,
    regions,
    regions_of,
    select_vm_sizes,
    zones_of,
)

AZURE = machine_catalogue("azure")
FAMILIES = sorted({family for name in AZURE if (family := family_of(name))})
COUNTS = sorted({machine.vcpus for machine in AZURE.values()})


def names(families: list[str], vcpus: list[int], location: str = "westeurope") -> list[str]:
    return [machine.name for machine in select_vm_sizes(families, vcpus, location)]


@pytest.mark.parametrize(
    ("name", "vcpus", "gib", "gpus", "accelerator"),
    [
        ("Standard_D4ds_v5", 4, 16, 0, None),
        ("Standard_D4lds_v5", 4, 8, 0, None),
        ("Standard_E16as_v5", 16, 128, 0, None),
        ("Standard_F8s_v2", 8, 16, 0, None),
        ("Standard_F8as_v6", 8, 32, 0, None),
        ("Standard_F8ams_v6", 8, 64, 0, None),
        ("Standard_NC64as_T4_v3", 64, 440, 4, "t4"),
        ("Standard_NC24ads_A100_v4", 24, 220, 1, "a100"),
        ("Standard_ND96asr_v4", 96, 900, 8, "a100"),
        ("Standard_ND96isr_H100_v5", 96, 1900, 8, "h100"),
        ("Standard_ND96isr_H200_v5", 96, 1850, 8, "h200"),
    ],
)
def test_machines_for_training_are_known(
    name: str, vcpus: int, gib: int, gpus: int, accelerator: str | None
) -> None:
    machine = AZURE[name]
    assert (machine.vcpus, machine.memory_mib, machine.gpus, machine.accelerator) == (
        vcpus,
        gib * 1024,
        gpus,
        accelerator,
    ), "as Azure's pages on its sizes have it"


@pytest.mark.parametrize("machine", AZURE.values(), ids=AZURE.keys())
def test_a_machine_can_be_a_node_and_has_a_price(machine: Machine) -> None:
    assert machine.vcpus >= 2, "AKS takes none smaller"
    assert 2048 * machine.vcpus <= machine.memory_mib, "2 GiB for a vCPU are the least"
    assert machine.hourly_price > 0, "one for nothing would be bought before all others"
    assert (machine.accelerator is None) == (machine.gpus == 0), "it says one thing twice"


def test_machines_know_their_architecture() -> None:
    assert (AZURE["Standard_D4pds_v6"].arch, AZURE["Standard_D4ds_v6"].arch) == ("arm64", "amd64"), (
        "an image built for one does not start on the other"
    )


@pytest.mark.parametrize(
    "name",
    [
        "Standard_B2s",
        "Standard_NV6ads_A10_v5",
        "Standard_ND96isr_MI300X_v5",
        "Standard_E16-4ds_v5",
        "Standard_DC4as_v5",
        "Standard_D4_v5",
    ],
)
def test_what_no_pool_here_could_use_is_not_known(name: str) -> None:
    assert name not in AZURE, (
        "neither on spot, nor a share of a GPU, nor without a driver, nor another machine"
    )


def test_a_size_that_only_some_locations_have_is_not_sold_elsewhere() -> None:
    assert is_sold_in("Standard_ND96asr_v4", "westeurope"), "Amsterdam has it"
    assert not is_sold_in("Standard_ND96asr_v4", "francecentral"), "Paris does not"


def test_every_location_sells_machines_and_every_machine_is_sold() -> None:
    assert [name for name in AZURE if not regions_of(name)] == [], "what no location sells is no choice"
    sold_in = {region for name in AZURE for region in regions_of(name)}
    assert sold_in == regions("azure"), "a location is known by what it sells"


def test_zones_are_numbers_after_the_location() -> None:
    assert zones_of("westeurope") == ("westeurope-1", "westeurope-2", "westeurope-3"), "as AKS labels nodes"
    assert zones_of("westus") == (), "some locations have none"


def test_no_cloud_has_a_region_of_anothers_name() -> None:
    assert not regions("azure") & (regions("aws") | regions("gcp")), "zones are asked for by region alone"


def test_every_family_is_taken_with_every_number_of_vcpus() -> None:
    assert names(["Dds_v5", "Dads_v5"], [4, 8]) == [
        "Standard_D4ds_v5",
        "Standard_D8ds_v5",
        "Standard_D4ads_v5",
        "Standard_D8ads_v5",
    ], "in the order in which they are listed"


def test_families_of_machines_with_gpus_are_taken_as_well() -> None:
    assert names(["NCads_A100_v4", "NDasr_v4"], [24, 96]) == [
        "Standard_NC24ads_A100_v4",
        "Standard_NC96ads_A100_v4",
        "Standard_ND96asr_v4",
    ], "a family need not have every size"


@pytest.mark.parametrize("family", ["dds_v5", "", "Standard_D4ds_v5", "Zzz_v9"])
def test_a_family_that_there_is_not_has_no_machines(family: str) -> None:
    assert names([family], [4]) == [], "a slip must not become a pool"


@pytest.mark.parametrize(
    ("name", "family"),
    [("Standard_D4ds_v5", "Dds_v5"), ("Standard_NC24ads_A100_v4", "NCads_A100_v4"), ("m7i.xlarge", None)],
)
def test_a_machine_knows_its_family(name: str, family: str | None) -> None:
    assert family_of(name) == family, "as Azure names its series"


@given(
    st.lists(st.sampled_from(FAMILIES), max_size=6),
    st.lists(st.sampled_from(COUNTS), max_size=6),
    st.sampled_from(sorted(regions("azure"))),
)
def test_a_selection_holds_each_size_that_was_asked_for_and_is_sold_once(
    families: list[str], vcpus: list[int], location: str
) -> None:
    expected = {
        machine.name
        for machine in AZURE.values()
        if family_of(machine.name) in families
        and machine.vcpus in vcpus
        and is_sold_in(machine.name, location)
    }
    assert sorted(names(families, vcpus, location)) == sorted(expected), "no more, no fewer, none twice"
