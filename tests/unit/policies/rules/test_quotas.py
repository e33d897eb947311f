"""Training namespaces without a quota, and quotas that are too small for a gang."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.policies.rules import quotas
from holdfast.scheduling.json import UNKNOWN
from tests.support.builders.policy_programs import STACKS, every, program, put, without
from tests.support.builders.stack_resources import FALLBACK_POLICY_TYPE, compliant, namespace, resource

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
def test_own_stacks_have_quotas_and_without_or_below_the_gang_each_namespace_is_reported(stack: str) -> None:
    resources = program(stack)
    namespaces = len(every(resources, ":FallbackPolicy"))
    assert messages(*resources) == [], "users start from them"
    for each in every(resources, ":ResourceQuota"):
        put(each, "1", "spec", "hard", "pods")
    found = messages(*resources)
    assert len(found) == namespaces, "one for each training namespace"
    assert all("ResourceQuota 'training' has `pods: 1`" in message for message in found), "with the reason"
    without(resources, *every(resources, ":ResourceQuota"))
    found = messages(*resources)
    assert len(found) == namespaces, "one for each training namespace"
    assert all("has no ResourceQuota" in message for message in found), "with the reason"


@pytest.mark.parametrize(
    "hard",
    [
        {"pods": "100"},
        {"count/pods": "100"},
        {"requests.nvidia.com/gpu": "32"},
        {"requests.cpu": "192", "requests.memory": "2Ti"},
        {"requests.nvidia.com/gpu": 32.0},
        {"pods": UNKNOWN},
        UNKNOWN,
    ],
)
def test_quota_with_room_for_the_gang_passes(hard: Value) -> None:
    assert messages(namespace(), shaped(FINETUNE), quota(hard)) == [], "no finding"


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
    assert message.startswith("namespace 'vision' cannot run shape finetune (4 pods of 8 GPUs"), "the shape"
    assert named in message, "the key and value"


def test_quota_for_other_resources_is_not_effective_and_a_scoped_one_is_not_compared() -> None:
    (message,) = messages(namespace(), quota({"configmaps": "10"}))
    assert "limits neither GPUs nor CPUs nor pods" in message, "one job may still use everything"
    scoped = quota({"pods": "1"}, scopes=["Terminating"])
    assert messages(namespace(), shaped(FINETUNE), scoped) == [], "the scope may not cover the gang's pods"


@pytest.mark.parametrize("inside", [UNKNOWN, "elsewhere"])
def test_quota_in_an_unknown_namespace_may_be_the_required_one(inside: Value) -> None:
    found = messages(namespace(), quota({"pods": "100"}, inside=inside))
    assert (found == []) is (inside is UNKNOWN), "a missing quota is not certain"


@given(pods=st.integers(1, 300), bound=st.integers(0, 300))
def test_gang_is_reported_exactly_if_it_has_more_pods_than_the_quota(pods: int, bound: int) -> None:
    shape: Value = {"name": "wide", "pods": float(pods), "cpu": "1", "memory": "1Gi"}
    found = messages(namespace(), shaped(shape), quota({"pods": str(bound)}))
    assert bool(found) is (pods > bound), "the API server admits as many pods as the quota allows"


def test_namespace_without_training_needs_no_quota() -> None:
    assert messages(*compliant()[1:], namespace(labels={"team": "web"})) == [], "it is not for training"
