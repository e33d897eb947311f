from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.scheduling.json import UNKNOWN
from holdfast.scheduling.labels import INSTANCE_TYPE
from holdfast.scheduling.reachability.affinity import Requirement
from holdfast.scheduling.reachability.checks import Failed, Undetermined, check_pool, check_together
from holdfast.scheduling.reachability.facts import AddedToleration, Limits, PoolFacts
from holdfast.scheduling.reachability.machine_capacity import MachineCapacity
from holdfast.scheduling.reachability.shape import Resources, Shape
from holdfast.scheduling.taints import GPU, SPOT, Taint, Toleration
from tests.support.reachability import P4D, on_demand, shape, spot

SMALL = MachineCapacity(
    name="g5.xlarge",
    capacity=Resources(cpu_millis=4_000, memory_mib=16_384, gpus=1),
    allocatable=Resources(cpu_millis=3_900, memory_mib=14_000, gpus=1),
    accelerator="a10g",
)


def links(job: Shape, pool: PoolFacts, kind: type[Failed] | type[Undetermined] = Failed) -> list[str]:
    return [doubt.check for doubt in check_pool(job, pool) if isinstance(doubt, kind)]


def test_a_gang_that_fits_its_pool_is_held_up_by_nothing():
    assert check_pool(shape(), on_demand()) == (), "four pods on up to eight machines, one on each"


@pytest.mark.parametrize(
    ("job", "pool", "link"),
    [
        (shape(accelerator="h100"), on_demand(), "accelerator"),
        (shape(selector={"disk": "nvme"}), on_demand(), "selector"),
        (shape(), on_demand(taints=(GPU, Taint(key="team", value="nlp"))), "taints"),
        (shape(), on_demand(added_tolerations=()), "taints"),
        (shape(), on_demand(machines=(SMALL,)), "machine"),
        (shape(pods=9), on_demand(), "gang"),
        (shape(), on_demand(limits=Limits(nodes=3)), "gang"),
        (shape(), on_demand(limits=Limits(gpus=31)), "gang"),
        (shape(), on_demand(limits=Limits(cpu_millis=0)), "gang"),
        (shape(zones=frozenset({"us-east-1f"})), on_demand(), "zones"),
    ],
)
def test_one_change_breaks_one_link(job: Shape, pool: PoolFacts, link: str):
    assert links(job, pool) == [link], "and no other"


@pytest.mark.parametrize(
    ("job", "pool", "link"),
    [
        (shape(selector={"disk": "nvme"}), on_demand(labels=UNKNOWN), "selector"),
        (shape(selector={"disk": "nvme"}), on_demand(labels={"disk": UNKNOWN}), "selector"),
        (shape(), on_demand(taints=UNKNOWN), "taints"),
        (shape(), on_demand(added_tolerations=UNKNOWN), "taints"),
        (shape(), on_demand(machines=UNKNOWN), "machine"),
        (shape(), on_demand(machines=()), "machine"),
        (shape(), on_demand(machines=(SMALL,), unknown_machine_types=("p9.huge",)), "machine"),
        (shape(accelerator="h100"), on_demand(unknown_machine_types=("p9.huge",)), "accelerator"),
        (shape(), on_demand(limits=Limits(nodes=UNKNOWN)), "gang"),
        (shape(zones=frozenset({"us-east-1a"})), on_demand(zones=UNKNOWN), "zones"),
    ],
)
def test_what_is_not_known_is_said_and_breaks_nothing(job: Shape, pool: PoolFacts, link: str):
    assert links(job, pool, Undetermined) == [link], "it may turn out well"
    assert links(job, pool) == [], "so nothing is proven"


def test_an_unknown_link_does_not_hide_a_broken_one_beside_it():
    pool = on_demand(taints=UNKNOWN, limits=Limits(nodes=1))
    assert links(shape(), pool) == ["gang"], "one machine is too few whatever the taints turn out to be"


def test_a_limit_of_zero_decides_whatever_the_others_turn_out_to_be():
    pool = on_demand(limits=Limits(nodes=0, cpu_millis=UNKNOWN))
    assert links(shape(), pool) == ["gang"], "no machine may be made"


def test_a_pool_without_limits_has_room_for_any_gang():
    assert check_pool(shape(pods=10_000), on_demand(limits=Limits())) == (), "nothing bounds it"


def test_small_pods_share_a_machine():
    small = Resources(cpu_millis=10_000, memory_mib=1024, gpus=2)
    assert check_pool(shape(pods=32, requests=small), on_demand()) == (), "four fit on each of eight machines"
    assert links(shape(pods=33, requests=small), on_demand()) == ["gang"], "the 33rd has no room"


def test_the_room_for_a_gang_is_that_of_the_machine_type_which_holds_most():
    pool = on_demand(machines=(SMALL, P4D), limits=Limits(nodes=4))
    assert check_pool(shape(), pool) == (), "the small type is no place for these pods, the large one is"


def test_a_spot_pool_keeps_away_pods_that_tolerate_only_gpus():
    assert links(shape(), spot(added_tolerations=(AddedToleration(toleration=Toleration.of(GPU)),))) == [
        "taints"
    ], "the spot taint is left"


def test_a_toleration_for_gpu_pods_is_not_given_to_pods_without():
    pool = on_demand(added_tolerations=(AddedToleration(toleration=Toleration.of(GPU), for_gpu_pods=True),))
    assert check_pool(shape(), pool) == (), "pods with GPUs are let in"
    without = shape(requests=Resources(cpu_millis=1000, memory_mib=1024))
    assert links(without, pool) == ["taints"], "a helper without is not"


def test_a_wish_of_a_taint_keeps_nobody_away():
    pool = on_demand(taints=(GPU, Taint(key="old", value="x", effect="PreferNoSchedule")))
    assert check_pool(shape(), pool) == (), "PreferNoSchedule is a preference"


@pytest.mark.parametrize(
    "toleration",
    [
        Toleration(),
        Toleration(key=SPOT.key),
        Toleration(key=SPOT.key, value=SPOT.value),
        Toleration(key=SPOT.key, effect=SPOT.effect),
        Toleration.of(SPOT),
    ],
)
def test_each_way_to_tolerate_a_taint_is_known(toleration: Toleration):
    assert toleration.tolerates(SPOT), "the scheduler lets a pod with it in"


@pytest.mark.parametrize(
    "toleration",
    [Toleration.of(GPU), Toleration(key=SPOT.key, value="x"), Toleration(key=SPOT.key, effect="NoExecute")],
)
def test_a_toleration_of_something_else_is_none(toleration: Toleration):
    assert not toleration.tolerates(SPOT), "the scheduler keeps a pod with it out"


amounts = st.integers(0, 200)


@given(
    cpu=amounts, memory=amounts, gpus=st.integers(0, 8), wanted=st.tuples(amounts, amounts, st.integers(0, 8))
)
def test_as_many_fit_as_can_be_put_in_one_after_another(
    cpu: int, memory: int, gpus: int, wanted: tuple[int, int, int]
):
    room = Resources(cpu_millis=cpu, memory_mib=memory, gpus=gpus)
    pod = Resources(cpu_millis=wanted[0], memory_mib=wanted[1], gpus=wanted[2])
    count = pod.times_in(room)
    filled = Resources(cpu_millis=wanted[0] * count, memory_mib=wanted[1] * count, gpus=wanted[2] * count)
    more = Resources(
        cpu_millis=wanted[0] * (count + 1), memory_mib=wanted[1] * (count + 1), gpus=wanted[2] * (count + 1)
    )
    assert filled.fits_in(room), "that many fit"
    assert any(wanted) is False or not more.fits_in(room), "and not one more, unless they request nothing"


def test_a_message_names_the_numbers_a_reader_needs():
    (doubt,) = check_pool(shape(pods=16), replace(on_demand(), limits=Limits(nodes=8)))
    assert isinstance(doubt, Failed), "eight machines are too few for sixteen pods"
    assert "room for 8 of the 16 pods" in doubt.reason, "how far it reaches"
    assert "16 nodes or more" in doubt.fix, "and what would do"


@pytest.mark.parametrize(
    ("values", "link"), [(("fast",), []), (("slow",), ["affinity"]), (("slow", "fast"), [])]
)
def test_a_required_affinity_has_to_be_true_of_the_nodes(values: tuple[str, ...], link: list[str]):
    wanted = ((Requirement(key="disk", operator="In", values=values),),)
    assert links(shape(affinity=wanted), on_demand(labels={"disk": "fast"})) == link, (
        "by one of its alternatives"
    )


def test_what_the_cloud_puts_on_nodes_is_not_missing_for_being_undeclared():
    job = shape(selector={INSTANCE_TYPE: "p4d.24xlarge"})
    assert links(job, on_demand()) == [], "no pool declares it"
    assert links(job, on_demand(), Undetermined) == ["selector"], "and nobody can tell from here"


def test_an_affinity_on_labels_that_are_not_known_yet_breaks_nothing():
    job = shape(affinity=((Requirement(key="disk", operator="Exists"),),))
    assert links(job, on_demand(labels=UNKNOWN), Undetermined) == ["affinity"], "the update will tell"


HALF = shape(pods=5)


@pytest.mark.parametrize(
    ("shapes", "pool", "room"),
    [
        ((HALF, HALF), on_demand(), False),
        ((HALF,), on_demand(), True),
        ((HALF, shape(pods=3)), on_demand(), True),
        ((HALF, HALF), on_demand(limits=Limits(nodes=10)), True),
        ((HALF, HALF), on_demand(limits=Limits()), True),
        ((HALF, HALF), on_demand(limits=Limits(nodes=UNKNOWN)), True),
        ((HALF, HALF), on_demand(machines=UNKNOWN), True),
        ((HALF, HALF), on_demand(unknown_machine_types=("p9.huge",)), True),
    ],
)
def test_shapes_that_run_at_once_need_room_for_all_of_them(
    shapes: tuple[Shape, ...], pool: PoolFacts, room: bool
):
    assert (not [*check_together(shapes, pool)]) is room, "each of them alone fits on eight machines"


@given(st.lists(st.integers(1, 4), min_size=2, max_size=3), st.integers(1, 12))
def test_what_can_be_packed_is_never_too_much(gangs: list[int], nodes: int):
    shapes = [shape(pods=pods) for pods in gangs]
    refused = bool([*check_together(shapes, on_demand(limits=Limits(nodes=nodes)))])
    assert not (refused and sum(gangs) <= nodes), "a machine for each pod is enough"
