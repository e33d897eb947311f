"""Invalid documents of GCP stacks, each with one mistake and the problem that it causes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.builders.configurations import entry, section
from tests.support.invalid_configs.gcp_cluster import INVALID_CLUSTERS
from tests.support.invalid_configs.namespaces import INVALID_NAMESPACES

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.scheduling.json import JsonValue
    from tests.support.builders.configurations import Document


def pool(index: int, **given: JsonValue) -> Callable[[Document], object]:
    """Change the values of a pool."""
    return lambda document: entry(document, "pools", index).update(given)


def checkpoints(**given: JsonValue) -> Callable[[Document], object]:
    """A document with other checkpoints."""
    return lambda document: section(document, "checkpoints").update(given)


INVALID_CONFIGS: dict[str, tuple[Callable[[Document], object], str, str]] = {
    # the mistake: the change that makes it, the field of the problem, and a part of the fix
    "a project in the document": (lambda d: d.update(project="p"), ".project", "gcp:project"),
    "a region in the document": (lambda d: d.update(region="us-east1"), ".region", "gcp:region"),
    "an environment of one's own": (
        lambda d: d.update(environment="dev"),
        ".environment",
        "contain the stack's name",
    ),
    "resourcePools of Determined": (lambda d: d.update(resourcePools=[]), ".resourcePools", "Write pools"),
    **INVALID_CLUSTERS,
    # pools
    "several machine types": (
        pool(1, machineType=["n2-standard-16", "c3-standard-22"]),
        ".pools[1].machineType",
        "a GKE node pool has one machine type. If it is often out of capacity, list more zones",
    ),
    "a list of one machine type": (
        pool(1, machineType=["n2-standard-16"]),
        ".pools[1].machineType",
        'Write "n2-standard-16", without the brackets.',
    ),
    "instance types": (
        pool(1, instanceTypes=["n2-standard-16"]),
        ".pools[1].instanceTypes",
        "Write machineType",
    ),
    "no machine type": (
        lambda d: entry(d, "pools", 1).pop("machineType"),
        ".pools[1].machineType",
        "Add `machineType: ",
    ),
    "a machine type with a typo": (
        pool(1, machineType="n2-standrad-16"),
        ".pools[1].machineType",
        'Write "n2-standard-16".',
    ),
    "a machine type of another cloud": (
        pool(1, machineType="Standard_ND96asr_v4"),
        ".pools[1].machineType",
        "gcloud compute machine-types list",
    ),
    "a price cap": (pool(1, spotMaxPrice=1.5), ".pools[1].spotMaxPrice", "Compute Engine has no bids"),
    "a price cap as in Determined": (
        pool(1, spot_max_price="1.5"),
        ".pools[1].spot_max_price",
        "Compute Engine has no bids",
    ),
    "a taint of GPUs": (
        pool(2, taints=[{"key": "nvidia.com/gpu"}]),
        ".pools[2].taints",
        "GKE adds the one of GPUs",
    ),
    "a number of nodes to begin with": (
        pool(1, initialNodeCount=2),
        ".pools[1].initialNodeCount",
        "zero nodes",
    ),
    "a machine that is not sold on demand": (
        pool(3, machineType="a3-highgpu-1g"),
        ".pools[3].machineType",
        "or the other capacity",
    ),
    "an Arm machine": (
        pool(1, machineType="t2a-standard-4"),
        ".pools[1].machineType",
        "n2-standard-4",
    ),
    "GPUs for a machine that brings its own": (
        pool(2, accelerator={"type": "nvidia-tesla-a100", "count": 8}),
        ".pools[2].accelerator",
        "Leave it out.",
    ),
    "GPUs for a machine that takes none": (
        pool(1, accelerator={"type": "nvidia-tesla-t4", "count": 1}),
        ".pools[1].accelerator",
        "n1-standard-8",
    ),
    "GPUs by another name": (
        pool(1, machineType="n1-standard-8", accelerator={"type": "nvidia-t4", "count": 1}),
        ".pools[1].accelerator.type",
        'Write "nvidia-tesla-t4".',
    ),
    "three GPUs": (
        pool(1, machineType="n1-standard-8", accelerator={"type": "nvidia-tesla-t4", "count": 3}),
        ".pools[1].accelerator.count",
        "`count: 1`",
    ),
    "too few GPUs for so many vCPUs": (
        pool(1, machineType="n1-standard-32", accelerator={"type": "nvidia-tesla-v100", "count": 1}),
        ".pools[1].accelerator.count",
        "`count: 4`",
    ),
    "a pool in a zone outside the region": (
        pool(2, zones=["europe-west4-a"]),
        ".pools[2].zones[0]",
        'Write "us-central1-a"',
    ),
    "machines close together in two zones": (
        pool(2, compactPlacement=True),
        ".pools[2].compactPlacement",
        "`zones: [us-central1-a]`",
    ),
    "machines close together in all zones": (
        pool(3, compactPlacement=True),
        ".pools[3].compactPlacement",
        "A later change of the zone replaces the node pool",
    ),
    "machines close together of which none are": (
        pool(0, machineType="e2-standard-4", compactPlacement=True, zones=["us-central1-a"]),
        ".pools[0].compactPlacement",
        "c2-standard-8",
    ),
    "a shutdown of a minute": (
        pool(1, gracefulShutdownSeconds=60),
        ".pools[1].gracefulShutdownSeconds",
        "`gracefulShutdownSeconds: 30`",
    ),
    "a shutdown on demand": (
        pool(3, gracefulShutdownSeconds=30),
        ".pools[3].gracefulShutdownSeconds",
        "Leave it out.",
    ),
    "upgrades for short-lived machines": (
        pool(1, upgrades="short-lived"),
        ".pools[1].upgrades",
        "`upgrades: surge`",
    ),
    "a name that is too long": (
        lambda d: (
            d.pop("namespaces"),
            entry(d, "pools", 1).update(name="a" * 41),
        ),
        ".pools[1].name",
        f'Write "{"a" * 40}".',
    ),
    "a name that starts with a digit": (
        lambda d: (
            d.pop("namespaces"),
            entry(d, "pools", 1).update(name="8gpus"),
        ),
        ".pools[1].name",
        'Write "gpus".',
    ),
    "no default pool": (lambda d: entry(d, "pools", 0).pop("default"), ".pools", "Add default: true to cpu."),
    "a default pool on spot": (
        lambda d: (entry(d, "pools", 0).pop("default"), entry(d, "pools", 1).update(default=True)),
        ".pools[1].default",
        "Write it on cpu instead.",
    ),
    # classes
    "a class of GKE's": (
        lambda d: (d.pop("namespaces"), entry(d, "pools", 2).update(computeClass="gke-a100")),
        ".pools[2].computeClass",
        'such as "training-gke-a100"',
    ),
    "a class on the default pool": (
        lambda d: [entry(d, "pools", index).update(computeClass=f"class-{index}") for index in (0, 1)],
        ".pools[0].computeClass",
        "Leave it out on this pool.",
    ),
    "a ladder with a class and a pool without": (
        pool(2, computeClass="a100"),
        ".namespaces[0].ladder",
        "to each of them, or to none",
    ),
    # checkpoints
    "soft delete for two days": (checkpoints(retainDays=2), ".checkpoints.retainDays", "`retainDays: 7`"),
    "soft delete for a year": (
        checkpoints(retainDays=365),
        ".checkpoints.retainDays",
        "`recovery: versioning`",
    ),
    "versions in real folders": (
        checkpoints(recovery="versioning", hierarchical=True),
        ".checkpoints.recovery",
        "Write `recovery: soft-delete`",
    ),
    "Google's word for versions": (
        checkpoints(versioning=True),
        ".checkpoints.versioning",
        "recovery: versioning",
    ),
    "a key of checkpoints from elsewhere": (
        checkpoints(kmsKey="projects/my-project/locations/us/keyRings/r/cryptoKeys/k"),
        ".checkpoints.kmsKey",
        "--location us-central1",
    ),
    "a bucket's name": (checkpoints(bucket="mine"), ".checkpoints.bucket", "and names it"),
    # the rest
    "charts over plain http": (
        lambda d: d.update(mirror={"charts": "http://mirror.example.com"}),
        ".mirror.charts",
        'Write "https://mirror.example.com"',
    ),
    "a registry with its scheme": (
        lambda d: d.update(mirror={"images": "https://us-central1-docker.pkg.dev/my-project/mirror"}),
        ".mirror.images",
        'Write "us-central1-docker.pkg.dev/my-project/mirror".',
    ),
    "a namespace of GKE": (
        lambda d: entry(d, "namespaces", 0).update(name="gke-managed-system"),
        ".namespaces[0].name",
        'such as "training-gke-managed-system"',
    ),
    **INVALID_NAMESPACES,
}
