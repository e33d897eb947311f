"""The machine catalogue."""

import pytest

from scheduling.machines import LOCAL_ZONES, Machine, machine_catalogue

CATALOGUE = machine_catalogue("local")


@pytest.mark.parametrize("machine", CATALOGUE.values(), ids=CATALOGUE.keys())
def test_a_machine_says_what_it_has_and_costs(machine: Machine) -> None:
    assert machine.vcpus > 0, f"{machine.name} without CPUs could never be chosen"
    assert machine.memory_mib >= 1024 * machine.vcpus, (
        f"{machine.name}: memory is in MiB, 1 GiB a vCPU or more"
    )
    assert machine.hourly_price > 0, f"{machine.name} for nothing would be bought before all others"


def test_gpu_families_have_gpus_and_the_others_none() -> None:
    with_gpus = {machine.name for machine in CATALOGUE.values() if machine.gpus}
    families = {name for name in CATALOGUE if name[0] in "gp"}
    assert with_gpus == families, "g and p are EC2's families with GPUs"


def test_every_kind_of_pool_can_be_made_of_two_types() -> None:
    for gpus in (0, 4, 8):
        found = [machine.name for machine in CATALOGUE.values() if machine.gpus == gpus]
        assert len(found) > 1, (
            f"a spot pool of machines with {gpus} GPUs needs a choice, or one shortage ends it"
        )


def test_the_catalogue_cannot_be_changed_by_its_users() -> None:
    with pytest.raises(TypeError):
        CATALOGUE["m9.huge"] = next(iter(CATALOGUE.values()))  # pyright: ignore[reportIndexIssue]


def test_zones_are_several() -> None:
    assert len(set(LOCAL_ZONES)) > 1, "spreading over zones can be rehearsed only where there are several"
