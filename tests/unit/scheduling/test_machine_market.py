"""Where machines are sold."""

import pytest

from holdfast.scheduling.machines import is_sold_in, machine_catalogue, regions, regions_of, zones_of


def test_a_type_that_only_some_regions_have_is_not_sold_elsewhere() -> None:
    assert is_sold_in("p4de.24xlarge", "us-east-1"), "Virginia has it"
    assert not is_sold_in("p4de.24xlarge", "eu-west-3"), "Paris does not"


def test_a_type_that_does_not_exist_is_sold_nowhere() -> None:
    assert regions_of("p9.96xlarge") == frozenset(), "a slip must not pass for a rare machine"


def test_nothing_is_sold_in_a_region_that_is_not_known() -> None:
    assert not is_sold_in("m7i.xlarge", "us-east-9"), "there is none of that name"


def test_every_machine_of_the_catalogue_is_sold_somewhere() -> None:
    unsold = [name for name in machine_catalogue("aws") if not regions_of(name)]
    assert unsold == [], "what no region sells is no choice"


def test_every_region_sells_machines() -> None:
    sold_in = {region for name in machine_catalogue("aws") for region in regions_of(name)}
    assert sold_in == regions("aws"), "a region is known by what it sells"


@pytest.mark.parametrize("partition", ["us-east-1", "cn-north-1", "us-gov-west-1"])
def test_regions_of_every_partition_are_known(partition: str) -> None:
    assert partition in regions("aws"), "a stack there is refused otherwise"


def test_zones_carry_their_regions_name() -> None:
    for region in regions("aws"):
        zones = zones_of(region)
        assert all(zone[:-1] == region for zone in zones), f"{zones} are none of {region}'s"
        assert list(zones) == sorted(set(zones)), f"{zones}: each once, in order"


def test_zones_are_those_there_are_and_not_the_first_of_the_alphabet() -> None:
    assert zones_of("ap-northeast-1") == ("ap-northeast-1a", "ap-northeast-1c", "ap-northeast-1d"), (
        "Tokyo has no b for most accounts"
    )


def test_zones_of_another_region_are_not_made_up() -> None:
    assert zones_of("us-east-9") == (), "none is known"
