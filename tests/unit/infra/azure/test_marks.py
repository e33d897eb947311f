"""Whose each thing is that an Azure stack makes: its tags and labels."""

from __future__ import annotations

import importlib
import inspect
from typing import TYPE_CHECKING

import pytest

from tests.support.azure_stacks import PLATFORMS, stack
from tests.support.inputs import mapping

if TYPE_CHECKING:
    from tests.support.recorder import Recorded

every_stack = pytest.mark.parametrize("name", PLATFORMS)


def takes_tags(resource: Recorded) -> bool:
    """Whether the SDK's class of an Azure resource takes tags, by its constructor."""
    _, module, name = resource.type.split(":")
    found = getattr(importlib.import_module(f"pulumi_azure_native.{module}"), name)
    return "tags" in inspect.signature(found._internal_init).parameters


@every_stack
def test_everything_on_azure_that_takes_tags_says_whose_it_is(name: str) -> None:
    marks = {"managed-by": "holdfast", "holdfast-stack": name}
    tagged = [found for found in stack(name) if found.type.startswith("azure-native:") and takes_tags(found)]
    kinds = {found.type.rpartition(":")[2] for found in tagged}
    assert kinds >= {"ResourceGroup", "ManagedCluster", "StorageAccount", "UserAssignedIdentity"}, (
        "these take some: AKS puts the cluster's on its machines and disks"
    )
    for resource in tagged:
        assert mapping(resource, "tags").items() >= marks.items(), (
            f"{resource.name} is found, and paid for, by it"
        )


@every_stack
def test_the_machines_of_pools_say_whose_they_are(name: str) -> None:
    marks = {"managed-by": "holdfast", "holdfast-stack": name}
    for found in stack(name).of(":AKSNodeClass"):
        assert mapping(found, "spec", "tags").items() >= marks.items(), "Karpenter puts them on its machines"
    for found in stack(name).of(":AgentPool"):
        assert mapping(found, "tags").items() >= marks.items(), "AKS puts them on its scale sets"


@every_stack
def test_every_object_in_the_cluster_says_whose_it_is(name: str) -> None:
    marks = {"app.kubernetes.io/managed-by": "holdfast", "holdfast.dev/stack": name}
    for resource in stack(name):
        if resource.type.startswith("kubernetes:") and not resource.type.endswith(":Release"):
            assert mapping(resource, "metadata", "labels").items() >= marks.items(), (
                f"{resource.name} is found by it"
            )
