"""Jobs that a program creates itself are judged by what their pods request, select and tolerate."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import cast

import pytest

from pulumi_holdfast.ladder.json import UNKNOWN, Json
from pulumi_holdfast.ladder.labels import (
    CAPACITY_TYPE,
    EXCLUSIVE_TOPOLOGY,
    FOLLOWS,
    HOSTNAME,
    INSTANCE_TYPE,
    JOBSET_NAME,
    OS,
    POOL,
)
from pulumi_holdfast.program.resources import StackResource, Value
from rule import PACK_DEFAULTS
from rules.reachability import find_notes, find_unreachable
from rules.verdicts import Verdict, Word, verdicts
from tests.support.builders.program_jobs import (
    JOB,
    JOB_SET,
    RAY_JOB,
    TIERS,
    cpu_pool,
    declared,
    declared_jobset,
    job_program,
    requesting,
)
from tests.support.builders.stack_resources import ladder, resource
from tests.support.builders.training_jobs import (
    expression,
    jobset,
    pod_template,
    rayjob,
    replicated_job,
    required_affinity,
    worker_group,
)
from tests.support.json_objects import obj

TITLE = {JOB_SET: "JobSet 'train'", RAY_JOB: "RayJob 'train'", JOB: "Job 'train'"}
SIDECAR: Json = {**requesting(cpu="2"), "restartPolicy": "Always"}


def one_per_host(labels: Json | None = None, **term: Json | list[str]) -> Json:
    """An affinity that allows one pod with these labels for each node; `term` is put over its term."""
    selector: Json = {"matchLabels": labels or {JOBSET_NAME: "train"}}
    terms: list[Json] = [{"topologyKey": HOSTNAME, "labelSelector": selector, **term}]
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


HOSTS = one_per_host()


def word(job: StackResource) -> Word | None:
    """The word on a job; None if it is not judged at all."""
    (found,) = verdicts(job_program(job), PACK_DEFAULTS)
    return next((part.word for part in found.parts if part.about == TITLE[job.type]), None)


def stopped(job: StackResource) -> list[str]:
    return [each.message for each in find_unreachable(job_program(job), PACK_DEFAULTS) if each.proven]


def noted(job: StackResource) -> list[str]:
    return [each.message for each in find_notes(job_program(job), PACK_DEFAULTS)]


def test_job_that_fits_on_its_ladder_is_proved() -> None:
    assert word(declared_jobset({})) is Word.PROVED
    assert not stopped(declared_jobset({}))


@pytest.mark.parametrize(
    ("pod", "reason"),
    [
        ({"initContainers": [SIDECAR]}, "fits a pod of 5 CPU"),
        ({"initContainers": [requesting(cpu="5")]}, "fits a pod of 5 CPU"),
        ({"overhead": {"cpu": "1"}}, "fits a pod of 4 CPU"),
        ({"resources": {"requests": {"cpu": "6"}}}, "fits a pod of 6 CPU"),
        ({"resources": {"limits": {"hugepages-2Mi": "1Gi", "cpu": "9"}}}, "fits a pod of 3 CPU, 8 GiB, 1024 MiB hugepages-2Mi"),
        ({"containers": [requesting(**{"ephemeral-storage": "200Gi"})]}, "204800 MiB ephemeral-storage"),
        ({"containers": [requesting(**{"hugepages-2Mi": "1Gi"})]}, "1024 MiB hugepages-2Mi"),
        ({"containers": [requesting(**{"rdma/ib": "1"})]}, "1 rdma/ib"),
        ({"containers": [{**requesting(), "resources": {"limits": {"cpu": "5"}}}]}, "fits a pod of 5 CPU"),
        ({"nodeSelector": {POOL: "cpu-spot", "team": "vision"}}, "the pods select team=vision"),
        ({"nodeSelector": {POOL: "cpu-spot", "kubernetes.io/arch": "arm64"}}, "kubernetes.io/arch=arm64"),
        ({"affinity": required_affinity([expression("team", "Exists")])}, "no term of it matches its nodes"),
        ({"affinity": required_affinity([])}, "no term of it matches its nodes"),
        ({"affinity": required_affinity([expression(POOL, "In", "cpu-spot")])}, "binds it to one kind of capacity"),
    ],
    ids=["sidecar", "init", "overhead", "pod level", "pod limit", "disk", "huge pages", "device", "limit", "label", "arch", "affinity", "empty term", "pinned"],
)  # fmt: skip
def test_job_whose_pods_no_tier_takes_stops_the_run(pod: Json, reason: str) -> None:
    job = declared_jobset(pod)
    assert word(job) is Word.BROKEN
    assert reason in " ".join(stopped(job))


@pytest.mark.parametrize(
    ("pod", "room"),
    [
        ({"containers": [requesting(cpu="1")]}, True),
        ({"containers": [requesting(cpu="1")], "affinity": HOSTS}, False),
        ({"containers": [{**requesting(cpu="1"), "ports": [{"containerPort": 29500, "hostPort": 29500}]}]}, False),
        ({"containers": [{**requesting(cpu="1"), "ports": [{"containerPort": 29500}]}], "hostNetwork": True}, False),
    ],
    ids=["side by side", "one per host", "host port", "host network"],
)  # fmt: skip
def test_gang_of_one_pod_per_host_needs_as_many_nodes(pod: Json, room: bool) -> None:
    job = declared_jobset(pod, parallelism=5)
    assert word(job) is (Word.PROVED if room else Word.BROKEN)


@pytest.mark.parametrize(
    "term",
    [{"namespaces": ["other"]}, {"namespaceSelector": {}}, {"matchLabelKeys": ["step"]}, {"mismatchLabelKeys": ["step"]}],
    ids=["namespaces", "namespaces by labels", "same step", "other steps"],
)  # fmt: skip
def test_anti_affinity_that_may_be_about_other_pods_is_not_judged(term: Json) -> None:
    narrowed = one_per_host(**cast("dict[str, Json]", dict(term)))
    job = declared_jobset({"containers": [requesting(cpu="1")], "affinity": narrowed}, parallelism=5)
    assert word(job) is Word.NOT_JUDGED
    assert not stopped(job)


def test_no_host_port_is_taken_by_the_number_zero() -> None:
    port: Json = {**requesting(cpu="1"), "ports": [{"containerPort": 29500, "hostPort": 0}]}
    assert word(declared_jobset({"containers": [port]}, parallelism=5)) is Word.PROVED


@pytest.mark.parametrize(
    ("selected", "of_template", "of_group", "found"),
    [
        ({"ray.io/group": "worker", "ray.io/node-type": "worker"}, {}, {}, Word.BROKEN),
        ({"ray.io/group": "mine"}, {"ray.io/group": "mine"}, {"ray.io/group": "mine"}, Word.NOT_JUDGED),
        ({"app": "train"}, {}, {"app": "train"}, Word.BROKEN),
        ({"app": "train"}, {"app": "train"}, {"app": "other"}, Word.NOT_JUDGED),
        ({"app": "train"}, {"app": "train"}, {"app": UNKNOWN}, Word.NOT_JUDGED),
    ],
    ids=["of KubeRay", "replaced by KubeRay", "of the group", "replaced by the group", "known later"],
)
def test_anti_affinity_counts_the_labels_that_workers_get(
    selected: Json, of_template: Json, of_group: Mapping[str, Value], found: Word
) -> None:
    pod: Json = {"containers": [requesting(cpu="1")], "affinity": one_per_host(selected)}
    template = {**pod_template({POOL: "cpu-spot"}, spec=pod), "metadata": {"labels": of_template}}
    five: Json = {**worker_group(template), "replicas": 5, "maxReplicas": 5, "labels": {}}
    job = rayjob(spec={"rayClusterSpec": {"workerGroupSpecs": [five]}, "backoffLimit": 5})
    cast("dict[str, Value]", five["labels"]).update(of_group)
    assert word(declared(RAY_JOB, job)) is found


def test_child_jobs_with_a_node_each_need_as_many_nodes() -> None:
    template = pod_template({POOL: "cpu-spot"}, spec={"containers": [requesting(cpu="1")]})
    five: Json = {**replicated_job(template), "replicas": 5}
    together = declared(JOB_SET, jobset(five))
    apart = declared(JOB_SET, jobset(five, annotations={EXCLUSIVE_TOPOLOGY: HOSTNAME}))
    racks = declared(JOB_SET, jobset(five, annotations={EXCLUSIVE_TOPOLOGY: "example.com/rack"}))
    assert word(together) is Word.PROVED
    assert word(apart) is Word.BROKEN
    own: Json = {"metadata": {"annotations": {EXCLUSIVE_TOPOLOGY: "example.com/rack"}}}
    replaced: Json = {**five, "template": {**obj(five["template"]), **own}}
    of_one = declared(JOB_SET, jobset(replaced, annotations={EXCLUSIVE_TOPOLOGY: HOSTNAME}))
    assert word(racks) is Word.NOT_JUDGED
    assert word(of_one) is Word.NOT_JUDGED


@pytest.mark.parametrize(
    "pod",
    [
        {"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}]},
        {"schedulerName": "volcano"},
        {"resourceClaims": [{"name": "gpu", "resourceClaimName": "gpu"}]},
        {"affinity": required_affinity([], [expression(OS, "In", "linux")])},
    ],
    ids=["spread", "scheduler", "claims", "empty term"],
)  # fmt: skip
def test_job_that_no_check_models_is_not_judged(pod: Json) -> None:
    job = declared_jobset(pod)
    assert word(job) is Word.NOT_JUDGED
    assert not stopped(job)


@pytest.mark.parametrize("key", [POOL, "team"])
def test_job_that_is_known_later_is_said(key: str) -> None:
    job = declared_jobset({"nodeSelector": {POOL: "cpu-spot", "team": "vision"}}, unknown=key)
    assert word(job) is Word.NOT_JUDGED
    assert any("is known only after the update" in each for each in noted(job))
    assert not stopped(job)


def test_templates_of_one_job_move_together() -> None:
    halves = [
        replicated_job(pod_template({POOL: "cpu-spot"}, spec={"containers": [requesting(cpu="3")]}), name, {"parallelism": 3})
        for name in ("left", "right")
    ]  # fmt: skip
    job = declared(JOB_SET, jobset(*halves))
    assert word(job) is Word.BROKEN


def test_templates_that_run_one_after_another_need_no_room_for_each_other() -> None:
    def half(name: str, *waits: Json) -> Json:
        template = pod_template({POOL: "cpu-spot"}, spec={"containers": [requesting(cpu="3")]})
        return {
            **replicated_job(template, name, {"parallelism": 3}),
            **({"dependsOn": list(waits)} if waits else {}),
        }

    complete: Json = {"name": "left", "status": "Complete"}
    ready: Json = {"name": "left", "status": "Ready"}
    assert word(declared(JOB_SET, jobset(half("left"), half("right", complete)))) is Word.PROVED
    assert word(declared(JOB_SET, jobset(half("left"), half("right", ready)))) is Word.BROKEN
    through: Json = {"name": "right", "status": "Ready"}
    three = jobset(half("left"), half("right", complete), half("third", through))
    assert word(declared(JOB_SET, three)) is Word.NOT_JUDGED


def test_rayjob_counts_the_workers_that_it_needs() -> None:
    template = pod_template({POOL: "cpu-spot"}, spec={"containers": [requesting(cpu="3")]})
    five: Json = {**worker_group(template), "replicas": 5, "maxReplicas": 8}
    cluster: Json = {"workerGroupSpecs": [five], "enableInTreeAutoscaling": True}
    fixed: Json = {"workerGroupSpecs": [five]}
    retried: Json = {"backoffLimit": 5}
    assert word(declared(RAY_JOB, rayjob(spec={"rayClusterSpec": cluster, **retried}))) is Word.PROVED
    assert word(declared(RAY_JOB, rayjob(spec={"rayClusterSpec": fixed, **retried}))) is Word.BROKEN


@pytest.mark.parametrize("types", [UNKNOWN, ["m7i.xlarge", UNKNOWN], ["m7i.xlarge", "m99x.xlarge"]])
@pytest.mark.parametrize(
    ("group", "key"),
    [
        ("karpenter.k8s.aws", "kubernetes.io/arch"),
        ("karpenter.example.com", "kubernetes.io/arch"),
        ("karpenter.example.com", "karpenter.example.com/instance-family"),
        (UNKNOWN, "karpenter.example.com/instance-family"),
    ],
)
def test_pods_may_select_a_label_of_machine_types_that_no_table_has(
    types: Value, group: Value, key: str
) -> None:
    requirements: Value = [
        {"key": CAPACITY_TYPE, "operator": "In", "values": ["on-demand"]},
        {"key": INSTANCE_TYPE, "operator": "In", "values": types},
    ]
    pool = cpu_pool(
        "cpu",
        "on-demand",
        requirements=requirements,
        nodeClassRef={"group": group, "kind": "NodeClass", "name": "default"},
    )
    job = declared_jobset({"nodeSelector": {POOL: "cpu-spot", key: "amd64"}})
    program = [pool if each.urn == pool.urn else each for each in job_program(job)]
    assert not [each for each in find_unreachable(program, PACK_DEFAULTS) if each.proven]


def test_job_starts_on_the_tier_that_it_selects() -> None:
    spot: Json = {"nodeSelector": {CAPACITY_TYPE: "spot"}}
    assert word(declared_jobset(spot)) is Word.PROVED
    assert word(declared_jobset({}, selector="cpu")) is Word.PROVED


@pytest.mark.parametrize(
    ("pool", "later", "found"),
    [("", [0], Word.NOT_JUDGED), ("", [0, 1], Word.NOT_JUDGED), ("", [1], Word.NOT_JUDGED), ("cpu", [0], Word.PROVED), ("cpu-spot", [0], Word.NOT_JUDGED)],
    ids=["starts on the first", "all unknown", "end unknown", "starts on a known one", "may start on the first"],
)  # fmt: skip
def test_job_whose_first_tier_is_known_later_is_not_judged_as_if_it_started_below(
    pool: str, later: list[int], found: Word
) -> None:
    pod: Json = {"nodeSelector": {POOL: pool} if pool else {CAPACITY_TYPE: "spot"}}
    tiers = [{**obj(each), "pool": UNKNOWN} if at in later else each for at, each in enumerate(TIERS)]
    part = on_ladder(declared_jobset(pod), tiers)
    assert part.word is found
    if later[0] == 0 and found is Word.NOT_JUDGED:
        assert "is known only after the update" in part.reason


def test_job_that_no_shape_declares_is_not_assumed_while_the_first_tier_is_known_later() -> None:
    made = ladder([{**obj(TIERS[0]), "pool": UNKNOWN}, TIERS[1]])
    (found,) = verdicts([made if each.urn == made.urn else each for each in job_program()], PACK_DEFAULTS)
    parts = {each.about: each.word for each in found.parts}
    assert parts["other shapes"] is Word.NOT_JUDGED
    assert not any(about.startswith("shape ") for about in parts)


def on_ladder(job: StackResource, tiers: list[Value], *beside: StackResource) -> Verdict:
    """The verdict on a job of a program with this ladder."""
    made = ladder(tiers)
    program = [made if each.urn == made.urn else each for each in job_program(job)]
    assert not [each for each in find_unreachable([*program, *beside], PACK_DEFAULTS) if each.proven]
    (found,) = verdicts([*program, *beside], PACK_DEFAULTS)
    (part,) = (each for each in found.parts if each.about == TITLE[job.type])
    return part


def admission(kind: str) -> StackResource:
    """An admission policy of Holdfast: one that adjusts jobs, or one that rejects them."""
    type_token = f"kubernetes:admissionregistration.k8s.io/v1:{kind}AdmissionPolicy"
    spec: Json = {"paramKind": {"kind": "FallbackPolicy"}}
    return resource(type_token, "jobs", {"metadata": {"name": "jobs"}, "spec": spec})


def binding(*actions: str) -> StackResource:
    """A binding of that policy, which takes these actions."""
    type_token = "kubernetes:admissionregistration.k8s.io/v1:ValidatingAdmissionPolicyBinding"
    return resource(type_token, "jobs", {"spec": {"policyName": "jobs", "validationActions": list(actions)}})


def test_job_of_another_namespace_is_not_judged() -> None:
    huge: Json = {"containers": [requesting(cpu="64")]}
    assert word(declared_jobset(huge, metadata={"namespace": "other"})) is None


@pytest.mark.parametrize("value", ["false", "True"])
@pytest.mark.parametrize("pool", ["cpu-spot", "cpu", "elsewhere"])
def test_job_whose_label_keeps_it_off_the_ladder_is_named(value: str, pool: str) -> None:
    huge: Json = {"containers": [requesting(cpu="64")]}
    job = declared_jobset(huge, selector=pool, metadata={"labels": {FOLLOWS: value}})
    part = on_ladder(job, TIERS)
    assert part.word is Word.ASSUMED
    assert f"{FOLLOWS}: {value!r} keeps it off the ladder: nothing moves it" in part.reason


@pytest.mark.parametrize(
    ("made", "rejects"),
    [
        ((admission("Validating"),), True),
        ((admission("Validating"), binding("Deny", "Audit")), True),
        ((admission("Validating"), binding("Warn")), False),
        ((admission("Mutating"),), False),
    ],
    ids=["bound elsewhere", "denies", "warns", "mutating"],
)
def test_job_with_the_label_that_cannot_follow_is_rejected_only_by_admission_of_the_program(
    made: Sequence[StackResource], *, rejects: bool
) -> None:
    job = declared_jobset({}, selector="elsewhere", metadata={"labels": {FOLLOWS: "true"}})
    part = on_ladder(job, TIERS)
    assert part.word is Word.NOT_JUDGED
    assert "so nothing moves it" in part.reason
    program = [*job_program(job), *made]
    stops = [each.message for each in find_unreachable(program, PACK_DEFAULTS) if each.proven]
    assert any("none of its templates can follow the ladder" in each for each in stops) is rejects


def test_job_with_the_label_is_not_rejected_while_a_value_that_decides_whether_it_follows_is_unknown() -> (
    None
):
    label: Json = {"labels": {FOLLOWS: "true"}}
    selecting = declared_jobset({}, selector="cpu-spot", metadata=label)
    by_spot = declared_jobset({"nodeSelector": {OS: "linux"}}, metadata=label, unknown=CAPACITY_TYPE)
    for job, tiers in ((selecting, [{**obj(TIERS[0]), "pool": UNKNOWN}, TIERS[1]]), (by_spot, TIERS)):
        part = on_ladder(job, tiers, admission("Validating"))
        assert part.word is Word.NOT_JUDGED
        assert "is known only after the update" in part.reason


@pytest.mark.parametrize(
    ("selector", "found"),
    [
        ({"eks.amazonaws.com/capacityType": "SPOT"}, Word.NOT_JUDGED),
        ({POOL: "elsewhere"}, Word.NOT_JUDGED),
        ({"karpenter.sh/nodepool": "cpu-spot"}, Word.ASSUMED),
        ({"karpenter.sh/nodepool": "cpu"}, None),
        ({}, None),
    ],
    ids=[
        "a label of no node",
        "a pool that nothing makes",
        "spot by its NodePool",
        "on-demand by its NodePool",
        "nothing",
    ],
)
def test_job_that_follows_no_ladder_gets_a_note_where_its_pods_run(
    selector: dict[str, str], found: Word | None
) -> None:
    template = pod_template(selector, spec={"containers": [requesting(cpu="1")]})
    assert word(declared(JOB_SET, jobset(replicated_job(template)))) is found


@pytest.mark.parametrize(
    ("policy", "found"),
    [
        ({"maxRestarts": 5}, Word.PROVED),
        ({"maxRestarts": 4}, Word.ASSUMED),
        ({"maxRestarts": 9, "rules": [{"action": "FailJobSet", "onJobFailureReasons": ["PodFailurePolicy"]}]}, Word.ASSUMED),
        ({"maxRestarts": 9, "rules": [{"action": "FailJobSet", "onJobFailureReasons": ["DeadlineExceeded"]}]}, Word.PROVED),
    ],
    ids=["restarts", "too few restarts", "a lost pod ends it", "a deadline ends it"],
)  # fmt: skip
def test_failure_policy_that_ends_a_jobset_before_it_moves_is_named(policy: Json, found: Word) -> None:
    made = declared_jobset({})
    props = {**made.props, "spec": {**obj(made.props["spec"]), "failurePolicy": policy}}
    assert word(replace(made, props=props)) is found


def test_job_with_only_the_label_starts_on_the_first_tier() -> None:
    template = pod_template(spec={"containers": [requesting(cpu="64")]})
    job = declared(JOB_SET, jobset(replicated_job(template), labels={FOLLOWS: "true"}))
    assert word(job) is Word.BROKEN


def test_gpu_job_on_a_ladder_without_gpus_gets_a_note_that_nothing_moves_it() -> None:
    job = declared_jobset({"containers": [requesting(**{"nvidia.com/gpu": "1"})]})
    assert word(job) is Word.ASSUMED
    assert any("the job requests GPUs, and no tier has any" in each for each in noted(job))
    assert not stopped(job)
