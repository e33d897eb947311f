"""The meaning of a valid Azure configuration."""

from pathlib import Path
from typing import cast

import pytest

from pulumi_holdfast.azure.config.sections import (
    NO_CAP,
    AzureExistingNetwork,
    AzureMaintenanceWindow,
    AzureNewNetwork,
    AzurePlatform,
    AzureUpgrades,
    Login,
    Outbound,
    Scaling,
)
from pulumi_holdfast.azure.control_plane.control_plane import Maintenance, Upgrades
from pulumi_holdfast.ladder.json import JsonValue
from pulumi_holdfast.ladder.machines import family_of, is_sold_in, machine_catalogue, select_vm_sizes
from pulumi_holdfast.stack_program import load_platform
from tests.support.builders.configurations import (
    AZURE_LOCATION,
    EXISTING_AZURE_NETWORK,
    SUBNET,
    SUBSCRIPTION,
    TENANT,
    Document,
    fixed_platform,
    nap_document,
    nap_platform,
    new_cluster,
    read_azure,
)
from tests.support.invalid_configs.mistakes import changed

ROOT = Path(__file__).parents[3]
STACKS = ("azure-dev", "azure-prod")


def test_one_pool_and_access_are_enough() -> None:
    bare: Document = {
        "cloud": "azure",
        "cluster": {"access": {"private": True}},
        "pools": [
            {
                "name": "cpu",
                "capacity": "on-demand",
                "vmSizes": ["Standard_D4ds_v5"],
                "maxNodes": 2,
                "default": True,
            }
        ],
    }
    platform = read_azure(bare, subscription=None)
    assert not platform.has_scale_sets, "node auto-provisioning is what a stack has that says nothing"
    assert platform.protected, "what is forgotten must not be what can be destroyed"
    assert platform.network == AzureNewNetwork()
    assert new_cluster(platform.cluster).system_nodes.count == 2
    assert platform.cluster.login is Login.AZURE_CLI
    assert (platform.subscription_id, platform.tenant_id) == (None, None)


def test_provider_settings_become_fields_of_the_platform() -> None:
    platform = read_azure(nap_document(), tenant=TENANT)
    assert (platform.location, platform.subscription_id, platform.tenant_id) == (
        AZURE_LOCATION,
        SUBSCRIPTION,
        TENANT,
    )


def test_scaling_determines_the_kind_of_pools() -> None:
    assert nap_platform().cluster.scaling is Scaling.NAP
    assert not nap_platform().has_scale_sets
    assert fixed_platform().has_scale_sets


def test_a_family_has_every_size_of_the_location() -> None:
    machines = nap_platform().pools[1].machines(AZURE_LOCATION)
    assert [machine.name for machine in machines] == [
        "Standard_D8ds_v5",
        "Standard_D16ds_v5",
        "Standard_D8ads_v5",
        "Standard_D16ads_v5",
    ]


def test_a_spot_pool_by_family_omits_sizes_without_spot() -> None:
    for machine in nap_platform().pools[1].machines(AZURE_LOCATION):
        assert machine.on_spot, "the pool could buy nothing of the others"


@pytest.mark.parametrize(
    ("size", "family"),
    [
        ("Standard_D4ds_v5", "Dds_v5"),
        ("Standard_NC24ads_A100_v4", "NCads_A100_v4"),
        ("Standard_ND96isr_H100_v5", "NDisr_H100_v5"),
        ("Standard_F16s_v2", "Fs_v2"),
        ("Standard_E8-4ads_v5", None),
    ],
)
def test_a_family_is_a_name_without_its_number(size: str, family: str | None) -> None:
    assert family_of(size) == family


def test_every_vm_size_is_found_by_its_family() -> None:
    for name, machine in machine_catalogue("azure").items():
        family = family_of(name)
        if family is not None and is_sold_in(name, AZURE_LOCATION):
            assert machine in select_vm_sizes([family], [machine.vcpus], AZURE_LOCATION), (
                f"{name} is found by neither"
            )


def test_gpus_follow_from_the_machine() -> None:
    assert [pool.has_gpus for pool in nap_platform().scheduling_pools()] == [False, False, True, True]
    assert [pool.has_gpus for pool in fixed_platform().scheduling_pools()] == [False, False, True, True]


def test_the_default_price_cap_is_the_on_demand_price() -> None:
    assert [pool.price_cap for pool in fixed_platform().pools] == [NO_CAP, 0.5, NO_CAP, NO_CAP]


@pytest.mark.parametrize("zones", [[1, 2], ["1", "2"], ["1", 2]])
def test_zones_may_be_numbers_or_text(zones: list[int | str]) -> None:
    platform = nap_platform(changed(".pools[0]", zones=cast("JsonValue", zones)))
    assert platform.pools[0].zones == ("1", "2")


def test_a_subnet_id_selects_an_existing_network() -> None:
    network = nap_platform(lambda d: d.update(network=EXISTING_AZURE_NETWORK)).network
    assert isinstance(network, AzureExistingNetwork)
    assert (network.subnet_id, network.outbound) == (SUBNET, Outbound.NAT_GATEWAY)


def test_default_upgrades_are_those_of_the_component() -> None:
    asked, known = AzureUpgrades(), Upgrades()
    assert (asked.cluster.value, asked.node_os.value) == (known.cluster, known.node_os)


def test_the_default_window_is_valid_for_the_component() -> None:
    window = AzureMaintenanceWindow()
    taken = Maintenance(day="Saturday", start=window.start, hours=window.hours, start_date=window.start_date)
    assert window.day.value.capitalize() == taken.day
    assert taken.start_date == AzureMaintenanceWindow(hours=4).start_date, "or each update would move it"


def tracked(stack: str) -> AzurePlatform:
    return cast("AzurePlatform", load_platform(ROOT / f"stacks/Pulumi.{stack}.yaml"))


def test_both_kinds_of_scaling_are_rehearsed() -> None:
    ways = {tracked(stack).cluster.scaling for stack in STACKS}
    assert ways == set(Scaling)
