"""The machine catalogues of all clouds, and the regions that sell their machines."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulumi_holdfast.ladder.machines import (
    LOCAL_ZONES,
    Machine,
    attachable_to,
    boot_disk_of,
    can_be_placed_compactly,
    family_of,
    is_sold_in,
    machine_catalogue,
    regions,
    regions_of,
    select_machines,
    select_vm_sizes,
    with_attached,
    zones_of,
    zones_with,
)
from pulumi_holdfast.ladder.machines.catalogue import aws_table, gcp_table

LOCAL, AWS, AZURE, GCP = (machine_catalogue(cloud) for cloud in ("local", "aws", "azure", "gcp"))
CLOUDS: Final = ("local", "aws", "azure", "gcp")


@pytest.mark.parametrize(
    ("cloud", "least_vcpus", "least_mib_of_vcpu"),
    # EC2 sells half a GiB for two vCPUs; AKS accepts no node with fewer than two.
    [("local", 1, 1024), ("aws", 1, 256), ("azure", 2, 2048), ("gcp", 1, 900)],
)
def test_every_machine_has_cpus_memory_a_price_and_a_way_to_buy_it(
    cloud: str, least_vcpus: int, least_mib_of_vcpu: int
) -> None:
    for machine in machine_catalogue(cloud).values():
        assert machine.vcpus >= least_vcpus, f"{machine.name} could not be a node"
        assert machine.memory_mib >= least_mib_of_vcpu * machine.vcpus, f"{machine.name}: memory is in MiB"
        assert machine.hourly_price > 0, f"{machine.name} would be bought before all others"
        assert machine.on_spot or machine.on_demand, f"{machine.name} could only be reserved"
        assert (machine.accelerator is None) == (machine.gpus == 0), f"{machine.name}: both or neither"


@pytest.mark.parametrize("cloud", CLOUDS)
def test_catalogue_is_immutable(cloud: str) -> None:
    catalogue = machine_catalogue(cloud)
    with pytest.raises(TypeError):
        catalogue["any"] = next(iter(catalogue.values()))  # pyright: ignore[reportIndexIssue] - it must raise


@pytest.mark.parametrize(
    ("name", "vcpus", "gib", "gpus", "accelerator"),
    [
        ("p4d.24xlarge", 96, 1152, 8, "a100"),
        ("p5.48xlarge", 192, 2048, 8, "h100"),
        ("p5e.48xlarge", 192, 2048, 8, "h200"),
        ("g5.12xlarge", 48, 192, 4, "a10g"),
        ("m7i.xlarge", 4, 16, 0, None),
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
        ("e2-standard-4", 4, 16, 0, None),
        ("n2-highmem-128", 128, 864, 0, None),
        ("n1-standard-1", 1, 3.75, 0, None),
        ("c3d-highcpu-30", 30, 59, 0, None),
        ("c4-standard-2", 2, 7, 0, None),
        ("c4d-highmem-4", 4, 31, 0, None),
    ],
)
def test_machine_has_the_documented_resources(
    name: str, vcpus: int, gib: float, gpus: int, accelerator: str | None
) -> None:
    machine = next(catalogue[name] for catalogue in (AWS, AZURE, GCP) if name in catalogue)
    assert (machine.vcpus, machine.memory_mib) == (vcpus, gib * 1024)
    assert (machine.gpus, machine.accelerator) == (gpus, accelerator)


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
def test_gcp_machine_names_its_accelerator_as_gke_does(
    name: str, accelerator: str, gpus: int, local_ssds: int
) -> None:
    machine = GCP[name]
    assert (machine.accelerator, machine.gpus, machine.local_ssds) == (accelerator, gpus, local_ssds)


@pytest.mark.parametrize(
    ("name", "adapters"), [("p4d.24xlarge", 4), ("p5.48xlarge", 32), ("g5.12xlarge", 1), ("m7i.xlarge", 0)]
)
def test_aws_machine_has_its_efa_interfaces(name: str, adapters: int) -> None:
    assert AWS[name].efa_interfaces == adapters


@pytest.mark.parametrize(
    ("arm", "amd"),
    [
        (AWS["m7g.xlarge"], AWS["m7i.xlarge"]),
        (AZURE["Standard_D4pds_v6"], AZURE["Standard_D4ds_v6"]),
        (GCP["c4a-standard-8"], GCP["c4-standard-8"]),
    ],
    ids=["aws", "azure", "gcp"],
)
def test_machine_has_its_architecture(arm: Machine, amd: Machine) -> None:
    assert (arm.arch, amd.arch) == ("arm64", "amd64")


@pytest.mark.parametrize(
    ("cloud", "name"),
    [
        # Accelerators without a device plugin here, and shares of a GPU.
        *(("aws", name) for name in ("trn1.32xlarge", "inf2.48xlarge", "f2.48xlarge", "g6f.large")),
        ("aws", "mac2.metal"),
        # Burstable, a share of a GPU, no driver, constrained, confidential, without local disk.
        *(("azure", name) for name in ("Standard_B2s", "Standard_NV6ads_A10_v5")),
        *(("azure", name) for name in ("Standard_ND96isr_MI300X_v5", "Standard_E16-4ds_v5")),
        *(("azure", name) for name in ("Standard_DC4as_v5", "Standard_D4_v5")),
        # Only reserved, a share of a GPU, no GPU.
        *(("gcp", name) for name in ("a4x-highgpu-4g", "g4-standard-6", "ct5lp-hightpu-4t")),
    ],
)
def test_machine_that_no_pool_can_use_is_not_in_the_catalogue(cloud: str, name: str) -> None:
    assert name not in machine_catalogue(cloud), "a pool of it would never run a job"


def test_machine_that_is_not_sold_both_ways_says_so() -> None:
    assert not AWS["hpc7a.96xlarge"].on_spot
    assert AWS["p5.48xlarge"].on_spot
    assert GCP["a3-highgpu-8g"].on_demand
    for name in ("a3-highgpu-1g", "a3-highgpu-4g", "a3-ultragpu-8g", "a4-highgpu-8g"):
        assert not GCP[name].on_demand, f"a ladder cannot end on {name}"
        assert GCP[name].on_spot, f"but {name} can be a tier above"


def test_machine_without_a_list_price_is_not_cheap() -> None:
    unpriced = {name for name, *_, price, _ in aws_table()["machines"] if price is None}
    assert "p5e.48xlarge" in unpriced
    for name in unpriced:
        price = AWS[name].hourly_price / AWS[name].vcpus
        assert price > AWS["m7i.xlarge"].hourly_price / 4, f"the simulated market would prefer {name}"
    unpriced = {row[0] for row in gcp_table()["accelerated"] if row[-1] is None}
    assert "a4-highgpu-8g" in unpriced
    for name in unpriced:
        price = GCP[name].hourly_price / GCP[name].gpus
        assert price > GCP["a2-highgpu-1g"].hourly_price, f"{name} must cost more than older GPUs"


def test_local_machines_are_those_of_aws() -> None:
    for machine in LOCAL.values():
        real = AWS[machine.name]
        same = ("vcpus", "memory_mib", "gpus", "accelerator")
        assert [getattr(machine, each) for each in same] == [getattr(real, each) for each in same], (
            f"{machine.name} has the resources of the real machine"
        )


def test_local_cloud_has_two_types_of_every_kind_and_several_zones() -> None:
    for gpus in (0, 4, 8):
        found = [machine.name for machine in LOCAL.values() if machine.gpus == gpus]
        assert len(found) > 1, f"a spot pool of machines with {gpus} GPUs needs a choice"
    assert len(set(LOCAL_ZONES)) > 1


def test_name_of_a_gcp_machine_without_gpus_ends_with_its_vcpus() -> None:
    for machine in GCP.values():
        if not machine.gpus:
            assert machine.name.endswith(f"-{machine.vcpus}"), f"{machine.name} has {machine.vcpus} vCPUs"


def test_gpus_can_be_attached_to_a_machine_without_gpus() -> None:
    machine = with_attached(GCP["n1-standard-8"], "nvidia-tesla-t4", 2)
    assert (machine.gpus, machine.accelerator) == (2, "nvidia-tesla-t4")
    assert machine.hourly_price > GCP["n1-standard-8"].hourly_price


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
def test_gpus_that_compute_engine_would_not_attach_raise(name: str, kind: str, count: int) -> None:
    with pytest.raises(ValueError, match=f"{name} cannot have {count} {kind} attached; it takes"):
        with_attached(GCP[name], kind, count)


def test_every_attachable_count_can_be_attached() -> None:
    for machine in GCP.values():
        for kind, counts in attachable_to(machine).items():
            for count in counts:
                assert with_attached(machine, kind, count).gpus == count, f"{machine.name} allows it"


def test_gcp_families_have_a_boot_disk_and_a_placement() -> None:
    disks = {machine.name.partition("-")[0]: boot_disk_of(machine) for machine in GCP.values()}
    assert disks["n1"] == "pd-balanced"
    assert disks["c4"] == "hyperdisk-balanced"
    assert can_be_placed_compactly(GCP["a2-highgpu-8g"])
    assert not can_be_placed_compactly(GCP["n1-standard-8"]), "GKE would reject the pool"


@pytest.mark.parametrize(
    ("name", "sold", "not_sold"),
    [("p4de.24xlarge", "us-east-1", "eu-west-3"), ("Standard_ND96asr_v4", "westeurope", "francecentral")],
)
def test_machine_is_sold_only_in_some_regions(name: str, sold: str, not_sold: str) -> None:
    assert is_sold_in(name, sold)
    assert not is_sold_in(name, not_sold)


def test_unknown_machine_or_region_sells_nothing() -> None:
    assert regions_of("p9.96xlarge") == frozenset()
    assert not is_sold_in("m7i.xlarge", "us-east-9")
    assert zones_of("us-east-9") == ()


@pytest.mark.parametrize("cloud", ["aws", "azure"])
def test_every_machine_is_sold_somewhere_and_every_region_sells_machines(cloud: str) -> None:
    catalogue = machine_catalogue(cloud)
    assert [name for name in catalogue if not regions_of(name)] == []
    sold_in = {region for name in catalogue for region in regions_of(name)}
    assert sold_in == regions(cloud)


@pytest.mark.parametrize("region", ["us-east-1", "cn-north-1", "us-gov-west-1"])
def test_regions_of_every_aws_partition_are_known(region: str) -> None:
    assert region in regions("aws"), "a stack there would be invalid"


def test_region_names_are_unique_across_clouds() -> None:
    names = [name for cloud in ("aws", "azure", "gcp") for name in regions(cloud)]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("cloud", ["aws", "azure", "gcp"])
def test_zones_have_the_name_of_their_region_once_and_in_order(cloud: str) -> None:
    for region in regions(cloud):
        zones = zones_of(region)
        assert all(zone[:-1].rstrip("-") == region for zone in zones), f"{zones} belong to another region"
        assert list(zones) == sorted(set(zones)), f"{zones}: each once, in order"
        assert cloud != "gcp" or len(zones) >= 3, f"{region} has at least three"


@pytest.mark.parametrize(
    ("region", "zones"),
    [
        ("ap-northeast-1", ("ap-northeast-1a", "ap-northeast-1c", "ap-northeast-1d")),
        ("us-east1", ("us-east1-b", "us-east1-c", "us-east1-d")),
        ("westeurope", ("westeurope-1", "westeurope-2", "westeurope-3")),
        ("westus", ()),
    ],
)
def test_zones_are_the_existing_ones(region: str, zones: tuple[str, ...]) -> None:
    assert zones_of(region) == zones


def test_zones_with_gpus_are_zones_of_google_cloud() -> None:
    every = {zone for region in regions("gcp") for zone in zones_of(region)}
    known = {name: zones for name in machine_catalogue("gcp") if (zones := zones_with(name)) is not None}
    assert {name for name, zones in known.items() if not zones or not zones <= every} == set()
    assert set(gcp_table()["zones"]) == {name.rpartition("-")[0] for name in known}
    assert "europe-west4-c" not in known["a2-highgpu-8g"]
    assert zones_with("n2-standard-8") is None


@dataclass(frozen=True, kw_only=True)
class Selection:
    """How a cloud selects machines by family and size."""

    region: str
    cloud: str
    select: Callable[[Sequence[str], Sequence[object], str], Sequence[Machine]]
    family: Callable[[Machine], str | None]
    size: Callable[[Machine], object]


BY_SIZE: Final = Selection(
    cloud="aws",
    region="us-east-1",
    select=lambda families, sizes, region: select_machines(
        families, [str(each) for each in sizes], AWS, region
    ),
    family=lambda machine: machine.name.split(".")[0],
    size=lambda machine: machine.name.split(".")[1],
)
BY_VCPUS: Final = Selection(
    cloud="azure",
    region="westeurope",
    select=lambda families, sizes, region: select_vm_sizes(
        families, [each for each in sizes if isinstance(each, int)], region
    ),
    family=lambda machine: family_of(machine.name),
    size=lambda machine: machine.vcpus,
)


@pytest.mark.parametrize(
    ("by", "families", "sizes", "selected"),
    [
        (BY_SIZE, ["m7i", "m7a"], ["xlarge", "2xlarge"], ["m7i.xlarge", "m7i.2xlarge", "m7a.xlarge", "m7a.2xlarge"]),
        (BY_SIZE, ["p4d", "p5"], ["24xlarge", "48xlarge"], ["p4d.24xlarge", "p5.48xlarge"]),
        (BY_VCPUS, ["Dds_v5", "Dads_v5"], [4, 8], ["Standard_D4ds_v5", "Standard_D8ds_v5", "Standard_D4ads_v5", "Standard_D8ads_v5"]),
        (BY_VCPUS, ["NCads_A100_v4", "NDasr_v4"], [24, 96], ["Standard_NC24ads_A100_v4", "Standard_NC96ads_A100_v4", "Standard_ND96asr_v4"]),
        *((BY_VCPUS, [family], [4], []) for family in ("dds_v5", "", "Standard_D4ds_v5", "Zzz_v9")),
    ],
)  # fmt: skip
def test_selection_lists_existing_sizes_by_family_then_size(
    by: Selection, families: list[str], sizes: list[object], selected: list[str]
) -> None:
    found = [machine.name for machine in by.select(families, sizes, by.region)]
    assert found == selected


def test_selection_omits_machines_that_the_region_does_not_sell() -> None:
    found = select_machines(["p4d", "p4de"], ["24xlarge"], AWS, "eu-west-1")
    assert [machine.name for machine in found] == ["p4d.24xlarge"]


@pytest.mark.parametrize("by", [BY_SIZE, BY_VCPUS], ids=["aws", "azure"])
@given(data=st.data())
def test_selection_has_each_matching_machine_of_the_region_once(by: Selection, data: st.DataObject) -> None:
    catalogue = machine_catalogue(by.cloud).values()
    known = sorted({family for each in catalogue if (family := by.family(each)) is not None})
    families = data.draw(st.lists(st.sampled_from(known), max_size=6))
    sizes = data.draw(
        st.lists(st.sampled_from(sorted({by.size(each) for each in catalogue}, key=str)), max_size=6)
    )
    region = data.draw(st.sampled_from(sorted(regions(by.cloud))))
    expected = [
        each.name
        for each in catalogue
        if by.family(each) in families and by.size(each) in sizes and is_sold_in(each.name, region)
    ]
    found = [each.name for each in by.select(families, sizes, region)]
    assert sorted(found) == sorted(expected)


@pytest.mark.parametrize(
    ("name", "family"),
    [("Standard_D4ds_v5", "Dds_v5"), ("Standard_NC24ads_A100_v4", "NCads_A100_v4"), ("m7i.xlarge", None)],
)
def test_family_of_a_vm_size_is_the_series_of_azure(name: str, family: str | None) -> None:
    assert family_of(name) == family
