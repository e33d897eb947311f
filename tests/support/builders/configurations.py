"""Valid objects to start from: a test overrides the one thing it is about."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, TypeAlias, cast

from holdfast.infra.clouds import cloud_of
from holdfast.scheduling.errors import ConfigError
from holdfast.scheduling.labels import CapacityType
from holdfast.scheduling.machines import Machine
from holdfast.scheduling.pools import Pool

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.infra.local.config.stack import LocalPlatform
    from holdfast.scheduling.errors import Problem
    from holdfast.scheduling.json import JsonValue

Document: TypeAlias = "dict[str, JsonValue]"

#: Training namespaces over the pools that every cloud's document has here: cpu, cpu-spot, a100-spot, a100.
NAMESPACES: JsonValue = [
    {
        "name": "vision",
        "ladder": [
            {"pool": "a100-spot", "maxFailures": 5, "procurementTimeout": "15m"},
            {"pool": "a100"},
        ],
    },
    {"name": "tabular", "ladder": [{"pool": "cpu-spot", "maxFailures": 5}, {"pool": "cpu"}]},
]

_PLATFORM: Document = {
    "cloud": "local",
    "pools": [
        {
            "name": "cpu",
            "capacity": "on-demand",
            "instanceTypes": ["m7i.xlarge"],
            "maxNodes": 20,
            "default": True,
        },
        {"name": "cpu-spot", "capacity": "spot", "instanceTypes": ["c7i.4xlarge"], "maxNodes": 8},
        {"name": "a100-spot", "capacity": "spot", "instanceTypes": ["p4d.24xlarge"], "maxNodes": 8},
        {"name": "a100", "capacity": "on-demand", "instanceTypes": ["p4d.24xlarge"], "maxNodes": 4},
    ],
    "namespaces": NAMESPACES,
}


def platform_document(change: Callable[[Document], object] = lambda _: None) -> Document:
    """A local stack's document as it is written, after one change to it."""
    document = deepcopy(_PLATFORM)
    change(document)
    return document


def list_of(document: Document, section: str) -> list[JsonValue]:
    """One of a document's lists."""
    found = document[section]
    assert isinstance(found, list), f"{section} is a list"
    return found


def entry(document: Document, section: str, index: int) -> Document:
    """An item of one of a document's lists."""
    return cast("list[Document]", document[section])[index]


def tier(document: Document, namespace: int, index: int) -> Document:
    """A tier of a namespace's ladder."""
    return cast("list[Document]", entry(document, "namespaces", namespace)["ladder"])[index]


def read(document: JsonValue) -> LocalPlatform:
    """Parse a document as the program does."""
    cloud, found = cloud_of(document)
    return cast("LocalPlatform", cloud.read(found, {}))


def problems(document: JsonValue) -> tuple[Problem, ...]:
    """What is wrong with a document."""
    try:
        read(document)
    except ConfigError as error:
        return error.problems
    return ()


def pool(
    name: str = "cpu",
    *,
    capacity: CapacityType = CapacityType.ON_DEMAND,
    has_gpus: bool = False,
    max_nodes: int = 4,
    is_default: bool = False,
) -> Pool:
    """An on-demand pool of CPU machines."""
    return Pool(name=name, capacity=capacity, has_gpus=has_gpus, max_nodes=max_nodes, is_default=is_default)


def machine(name: str = "m7i.xlarge", *, vcpus: int = 4, gpus: int = 0) -> Machine:
    """A small CPU machine."""
    return Machine(name=name, vcpus=vcpus, memory_mib=16384, gpus=gpus, hourly_price=0.2)
