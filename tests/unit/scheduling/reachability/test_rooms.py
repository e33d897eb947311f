from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from holdfast.scheduling.reachability.machine_capacity import (
    MOST_CAPACITIES,
    OTHERS,
    MachineCapacity,
    non_dominated,
)
from holdfast.scheduling.reachability.shape import Resources

amounts = st.integers(1, 6)
resources = st.builds(Resources, cpu_millis=amounts, memory_mib=amounts, gpus=st.integers(0, 2))


@st.composite
def rooms(draw: st.DrawFn) -> MachineCapacity:
    room = draw(resources)
    kind = draw(st.sampled_from((None, "a100")))
    return MachineCapacity(
        name=f"m{draw(amounts)}", total=room, room=room, accelerator=kind, max_pods=draw(st.integers(1, 3))
    )


def room(cpu: int, memory: int, name: str = "m") -> MachineCapacity:
    size = Resources(cpu_millis=cpu, memory_mib=memory)
    return MachineCapacity(name=name, total=size, room=size)


def most(found: tuple[MachineCapacity, ...] | list[MachineCapacity], pod: Resources) -> int:
    return max((each.pods_of(pod) for each in found), default=0)


def test_a_machine_that_has_more_of_nothing_is_left_out():
    kept = non_dominated([room(4, 8, "small"), room(8, 16, "large"), room(16, 4, "wide")])
    assert [each.name for each in kept] == ["large", "wide"], (
        "what fits the small one fits the large one, and as often"
    )


def test_of_equal_machines_one_is_kept():
    assert len(non_dominated([room(8, 16, "p4d"), room(8, 16, "p4de")])) == 1, "the other adds nothing"


def test_a_machine_of_another_accelerator_is_kept():
    other = replace(room(4, 8, "other"), accelerator="h100")
    assert len(non_dominated([room(8, 16), other])) == 2, "who asks for that kind has nowhere else to go"


def test_what_is_beyond_the_list_becomes_one_that_has_the_most_of_each():
    kept = non_dominated([room(cpu, 100 - cpu, f"m{cpu}") for cpu in range(1, 12)])
    assert len(kept) == MOST_CAPACITIES, "the API server reads a short list"
    assert (kept[-1].name, kept[-1].allocatable) == (OTHERS, Resources(cpu_millis=11, memory_mib=92)), (
        "nothing is refused that one of them has room for"
    )


@given(st.lists(rooms(), max_size=7), resources)
def test_what_is_left_out_changes_no_verdict(machines: list[MachineCapacity], pod: Resources):
    assert most(non_dominated(machines), pod) == most(machines, pod), (
        "neither whether a pod fits nor how often"
    )


@given(st.lists(rooms(), max_size=40), resources)
def test_nothing_is_refused_that_has_room(machines: list[MachineCapacity], pod: Resources):
    kept = non_dominated(machines)
    assert len(kept) <= MOST_CAPACITIES, "the list is bounded"
    assert most(kept, pod) >= most(machines, pod), "however many machines there are"
