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
    ],
    ids=["limits", "pods", "CPUs", "namespace"],
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
    ],
)
def test_quota_that_never_admits_a_job_of_the_program_is_named(hard: Value, named: str) -> None:
    found = on_jobs(quota(hard))
    assert bool(found) is bool(named), f"a job that is rejected by {hard} never runs: {found}"
    assert all(TITLE in each and named in each for each in found)


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
        (FOUR_JOBS, {"pods": "3"}, False),
    ],
)
def test_quota_counts_every_pod_of_a_jobset(job: StackResource, hard: Value, has_room: bool) -> None:
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
        ({}, {"pods": "4"}, True),
        ({}, {"requests.cpu": "3400m"}, False),
        ({}, {"requests.cpu": "3500m"}, True),
        ({"submissionMode": "HTTPMode"}, {"pods": "2"}, False),
        ({"submissionMode": "HTTPMode"}, {"pods": "3"}, True),
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
    assert not said(job, {"pods": "4"})


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


def test_quota_with_scopes_is_named_and_counts_nothing() -> None:
    program = [*job_program(declared_jobset({})), quota({"pods": "1"}, scopes=["Terminating"])]
    assert not [each for each in quotas.find(program, {}) if each.proven]
    (found,) = verdicts(program, PACK_DEFAULTS)
    assert "`spec.scopes` of ResourceQuota 'team' is not judged" in str(found)


def limit_range(name: str = "defaults", /, **item: Value) -> StackResource:
    metadata: Value = {"name": name, "namespace": "vision"}
    return resource(LIMIT_RANGE, name, {"metadata": metadata, "spec": {"limits": [item]}})


@pytest.mark.parametrize(
    ("ranges", "pod", "word"),
    [
        ([{"default": {"cpu": "1"}}], WITHOUT, Word.PROVED),
        ([{"default": {"cpu": "64"}}], WITHOUT, Word.BROKEN),
        ([{"max": {"cpu": "64"}, "defaultRequest": {"cpu": "1"}}], WITHOUT, Word.PROVED),
        ([{"default": {"cpu": "1"}}, {"default": {"cpu": "64"}}], WITHOUT, Word.NOT_JUDGED),
        ([{"default": {"cpu": "1"}}, {"default": {"cpu": "64"}}], {}, Word.PROVED),
        ([{"default": {"cpu": UNKNOWN}}], WITHOUT, Word.NOT_JUDGED),
        ([{"default": UNKNOWN}], {}, Word.PROVED),
    ],
    ids=["small", "larger than any machine", "below its maximum", "two", "two beside requests", "not known", "not known beside requests"],
)  # fmt: skip
def test_container_without_requests_gets_those_of_the_only_limit_range(
    ranges: list[dict[str, Value]], pod: Json, word: Word
) -> None:
    limits = [limit_range(str(at), type="Container", **each) for at, each in enumerate(ranges)]
    (found,) = verdicts([*job_program(declared_jobset(pod)), *limits], PACK_DEFAULTS)
    (part,) = (each for each in found.parts if each.about == "JobSet 'train'")
    assert part.word is word


def test_quota_counts_the_requests_that_a_limit_range_gives() -> None:
    default = limit_range(type="Container", defaultRequest={"cpu": "2"})
    assert on_jobs(quota({"requests.cpu": "7"}), default, **WITHOUT)
    assert not on_jobs(quota({"requests.cpu": "8"}), default, **WITHOUT)


def test_priority_class_that_may_not_exist_is_not_judged() -> None:
    named: Json = {"priorityClassName": "training"}
    made = resource(
        "kubernetes:scheduling.k8s.io/v1:PriorityClass", "training", {"metadata": {"name": "training"}}
    )
    (found,) = verdicts(job_program(declared_jobset(named)), PACK_DEFAULTS)
    assert "PriorityClass training exists is not known" in str(found)
    (found,) = verdicts(job_program(declared_jobset(named), made), PACK_DEFAULTS)
    assert "JobSet 'train': proved" in str(found)
