import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.scheduling.machines import Machine, machine_catalogue
from holdfast.scheduling.reachability.machine_capacity import Provisioner, machine_capacity


def machine(vcpus: int = 96, memory_gib: int = 1152, gpus: int = 8) -> Machine:
    return Machine(name="any", vcpus=vcpus, memory_mib=memory_gib * 1024, gpus=gpus, hourly_price=1.0)


def test_gke_keeps_what_its_documentation_says():
    room = machine_capacity(machine(vcpus=4, memory_gib=16, gpus=0), Provisioner.GKE).allocatable
    assert room.cpu_millis == 4000 - 80 - 600, "6 % + 1 % + 2 · 0.5 % of a core, and what runs on every node"
    assert room.memory_mib == 16 * 1024 - 2662 - 100 - 1024, "25 % of 4 GiB, 20 % of 4, 10 % of 8: 2.6 GiB"


def test_eks_keeps_what_karpenter_takes_off():
    room = machine_capacity(machine(vcpus=4, memory_gib=64, gpus=0), Provisioner.EKS).allocatable
    assert room.cpu_millis == 4000 - 80 - 300, "the same brackets"
    assert room.memory_mib == 64 * 1024 - (11 * 58 + 255 + 100 + 4915) - 512, (
        "11 MiB a pod, 7.5 % the hypervisor's"
    )


def test_aks_keeps_what_its_documentation_says():
    room = machine_capacity(machine(vcpus=8, memory_gib=32, gpus=0), Provisioner.AKS).allocatable
    assert room.cpu_millis == 8000 - 180 - 600, "180 of 8 cores by its table"
    assert room.memory_mib == 32 * 1024 - 5050 - 100 - 1024, "20 MB for each of 250 pods, and 50"


def test_local_machines_keep_what_the_simulated_provider_takes_off():
    room = machine_capacity(machine(), Provisioner.LOCAL).allocatable
    assert (room.cpu_millis, room.memory_mib) == (95_900, 1152 * 1024 - 10), "100m and 10 MiB"


@pytest.mark.parametrize("provisioner", Provisioner)
@given(vcpus=st.integers(1, 256), memory_gib=st.integers(1, 4096), gpus=st.integers(0, 16))
def test_room_is_never_more_than_the_machine_nor_negative(
    provisioner: Provisioner, vcpus: int, memory_gib: int, gpus: int
):
    found = machine_capacity(machine(vcpus, memory_gib, gpus), provisioner)
    assert found.allocatable.fits_in(found.total), "something is kept back, never added"
    assert min(found.allocatable.cpu_millis, found.allocatable.memory_mib) >= 0, (
        "a machine smaller than its reservation has no room"
    )
    assert found.allocatable.gpus == gpus, "GPUs are all for pods"


@pytest.mark.parametrize("provisioner", Provisioner)
@given(vcpus=st.integers(1, 128), memory_gib=st.integers(16, 2048))
def test_a_machine_twice_as_large_never_has_less_room(provisioner: Provisioner, vcpus: int, memory_gib: int):
    small, large = (machine_capacity(machine(vcpus * n, memory_gib * n), provisioner).allocatable for n in (1, 2))
    assert small.fits_in(large), "what is kept back grows slower than the machine"


@pytest.mark.parametrize(
    ("cloud", "provisioner"),
    [("aws", Provisioner.EKS), ("gcp", Provisioner.GKE), ("local", Provisioner.LOCAL)],
)
def test_every_gpu_machine_that_is_known_has_room_for_a_pod_with_all_its_gpus(
    cloud: str, provisioner: Provisioner
):
    cramped = [
        each.name
        for each in machine_catalogue(cloud).values()
        if each.gpus and machine_capacity(each, provisioner).allocatable.memory_mib < each.memory_mib // 4
    ]
    assert cramped == [], "a machine whose memory is mostly reserved would make every shape unreachable"
