"""What holds for the stacks of every cloud, composed under mocks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.builders import aws_stacks, azure_stacks, gcp_stacks
from tests.support.builders.configurations import (
    aws_platform,
    fixed_platform,
    gcp_platform,
    list_of,
    nap_platform,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from holdfast.scheduling.json import JsonValue
    from tests.support.builders.configurations import Document
    from tests.support.fakes.pulumi_engine import Recording

    Change = Callable[[Document], object]

MODULES = {"aws": aws_stacks, "azure": azure_stacks, "gcp": gcp_stacks}
every_stack = pytest.mark.parametrize(
    ("cloud", "name"), [(cloud, name) for cloud, module in MODULES.items() for name in module.PLATFORMS]
)

#: Kind of stack → composes one after a change of its document, and the machines of a pool of this kind.
KINDS: Mapping[str, tuple[Callable[[Change], Recording], dict[str, JsonValue]]] = {
    "aws": (lambda change: aws_stacks.composed(aws_platform(change)), {"instanceTypes": ["g6.12xlarge"]}),
    "azure-nap": (
        lambda change: azure_stacks.composed(nap_platform(change)),
        {"vmSizes": ["Standard_NC24ads_A100_v4"]},
    ),
    "azure-fixed": (
        lambda change: azure_stacks.composed(fixed_platform(change)),
        {"vmSize": "Standard_NC24ads_A100_v4"},
    ),
    "gcp": (lambda change: gcp_stacks.composed(gcp_platform(change)), {"machineType": "g2-standard-8"}),
}


@every_stack
def test_a_preview_registers_what_an_up_registers(cloud: str, name: str) -> None:
    planned = {resource.urn for resource in MODULES[cloud].stack(name, preview=True)}
    registered = {resource.urn for resource in MODULES[cloud].stack(name)}
    assert planned == registered, "no resource may depend on a value that is unknown in a preview"


@every_stack
def test_logical_names_are_unique(cloud: str, name: str) -> None:
    # Azure derives the name of the storage account from its logical name, so the component has the same one.
    names = [each.name for each in MODULES[cloud].stack(name) if each.custom or cloud != "azure"]
    assert len(set(names)) == len(names), "two resources with one name are hard to distinguish in a plan"


@pytest.mark.parametrize("kind", KINDS)
def test_an_added_pool_or_namespace_changes_no_other_urn(kind: str) -> None:
    compose, machines = KINDS[kind]

    def add(document: Document) -> None:
        list_of(document, "pools").insert(0, {"name": "extra", "capacity": "spot", "maxNodes": 1, **machines})
        list_of(document, "namespaces").insert(0, {"name": "speech", "ladder": [{"pool": "cpu"}]})

    before = {resource.urn for resource in compose(lambda _: None)}
    assert before < {resource.urn for resource in compose(add)}, (
        "an addition must not replace other resources"
    )


@pytest.mark.parametrize("kind", ["aws", "azure-nap", "gcp"])
def test_a_stack_without_training_namespaces_has_its_pools(kind: str) -> None:
    recording = KINDS[kind][0](lambda document: document.update(namespaces=[]))
    assert not recording.of("TrainingNamespace"), "teams may come later"
    assert len(recording.of(":NodePool")) >= 4, "the pools exist"
