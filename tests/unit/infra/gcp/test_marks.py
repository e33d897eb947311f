"""Whose each thing is that a GCP stack makes: its labels."""

from __future__ import annotations

import importlib
import inspect
from typing import TYPE_CHECKING

import pytest

from tests.support.gcp_stacks import PLATFORMS, stack
from tests.support.inputs import mapping

if TYPE_CHECKING:
    from tests.support.recorder import Recorded

FIELDS = {"resource_labels": "resourceLabels", "labels": "labels"}

every_stack = pytest.mark.parametrize("name", PLATFORMS)


def field_of_labels(resource: Recorded) -> str | None:
    """Where the SDK's class of a GCP resource takes labels, by its constructor; None: it takes none."""
    _, module, name = resource.type.split(":")
    found = getattr(importlib.import_module(f"pulumi_gcp.{module.split('/')[0]}"), name)
    known = inspect.signature(found._internal_init).parameters
    return next((FIELDS[field] for field in FIELDS if field in known), None)


@every_stack
def test_everything_on_google_cloud_that_takes_labels_says_whose_it_is(name: str) -> None:
    fields = {
        resource.name: (resource, field)
        for resource in stack(name)
        if resource.type.startswith("gcp:")
        for field in [field_of_labels(resource)]
        if field is not None
    }
    assert fields.keys() == {"cluster-control-plane-gke", "checkpoints-bucket"}, (
        "the two that take some: GKE puts the cluster's on its machines and disks"
    )
    for resource, field in fields.values():
        assert (
            mapping(resource, field).items() >= {"managed-by": "holdfast", "holdfast-stack": name}.items()
        ), f"{resource.name} is found, and paid for, by it"


@every_stack
def test_every_object_in_the_cluster_says_whose_it_is(name: str) -> None:
    marks = {"app.kubernetes.io/managed-by": "holdfast", "holdfast.dev/stack": name}
    for resource in stack(name):
        if resource.type.startswith("kubernetes:") and not resource.type.endswith(":Release"):
            assert mapping(resource, "metadata", "labels").items() >= marks.items(), (
                f"{resource.name} is found by it"
            )
