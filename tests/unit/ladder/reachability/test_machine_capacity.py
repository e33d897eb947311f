from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulumi_holdfast.ladder.json import UNKNOWN, Unknown
from pulumi_holdfast.ladder.labels import ARCH, INSTANCE_TYPE, ZONE
from pulumi_holdfast.ladder.machines import Machine, machine_catalogue
from pulumi_holdfast.ladder.reachability.machine_capacity import (
    MOST_CAPACITIES,
    MOST_LABEL_VALUES,
    OTHERS,
    MachineCapacity,
    Provisioner,
    listed_label_values,
    machine_capacity,
    non_dominated,
)
from pulumi_holdfast.ladder.reachability.shape import Resources


def machine(vcpus: int = 96, memory_gib: int = 1152, gpus: int = 8) -> Machine:
    return Machine(name="any", vcpus=vcpus, memory_mib=memory_gib * 1024, gpus=gpus, hourly_price=1.0)


@pytest.mark.parametrize(
    ("provisioner", "vcpus", "memory_gib", "cpu_millis", "memory_mib"),
    [
        # 6 % + 1 % + 2 · 0.5 % of a core; 25 % of 4 GiB, 20 % of 4, 10 % of 8.
        (Provisioner.GKE, 4, 16, 4000 - 80 - 600, 16 * 1024 - 2662 - 100 - 1024),
        # The same brackets; 11 MiB a pod, 7.5 % for the hypervisor.
        (Provisioner.EKS, 4, 64, 4000 - 80 - 300, 64 * 1024 - (11 * 58 + 255 + 100 + 4915) - 512),
        # 58 pod addresses up to 8 vCPUs.
        (Provisioner.EKS, 8, 64, 8000 - 90 - 300, 64 * 1024 - (11 * 58 + 255 + 100 + 4915) - 512),
        # 180 of 8 cores by the table; 20 MB for each of 250 pods, and 50 MB.
        (Provisioner.AKS, 8, 32, 8000 - 180 - 600, 32 * 1024 - 5050 - 100 - 1024),
        # 740 for the first 64 cores, 10 for each of 32 more.
        (Provisioner.AKS, 96, 384, 96_000 - 1060 - 600, 384 * 1024 - 5050 - 100 - 1024),
        (Provisioner.LOCAL, 96, 1152, 95_900, 1152 * 1024 - 10),
    ],
)
def test_allocatable_is_the_capacity_without_the_documented_reservations(
    provisioner: Provisioner, vcpus: int, memory_gib: int, cpu_millis: int, memory_mib: int
):
    allocatable = machine_capacity(machine(vcpus, memory_gib, gpus=0), provisioner).allocatable
    assert replace(allocatable, devices={}) == Resources(cpu_millis=cpu_millis, memory_mib=memory_mib)


@pytest.mark.parametrize(
    ("provisioner", "max_pods"), [(Provisioner.EKS, 104), (Provisioner.GKE, 110), (Provisioner.AKS, 250)]
)
def test_tiny_pods_fit_on_a_node_up_to_its_most_pods(provisioner: Provisioner, max_pods: int):
    tiny = Resources(cpu_millis=1, memory_mib=1)
    assert machine_capacity(machine(), provisioner).pods_of(tiny) == max_pods


@pytest.mark.parametrize("provisioner", Provisioner)
@given(vcpus=st.integers(1, 256), memory_gib=st.integers(1, 4096), gpus=st.integers(0, 16))
def test_allocatable_is_within_capacity_and_never_negative(
    provisioner: Provisioner, vcpus: int, memory_gib: int, gpus: int
):
    found = machine_capacity(machine(vcpus, memory_gib, gpus), provisioner)
    assert found.allocatable.fits_in(found.capacity)
    assert min(found.allocatable.cpu_millis, found.allocatable.memory_mib) >= 0
    assert found.allocatable.gpus == gpus


@pytest.mark.parametrize("provisioner", Provisioner)
@given(vcpus=st.integers(1, 128), memory_gib=st.integers(16, 2048))
def test_machine_of_twice_the_size_never_has_less_allocatable(
    provisioner: Provisioner, vcpus: int, memory_gib: int
):
    small, large = (
        machine_capacity(machine(vcpus * n, memory_gib * n), provisioner).allocatable for n in (1, 2)
    )
    assert small.fits_in(large)


@pytest.mark.parametrize(
    ("cloud", "provisioner"),
    [("aws", Provisioner.EKS), ("gcp", Provisioner.GKE), ("local", Provisioner.LOCAL)],
)
def test_known_gpu_machines_keep_most_of_their_memory_allocatable(cloud: str, provisioner: Provisioner):
    cramped = [
        each.name
        for each in machine_catalogue(cloud).values()
        if each.gpus and machine_capacity(each, provisioner).allocatable.memory_mib < each.memory_mib // 4
    ]
    assert cramped == [], "otherwise no shape with GPUs could reach them"


amounts = st.integers(1, 6)
resources = st.builds(
    Resources,
    cpu_millis=amounts,
    memory_mib=amounts,
    gpus=st.integers(0, 2),
    efa=st.integers(0, 2),
    devices=st.sampled_from(({}, {"a.com/b": 1})),
)


@st.composite
def capacities(draw: st.DrawFn) -> MachineCapacity:
    size = draw(resources)
    kind = draw(st.sampled_from((None, "a100")))
    return MachineCapacity(
        name=f"m{draw(amounts)}",
        capacity=size,
        allocatable=size,
        accelerator=kind,
        max_pods=draw(st.integers(1, 3)),
        has_all_devices=draw(st.booleans()),
        possible_efa=draw(st.integers(0, 4)),
    )


def capacity(cpu: int, memory: int, name: str = "m") -> MachineCapacity:
    size = Resources(cpu_millis=cpu, memory_mib=memory)
    return MachineCapacity(name=name, capacity=size, allocatable=size)


def most_pods(machines: tuple[MachineCapacity, ...] | list[MachineCapacity], pod: Resources) -> int:
    return max((each.pods_of(pod) for each in machines), default=0)


@pytest.mark.parametrize(
    ("cloud", "name", "accelerator", "expected"),
    [
        ("gcp", "a2-highgpu-8g", "nvidia-tesla-a100", True),
        ("gcp", "a2-highgpu-8g", "a100", True),
        ("gcp", "a2-highgpu-8g", "A100", True),
        ("gcp", "a2-ultragpu-8g", "a100-80gb", True),
        ("gcp", "a2-ultragpu-8g", "a100-40gb", False),
        ("gcp", "a2-highgpu-8g", "a100-80gb", UNKNOWN),
        ("gcp", "a3-megagpu-8g", "h100", False),
        ("gcp", "a3-megagpu-8g", "h100-mega", True),
        ("gcp", "g2-standard-4", "a100", False),
        ("gcp", "n2-standard-8", "a100", False),
        ("aws", "p4de.24xlarge", "a100-80gb", True),
        ("aws", "p4d.24xlarge", "a100-80gb", False),
        ("azure", "Standard_ND96asr_v4", "a100", True),
    ],
)
def test_accelerator_is_named_by_its_model(
    cloud: str, name: str, accelerator: str, expected: bool | Unknown
) -> None:
    provisioner = {"aws": Provisioner.EKS, "gcp": Provisioner.GKE, "azure": Provisioner.AKS}[cloud]
    found = machine_capacity(machine_catalogue(cloud)[name], provisioner).has_accelerator(accelerator)
    assert found is expected, f"{name} and {accelerator}"


def test_dominated_machine_is_left_out_unless_its_accelerator_is_another():
    kept = non_dominated([capacity(4, 8, "small"), capacity(8, 16, "large"), capacity(16, 4, "wide")])
    assert [each.name for each in kept] == ["large", "wide"]
    assert len(non_dominated([capacity(8, 16, "p4d"), capacity(8, 16, "p4de")])) == 1
    other = replace(capacity(4, 8, "other"), accelerator="h100")
    assert len(non_dominated([capacity(8, 16), other])) == 2


def test_machines_beyond_the_list_become_one_with_the_maximum_of_each_resource():
    kept = non_dominated([capacity(cpu, 100 - cpu, f"m{cpu}") for cpu in range(1, 12)])
    assert len(kept) == MOST_CAPACITIES
    assert (kept[-1].name, kept[-1].allocatable) == (OTHERS, Resources(cpu_millis=11, memory_mib=92))


@given(st.lists(capacities(), max_size=7), resources)
def test_leaving_out_dominated_machines_changes_no_result(machines: list[MachineCapacity], pod: Resources):
    assert most_pods(non_dominated(machines), pod) == most_pods(machines, pod)


def test_machine_of_merged_ones_may_have_the_devices_that_one_of_them_may_have():
    *types, last = [capacity(cpu, 100 - cpu, f"m{cpu}") for cpu in range(1, 12)]
    device = Resources(cpu_millis=1, memory_mib=1, devices={"a.com/b": 1})
    adapter = Resources(cpu_millis=1, memory_mib=1, efa=1)
    for one, asked, told in (
        (replace(last, has_all_devices=False), device, ("a.com/b",)),
        (replace(last, possible_efa=1), adapter, ("vpc.amazonaws.com/efa",)),
    ):
        (merged,) = [each for each in non_dominated([*types, one]) if each.name == OTHERS]
        assert merged.pods_of(asked)
        assert merged.unknown_devices(asked) == told


@given(st.lists(capacities(), max_size=40), resources)
def test_merged_list_never_refuses_a_pod_that_fits(machines: list[MachineCapacity], pod: Resources):
    kept = non_dominated(machines)
    assert len(kept) <= MOST_CAPACITIES
    assert most_pods(kept, pod) >= most_pods(machines, pod)


def test_listed_label_values_are_those_of_all_machine_types_unless_one_is_not_known() -> None:
    table = machine_catalogue("local")
    known = [machine_capacity(table[name], Provisioner.LOCAL) for name in ("m7i.large", "c7i.4xlarge")]
    found = listed_label_values(known)
    assert found[INSTANCE_TYPE] == ("c7i.4xlarge", "m7i.large")
    assert found[ARCH] == ("amd64",)
    assert ARCH not in listed_label_values([*known, replace(known[0], labels={})])
    many = [
        replace(known[0], labels={INSTANCE_TYPE: f"m-{number}"}) for number in range(MOST_LABEL_VALUES + 1)
    ]
    assert listed_label_values(many) == {}
    assert listed_label_values(()) == {}
    assert listed_label_values((), ("b", "a")) == {ZONE: ("a", "b")}
