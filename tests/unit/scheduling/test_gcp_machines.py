"""GCP's machine types: what they hold, how they are sold, and which GPUs go with them."""

from __future__ import annotations

import pytest

from holdfast.scheduling.machines import (
    attachable_to,
    boot_disk_of,
    can_be_placed_compactly,
    machine_catalogue,
    regions,
    with_attached,
    zones_of,
)
from holdfast.scheduling.machines.catalogue import gcp_table

GCP = machine_catalogue("gcp")


def test_every_machine_has_cpus_memory_and_a_price() -> None:
    for machine in GCP.values():
        assert machine.vcpus > 0, f"{machine.name} without CPUs could never be chosen"
        assert 900 <= machine.memory_mib / machine.vcpus <= 18 * 1024, (
            f"{machine.name}: memory is in MiB, 0.9 to 18 GiB a vCPU"
        )
        assert machine.hourly_price > 0, f"{machine.name} for nothing would be bought before all others"


def test_every_machine_is_sold_in_some_way() -> None:
    unsold = [machine.name for machine in GCP.values() if not (machine.on_spot or machine.on_demand)]
    assert unsold == [], "what can only be reserved is no choice for a pool"


def test_names_say_how_many_cpus_there_are() -> None:
    for machine in GCP.values():
        if not machine.gpus:
            assert machine.name.endswith(f"-{machine.vcpus}"), f"{machine.name} has {machine.vcpus} vCPUs"


@pytest.mark.parametrize(
    ("name", "vcpus", "gib"),
    [
        ("e2-standard-4", 4, 16),
        ("n2-highmem-128", 128, 864),
        ("n1-standard-1", 1, 3.75),
        ("c3d-highcpu-30", 30, 59),
        ("c4-standard-2", 2, 7),
        ("c4d-highmem-4", 4, 31),
    ],
)
def test_odd_sizes_are_as_google_has_them(name: str, vcpus: int, gib: float) -> None:
    machine = GCP[name]
    assert (machine.vcpus, machine.memory_mib) == (vcpus, gib * 1024), (
        "a rule of thumb would say another number"
    )


@pytest.mark.parametrize(
    ("name", "accelerator", "gpus", "local_ssds"),
    [
        ("a2-highgpu-8g", "nvidia-tesla-a100", 8, 0),
        ("a2-ultragpu-1g", "nvidia-a100-80gb", 1, 1),
        ("a3-highgpu-8g", "nvidia-h100-80gb", 8, 16),
        ("a3-megagpu-8g", "nvidia-h100-mega-80gb", 8, 16),
        ("g2-standard-48", "nvidia-l4", 4, 0),
    ],
)
def test_machines_for_training_name_their_gpus_as_gke_does(
    name: str, accelerator: str, gpus: int, local_ssds: int
) -> None:
    machine = GCP[name]
    assert (machine.accelerator, machine.gpus, machine.local_ssds) == (accelerator, gpus, local_ssds), (
        "GKE refuses a pool whose GPUs are not its machine's"
    )


def test_what_google_does_not_sell_on_demand_says_so() -> None:
    assert GCP["a3-highgpu-8g"].on_demand, "whole machines are sold both ways"
    for name in ("a3-highgpu-1g", "a3-highgpu-4g", "a3-ultragpu-8g", "a4-highgpu-8g"):
        assert not GCP[name].on_demand, f"a ladder cannot end on {name}"
        assert GCP[name].on_spot, f"but it can go through {name}"


@pytest.mark.parametrize("name", ["a4x-highgpu-4g", "g4-standard-6", "ct5lp-hightpu-4t"])
def test_what_no_pool_could_be_made_of_is_not_known(name: str) -> None:
    assert name not in GCP, "it is reserved only, or a share of a GPU, or no GPU at all"


def test_machines_know_their_architecture() -> None:
    assert (GCP["c4a-standard-8"].arch, GCP["c4-standard-8"].arch) == ("arm64", "amd64"), (
        "an image built for one does not start on the other"
    )


def test_a_machine_without_a_list_price_is_no_bargain() -> None:
    unpriced = {row[0] for row in gcp_table()["accelerated"] if row[-1] is None}
    assert "a4-highgpu-8g" in unpriced, "it has no price by the hour"
    for name in unpriced:
        per_gpu = GCP[name].hourly_price / GCP[name].gpus
        assert per_gpu > GCP["a2-highgpu-1g"].hourly_price, f"{name} must not seem cheaper than older GPUs"


def test_gpus_can_be_attached_to_machines_that_bring_none() -> None:
    machine = with_attached(GCP["n1-standard-8"], "nvidia-tesla-t4", 2)
    assert (machine.gpus, machine.accelerator) == (2, "nvidia-tesla-t4"), (
        "a pool of it is one with GPUs like any other"
    )
    assert machine.hourly_price > GCP["n1-standard-8"].hourly_price, "GPUs are not for nothing"


@pytest.mark.parametrize(
    ("name", "kind", "count"),
    [
        ("n1-standard-8", "nvidia-tesla-t4", 3),
        ("n1-standard-16", "nvidia-tesla-v100", 1),
        ("n1-standard-8", "nvidia-l4", 1),
        ("n2-standard-8", "nvidia-tesla-t4", 1),
        ("a2-highgpu-1g", "nvidia-tesla-t4", 1),
    ],
)
def test_gpus_that_would_not_be_attached_are_refused(name: str, kind: str, count: int) -> None:
    with pytest.raises(ValueError, match=f"{name} cannot have {count} {kind} attached; it takes"):
        with_attached(GCP[name], kind, count)


def test_every_way_of_attaching_that_is_offered_is_taken() -> None:
    for machine in GCP.values():
        for kind, counts in attachable_to(machine).items():
            for count in counts:
                assert with_attached(machine, kind, count).gpus == count, (
                    f"{machine.name} was said to take it"
                )


def test_every_machine_starts_from_a_disk_of_its_family() -> None:
    disks = {machine.name.partition("-")[0]: boot_disk_of(machine) for machine in GCP.values()}
    assert disks["n1"] == "pd-balanced", "older families take no Hyperdisk"
    assert disks["c4"] == "hyperdisk-balanced", "newer ones take nothing else"


def test_families_that_cannot_be_placed_close_to_each_other_are_known() -> None:
    assert can_be_placed_compactly(GCP["a2-highgpu-8g"]), "training on several machines gains by it"
    assert not can_be_placed_compactly(GCP["n1-standard-8"]), "GKE would refuse the pool"


def test_zones_carry_their_regions_name() -> None:
    for region in regions("gcp"):
        zones = zones_of(region)
        assert all(zone.rpartition("-")[0] == region for zone in zones), f"{zones} are none of {region}'s"
        assert list(zones) == sorted(set(zones)), f"{zones}: each once, in order"
        assert len(zones) >= 3, f"{region} has three or more"


def test_zones_are_those_there_are_and_not_the_first_of_the_alphabet() -> None:
    assert zones_of("us-east1") == ("us-east1-b", "us-east1-c", "us-east1-d"), "there is no a"


def test_no_region_is_of_two_clouds() -> None:
    assert regions("gcp").isdisjoint(regions("aws")), "zones are looked up by the region alone"
