"""Training namespaces without a quota, and quotas that are too small for a gang."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulumi_holdfast.ladder.json import UNKNOWN, Json, JsonValue
from pulumi_holdfast.ladder.labels import CAPACITY_TYPE, POOL
from pulumi_holdfast.program.resources import StackResource, Value
from rule import PACK_DEFAULTS
from rules import quotas
from rules.verdicts import Word, verdicts
from tests.support.builders.policy_programs import STACKS, every, program, put, without
from tests.support.builders.program_jobs import (
    JOB_SET,
    RAY_JOB,
    declared,
    declared_jobset,
    job_program,
    requesting,
)
from tests.support.builders.stack_resources import FALLBACK_POLICY_TYPE, compliant, namespace, resource
from tests.support.builders.training_jobs import jobset, pod_template, rayjob, replicated_job, worker_group

QUOTA = "kubernetes:core/v1:ResourceQuota"
LIMIT_RANGE = "kubernetes:core/v1:LimitRange"
FINETUNE: Value = {"name": "finetune", "pods": 4.0, "cpu": "48", "memory": "512Gi", "gpus": 8.0}


def quota(hard: Value, *, inside: Value = "vision", **spec: Value) -> StackResource:
    return resource(
        QUOTA, "quota", {"metadata": {"name": "team", "namespace": inside}, "spec": {"hard": hard, **spec}}
    )


def shaped(*shapes: Value) -> StackResource:
    return resource(
        FALLBACK_POLICY_TYPE,
        "vision-ladder",
        {"metadata": {"name": "ladder", "namespace": "vision"}, "spec": {"shapes": list(shapes)}},
    )


def messages(*resources: StackResource) -> list[str]:
    return [finding.message for finding in quotas.find(resources, {})]


@pytest.mark.parametrize("stack", STACKS)
def test_own_stacks_have_quotas_and_without_or_below_the_gang_each_namespace_is_reported(stack: str) -> None:
    resources = program(stack)
    namespaces = len(every(resources, ":FallbackPolicy"))
    assert messages(*resources) == []
    for each in every(resources, ":ResourceQuota"):
        put(each, "1", "spec", "hard", "pods")
    found = messages(*resources)
    assert len(found) == namespaces
    assert all("ResourceQuota 'training' has `pods: 1`" in message for message in found)
    without(resources, *every(resources, ":ResourceQuota"))
    found = messages(*resources)
    assert len(found) == namespaces
    assert all("has no ResourceQuota" in message for message in found)


@pytest.mark.parametrize(
    "hard",
    [
        {"pods": "100"},
        {"count/pods": "100"},
        {"requests.nvidia.com/gpu": "32"},
        {"requests.cpu": "192", "requests.memory": "2Ti"},
        {"requests.nvidia.com/gpu": 32.0},
    ],
)
def test_quota_with_room_for_the_gang_passes(hard: Value) -> None:
    assert messages(namespace(), shaped(FINETUNE), quota(hard)) == []


@pytest.mark.parametrize(
    ("hard", "named"),
    [
        ({"pods": "3"}, "`pods: 3`"),
        ({"count/pods": "3"}, "`count/pods: 3`"),
        ({"requests.nvidia.com/gpu": "31"}, "`requests.nvidia.com/gpu: 31`"),
        ({"requests.cpu": "191"}, "`requests.cpu: 191`"),
        ({"memory": "2047Gi"}, "`memory: 2047Gi`"),
    ],
)
def test_quota_too_small_for_the_gang_is_reported_with_its_key(hard: Value, named: str) -> None:
    (message,) = messages(namespace(), shaped(FINETUNE), quota(hard))
    assert message.startswith("namespace 'vision' cannot run shape finetune (4 pods of 8 GPUs")
    assert named in message


def test_quota_for_other_resources_is_not_effective() -> None:
    (message,) = messages(namespace(), quota({"configmaps": "10"}))
    assert "limits neither GPUs nor CPUs nor pods" in message


@pytest.mark.parametrize(
    "limit",
    [
        quota(UNKNOWN),
        quota({"pods": UNKNOWN}),
        quota({"requests.cpu": UNKNOWN, "pods": "100"}),
        quota({"pods": "3"}, inside=UNKNOWN),
        quota({"pods": "3"}, scopes=UNKNOWN),
        quota({"pods": "3"}, scopes=["Terminating"]),
    ],
    ids=["limits", "pods", "CPUs", "namespace", "scopes", "pods with a deadline"],
)
def test_quota_that_is_not_known_yet_leaves_the_gang_not_judged(limit: StackResource) -> None:
    stack = [namespace(), shaped(FINETUNE), limit]
    found = quotas.find(stack, {})
    assert [each.proven for each in found] == [False]
    (verdict,) = verdicts(stack, PACK_DEFAULTS)
    assert "quota: not judged" in str(verdict)


def test_unknown_quota_of_what_the_gang_does_not_use_says_nothing() -> None:
    limit = quota({"pods": "4", "configmaps": UNKNOWN})
    assert messages(namespace(), shaped(FINETUNE), limit) == []


@pytest.mark.parametrize("inside", [UNKNOWN, "elsewhere"])
def test_quota_in_an_unknown_namespace_may_be_the_required_one(inside: Value) -> None:
    found = messages(namespace(), quota({"pods": "100"}, inside=inside))
    assert (found == []) is (inside is UNKNOWN)


@given(pods=st.integers(1, 300), bound=st.integers(0, 300))
def test_gang_is_reported_exactly_if_it_has_more_pods_than_the_quota(pods: int, bound: int) -> None:
    shape: Value = {"name": "wide", "pods": float(pods), "cpu": "1", "memory": "1Gi"}
    found = messages(namespace(), shaped(shape), quota({"pods": str(bound)}))
    assert bool(found) is (pods > bound)


def test_namespace_without_training_needs_no_quota() -> None:
    assert messages(*compliant()[1:], namespace(labels={"team": "web"})) == []


def on_jobs(*limits: StackResource, **pod: JsonValue) -> list[str]:
    """What is proven about a JobSet of four pods, each with 3 CPUs and 8 GiB unless it has other containers."""
    stack = [*job_program(declared_jobset(pod, parallelism=4)), *limits]
    return [each.message for each in quotas.find(stack, {}) if each.proven]


TITLE = "cannot run JobSet 'train'"
WITHOUT: Json = {"containers": [requesting(memory="1Gi")]}


@pytest.mark.parametrize(
    ("hard", "named"),
    [
        ({"pods": "4", "requests.cpu": "12"}, ""),
        ({"pods": "3"}, "`pods: 3`"),
        ({"requests.cpu": "11"}, "`requests.cpu: 11`"),
        ({"count/jobs.batch": "0"}, "`count/jobs.batch: 0`"),
        ({"count/jobsets.jobset.x-k8s.io": "0"}, "`count/jobsets.jobset.x-k8s.io: 0`"),
        ({"count/rayjobs.ray.io": "0"}, ""),
        ({"count/configmaps": "0"}, ""),
        ({"services": "0"}, "`services: 0`"),
        ({"persistentvolumeclaims": "0"}, ""),
        ({"limits.cpu": "100"}, "container train sets none"),
    ],
)
def test_quota_that_never_admits_a_job_of_the_program_is_named(hard: Value, named: str) -> None:
    found = on_jobs(quota(hard))
    assert bool(found) is bool(named), f"a job that is rejected by {hard} never runs: {found}"
    assert all(TITLE in each and named in each for each in found)


LIMITED: Json = {"containers": [{**requesting(cpu="2", memory="4Gi"), "resources": {"requests": {"cpu": "2", "memory": "4Gi"}, "limits": {"cpu": "8", "memory": "16Gi"}}}]}  # fmt: skip


@pytest.mark.parametrize(
    ("hard", "named"),
    [
        ({"limits.cpu": "32", "limits.memory": "64Gi"}, ""),
        ({"limits.cpu": "31"}, "`limits.cpu: 31`"),
        ({"limits.memory": "63Gi"}, "`limits.memory: 63Gi`"),
    ],
)
def test_quota_of_limits_counts_those_of_the_containers(hard: Value, named: str) -> None:
    found = on_jobs(quota(hard), **LIMITED)
    assert bool(found) is bool(named)
    assert all(TITLE in each and named in each for each in found)


def test_quota_of_limits_counts_what_a_limit_range_adds_and_what_shapes_request() -> None:
    defaults = limit_range(type="Container", default={"cpu": "8"})
    assert on_jobs(quota({"limits.cpu": "31"}), defaults)
    assert not on_jobs(quota({"limits.cpu": "32"}), defaults)
    (message,) = messages(namespace(), shaped(FINETUNE), quota({"pods": "4", "limits.cpu": "191"}))
    assert "`limits.cpu: 191`" in message


def sized(name: str, pods: int, pool: str = "", **item: JsonValue) -> Json:
    """A replicated job whose pods have one CPU and select a pool, or nothing."""
    template = pod_template({POOL: pool} if pool else None, spec={"containers": [requesting(cpu="1")]})
    return {**replicated_job(template, name, job={"parallelism": pods, "completions": pods}), **item}


def said(job: StackResource, hard: Value) -> list[tuple[str, bool]]:
    stack = [*job_program(job), quota(hard)]
    return [(each.message, each.proven) for each in quotas.find(stack, {})]


def of_jobs(*jobs: Json) -> StackResource:
    return declared(JOB_SET, jobset(*jobs))


WITH_DRIVER = of_jobs(sized("driver", 1), sized("train", 3, "cpu-spot"))
FOUR_JOBS = of_jobs(sized("train", 1, "cpu-spot", replicas=4))


@pytest.mark.parametrize(
    ("job", "hard", "has_room"),
    [
        (WITH_DRIVER, {"pods": "3"}, False),
        (WITH_DRIVER, {"pods": "4"}, True),
        (WITH_DRIVER, {"requests.cpu": "3"}, False),
        (WITH_DRIVER, {"requests.cpu": "4"}, True),
        (WITH_DRIVER, {"count/jobs.batch": "1"}, False),
        (WITH_DRIVER, {"count/jobs.batch": "2", "pods": "4"}, True),
        (FOUR_JOBS, {"count/jobs.batch": "3"}, False),
        (FOUR_JOBS, {"count/jobs.batch": "4", "pods": "4", "services": "1"}, True),
    ],
)
def test_quota_counts_every_pod_and_every_child_job_of_a_jobset(
    job: StackResource, hard: Value, has_room: bool
) -> None:
    found = [message for message, proven in said(job, hard) if proven]
    assert bool(found) is not has_room


def ray(head_selects: Mapping[str, str] | None = None, /, **spec: JsonValue) -> StackResource:
    """A RayJob of two workers with a head."""
    workers: Json = {**worker_group(pod_template({POOL: "cpu-spot"}, spec={"containers": [requesting(cpu="1")]})), "replicas": 2, "maxReplicas": 2}  # fmt: skip
    head: Json = {"template": pod_template(head_selects, spec={"containers": [requesting(cpu="1")]})}
    cluster: Json = {"headGroupSpec": head, "workerGroupSpecs": [workers]}
    return declared(RAY_JOB, rayjob(spec={"rayClusterSpec": cluster, "backoffLimit": 5, **spec}))


@pytest.mark.parametrize(
    ("spec", "hard", "has_room"),
    [
        ({}, {"pods": "3"}, False),
        ({}, {"pods": "4", "services": "2", "count/rayclusters.ray.io": "1"}, True),
        ({}, {"requests.cpu": "3400m"}, False),
        ({}, {"requests.cpu": "3500m"}, True),
        ({}, {"count/jobs.batch": "0"}, False),
        ({}, {"count/rayclusters.ray.io": "0"}, False),
        ({"submissionMode": "HTTPMode"}, {"pods": "2"}, False),
        ({"submissionMode": "HTTPMode"}, {"pods": "3", "count/jobs.batch": "0"}, True),
    ],
)
def test_quota_counts_the_head_and_the_submitter_of_a_rayjob(
    spec: dict[str, JsonValue], hard: Value, has_room: bool
) -> None:
    found = [message for message, proven in said(ray(**spec), hard) if proven]
    assert bool(found) is not has_room


@pytest.mark.parametrize("name", ["head", "submitter"])
def test_quota_counts_a_group_of_workers_with_the_name_of_another_template(name: str) -> None:
    workers = {**worker_group(pod_template({POOL: "cpu-spot"}, spec={"containers": [requesting(cpu="1")]}), name), "replicas": 2, "maxReplicas": 2}  # fmt: skip
    job = ray(rayClusterSpec={"headGroupSpec": {"template": pod_template(spec={"containers": [requesting(cpu="1")]})}, "workerGroupSpecs": [workers]})  # fmt: skip
    assert any(proven for _, proven in said(job, {"pods": "3"}))
    assert not said(job, {"pods": "4", "count/jobs.batch": "1"})


def test_quota_counts_a_head_that_admission_takes_off_spot() -> None:
    on_spot = ray({CAPACITY_TYPE: "spot"})
    assert any(proven for _, proven in said(on_spot, {"pods": "3"}))
    assert not said(on_spot, {"pods": "4"})


def after(name: str) -> JsonValue:
    return [{"name": name, "status": "Complete"}]


IN_ORDER = (sized("prepare", 2, "cpu-spot"), sized("train", 3, "cpu-spot", dependsOn=after("prepare")))


def test_quota_with_room_for_templates_that_run_one_after_another_passes() -> None:
    assert not said(of_jobs(*IN_ORDER), {"pods": "3"})
    assert any(proven for _, proven in said(of_jobs(*IN_ORDER), {"pods": "2"}))
    assert any(proven for _, proven in said(of_jobs(*IN_ORDER), {"count/pods": "4"}))


def test_quota_whose_room_depends_on_how_long_templates_run_is_not_judged() -> None:
    job = of_jobs(sized("driver", 1), *IN_ORDER)
    ((message, proven),) = said(job, {"pods": "3"})
    assert not proven
    assert "may not be able to run JobSet 'train'" in message
    (found,) = verdicts([*job_program(job), quota({"pods": "3"})], PACK_DEFAULTS)
    assert "quota: not judged" in str(found)
    assert not said(job, {"pods": "4"})


@pytest.mark.parametrize(
    ("spec", "pod", "counts"),
    [
        ({"scopes": ["NotBestEffort"]}, {}, True),
        ({"scopes": ["BestEffort"]}, {}, False),
        ({"scopes": ["Terminating"]}, {}, False),
        ({"scopes": ["Terminating"]}, {"activeDeadlineSeconds": 3600}, True),
        ({"scopes": ["NotTerminating"]}, {}, True),
        ({"scopeSelector": {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": ["low"]}]}}, {"priorityClassName": "low"}, True),
        ({"scopeSelector": {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": ["low"]}]}}, {"priorityClassName": "high"}, False),
        ({"scopeSelector": {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": ["low"]}]}}, {}, False),
        ({"scopeSelector": {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": UNKNOWN}]}}, {"priorityClassName": "low"}, False),
    ],
)  # fmt: skip
def test_quota_with_scopes_counts_the_pods_that_it_covers(
    spec: dict[str, Value], pod: dict[str, JsonValue], counts: bool
) -> None:
    assert bool(on_jobs(quota({"pods": "3"}, **spec), **pod)) is counts


def limit_range(name: str = "defaults", /, **item: Value) -> StackResource:
    metadata: Value = {"name": name, "namespace": "vision"}
    return resource(LIMIT_RANGE, name, {"metadata": metadata, "spec": {"limits": [item]}})


@pytest.mark.parametrize(
    ("item", "rejected"),
    [
        ({"type": "Pod", "max": {"cpu": "2"}}, True),
        ({"type": "Pod", "min": {"cpu": "4"}}, True),
        ({"type": "Container", "min": {"cpu": "4"}}, True),
        ({"type": "Container", "min": {"cpu": "3"}}, False),
        ({"type": "Pod", "max": {"cpu": "3"}}, True),
        ({"type": "Container", "max": {"memory": "4Gi"}}, True),
        ({"type": "Container", "max": {"memory": "8Gi"}}, False),
        ({"type": "PersistentVolumeClaim", "max": {"storage": "1Gi"}}, False),
        ({"type": "Container", "default": {"cpu": "2"}}, True),
        ({"type": "Container", "default": {"cpu": "3"}, "defaultRequest": {"memory": "64Gi"}}, False),
    ],
)
def test_limit_range_that_rejects_the_pods_is_named(item: dict[str, Value], rejected: bool) -> None:
    found = on_jobs(quota({"pods": "100"}), limit_range(**item))
    assert bool(found) is rejected
    assert all("LimitRange 'defaults'" in each for each in found)


@pytest.mark.parametrize(("most", "rejected"), [("7", True), ("8", False)])
def test_limit_range_of_pods_bounds_their_limits(most: str, *, rejected: bool) -> None:
    found = on_jobs(quota({"pods": "100"}), limit_range(type="Pod", max={"cpu": most}), **LIMITED)
    assert any("at most `cpu: 7` for each pod" in each for each in found) is rejected


@pytest.mark.parametrize(("head", "rejected"), [(LIMITED, False), (WITHOUT, True)])
def test_limit_range_of_pods_counts_the_limits_of_the_init_container_that_kuberay_adds(
    head: Json, *, rejected: bool
) -> None:
    worker: Json = worker_group(pod_template({POOL: "cpu-spot"}, spec=WITHOUT))
    cluster: Json = {"headGroupSpec": {"template": pod_template(spec=head)}, "workerGroupSpecs": [worker]}
    limits = limit_range(type="Pod", max={"memory": "64Gi"})
    program = [*job_program(ray(rayClusterSpec=cluster)), quota({"pods": "100"}), limits]
    found = [each.message for each in quotas.find(program, {})]
    assert any("rejects its pods without a limit" in each for each in found) is rejected


@pytest.mark.parametrize(
    ("ranges", "word", "named"),
    [
        ([{"cpu": "1"}, {"cpu": "1000m"}], Word.PROVED, ""),
        ([{"cpu": "1"}, {"memory": "1Gi"}], Word.PROVED, ""),
        ([{"cpu": "1"}, {"cpu": "64"}], Word.NOT_JUDGED, "different defaults of cpu, and which of them counts"),
        ([{"cpu": "64"}, {"cpu": "1"}], Word.NOT_JUDGED, "different defaults of cpu, and which of them counts"),
        ([{"cpu": "64"}, {"cpu": "65"}], Word.BROKEN, "fits a pod of 64 CPU"),
        ([{"memory": "2Gi"}, {"memory": "1Gi"}], Word.NOT_JUDGED, "different defaults of memory"),
    ],
    ids=["alike", "of others", "first small", "first large", "none fits", "of a limit alone"],
)  # fmt: skip
def test_default_on_which_limit_ranges_differ_is_not_judged_unless_none_fits(
    ranges: list[dict[str, Value]], word: Word, named: str
) -> None:
    limits = [limit_range(str(at), type="Container", default=each) for at, each in enumerate(ranges)]
    (found,) = verdicts([*job_program(declared_jobset(WITHOUT)), *limits], PACK_DEFAULTS)
    (part,) = (each for each in found.parts if each.about == "JobSet 'train'")
    assert part.word is word
    assert named in part.reason


@pytest.mark.parametrize(("bounds", "rejected"), [("22", True), ("23", False), ("33", False)])
def test_request_above_every_default_limit_is_rejected(bounds: str, *, rejected: bool) -> None:
    limits = [limit_range(str(at), type="Container", default={"cpu": each}) for at, each in enumerate(bounds)]
    found = on_jobs(quota({"pods": "100"}), *limits)
    assert any("requests more" in each for each in found) is rejected


@pytest.mark.parametrize(("least", "rejected"), [("256Mi", False), ("257Mi", True)], ids=["its own", "more"])
def test_limit_range_applies_to_the_init_container_that_kuberay_adds(least: str, *, rejected: bool) -> None:
    program = [
        *job_program(ray()),
        quota({"pods": "100"}),
        limit_range(type="Container", min={"memory": least}),
    ]
    found = [each.message for each in quotas.find(program, {})]
    assert any("RayJob" in each and "at least `memory: 257Mi`" in each for each in found) is rejected


def test_containers_without_requests_get_those_of_a_limit_range() -> None:
    counted = quota({"requests.cpu": "100", "requests.memory": "100Gi"})
    assert "container train sets none" in " ".join(on_jobs(counted, **WITHOUT))
    default = limit_range(type="Container", defaultRequest={"cpu": "2"})
    assert not on_jobs(counted, default, **WITHOUT)
    assert on_jobs(quota({"requests.cpu": "7"}), default, **WITHOUT)


@pytest.mark.parametrize("unknown", ["namespace", "limits", "default", "amount"])
def test_containers_may_get_requests_of_a_limit_range_that_is_not_known_yet(unknown: str) -> None:
    metadata: Value = {"name": "defaults", "namespace": UNKNOWN if unknown == "namespace" else "vision"}
    item: Value = {"type": "Container", "default": UNKNOWN if unknown == "default" else {"cpu": "1"}}
    most: Value = {"type": "Pod", "max": {"cpu": UNKNOWN}}
    limits: Value = UNKNOWN if unknown == "limits" else [most if unknown == "amount" else item]
    later = resource(LIMIT_RANGE, "defaults", {"metadata": metadata, "spec": {"limits": limits}})
    program = [*job_program(declared_jobset(WITHOUT)), quota({"requests.cpu": "100"}), later]
    found = [each for each in quotas.find(program, {}) if "may not be able to run" in each.message]
    assert any("what a LimitRange allows their pods" in each.message for each in found)
    assert not [each for each in found if each.proven]


def test_default_of_a_limit_range_counts_on_machines() -> None:
    large = limit_range(type="Container", default={"cpu": "64"})
    (found,) = verdicts([*job_program(declared_jobset(WITHOUT)), large], PACK_DEFAULTS)
    assert "fits a pod of 64 CPU" in str(found)


def test_priority_class_that_may_not_exist_is_not_judged() -> None:
    named: Json = {"priorityClassName": "training"}
    made = resource(
        "kubernetes:scheduling.k8s.io/v1:PriorityClass", "training", {"metadata": {"name": "training"}}
    )
    (found,) = verdicts(job_program(declared_jobset(named)), PACK_DEFAULTS)
    assert "PriorityClass training exists is not known" in str(found)
    (found,) = verdicts(job_program(declared_jobset(named), made), PACK_DEFAULTS)
    assert "JobSet 'train': proved" in str(found)
