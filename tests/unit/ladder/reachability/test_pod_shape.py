"""The shape of a pod all of whose fields are known: what the policy pack reads of the same job, by its own reader."""

from dataclasses import replace

import pytest
from hypothesis import given, settings

from pulumi_holdfast.controller.jobs.child_templates import child_templates
from pulumi_holdfast.controller.jobs.judgement import job_shapes
from pulumi_holdfast.ladder.json import UNKNOWN, Json
from pulumi_holdfast.ladder.labels import CAPACITY_TYPE, GKE_SPOT, POOL, SPOT
from pulumi_holdfast.ladder.reachability.affinity import LabelValues
from pulumi_holdfast.ladder.reachability.checks import Failed, Undetermined, check_pool
from pulumi_holdfast.ladder.reachability.facts import Limits, PoolFacts
from pulumi_holdfast.ladder.reachability.machine_capacity import MachineCapacity
from pulumi_holdfast.ladder.reachability.pod_shape import pod_shape, selects_spot
from pulumi_holdfast.ladder.reachability.shape import Placement, Resources, Shape
from pulumi_holdfast.program.jobs.jobs import declared_jobs
from tests.support.builders.program_jobs import JOB_SET, declared
from tests.support.builders.training_jobs import expression, required_affinity
from tests.support.strategies.admitted_jobs import walking_jobs


@settings(max_examples=300)
@given(job=walking_jobs("vision"))
def test_the_controller_and_the_pack_read_the_same_shapes(job: Json) -> None:
    (program,) = declared_jobs([declared(JOB_SET, job)])
    read = {each.name: each.shape for each in program.all_templates}
    for shape in job_shapes(job):
        packs = read[shape.name]
        assert packs is not UNKNOWN
        # In the words for what neither models they may differ.
        assert replace(packs, unmodeled=()) == replace(shape, unmodeled=())
        assert bool(packs.unmodeled) >= bool(shape.unmodeled)


def shape_of(spec: Json, **labels: str) -> Shape:
    return pod_shape({"containers": [], **spec}, name="worker", pods=2, labels=labels)


def test_a_pod_that_was_admitted_has_what_admission_added() -> None:
    tolerates: Json = {"key": "a", "operator": "Equal", "value": "b", "effect": "NoSchedule"}
    found = shape_of({"priority": 7, "overhead": {"cpu": "250m"}, "tolerations": [tolerates]})
    assert (found.priority, found.requests.cpu_millis) == (7, 250)
    assert [each.value for each in found.tolerations] == ["b"]


def test_what_a_move_changes_is_left_out() -> None:
    found = shape_of({"nodeSelector": {POOL: "a", CAPACITY_TYPE: SPOT, "disk": "fast"}})
    assert found.selector == {"disk": "fast"}
    term = [expression(CAPACITY_TYPE, "In", SPOT), expression("disk", "In", "fast")]
    assert len(shape_of({"affinity": required_affinity(term)}).affinity[0]) == 1
    alone = [expression(CAPACITY_TYPE, "In", SPOT)]
    assert shape_of({"affinity": required_affinity(alone)}).affinity == ()


def test_pods_that_need_one_zone_together_say_so() -> None:
    term: Json = {
        "topologyKey": "topology.kubernetes.io/zone",
        "labelSelector": {"matchLabels": {"app": "train"}},
    }
    affinity: Json = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    assert shape_of({"affinity": affinity}, app="train").same_placement is Placement.ZONE
    assert shape_of({"affinity": affinity}, app="other").unmodeled


@pytest.mark.parametrize(
    ("narrowed", "one_per_node"),
    [
        ({}, True),
        ({"namespaces": ["default"]}, False),
        ({"namespaceSelector": {}}, False),
        ({"matchLabelKeys": ["step"]}, False),
        ({"mismatchLabelKeys": ["step"]}, False),
    ],
)
def test_anti_affinity_that_may_be_about_other_pods_keeps_none_apart(
    narrowed: Json, one_per_node: bool
) -> None:
    selector: Json = {"matchLabels": {"app": "train"}}
    term: Json = {"topologyKey": "kubernetes.io/hostname", "labelSelector": selector, **narrowed}
    affinity: Json = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    assert shape_of({"affinity": affinity}, app="train").one_per_node is one_per_node


@pytest.mark.parametrize(
    ("spec", "is_spot"),
    [
        ({"nodeSelector": {CAPACITY_TYPE: SPOT}}, True),
        ({"nodeSelector": {GKE_SPOT: "true"}}, True),
        ({"nodeSelector": {CAPACITY_TYPE: "on-demand"}}, False),
        ({"affinity": required_affinity([expression(CAPACITY_TYPE, "In", SPOT, "on-demand")])}, True),
        ({"affinity": required_affinity([expression(CAPACITY_TYPE, "NotIn", SPOT)])}, False),
        ({}, False),
    ],
)
def test_spot_is_selected_by_a_label_or_by_required_affinity(spec: Json, is_spot: bool) -> None:
    assert selects_spot(spec) is is_spot


MACHINE = MachineCapacity(
    name="m",
    capacity=Resources(cpu_millis=8000, memory_mib=32768),
    allocatable=Resources(cpu_millis=8000, memory_mib=32768),
)
POOL_FACTS = PoolFacts(
    name="a",
    title="pool a",
    capacity_types=frozenset({"spot"}),
    labels={"rack": LabelValues(values=frozenset({"1", "2"})), "disk": "fast"},
    machines=(MACHINE,),
    limits=Limits(nodes=3),
    zones=frozenset({"east-a", "east-b"}),
)


@pytest.mark.parametrize(
    ("key", "groups", "outcome"),
    [
        ("cloud.google.com/gke-nodepool", 2, Failed),
        ("cloud.google.com/gke-nodepool", 1, None),
        ("disk", 2, Failed),
        ("rack", 2, Undetermined),
        ("rack", 3, Failed),
        ("topology.kubernetes.io/zone", 3, Failed),
        ("topology.kubernetes.io/zone", 2, Undetermined),
        ("kubernetes.io/hostname", 4, Failed),
        ("kubernetes.io/hostname", 3, Undetermined),
        ("topology.k8s.aws/network-node-layer-1", 9, Undetermined),
        ("example.com/absent", 2, Failed),
    ],
)
def test_child_jobs_that_need_a_domain_each_have_no_more_than_there_are(
    key: str, groups: int, outcome: type | None
) -> None:
    shape = Shape(requests=Resources(cpu_millis=1, memory_mib=1), apart_by=(key, groups))
    kinds = {type(each) for each in check_pool(shape, POOL_FACTS) if each.check == "topology"}
    assert kinds == ({outcome} if outcome else set())


@pytest.mark.parametrize(
    ("key", "outcome"),
    [
        ("rack", Undetermined),
        ("cloud.google.com/gke-nodepool", Failed),
        ("topology.kubernetes.io/zone", Failed),
        ("kubernetes.io/hostname", Failed),
    ],
)
def test_the_domains_of_a_pool_with_unknown_labels_are_those_that_need_none(key: str, outcome: type) -> None:
    shape = Shape(requests=Resources(cpu_millis=1, memory_mib=1), apart_by=(key, 4))
    unknown = replace(POOL_FACTS, labels=UNKNOWN)
    assert [type(each) for each in check_pool(shape, unknown) if each.check == "topology"] == [outcome]


def test_a_jobset_with_an_exclusive_topology_names_its_key_and_its_jobs() -> None:
    exclusive: Json = {"alpha.jobset.sigs.k8s.io/exclusive-topology": "rack"}
    job: Json = {
        "kind": "JobSet",
        "metadata": {"name": "a", "annotations": exclusive},
        "spec": {"replicatedJobs": [{"name": "w", "replicas": 4, "template": {"spec": {"template": {"spec": {}}}}}]},
    }  # fmt: skip
    (template,) = child_templates(job)
    assert template.apart_by == ("rack", 4)
