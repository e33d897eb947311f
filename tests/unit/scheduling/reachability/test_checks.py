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
from tests.support.builders.reachability import P4D, on_demand, shape, spot

SMALL = MachineCapacity(
    name="g5.xlarge",
    capacity=Resources(cpu_millis=4_000, memory_mib=16_384, gpus=1),
    allocatable=Resources(cpu_millis=3_900, memory_mib=14_000, gpus=1),
    accelerator="a10g",
)


def checks(job: Shape, pool: PoolFacts, kind: type[Failed] | type[Undetermined] = Failed) -> list[str]:
    return [result.check for result in check_pool(job, pool) if isinstance(result, kind)]


def test_gang_that_fits_its_pool_passes_every_check():
    assert check_pool(shape(), on_demand()) == (), "four pods on up to eight machines, one on each"


@pytest.mark.parametrize(
    ("job", "pool", "check"),
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
def test_one_change_fails_one_check(job: Shape, pool: PoolFacts, check: str):
    assert checks(job, pool) == [check], "and no other check"


@pytest.mark.parametrize(
    ("job", "pool", "check"),
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
def test_unknown_value_leaves_its_check_undetermined(job: Shape, pool: PoolFacts, check: str):
    assert checks(job, pool, Undetermined) == [check], "the value may turn out either way"
    assert checks(job, pool) == [], "no check fails"


def test_undetermined_check_does_not_hide_a_failed_one():
    pool = on_demand(taints=UNKNOWN, limits=Limits(nodes=1))
    assert checks(shape(), pool) == ["gang"], "one machine is too few, whatever the taints are"


def test_limit_of_zero_fails_whatever_the_unknown_limits_are():
    pool = on_demand(limits=Limits(nodes=0, cpu_millis=UNKNOWN))
    assert checks(shape(), pool) == ["gang"], "no machine may be made"


def test_pool_without_limits_takes_any_gang():
    assert check_pool(shape(pods=10_000), on_demand(limits=Limits())) == (), "no limit is set"


def test_small_pods_share_a_machine():
    small = Resources(cpu_millis=10_000, memory_mib=1024, gpus=2)
    assert check_pool(shape(pods=32, requests=small), on_demand()) == (), "four fit on each of eight machines"
    assert checks(shape(pods=33, requests=small), on_demand()) == ["gang"], "the 33rd has no room"


def test_gang_uses_the_machine_type_that_holds_most_pods():
    pool = on_demand(machines=(SMALL, P4D), limits=Limits(nodes=4))
    assert check_pool(shape(), pool) == (), "the pods fit only on the larger type"


def test_spot_taint_repels_pods_that_tolerate_only_the_gpu_taint():
    assert checks(shape(), spot(added_tolerations=(AddedToleration(toleration=Toleration.of(GPU)),))) == [
        "taints"
    ], "the spot taint is not tolerated"


def test_toleration_for_gpu_pods_is_not_added_to_pods_without_gpus():
    pool = on_demand(added_tolerations=(AddedToleration(toleration=Toleration.of(GPU), for_gpu_pods=True),))
    assert check_pool(shape(), pool) == (), "pods with GPUs tolerate it"
    without = shape(requests=Resources(cpu_millis=1000, memory_mib=1024))
    assert checks(without, pool) == ["taints"], "a helper pod without GPUs does not"


def test_prefer_no_schedule_taint_repels_no_pod():
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
def test_toleration_that_matches_the_taint_tolerates_it(toleration: Toleration):
    assert toleration.tolerates(SPOT), "as in the scheduler"


@pytest.mark.parametrize(
    "toleration",
    [Toleration.of(GPU), Toleration(key=SPOT.key, value="x"), Toleration(key=SPOT.key, effect="NoExecute")],
)
def test_toleration_of_another_taint_does_not_tolerate_it(toleration: Toleration):
    assert not toleration.tolerates(SPOT), "as in the scheduler"


def test_gang_message_names_pods_and_nodes():
    (result,) = check_pool(shape(pods=16), replace(on_demand(), limits=Limits(nodes=8)))
    assert isinstance(result, Failed), "eight machines are too few for sixteen pods"
    assert "room for at most 8 of the 16 pods" in result.reason, "the pods that fit, of how many"
    assert "Raise `maxNodes` to 16 or more" in result.fix, "the fix names the value to set"


@pytest.mark.parametrize(
    ("values", "failed"), [(("fast",), []), (("slow",), ["affinity"]), (("slow", "fast"), [])]
)
def test_required_affinity_has_to_match_the_nodes(values: tuple[str, ...], failed: list[str]):
    wanted = ((Requirement(key="disk", operator="In", values=values),),)
    assert checks(shape(affinity=wanted), on_demand(labels={"disk": "fast"})) == failed, "one term is enough"


def test_undeclared_label_of_the_cloud_is_undetermined():
    job = shape(selector={INSTANCE_TYPE: "p4d.24xlarge"})
    assert checks(job, on_demand()) == [], "it is not reported as missing"
    assert checks(job, on_demand(), Undetermined) == ["selector"], "unknown before there is a node"


def test_affinity_on_unknown_labels_is_undetermined():
    job = shape(affinity=((Requirement(key="disk", operator="Exists"),),))
    assert checks(job, on_demand(labels=UNKNOWN), Undetermined) == ["affinity"], "the update knows the labels"


HALF = shape(pods=5)


@pytest.mark.parametrize(
    ("shapes", "pool", "fits"),
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
def test_shapes_of_one_job_need_room_together(shapes: tuple[Shape, ...], pool: PoolFacts, fits: bool):
    assert (not [*check_together(shapes, pool)]) is fits, "each of them alone fits on eight machines"


@given(st.lists(st.integers(1, 4), min_size=2, max_size=3), st.integers(1, 12))
def test_shapes_with_a_machine_for_each_pod_are_never_refused(gangs: list[int], nodes: int):
    shapes = [shape(pods=pods) for pods in gangs]
    refused = bool([*check_together(shapes, on_demand(limits=Limits(nodes=nodes)))])
    assert not (refused and sum(gangs) <= nodes), "a machine for each pod is enough"
