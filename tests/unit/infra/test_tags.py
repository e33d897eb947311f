"""The tags of a stack file are on everything that a cloud bills, also where a controller makes it."""

import json
from collections.abc import Callable, Mapping
from functools import cache
from typing import Final

import pytest

from pulumi_holdfast.ladder.errors import ConfigError
from pulumi_holdfast.ladder.json import Json, JsonValue
from tests.support.builders import aws_stacks, azure_stacks, gcp_stacks
from tests.support.builders.configurations import (
    Document,
    aws_platform,
    fixed_platform,
    gcp_platform,
    nap_platform,
)
from tests.support.fakes.pulumi_engine import Recording
from tests.support.inputs import objects, text, value
from tests.unit.infra.test_stacks import SPOT_ROLE, field_of_tags

TAGS: Final = {"cost-center": "ml", "team": "vision"}


def add_tags(document: Document) -> None:
    document["tags"] = {**TAGS}


STACKS: Final[Mapping[str, Callable[[], Recording]]] = {
    "aws": lambda: aws_stacks.composed(aws_platform(add_tags)),
    "gcp": lambda: gcp_stacks.composed(gcp_platform(add_tags)),
    "nap": lambda: azure_stacks.composed(nap_platform(add_tags)),
    "fixed": lambda: azure_stacks.composed(fixed_platform(add_tags)),
}


@cache
def composed(stack: str) -> Recording:
    return STACKS[stack]()


def has_tags(found: JsonValue) -> bool:
    return isinstance(found, Mapping) and TAGS.items() <= found.items()


@pytest.mark.parametrize("stack", STACKS)
def test_every_cloud_resource_that_takes_tags_has_them(stack: str) -> None:
    prefix = {"aws": "aws:", "gcp": "gcp:"}.get(stack, "azure-native:")
    made = [each for each in composed(stack) if each.type.startswith(prefix)]
    fields = [
        (each, field) for each in made if (field := field_of_tags(each)) and not each.type.endswith(SPOT_ROLE)
    ]
    assert fields
    assert [each.name for each, field in fields if not has_tags(value(each, field))] == []


def volumes_of_claims(stack: Recording) -> JsonValue:
    (driver,) = [each for each in stack.of(":Addon") if each.inputs["addonName"] == "aws-ebs-csi-driver"]
    configuration: Json = json.loads(text(driver, "configurationValues"))
    return value(configuration, "controller", "extraVolumeTags")


#: What controllers make: by stack, the tags in each resource that orders it.
ORDERED: Final[Mapping[str, tuple[str, Callable[[Recording], list[JsonValue]]]]] = {
    "machines, disks and interfaces of EKS's system nodes": (
        "aws",
        lambda stack: [each["tags"] for each in objects(stack.one(":LaunchTemplate"), "tagSpecifications")],
    ),
    "machines of Karpenter": (
        "aws",
        lambda stack: [value(each, "spec", "tags") for each in stack.of(":EC2NodeClass")],
    ),
    "volumes of claims on AWS": ("aws", lambda stack: [volumes_of_claims(stack)]),
    "machines of GKE": (
        "gcp",
        lambda stack: [value(each, "nodeConfig", "resourceLabels") for each in stack.of(":NodePool")],
    ),
    "machines of node auto-provisioning": (
        "nap",
        lambda stack: [value(each, "spec", "tags") for each in stack.of(":AKSNodeClass")],
    ),
    "machines of scale sets": (
        "fixed",
        lambda stack: [value(each, "tags") for each in stack.of(":AgentPool")],
    ),
    "machines of AKS's system pool": (
        "fixed",
        lambda stack: [each["tags"] for each in objects(stack.one(":ManagedCluster"), "agentPoolProfiles")],
    ),
}


@pytest.mark.parametrize("what", ORDERED)
def test_what_controllers_make_has_the_tags(what: str) -> None:
    stack, tags_in = ORDERED[what]
    found = tags_in(composed(stack))
    assert found
    assert all(has_tags(each) for each in found)


def _with(key: str, text: str) -> Callable[[Document], None]:
    return lambda document: document.update(tags={key: text})


@pytest.mark.parametrize(
    ("read", "key", "text", "accepted"),
    [
        (aws_platform, "Cost Center", "ML/1", True),
        (aws_platform, "aws:owner", "ml", False),
        (aws_platform, "karpenter.sh/nodepool", "ml", False),
        (aws_platform, "owner", "ml!", False),
        (nap_platform, "Cost Center", "ML/1", True),
        (nap_platform, "cost/center", "ml", False),
        (nap_platform, "holdfast-configuration", "a.b", False),
        (gcp_platform, "cost-center", "ml", True),
        (gcp_platform, "Cost", "ml", False),
        (gcp_platform, "goog-owner", "ml", False),
    ],
)
def test_a_tag_that_the_cloud_or_holdfast_would_not_keep_is_refused(
    read: Callable[[Callable[[Document], None]], object], key: str, text: str, accepted: bool
) -> None:
    if accepted:
        assert read(_with(key, text))
        return
    with pytest.raises(ConfigError) as raised:
        read(_with(key, text))
    assert [problem.field for problem in raised.value.problems] == [f"holdfast:platform.tags.{key}"]
