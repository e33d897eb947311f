"""Placeholders run where the pods of their job may run; what cannot be translated keeps the job where it is."""

import pytest

from pulumi_holdfast.controller.jobs.jobset import JobSetKind
from pulumi_holdfast.controller.jobs.pod_history import PodHistory
from pulumi_holdfast.controller.jobs.pod_shapes import (
    REQUIRED,
    PodShape,
    machines_needed,
    placeholder_scheduling,
    placement_of,
    placement_problem,
    selects,
)
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import CAPACITY_TYPE, POOL, RESERVED_FOR, SHAPE, ZONE
from pulumi_holdfast.ladder.ladder import MachineResources
from tests.support.builders.fallback_objects import snapshot
from tests.support.builders.gang_jobset import gang_jobset
from tests.support.json_objects import obj, objects

UID = "6f2c2f0e-0000-4000-8000-000000000001"
LABELS = {"app": "walker", "part": "worker"}
OWN: Json = {"matchLabels": {"app": "walker"}}
TOGETHER: Json = {"topologyKey": ZONE, "labelSelector": OWN}


def affinity(kind: str, *terms: Json) -> Json:
    return {"affinity": {kind: {REQUIRED: [*terms], "preferredDuringSchedulingIgnoredDuringExecution": [{}]}}}


def test_selectors_other_than_those_of_capacity_and_the_node_affinity_are_kept() -> None:
    required: Json = {
        "nodeSelectorTerms": [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["a"]}]}]
    }
    found = placement_of(
        {
            "nodeSelector": {POOL: "b", CAPACITY_TYPE: "spot", "disk": "ssd"},
            "affinity": {"nodeAffinity": {REQUIRED: required}},
        },
        LABELS,
    )
    assert found.selector == {"disk": "ssd"}
    assert placeholder_scheduling(found, [found], UID) == {"affinity": {"nodeAffinity": {REQUIRED: required}}}


def test_terms_about_the_jobs_own_pods_become_terms_about_its_placeholders() -> None:
    spread: Json = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": OWN,
    }
    soft = {**spread, "whenUnsatisfiable": "ScheduleAnyway"}
    spec = {**affinity("podAntiAffinity", TOGETHER), "topologySpreadConstraints": [spread, soft]}
    gang = [placement_of(spec, LABELS), placement_of({}, {"app": "other"}), placement_of({}, LABELS)]
    scheduling = placeholder_scheduling(gang[0], gang, UID)
    (term,) = objects(obj(obj(scheduling["affinity"])["podAntiAffinity"])[REQUIRED])
    (kept,) = objects(scheduling["topologySpreadConstraints"])
    for each in (term, kept):
        assert each["topologyKey"] == ZONE
        selector = obj(each["labelSelector"])
        assert selector["matchLabels"] == {RESERVED_FOR: UID}
        (of_shapes,) = objects(selector["matchExpressions"])
        assert (of_shapes["key"], of_shapes["values"]) == (SHAPE, ["0", "2"])
    assert kept["maxSkew"] == 1
    assert placement_problem(gang) is None


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (
            affinity("podAffinity", {**TOGETHER, "labelSelector": {"matchLabels": {"app": "cache"}}}),
            "pods of others",
        ),
        (affinity("podAffinity", {**TOGETHER, "labelSelector": {}}), "pods of others"),
        (affinity("podAffinity", {**TOGETHER, "namespaces": ["shared"]}), "namespaces"),
        (affinity("podAntiAffinity", {**TOGETHER, "matchLabelKeys": ["part"]}), "matchLabelKeys"),
        ({"schedulerName": "gang-scheduler"}, "gang-scheduler"),
        ({"resourceClaims": [{"name": "gpu"}]}, "resourceClaims"),
    ],
)
def test_a_placement_that_placeholders_cannot_have_is_named(spec: Json, expected: str) -> None:
    assert expected in str(placement_problem([placement_of(spec, LABELS)]))


@pytest.mark.parametrize(
    ("operator", "values", "of_app", "of_absent"),
    [
        ("In", ["walker"], True, False),
        ("NotIn", ["walker"], False, True),
        ("Exists", [], True, False),
        ("DoesNotExist", [], False, True),
    ],
)
def test_label_selectors_are_evaluated_as_kubernetes_does(
    operator: str, values: list[str], of_app: bool, of_absent: bool
) -> None:
    for key, expected in (("app", of_app), ("absent", of_absent)):
        expression: Json = {"key": key, "operator": operator, "values": [*values]}
        assert selects({"matchExpressions": [expression]}, LABELS) is expected, f"{key} {operator} {values}"


def shapes_of(job: Json) -> tuple[PodShape, ...]:
    return JobSetKind().observe(snapshot(job), PodHistory())[0].shapes


@pytest.mark.parametrize("place", ["job", "template"])
def test_a_jobset_with_an_exclusive_topology_is_not_returned(place: str) -> None:
    exclusive: Json = {"alpha.jobset.sigs.k8s.io/exclusive-topology": ZONE}
    job = gang_jobset("walker", "vision", pods=2, pool="a", cpu="1", failure_policy={})
    if place == "job":
        job = {**job, "metadata": {**obj(job["metadata"]), "annotations": exclusive}}
    else:
        (first,) = objects(obj(job["spec"])["replicatedJobs"])
        template = {**obj(first["template"]), "metadata": {"annotations": exclusive}}
        job = {**job, "spec": {**obj(job["spec"]), "replicatedJobs": [{**first, "template": template}]}}
    (shape,) = shapes_of(job)
    assert "exclusive-topology" in str(placement_problem([shape.placement]))


def test_a_jobsets_own_labels_may_be_selected() -> None:
    own: Json = {"matchLabels": {"jobset.sigs.k8s.io/jobset-name": "walker"}}
    spec = affinity("podAffinity", {"topologyKey": ZONE, "labelSelector": own})
    job = gang_jobset("walker", "vision", pods=2, pool="a", cpu="1", failure_policy={}, pod=spec)
    (shape,) = shapes_of(job)
    assert placement_problem([shape.placement]) is None


EIGHT_GPUS = MachineResources(cpu=96_000, memory=1152 * 2**30, gpus=8)


@pytest.mark.parametrize(
    ("count", "requests", "machines"),
    [
        (4, {"nvidia.com/gpu": "8"}, 4),
        (16, {"nvidia.com/gpu": "1"}, 2),
        (3, {"cpu": "50"}, 3),
        (3, {"cpu": "48500m", "memory": "1Gi"}, 3),
        (4, {"cpu": "48"}, 2),
        (2, {"memory": "600Gi"}, 2),
        (1, {}, 1),
        (0, {"cpu": "1"}, 0),
        (2, {"cpu": "200"}, 2),
        (2, {"cpu": "nonsense"}, 1),
        (5, {"example.com/device": "1"}, 1),
    ],
)
def test_a_gang_needs_as_many_machines_as_it_fills(
    count: int, requests: dict[str, str], machines: int
) -> None:
    shapes = (PodShape(count=count, requests=requests),)
    assert machines_needed(shapes, EIGHT_GPUS) == machines


def test_shapes_share_machines_and_without_facts_one_is_assumed() -> None:
    shapes = (
        PodShape(count=1, requests={"nvidia.com/gpu": "4"}),
        PodShape(count=4, requests={"nvidia.com/gpu": "1"}),
    )
    assert machines_needed(shapes, EIGHT_GPUS) == 1
    assert machines_needed((PodShape(count=9, requests={"cpu": "64"}),), None) == 1
