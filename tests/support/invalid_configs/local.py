"""Invalid documents of local stacks, each with one mistake and the problem that it causes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.infra import versions
from tests.support.builders.configurations import entry, kubernetes_minor, list_of
from tests.support.invalid_configs.namespaces import INVALID_NAMESPACES

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.builders.configurations import Document

INVALID_CONFIGS: dict[str, tuple[Callable[[Document], object], str, str]] = {
    # the mistake: the change that makes it, the field of the problem, and a part of the fix
    "a field with a typo": (
        lambda d: entry(d, "pools", 2).update(instanceTypse=["p4d.24xlarge"]),
        ".pools[2].instanceTypse",
        'Write "instanceTypes".',
    ),
    "a field of another tool": (
        lambda d: entry(d, "pools", 2).update(spotMaxPrice=3.5),
        ".pools[2].spotMaxPrice",
        "Karpenter has no field that holds a price cap",
    ),
    "an unknown field": (lambda d: d.update(dashboard=True), ".dashboard", "Remove it."),
    "a missing field": (
        lambda d: entry(d, "pools", 1).pop("maxNodes"),
        ".pools[1].maxNodes",
        "Add `maxNodes: 8`.",
    ),
    "no pools": (lambda d: (d.pop("pools"), d.pop("namespaces")), ".pools", "Add `pools: "),
    "pools that are not a list": (lambda d: d.update(pools="cpu"), ".pools", "for example, `pools: [{"),
    "a pool that is not a mapping": (
        lambda d: d.update(pools=["cpu"]),
        ".pools[0]",
        "for example, `pools: [{",
    ),
    "an empty section": (
        lambda d: d.update(checkpoints=None),
        ".checkpoints",
        "`checkpoints: {directory: ",
    ),
    "a mistyped capacity": (
        lambda d: entry(d, "pools", 1).update(capacity="on_demand"),
        ".pools[1].capacity",
        'Write "on-demand".',
    ),
    "a capacity that is a number": (
        lambda d: entry(d, "pools", 1).update(capacity=1),
        ".pools[1].capacity",
        "for example, `capacity: spot`.",
    ),
    "a number in quotes": (
        lambda d: entry(d, "pools", 1).update(maxNodes="8"),
        ".pools[1].maxNodes",
        "for example, `maxNodes: 8`.",
    ),
    "a boolean for a number": (
        lambda d: entry(d, "pools", 1).update(maxNodes=True),
        ".pools[1].maxNodes",
        "for example, `maxNodes: 8`.",
    ),
    "a pool without nodes": (
        lambda d: entry(d, "pools", 1).update(maxNodes=0),
        ".pools[1].maxNodes",
        "for example, `maxNodes: 8`.",
    ),
    "no instance type": (
        lambda d: entry(d, "pools", 1).update(instanceTypes=[]),
        ".pools[1].instanceTypes",
        "for example, `instanceTypes: [",
    ),
    "an instance type with a typo": (
        lambda d: entry(d, "pools", 1).update(instanceTypes=["c7i.4xlrage"]),
        ".pools[1].instanceTypes[0]",
        'Write "c7i.4xlarge".',
    ),
    "an instance type of another cloud": (
        lambda d: entry(d, "pools", 1).update(instanceTypes=["Standard_ND96asr_v4"]),
        ".pools[1].instanceTypes[0]",
        "describe it in scheduling/machines/local.json",
    ),
    "an instance type twice": (
        lambda d: entry(d, "pools", 1).update(instanceTypes=["c7i.4xlarge", "c7i.4xlarge"]),
        ".pools[1].instanceTypes[1]",
        "Remove one",
    ),
    "machines with and without GPUs": (
        lambda d: entry(d, "pools", 1).update(instanceTypes=["c7i.4xlarge", "g6.12xlarge"]),
        ".pools[1].instanceTypes",
        "two pools",
    ),
    "an invalid name": (
        lambda d: entry(d, "pools", 2).update(name="A100_Spot"),
        ".pools[2].name",
        'Write "a100-spot".',
    ),
    "a name without a valid character": (
        lambda d: entry(d, "pools", 2).update(name="__"),
        ".pools[2].name",
        "such as a100-spot",
    ),
    "a duplicate pool name": (
        lambda d: (
            entry(d, "pools", 3).update(name="cpu-spot")
            or entry(d, "namespaces", 0).update(ladder=[{"pool": "cpu"}])
        ),
        ".pools[3].name",
        "Rename one of the two",
    ),
    "no default pool": (lambda d: entry(d, "pools", 0).pop("default"), ".pools", "Add default: true to cpu."),
    "no pool that could be the default": (
        lambda d: d.update(pools=[entry(d, "pools", 3)], namespaces=[]),
        ".pools",
        "Add `{name: cpu, capacity: on-demand",
    ),
    "two default pools": (
        lambda d: d.update(pools=[*list_of(d, "pools"), {**entry(d, "pools", 0), "name": "cpu-two"}]),
        ".pools[4].default",
        "from one of the two",
    ),
    "a default pool on spot": (
        lambda d: entry(d, "pools", 1).update(default=True),
        ".pools[1].default",
        "Write it on cpu instead.",
    ),
    "a default pool of GPU machines": (
        lambda d: entry(d, "pools", 3).update(default=True),
        ".pools[3].default",
        "Write it on cpu instead.",
    ),
    **INVALID_NAMESPACES,
    "a version without quotes": (
        lambda d: d.update(cluster={"version": float(versions.KUBERNETES)}),
        ".cluster.version",
        f'Put it in quotes: "{versions.KUBERNETES}".',
    ),
    "a version without MutatingAdmissionPolicy": (
        lambda d: d.update(cluster={"version": "1.35"}),
        ".cluster.version",
        "{key: karpenter.sh/capacity-type, operator: Equal,",
    ),
    "a version without tools": (
        lambda d: d.update(cluster={"version": kubernetes_minor(1)}),
        ".cluster.version",
        f'Write "{versions.KUBERNETES}".',
    ),
    "charts over http": (
        lambda d: d.update(mirror={"charts": "http://mirror.example.com"}),
        ".mirror.charts",
        'Write "https://mirror.example.com"',
    ),
    "retainDays for a directory": (
        lambda d: d.update(checkpoints={"retainDays": 30}),
        ".checkpoints.retainDays",
        "Leave it out",
    ),
    "an unknown cloud": (lambda d: d.update(cloud="openstack"), ".cloud", "Write `cloud: local`."),
    "another cloud with a typo": (lambda d: d.update(cloud="awss"), ".cloud", "Write `cloud: aws`."),
    "a cloud with a typo": (lambda d: d.update(cloud="locla"), ".cloud", "Write `cloud: local`."),
    "no cloud": (lambda d: d.pop("cloud"), ".cloud", "Write `cloud: local`."),
}
