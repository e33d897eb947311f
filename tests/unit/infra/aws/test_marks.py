"""Whose each thing is that an AWS stack makes: its tags and labels."""

from __future__ import annotations

import importlib
import inspect
from typing import TYPE_CHECKING

from tests.support.aws_stacks import stack
from tests.support.inputs import mapping, objects, value

if TYPE_CHECKING:
    from tests.support.recorder import Recorded

MARKS = {"app.kubernetes.io/managed-by": "holdfast", "holdfast.dev/stack": "aws-dev"}
SPOT_ROLE_TYPE = ":ServiceLinkedRole"


def takes_tags(resource: Recorded) -> bool:
    """Whether the SDK's class of an AWS resource has tags, by its constructor."""
    _, module, name = resource.type.split(":")
    found = getattr(importlib.import_module(f"pulumi_aws.{module.split('/')[0]}"), name)
    return "tags" in inspect.signature(found._internal_init).parameters


def test_everything_in_aws_that_takes_tags_says_whose_it_is() -> None:
    tagged = [
        resource for resource in stack("aws-dev") if resource.type.startswith("aws:") and takes_tags(resource)
    ]
    assert len(tagged) > 40, "nearly everything in AWS takes tags"
    for resource in tagged:
        if not resource.type.endswith(SPOT_ROLE_TYPE):
            assert mapping(resource, "tags").items() >= MARKS.items(), (
                f"{resource.name} is found, and paid for, by it"
            )


def test_the_spot_role_is_the_accounts_and_bears_no_mark_of_a_stack() -> None:
    role = stack("aws-dev").one(SPOT_ROLE_TYPE)
    assert takes_tags(role), "it could be marked"
    assert value(role, "tags") is None, "the next stack would take the mark off, and put on its own"


def test_machines_say_whose_they_are_whoever_starts_them() -> None:
    for node_class in stack("aws-dev").of(":EC2NodeClass"):
        assert mapping(node_class, "spec", "tags").items() >= MARKS.items(), (
            "Karpenter tags as it is told here"
        )
        assert value(node_class, "spec", "tags", "ebs.csi.aws.com/cluster-name") == "holdfast-aws-dev", (
            "EKS's storage driver attaches volumes to machines with it, and to no others"
        )
    template = stack("aws-dev").one(":LaunchTemplate")
    for specification in objects(template, "tagSpecifications"):
        assert mapping(specification, "tags").items() >= MARKS.items(), (
            "a group's own tags stay with the group"
        )


def test_every_object_in_the_cluster_says_whose_it_is() -> None:
    for resource in stack("aws-dev"):
        if resource.type.startswith("kubernetes:") and not resource.type.endswith(":Release"):
            assert mapping(resource, "metadata", "labels").items() >= MARKS.items(), (
                f"{resource.name} is found by it"
            )
