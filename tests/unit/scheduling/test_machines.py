"""The machine catalogues."""

import pytest

from holdfast.scheduling.machines import LOCAL_ZONES, Machine, machine_catalogue
from holdfast.scheduling.machines.catalogue import aws_table

LOCAL = machine_catalogue("local")
AWS = machine_catalogue("aws")


@pytest.mark.parametrize("machine", LOCAL.values(), ids=LOCAL.keys())
def test_a_machine_says_what_it_has_and_costs(machine: Machine) -> None:
    assert machine.vcpus > 0, f"{machine.name} without CPUs could never be chosen"
    assert machine.memory_mib >= 1024 * machine.vcpus, (
        f"{machine.name}: memory is in MiB, 1 GiB a vCPU or more"
    )
    assert machine.hourly_price > 0, f"{machine.name} for nothing would be bought before all others"


def test_every_machine_of_aws_has_cpus_memory_and_a_price() -> None:
    for machine in AWS.values():
        assert machine.vcpus > 0, f"{machine.name} without CPUs could never be chosen"
        assert machine.memory_mib >= 512, f"{machine.name}: memory is in MiB, half a GiB at the least"
        assert machine.hourly_price > 0, f"{machine.name} for nothing would be bought before all others"


def test_gpu_families_have_gpus_and_the_others_none() -> None:
    with_gpus = {machine.name for machine in LOCAL.values() if machine.gpus}
    families = {name for name in LOCAL if name[0] in "gp"}
    assert with_gpus == families, "g and p are EC2's families with GPUs"


@pytest.mark.parametrize("cloud", ["aws", "local"])
def test_machines_with_gpus_and_no_others_name_their_accelerator(cloud: str) -> None:
    for machine in machine_catalogue(cloud).values():
        assert (machine.accelerator is None) == (machine.gpus == 0), f"{machine} says one thing twice"


def test_every_kind_of_pool_can_be_made_of_two_types() -> None:
    for gpus in (0, 4, 8):
        found = [machine.name for machine in LOCAL.values() if machine.gpus == gpus]
        assert len(found) > 1, (
            f"a spot pool of machines with {gpus} GPUs needs a choice, or one shortage ends it"
        )


def test_the_local_machines_are_those_of_aws() -> None:
    for machine in LOCAL.values():
        real = AWS[machine.name]
        assert (machine.vcpus, machine.memory_mib, machine.gpus, machine.accelerator) == (
            real.vcpus,
            real.memory_mib,
            real.gpus,
            real.accelerator,
        ), f"{machine.name} is written down twice and must be the same machine"


@pytest.mark.parametrize(
    ("name", "accelerator", "gpus", "adapters"),
    [
        ("p4d.24xlarge", "a100", 8, 4),
        ("p5.48xlarge", "h100", 8, 32),
        ("p5e.48xlarge", "h200", 8, 32),
        ("g5.12xlarge", "a10g", 4, 1),
        ("m7i.xlarge", None, 0, 0),
    ],
)
def test_machines_for_training_are_known(
    name: str, accelerator: str | None, gpus: int, adapters: int
) -> None:
    machine = AWS[name]
    assert (machine.accelerator, machine.gpus, machine.efa_interfaces) == (accelerator, gpus, adapters), (
        "as EC2 describes it"
    )


def test_machines_know_their_architecture() -> None:
    assert (AWS["m7g.xlarge"].arch, AWS["m7i.xlarge"].arch) == ("arm64", "amd64"), (
        "an image built for one does not start on the other"
    )


def test_what_is_never_on_spot_says_so() -> None:
    assert not AWS["hpc7a.96xlarge"].on_spot, "EC2 sells the hpc families on demand alone"
    assert AWS["p5.48xlarge"].on_spot, "and the p families both ways"


@pytest.mark.parametrize("name", ["trn1.32xlarge", "inf2.48xlarge", "f2.48xlarge", "g6f.large", "mac2.metal"])
def test_what_no_node_here_could_use_is_not_known(name: str) -> None:
    assert name not in AWS, "a pool of these would wait for a device that no plugin offers"


def test_a_machine_without_a_list_price_is_no_bargain() -> None:
    unpriced = {name for name, *_, price, _ in aws_table()["machines"] if price is None}
    assert "p5e.48xlarge" in unpriced, "it is sold by the block, without a price by the hour"
    ordinary = AWS["m7i.xlarge"]
    for name in unpriced:
        assert AWS[name].hourly_price / AWS[name].vcpus > ordinary.hourly_price / ordinary.vcpus, (
            f"a simulated market would sell {name} before cheaper machines"
        )


@pytest.mark.parametrize("cloud", ["aws", "local"])
def test_the_catalogue_cannot_be_changed_by_its_users(cloud: str) -> None:
    catalogue = machine_catalogue(cloud)
    with pytest.raises(TypeError):
        catalogue["m7i.large"] = catalogue["m7i.xlarge"]  # pyright: ignore[reportIndexIssue] - just so


def test_nodes_can_be_spread_over_zones() -> None:
    assert len(set(LOCAL_ZONES)) > 1, "a spread over one zone shows nothing"
