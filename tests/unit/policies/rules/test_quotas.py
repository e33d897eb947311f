"""Training namespaces without quota, and quotas that keep a gang from ever running."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.policies.rules import quotas
from holdfast.scheduling.json import UNKNOWN
from tests.support.policy_programs import STACKS, every, program, put, without
from tests.support.stack_resources import FALLBACK_POLICY_TYPE, compliant, namespace, resource

if TYPE_CHECKING:
    from holdfast.policies.resources import StackResource, Value

QUOTA = "kubernetes:core/v1:ResourceQuota"
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
def test_the_repositorys_own_stacks_set_quotas_with_room_for_what_they_declare(stack: str) -> None:
    assert messages(*program(stack)) == [], "they are what users start from"


@pytest.mark.parametrize("stack", STACKS)
def test_a_namespace_whose_quota_is_gone_is_named(stack: str) -> None:
    resources = program(stack)
    without(resources, *every(resources, ":ResourceQuota"))
    found = messages(*resources)
    assert len(found) == len(every(resources, ":FallbackPolicy")), "one for each training namespace"
    assert all("has no ResourceQuota" in message for message in found), "and why"


@pytest.mark.parametrize("stack", STACKS)
def test_a_quota_of_one_pod_less_than_the_gang_is_named(stack: str) -> None:
    resources = program(stack)
    for each in every(resources, ":ResourceQuota"):
        put(each, "1", "spec", "hard", "pods")
    found = messages(*resources)
    assert len(found) == len(every(resources, ":FallbackPolicy")), "one for each training namespace"
    assert all("ResourceQuota 'training' has `pods: 1`" in message for message in found), "and why"


@pytest.mark.parametrize(
    "hard",
    [
        {"pods": "100"},
        {"count/pods": "100"},
        {"requests.nvidia.com/gpu": "32"},
        {"requests.cpu": "192", "requests.memory": "2Ti"},
        {"requests.nvidia.com/gpu": 32.0},
        {"pods": UNKNOWN},
    ],
)
def test_a_quota_with_room_for_the_gang_is_passed_over(hard: Value) -> None:
    assert messages(namespace(), shaped(FINETUNE), quota(hard)) == [], "there is nothing to say of it"


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
def test_a_quota_too_small_for_the_gang_is_named_with_what_it_lacks(hard: Value, named: str) -> None:
    (message,) = messages(namespace(), shaped(FINETUNE), quota(hard))
    assert message.startswith("namespace 'vision' cannot run shape finetune (4 pods of 8 GPUs"), "whose"
    assert named in message, "and what"


def test_a_quota_of_other_things_bounds_nothing() -> None:
    (message,) = messages(namespace(), quota({"configmaps": "10"}))
    assert "bounds neither GPUs nor CPUs nor pods" in message, "one job may still take everything"


def test_a_quota_of_some_pods_is_not_held_against_a_gang() -> None:
    assert messages(namespace(), shaped(FINETUNE), quota({"pods": "1"}, scopes=["Terminating"])) == [], (
        "a gang's pods may not be among them"
    )


@pytest.mark.parametrize("inside", [UNKNOWN, "elsewhere"])
def test_a_quota_whose_namespace_is_not_known_may_be_the_one(inside: Value) -> None:
    found = messages(namespace(), quota({"pods": "100"}, inside=inside))
    assert (found == []) is (inside is UNKNOWN), "a verdict waits for what only the update knows"


def test_a_quota_whose_bounds_are_not_known_may_bound_anything() -> None:
    assert messages(namespace(), shaped(FINETUNE), quota(UNKNOWN)) == [], "only the update knows"


@given(pods=st.integers(1, 300), bound=st.integers(0, 300))
def test_a_gang_is_refused_exactly_when_it_has_more_pods_than_the_quota(pods: int, bound: int) -> None:
    shape: Value = {"name": "wide", "pods": float(pods), "cpu": "1", "memory": "1Gi"}
    found = messages(namespace(), shaped(shape), quota({"pods": str(bound)}))
    assert bool(found) is (pods > bound), "the API server lets in as many as the quota says"


def test_a_namespace_that_trains_nothing_needs_none() -> None:
    assert messages(*compliant()[1:], namespace(labels={"team": "web"})) == [], "the rule is about training"
