from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulumi_holdfast.ladder.json import UNKNOWN, Unknown
from pulumi_holdfast.ladder.labels import ARCH, CAPACITY_TYPE, INSTANCE_TYPE, ON_DEMAND, RESERVED, ZONE
from pulumi_holdfast.ladder.machines import machine_catalogue
from pulumi_holdfast.ladder.reachability.affinity import OTHERS, UNDECLARED, LabelValues, Requirement
from pulumi_holdfast.ladder.reachability.checks import Failed, Undetermined, check_pool
from pulumi_holdfast.ladder.reachability.facts import AddedToleration, Limits, PoolFacts
from pulumi_holdfast.ladder.reachability.machine_capacity import (
    MachineCapacity,
    Provisioner,
    machine_capacity,
)
from pulumi_holdfast.ladder.reachability.pod_capacity import check_together
from pulumi_holdfast.ladder.reachability.shape import EPHEMERAL_STORAGE, Placement, Resources, Shape
from pulumi_holdfast.ladder.taints import GPU, SPOT, Taint, Toleration
from tests.support.builders.reachability import P4D, on_demand, shape, spot

SMALL = MachineCapacity(
    name="g5.xlarge",
    capacity=Resources(cpu_millis=4_000, memory_mib=16_384, gpus=1),
    allocatable=Resources(cpu_millis=3_900, memory_mib=14_000, gpus=1),
    accelerator="a10g",
)


def checks(job: Shape, pool: PoolFacts, kind: type[Failed] | type[Undetermined] = Failed) -> list[str]:
    return [result.check for result in check_pool(job, pool) if isinstance(result, kind)]


SMALL_PODS = Resources(cpu_millis=10_000, memory_mib=1024, gpus=2)
WITHOUT_GPUS = shape(requests=Resources(cpu_millis=1000, memory_mib=1024))
GPU_PODS_ALONE = (AddedToleration(toleration=Toleration.of(GPU), for_gpu_pods=True),)
PREFERENCE = Taint(key="old", value="x", effect="PreferNoSchedule")
ON_FAST = on_demand(labels={"disk": "fast"})
#: A NodePool of Karpenter, which tries terms of affinity before it tolerates the preference.
PREFERRED = on_demand(labels={"disk": "fast", OTHERS: UNDECLARED}, taints=(GPU, PREFERENCE))


def disks(*values: str) -> tuple[tuple[Requirement, ...], ...]:
    """An affinity to nodes with one of these disks."""
    return ((Requirement(key="disk", operator="In", values=values),),)


@pytest.mark.parametrize(
    ("job", "pool", "reason"),
    [
        (shape(), on_demand(), "four pods on up to eight machines, one on each"),
        (shape(pods=10_000), on_demand(limits=Limits()), "no limit is set"),
        (shape(pods=32, requests=SMALL_PODS), on_demand(), "four fit on each of eight machines"),
        (shape(), on_demand(machines=(SMALL, P4D), limits=Limits(nodes=4)), "the pods fit only on the larger type"),
        (shape(), on_demand(added_tolerations=GPU_PODS_ALONE), "pods with GPUs tolerate it"),
        (shape(), on_demand(taints=(GPU, PREFERENCE)), "PreferNoSchedule is a preference"),
        (shape(affinity=disks("fast")), ON_FAST, "the nodes match"),
        (shape(affinity=disks("slow", "fast")), ON_FAST, "one value is enough"),
        (shape(affinity=disks("fast")), PREFERRED, "the only term is not dropped"),
        (shape(zones=frozenset({"us-east-1a", "us-east-1f"})), on_demand(), "one zone of the volumes is enough"),
    ],
)  # fmt: skip
def test_gang_that_fits_its_pool_passes_every_check(job: Shape, pool: PoolFacts, reason: str):
    assert check_pool(job, pool) == (), reason


@pytest.mark.parametrize(
    ("job", "pool", "check"),
    [
        (shape(accelerator="h100"), on_demand(), "accelerator"),
        (shape(selector={"disk": "nvme"}), on_demand(), "selector"),
        (shape(selector={"disk": "nvme"}), ON_FAST, "selector"),
        (shape(), on_demand(taints=(GPU, Taint(key="team", value="nlp"))), "taints"),
        (shape(), on_demand(added_tolerations=()), "taints"),
        (shape(), on_demand(machines=(SMALL,)), "machine"),
        (shape(pods=9), on_demand(), "gang"),
        (shape(), on_demand(limits=Limits(nodes=3)), "gang"),
        (shape(), on_demand(limits=Limits(gpus=31)), "gang"),
        (shape(), on_demand(limits=Limits(cpu_millis=0)), "gang"),
        (shape(zones=frozenset({"us-east-1f"})), on_demand(), "zones"),
        (shape(), on_demand(taints=UNKNOWN, limits=Limits(nodes=1)), "gang"),
        (shape(), on_demand(limits=Limits(nodes=0, cpu_millis=UNKNOWN)), "gang"),
        (shape(pods=33, requests=SMALL_PODS), on_demand(), "gang"),
        (shape(), spot(added_tolerations=(AddedToleration(toleration=Toleration.of(GPU)),)), "taints"),
        (WITHOUT_GPUS, on_demand(added_tolerations=GPU_PODS_ALONE), "taints"),
        (shape(affinity=disks("slow")), ON_FAST, "affinity"),
    ],
)
def test_one_change_fails_one_check(job: Shape, pool: PoolFacts, check: str):
    assert checks(job, pool) == [check]


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
        (shape(selector={INSTANCE_TYPE: "p4d.24xlarge"}), on_demand(), "selector"),
        (shape(affinity=disks("fast")), on_demand(labels=UNKNOWN), "affinity"),
        (shape(affinity=disks("fast") + disks("slow")), PREFERRED, "taints"),
    ],
)
def test_unknown_value_leaves_its_check_undetermined(job: Shape, pool: PoolFacts, check: str):
    assert checks(job, pool, Undetermined) == [check]
    assert checks(job, pool) == []


@pytest.mark.parametrize(
    ("toleration", "tolerates"),
    [
        (Toleration(), True),
        (Toleration(key=SPOT.key), True),
        (Toleration(key=SPOT.key, value=SPOT.value), True),
        (Toleration(key=SPOT.key, effect=SPOT.effect), True),
        (Toleration.of(SPOT), True),
        (Toleration.of(GPU), False),
        (Toleration(key=SPOT.key, value="x"), False),
        (Toleration(key=SPOT.key, effect="NoExecute"), False),
    ],
)
def test_toleration_tolerates_the_taints_that_it_matches(toleration: Toleration, *, tolerates: bool):
    assert toleration.tolerates(SPOT) is tolerates


@pytest.mark.parametrize(
    ("efa", "types", "uses", "fits"),
    [
        (4, ("p4d.24xlarge",), True, True),
        (4, ("p4d.24xlarge",), False, False),
        (32, ("p5e.48xlarge", "p5en.48xlarge"), True, True),
        (32, ("p5en.48xlarge",), True, False),
        (16, ("p5e.48xlarge", "p5en.48xlarge"), True, True),
    ],
)
def test_pods_with_adapters_fit_the_machine_types_that_have_as_many(
    efa: int, types: tuple[str, ...], uses: bool, fits: bool
) -> None:
    table = machine_catalogue("aws")
    machines = tuple(machine_capacity(table[name], Provisioner.EKS, efa=uses) for name in types)
    job = shape(requests=Resources(cpu_millis=48_000, memory_mib=512 * 1024, gpus=8, efa=efa))
    found = checks(job, on_demand(machines=machines))
    assert found == ([] if fits else ["machine"])


def test_gang_that_fits_only_if_smaller_machines_are_bought_is_undetermined():
    small = replace(P4D, name="p4d.half", capacity=replace(P4D.capacity, cpu_millis=48_000))
    pool = on_demand(machines=(small, P4D), limits=Limits(cpu_millis=4 * 96_000))
    assert checks(shape(pods=5), pool, Undetermined) == ["gang"]
    assert checks(shape(pods=4), pool, Undetermined) == []


def test_limit_of_nodes_that_one_plan_may_exceed_proves_nothing_but_0():
    soft = on_demand(limits=Limits(nodes=3, nodes_are_exact=False))
    assert (checks(shape(), soft), checks(shape(), soft, Undetermined)) == ([], ["gang"])
    assert checks(shape(pods=3), soft, Undetermined) == []
    assert checks(shape(), on_demand(limits=Limits(nodes=0, nodes_are_exact=False))) == ["gang"]


def test_gang_message_rounds_the_nodes_up():
    (result,) = check_pool(shape(pods=33, requests=SMALL_PODS), on_demand())
    assert isinstance(result, Failed)
    assert "`maxNodes` to 9 or more" in result.fix


def test_gang_message_names_pods_and_nodes():
    (result,) = check_pool(shape(pods=16), replace(on_demand(), limits=Limits(nodes=8)))
    assert isinstance(result, Failed)
    assert "room for at most 8 of the 16 pods" in result.reason
    assert "Raise `maxNodes` to 16 or more" in result.fix


HALF = shape(pods=5)


@pytest.mark.parametrize(
    ("shapes", "pool", "fits"),
    [
        ((HALF, HALF), on_demand(), False),
        ((HALF, HALF), on_demand(limits=Limits(cpu_millis=8 * 96_000)), False),
        ((HALF, HALF), on_demand(limits=Limits(nodes=8, nodes_are_exact=False)), UNKNOWN),
        ((HALF, HALF), on_demand(limits=Limits(nodes=8, nodes_are_exact=False, gpus=64)), False),
        ((HALF,), on_demand(), True),
        ((HALF, shape(pods=3)), on_demand(), True),
        ((HALF, shape(pods=3, selector={"disk": "fast"})), on_demand(), UNKNOWN),
        ((HALF, shape(pods=3, requests=replace(HALF.requests, cpu_millis=105_000))), on_demand(), False),
        ((HALF, HALF), on_demand(limits=Limits(nodes=10)), True),
        ((HALF, HALF), on_demand(limits=Limits()), True),
        ((HALF, HALF), on_demand(limits=Limits(nodes=UNKNOWN)), UNKNOWN),
        ((HALF, HALF), on_demand(machines=UNKNOWN), True),
        ((HALF, HALF), on_demand(unknown_machine_types=("p9.huge",)), True),
    ],
)
def test_shapes_of_one_job_need_room_together(
    shapes: tuple[Shape, ...], pool: PoolFacts, fits: bool | Unknown
):
    found = [*check_together(shapes, pool)]
    told = True if not found else False if isinstance(found[0], Failed) else UNKNOWN
    assert told is fits


@given(st.lists(st.integers(1, 4), min_size=2, max_size=3), st.integers(1, 12))
def test_shapes_with_a_machine_for_each_pod_are_never_refused(gangs: list[int], nodes: int):
    shapes = [shape(pods=pods) for pods in gangs]
    refused = bool([*check_together(shapes, on_demand(limits=Limits(nodes=nodes)))])
    assert not (refused and sum(gangs) <= nodes)


ARM = replace(P4D, name="arm", labels={ARCH: "arm64", INSTANCE_TYPE: "arm"})
INTEL = replace(P4D, name="intel", labels={ARCH: "amd64", INSTANCE_TYPE: "intel"})


@pytest.mark.parametrize(
    ("job", "machines", "failed", "open_"),
    [
        (shape(), (ARM, INTEL), [], ["architecture"]),
        (shape(), (ARM,), [], []),
        (shape(architectures=("amd64",)), (ARM,), ["architecture"], []),
        (shape(architectures=("amd64",)), (ARM, INTEL), [], ["architecture"]),
        (shape(architectures=("amd64", "arm64")), (ARM, INTEL), [], []),
        (shape(architectures=("amd64",), selector={ARCH: "amd64"}), (ARM, INTEL), [], []),
        (shape(selector={ARCH: "s390x"}), (ARM, INTEL), ["selector"], []),
        (shape(selector={"beta.kubernetes.io/arch": "arm64"}), (ARM, INTEL), [], []),
        (shape(selector={ARCH: "arm64", INSTANCE_TYPE: "intel"}), (ARM, INTEL), ["selector"], []),
    ],
)  # fmt: skip
def test_pods_run_on_machines_with_the_labels_that_they_select(
    job: Shape, machines: tuple[MachineCapacity, ...], failed: list[str], open_: list[str]
):
    pool = on_demand(machines=machines)
    assert (checks(job, pool), checks(job, pool, Undetermined)) == (failed, open_)


def test_selector_and_room_are_reported_together():
    large = replace(P4D.allocatable, gpus=64)
    job = shape(selector={"disk": "nvme"}, requests=large)
    assert checks(job, ON_FAST) == ["selector", "machine"]
    many = shape(selector={"disk": "nvme"}, pods=1000)
    assert checks(many, ON_FAST) == ["selector", "gang"]


def test_gang_counts_only_machines_that_its_pods_select():
    job = shape(pods=5, selector={INSTANCE_TYPE: "intel"}, architectures=("amd64",))
    small = replace(
        INTEL,
        name="small",
        allocatable=replace(P4D.allocatable, gpus=4),
        labels={ARCH: "amd64", INSTANCE_TYPE: "small"},
    )
    assert checks(job, on_demand(machines=(INTEL, small))) == []
    assert checks(replace(job, selector={INSTANCE_TYPE: "small"}), on_demand(machines=(INTEL, small))) == [
        "machine"
    ]


@pytest.mark.parametrize(
    ("devices", "has_all", "failed", "open_"),
    [
        ({"example.com/nic": 1}, True, ["machine"], []),
        ({"example.com/nic": 1}, False, [], ["machine"]),
        ({EPHEMERAL_STORAGE: 10}, True, [], ["machine"]),
    ],
)
def test_device_that_no_machine_is_known_to_have(
    devices: dict[str, int], has_all: bool, failed: list[str], open_: list[str]
):
    pool = on_demand(machines=(replace(P4D, has_all_devices=has_all),))
    job = shape(requests=replace(shape().requests, devices=devices))
    assert (checks(job, pool), checks(job, pool, Undetermined)) == (failed, open_)


@pytest.mark.parametrize(("devices", "named"), [({}, False), ({EPHEMERAL_STORAGE: 10}, True)])
def test_message_about_room_names_the_devices_that_pods_request(devices: dict[str, int], named: bool):
    small = replace(P4D, allocatable=replace(P4D.allocatable, gpus=0, devices={EPHEMERAL_STORAGE: 20}))
    job = shape(requests=replace(shape().requests, devices=devices))
    pool = on_demand(machines=(small,))
    found = [*check_pool(job, pool), *check_together((job, job), pool)]
    reasons = [each.reason for each in found if isinstance(each, Failed)]
    assert len(reasons) == 2
    assert [EPHEMERAL_STORAGE in each for each in reasons] == [named, named]


@pytest.mark.parametrize(("device", "found"), [(EPHEMERAL_STORAGE, []), ("example.com/fpga", ["gang"])])
def test_shapes_that_run_together_do_not_lack_a_device_that_nodes_may_have(device: str, found: list[str]):
    job = shape(pods=1, requests=replace(SMALL_PODS, devices={device: 1}))
    together = check_together((job, job), on_demand())
    assert [each.check for each in together if isinstance(each, Failed)] == found


def test_pods_that_never_share_a_node_need_one_each():
    job = shape(pods=9, requests=SMALL_PODS)
    assert checks(job, on_demand()) == []
    assert checks(replace(job, one_per_node=True), on_demand()) == ["gang"]


def test_gang_in_one_zone_has_only_the_nodes_of_one_zone():
    limits = Limits(nodes=8, nodes_in_zone=4)
    assert checks(shape(pods=8), on_demand(limits=limits)) == []
    assert checks(shape(pods=8, same_placement=Placement.ZONE), on_demand(limits=limits)) == ["gang"]
    assert checks(shape(pods=8, zones=frozenset({"us-east-1a"})), on_demand(limits=limits)) == ["gang"]
    near = shape(pods=4, same_placement=Placement.HOST_GROUP)
    assert checks(near, on_demand(), Undetermined) == ["placement"]
    assert checks(near, on_demand(is_compact=True), Undetermined) == []


def test_pods_that_select_another_zone_than_their_volumes_are_in_run_nowhere():
    volumes = frozenset({"us-east-1a"})
    anywhere = on_demand(
        zones=None, labels={ZONE: LabelValues(values=frozenset({"us-east-1a", "us-east-1b"}))}
    )
    assert checks(shape(zones=volumes, selector={ZONE: "us-east-1b"}), anywhere) == ["zones"]
    assert checks(shape(zones=volumes, selector={ZONE: "us-east-1a"}), anywhere) == []
    away = ((Requirement(key=ZONE, operator="NotIn", values=("us-east-1a",)),),)
    assert checks(shape(zones=volumes, affinity=away), anywhere) == ["selector"]


def test_label_that_is_not_known_hides_no_contradiction_of_others():
    pool = on_demand(labels={ARCH: LabelValues(values=frozenset({"amd64", "arm64"})), "disk": UNKNOWN})
    job = shape(
        selector={ARCH: "amd64", "disk": "fast"},
        affinity=((Requirement(key=ARCH, operator="NotIn", values=("amd64",)),),),
    )
    assert checks(job, pool) == ["selector"]
    assert checks(job, pool, Undetermined) == ["selector"]


def test_pool_whose_requirements_exclude_every_machine_takes_no_pods():
    assert checks(shape(), on_demand(machines=(), unsatisfiable=("zone",))) == ["machine"]
    assert checks(shape(), on_demand(undecided_by=("bandwidth",)), Undetermined) == ["machine"]


def test_min_values_that_the_fitting_types_do_not_have_keep_karpenter_from_making_nodes():
    few = {INSTANCE_TYPE: 2}
    assert checks(shape(), on_demand(machines=(INTEL, ARM), min_values=few), Undetermined) == ["architecture"]
    assert checks(shape(), on_demand(machines=(INTEL,), min_values=few)) == ["minValues"]


def test_min_values_count_the_types_of_one_term_of_affinity():
    each_alone = tuple((Requirement(key=ARCH, operator="In", values=(arch,)),) for arch in ("amd64", "arm64"))
    both = (*each_alone, (Requirement(key=ARCH, operator="Exists"),))
    pool = on_demand(machines=(INTEL, ARM), min_values={INSTANCE_TYPE: 2})
    anywhere = shape(architectures=("amd64", "arm64"))
    assert checks(replace(anywhere, affinity=each_alone), pool) == ["minValues"]
    assert checks(replace(anywhere, affinity=both), pool) == []


def test_static_pool_has_its_replicas_and_no_more():
    static = on_demand(is_static=True, limits=Limits(nodes=3))
    assert checks(shape(), static) == ["gang"]
    (result,) = check_pool(shape(pods=3), static)
    assert isinstance(result, Undetermined)
    assert "StaticCapacity" in result.reason


def test_selector_message_names_the_value_that_nodes_have():
    (result,) = check_pool(shape(selector={"disk": "nvme"}), ON_FAST)
    assert "disk=nvme" in result.reason
    assert "have disk=fast" in result.reason


ANY_KIND = shape(selector={})
RESERVED_KIND = shape(selector={CAPACITY_TYPE: RESERVED})
ONE_TERM_RESERVED = shape(
    affinity=tuple(
        (Requirement(key=CAPACITY_TYPE, operator="In", values=(kind,)),) for kind in (RESERVED, ON_DEMAND)
    )
)


@pytest.mark.parametrize(
    ("job", "kinds", "has_reservation", "found"),
    [
        (ANY_KIND, {RESERVED}, True, None),
        (ANY_KIND, {RESERVED}, UNKNOWN, Undetermined),
        (ANY_KIND, {RESERVED}, False, Failed),
        (ANY_KIND, {RESERVED, ON_DEMAND}, False, None),
        (RESERVED_KIND, {RESERVED, ON_DEMAND}, True, None),
        (RESERVED_KIND, {RESERVED, ON_DEMAND}, UNKNOWN, Undetermined),
        (RESERVED_KIND, {RESERVED, ON_DEMAND}, False, Failed),
        (ONE_TERM_RESERVED, {RESERVED, ON_DEMAND}, False, Undetermined),
        (ONE_TERM_RESERVED, {ON_DEMAND}, False, None),
    ],
)
def test_reserved_capacity_alone_needs_a_reservation(
    job: Shape,
    kinds: set[str],
    has_reservation: bool | Unknown,
    found: type[Failed] | type[Undetermined] | None,
):
    pool = on_demand(
        capacity_types=frozenset(kinds),
        has_reservation=has_reservation,
        labels={CAPACITY_TYPE: LabelValues(values=frozenset(kinds))},
    )
    results = {type(each) for each in check_pool(job, pool) if each.check == "capacity"}
    assert results == ({found} if found else set())
