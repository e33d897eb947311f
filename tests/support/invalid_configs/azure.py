"""Invalid documents of Azure stacks, each with one mistake and the problem that it causes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.builders.configurations import entry, section
from tests.support.invalid_configs.azure_cluster import INVALID_CLUSTERS
from tests.support.invalid_configs.namespaces import INVALID_NAMESPACES

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.scheduling.json import JsonValue
    from tests.support.builders.configurations import Document

    Mistake = tuple[Callable[[Document], object], str, str]


def pool(index: int, **given: JsonValue) -> Callable[[Document], object]:
    """Change the values of a pool."""
    return lambda document: entry(document, "pools", index).update(given)


def checkpoints(**given: JsonValue) -> Callable[[Document], object]:
    """A document with other checkpoints."""
    return lambda document: section(document, "checkpoints").update(given)


def namespace(name: str) -> Callable[[Document], object]:
    """A document whose first training namespace has another name."""
    return lambda document: entry(document, "namespaces", 0).update(name=name)


#: Invalid with both kinds of scaling.
INVALID_CONFIGS: dict[str, Mistake] = {
    # the mistake: the change that makes it, the field of the problem, and a part of the fix
    "a location in the document": (
        lambda d: d.update(location="eastus2"),
        ".location",
        "azure-native:location",
    ),
    "a subscription in the document": (
        lambda d: d.update(subscription="mine"),
        ".subscription",
        "azure-native:subscriptionId",
    ),
    "an existing resource group": (
        lambda d: d.update(resourceGroup="mine"),
        ".resourceGroup",
        "the stack creates one",
    ),
    "scaling outside cluster": (lambda d: d.update(scaling="nap"), ".scaling", "Move it to cluster."),
    "resourcePools of Determined": (lambda d: d.update(resourcePools=[]), ".resourcePools", "Write pools"),
    **INVALID_CLUSTERS,
    "a taint": (
        pool(2, taints=[{"key": "gpu"}]),
        ".pools[2].taints",
        "follow from its capacity and its GPUs",
    ),
    "an eviction policy": (
        pool(1, evictionPolicy="Deallocate"),
        ".pools[1].evictionPolicy",
        "count against the quota",
    ),
    "a minimum number of nodes": (pool(1, minCount=1), ".pools[1].minCount", "down to zero"),
    "priority instead of capacity": (pool(1, priority="Spot"), ".pools[1].priority", "Write capacity: spot"),
    "a disk that is too large": (pool(1, diskGiB=4096), ".pools[1].diskGiB", "`diskGiB: 128`"),
    "a zone of a pool that does not exist": (pool(1, zones=[1, 5]), ".pools[1].zones[1]", "such as 1"),
    "a zone of a pool twice": (pool(1, zones=["2", 2]), ".pools[1].zones[1]", "Remove one"),
    "no default pool": (lambda d: entry(d, "pools", 0).pop("default"), ".pools", "Add default: true to cpu."),
    "a default pool on spot": (
        lambda d: (entry(d, "pools", 0).pop("default"), entry(d, "pools", 1).update(default=True)),
        ".pools[1].default",
        "Write it on cpu instead.",
    ),
    "a default pool with GPUs": (
        lambda d: (entry(d, "pools", 0).pop("default"), entry(d, "pools", 3).update(default=True)),
        ".pools[3].default",
        "Write it on cpu instead.",
    ),
    # checkpoints
    "checkpoints kept for longer than a year": (
        checkpoints(retainDays=366),
        ".checkpoints.retainDays",
        "`retainDays: 30`",
    ),
    "copies in another region": (
        checkpoints(redundancy="Standard_GRS"),
        ".checkpoints.redundancy",
        "`redundancy: Standard_LRS`",
    ),
    "a bucket's name": (checkpoints(bucket="mine"), ".checkpoints.bucket", "and names it"),
    "a key of checkpoints": (checkpoints(kmsKey="mine"), ".checkpoints.kmsKey", "with its own keys"),
    # the rest
    "charts over plain http": (
        lambda d: d.update(mirror={"charts": "http://mirror.example.com"}),
        ".mirror.charts",
        'Write "https://mirror.example.com"',
    ),
    "a registry with its scheme": (
        lambda d: d.update(mirror={"images": "https://holdfast.azurecr.io/mirror"}),
        ".mirror.images",
        'Write "holdfast.azurecr.io/mirror".',
    ),
    "a namespace too short for a container": (namespace("ml"), ".namespaces[0].name", '"ml-training"'),
    "a namespace with hyphens side by side": (namespace("ml--vision"), ".namespaces[0].name", '"ml-vision"'),
    "a namespace of AKS": (namespace("aks-command"), ".namespaces[0].name", '"training-aks-command"'),
    **INVALID_NAMESPACES,
}

#: Of a stack on node auto-provisioning.
INVALID_NAP_CONFIGS: dict[str, Mistake] = {
    "a way of scaling with a typo": (
        lambda d: section(d, "cluster").update(scaling="karpenter"),
        ".cluster.scaling",
        "`scaling: nap`",
    ),
    "a price cap": (
        pool(1, spotMaxPrice=0.5),
        ".pools[1].spotMaxPrice",
        "`scaling: fixed` under cluster, where spot pools have spotMaxPrice",
    ),
    "a price cap as in Determined": (
        pool(1, spot_max_price="0.5"),
        ".pools[1].spot_max_price",
        "no field for a cap",
    ),
    "one VM size": (
        pool(1, vmSize="Standard_D16ds_v5"),
        ".pools[1].vmSize",
        "or `scaling: fixed` under cluster",
    ),
    "instance types": (pool(0, instanceTypes=["m7i.xlarge"]), ".pools[0].instanceTypes", "Write vmSizes."),
    "no VM size": (lambda d: entry(d, "pools", 0).pop("vmSizes"), ".pools[0].vmSizes", "Add `vmSizes: "),
    "an empty list of VM sizes": (pool(0, vmSizes=[]), ".pools[0].vmSizes", "`vmSizes: [Standard_D4ds_v5"),
    "VM sizes and families": (pool(0, families=["Dds_v5"]), ".pools[0].families", "Remove one of the two."),
    "families without vcpus": (
        lambda d: entry(d, "pools", 1).pop("vcpus"),
        ".pools[1].vcpus",
        "Add `vcpus: [",
    ),
    "vcpus without families": (
        lambda d: entry(d, "pools", 1).pop("families"),
        ".pools[1].families",
        "Add `families: [",
    ),
    "a VM size with a typo": (
        pool(0, vmSizes=["Standard_D4ds_v55"]),
        ".pools[0].vmSizes[0]",
        'Write "Standard_D4ds_v5".',
    ),
    "a VM size in small letters": (
        pool(0, vmSizes=["standard_d4ds_v5"]),
        ".pools[0].vmSizes[0]",
        'Write "Standard_D4ds_v5".',
    ),
    "a VM size without its first word": (
        pool(0, vmSizes=["D4ds_v5"]),
        ".pools[0].vmSizes[0]",
        'Write "Standard_D4ds_v5".',
    ),
    "a machine type of another cloud": (
        pool(0, vmSizes=["p4d.24xlarge"]),
        ".pools[0].vmSizes[0]",
        "az vm list-skus --location eastus2",
    ),
    "a VM size twice": (
        pool(0, vmSizes=["Standard_D4ds_v5", "Standard_D4ds_v5"]),
        ".pools[0].vmSizes[1]",
        "Remove one",
    ),
    "machines with and without GPUs": (
        pool(0, vmSizes=["Standard_D4ds_v5", "Standard_NC24ads_A100_v4"]),
        ".pools[0].vmSizes",
        "Write two pools",
    ),
    "a family with a typo": (pool(1, families=["Ddss_v5", "Dads_v5"]), ".pools[1].families[0]", 'Write "D'),
    "a number of vCPUs that no family has": (
        pool(1, vcpus=[16, 17]),
        ".pools[1].vcpus[1]",
        "Write one of them, or remove it.",
    ),
    "a number of vCPUs in quotes": (pool(1, vcpus=["16"]), ".pools[1].vcpus[0]", "`vcpus: [4, 8]`"),
    "machines of two architectures": (
        pool(0, vmSizes=["Standard_D4ds_v5", "Standard_D4pds_v5"]),
        ".pools[0]",
        "Write two pools",
    ),
}

#: Of a stack of scale sets.
INVALID_FIXED_CONFIGS: dict[str, Mistake] = {
    "several VM sizes": (
        pool(1, vmSize=["Standard_D16ds_v5", "Standard_D16ads_v5"]),
        ".pools[1].vmSize",
        "a scale set has one VM size. If it is often out of capacity, add a pool for each size",
    ),
    "a list of one VM size": (
        pool(1, vmSize=["Standard_D16ds_v5"]),
        ".pools[1].vmSize",
        'Write "Standard_D16ds_v5", without the brackets.',
    ),
    "VM sizes as node auto-provisioning has them": (
        pool(1, vmSizes=["Standard_D16ds_v5"]),
        ".pools[1].vmSizes",
        "With `scaling: nap` under cluster, a pool can have several",
    ),
    "families": (pool(1, families=["Dds_v5"]), ".pools[1].families", "Write vmSize, one for each pool"),
    "no VM size": (lambda d: entry(d, "pools", 1).pop("vmSize"), ".pools[1].vmSize", "Add `vmSize: "),
    "a VM size with a typo": (
        pool(1, vmSize="Standard_D16ds_v55"),
        ".pools[1].vmSize",
        'Write "Standard_D16ds_v5".',
    ),
    "a price cap on demand": (pool(0, spotMaxPrice=1.5), ".pools[0].spotMaxPrice", "Leave it out."),
    "a price cap of nothing": (pool(1, spotMaxPrice=0), ".pools[1].spotMaxPrice", "Leave it out for"),
    "a negative price cap": (pool(1, spotMaxPrice=-2.5), ".pools[1].spotMaxPrice", "Leave it out for"),
    "a price cap that is too precise": (
        pool(1, spotMaxPrice=0.1234567),
        ".pools[1].spotMaxPrice",
        "`spotMaxPrice: 0.12346`",
    ),
    "a price cap in quotes": (pool(1, spotMaxPrice="0.5"), ".pools[1].spotMaxPrice", "`spotMaxPrice: 1.5`"),
    "machines that are rolled out": (
        pool(1, rollOut=True),
        ".pools[1].rollOut",
        "AKS upgrades the nodes of a scale set",
    ),
    "pools of one name to AKS": (
        lambda d: (d.pop("namespaces"), entry(d, "pools", 2).update(name="cpuspot")),
        ".pools[2].name",
        "Rename one of the two",
    ),
}
