"""Invalid ladders and training namespaces, the same in the documents of every cloud."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from tests.support.builders.configurations import entry, tier

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.scheduling.json import JsonValue
    from tests.support.builders.configurations import Document


FINETUNE: Document = {"name": "finetune", "pods": 4, "cpu": 48, "memory": "512Gi", "gpus": 8}


def _shaped(**change: JsonValue) -> Callable[[Document], object]:
    """The namespace of the GPU ladder declares one shape, with this change."""
    return lambda d: entry(d, "namespaces", 0).update(shapes=[{**FINETUNE, **change}])


def _bounded(quota: JsonValue, *shapes: Document) -> Callable[[Document], object]:
    """The same namespace has this quota, beside these shapes."""
    return lambda d: entry(d, "namespaces", 0).update(quota=quota, shapes=cast("JsonValue", list(shapes)))


INVALID_SHAPES: dict[str, tuple[Callable[[Document], object], str, str]] = {
    # the mistake: the change that makes it, the field of the problem, and a part of the fix
    "memory without a unit": (
        _shaped(memory=512),
        ".namespaces[0].shapes[0].memory",
        "Write 512Gi or 512Mi",
    ),
    "memory in an unknown unit": (
        _shaped(memory="512GB"),
        ".namespaces[0].shapes[0].memory",
        "a number and Mi, Gi or Ti",
    ),
    "CPUs in a unit of memory": (
        _shaped(cpu="48Gi"),
        ".namespaces[0].shapes[0].cpu",
        "a number of CPUs",
    ),
    "a boolean for CPUs": (
        _shaped(cpu=True),
        ".namespaces[0].shapes[0].cpu",
        "a number of CPUs",
    ),
    "zero CPUs": (_shaped(cpu=0), ".namespaces[0].shapes[0].cpu", "Write at least 1m."),
    "zero pods": (_shaped(pods=0), ".namespaces[0].shapes[0].pods", "for example, `pods: 4`"),
    "GPUs in quotes": (_shaped(gpus="8"), ".namespaces[0].shapes[0].gpus", "for example, `gpus: 8`"),
    "a shape without a name": (
        lambda d: entry(d, "namespaces", 0).update(shapes=[{"gpus": 8}]),
        ".namespaces[0].shapes[0].name",
        "Add `name: finetune`.",
    ),
    "an invalid shape name": (
        _shaped(name="Fine_Tune"),
        ".namespaces[0].shapes[0].name",
        'Write "fine-tune".',
    ),
    "a duplicate shape name": (
        lambda d: entry(d, "namespaces", 0).update(shapes=[FINETUNE, {"name": "fit"}, FINETUNE]),
        ".namespaces[0].shapes[2].name",
        "Rename one of the two",
    ),
    "an accelerator without GPUs": (
        _shaped(gpus=0, accelerator="a100"),
        ".namespaces[0].shapes[0].accelerator",
        "Add gpus",
    ),
    "a job's field in a shape": (
        _shaped(parallelism=4),
        ".namespaces[0].shapes[0].parallelism",
        "Write pods.",
    ),
    "a shape that is not in a list": (
        lambda d: entry(d, "namespaces", 0).update(shapes=FINETUNE),
        ".namespaces[0].shapes",
        "for example, `shapes: [{name: finetune",
    ),
    "too many shapes": (
        lambda d: entry(d, "namespaces", 0).update(shapes=[{"name": f"s{i}"} for i in range(17)]),
        ".namespaces[0].shapes",
        "for example, `shapes: [{name: finetune",
    ),
    "jobs instead of shapes": (
        lambda d: entry(d, "namespaces", 0).update(jobs=[FINETUNE]),
        ".namespaces[0].jobs",
        "Write shapes",
    ),
    "a GPU quota smaller than a gang": (
        _bounded({"gpus": 31}, FINETUNE),
        ".namespaces[0].quota.gpus",
        "Write 32 or more",
    ),
    "a pod quota smaller than a gang": (
        _bounded({"pods": 3}, FINETUNE),
        ".namespaces[0].quota.pods",
        "Write 4 or more",
    ),
    "a GPU quota of zero on a GPU ladder": (
        _bounded({"gpus": 0}),
        ".namespaces[0].quota.gpus",
        "Remove it, to derive the number",
    ),
    "a quota with enforced: false": (
        _bounded({"enforced": False, "gpus": 64}),
        ".namespaces[0].quota.gpus",
        "Remove one of them.",
    ),
    "a CPU quota": (
        _bounded({"cpu": 400}),
        ".namespaces[0].quota.cpu",
        "rejects every pod without a request",
    ),
    "a quota that is not a mapping": (
        _bounded("none"),
        ".namespaces[0].quota",
        "for example, `quota: {gpus: 64}`",
    ),
    "a quota of zero pods": (
        _bounded({"pods": 0}),
        ".namespaces[0].quota.pods",
        "for example, `pods: 500`",
    ),
}


INVALID_NAMESPACES: dict[str, tuple[Callable[[Document], object], str, str]] = {
    # the mistake: the change that makes it, the field of the problem, and a part of the fix
    "a ladder naming a pool that does not exist": (
        lambda d: tier(d, 0, 0).update(pool="a100-sopt"),
        ".namespaces[0].ladder[0].pool",
        'Write "a100-spot".',
    ),
    "a spot pool last in a ladder": (
        lambda d: entry(d, "namespaces", 0).update(ladder=[{"pool": "a100-spot", "maxFailures": 5}]),
        ".namespaces[0].ladder[0].maxFailures",
        "write maxFailures: -1",
    ),
    "a pool twice in a ladder": (
        lambda d: tier(d, 0, 1).update(pool="a100-spot", maxFailures=-1),
        ".namespaces[0].ladder[1].pool",
        "Remove this tier",
    ),
    "a duration without a unit": (
        lambda d: tier(d, 0, 0).update(procurementTimeout="15"),
        ".namespaces[0].ladder[0].procurementTimeout",
        "Write 15m, 15s or 15h.",
    ),
    "a duration as a number": (
        lambda d: tier(d, 0, 0).update(procurementTimeout=15),
        ".namespaces[0].ladder[0].procurementTimeout",
        "Write 15m, 15s or 15h.",
    ),
    "a negative number of failures": (
        lambda d: tier(d, 0, 0).update(maxFailures=-2),
        ".namespaces[0].ladder[0].maxFailures",
        "for example, `maxFailures: 5`",
    ),
    "an empty ladder": (
        lambda d: entry(d, "namespaces", 0).update(ladder=[]),
        ".namespaces[0].ladder",
        "such as `- {pool: ",
    ),
    "returnAfter with a single tier": (
        lambda d: entry(d, "namespaces", 0).update(ladder=[{"pool": "a100"}], fallback={"returnAfter": "4h"}),
        ".namespaces[0].fallback.returnAfter",
        "Remove it, or add the tier",
    ),
    "holdTimeout without returnAfter": (
        lambda d: entry(d, "namespaces", 0).update(fallback={"holdTimeout": "10m"}),
        ".namespaces[0].fallback.holdTimeout",
        "Add returnAfter",
    ),
    "failures with a typo": (
        lambda d: entry(d, "namespaces", 0).update(fallback={"failures": "eviction"}),
        ".namespaces[0].fallback.failures",
        'Write "evictions".',
    ),
    "a tier's field outside the ladder": (
        lambda d: entry(d, "namespaces", 0).update(fallback={"maxFailures": 5}),
        ".namespaces[0].fallback.maxFailures",
        "on each tier of the ladder",
    ),
    **INVALID_SHAPES,
    "too many failures": (
        lambda d: tier(d, 0, 0).update(maxFailures=99999),
        ".namespaces[0].ladder[0].maxFailures",
        "for example, `maxFailures: 5`",
    ),
    "a controller's image without a tag": (
        lambda d: d.update(fallback={"image": "registry.example.com/fallback-controller"}),
        ".fallback.image",
        "Write the registry's host, the path and a tag",
    ),
    "a namespace of the fallback controller": (
        lambda d: entry(d, "namespaces", 0).update(name="holdfast-system"),
        ".namespaces[0].name",
        'such as "training-holdfast-system"',
    ),
    "a namespace of Kubernetes": (
        lambda d: entry(d, "namespaces", 0).update(name="kube-system"),
        ".namespaces[0].name",
        'such as "training-kube-system"',
    ),
    "a namespace of an operator": (
        lambda d: entry(d, "namespaces", 0).update(name="jobset-system"),
        ".namespaces[0].name",
        'such as "training-jobset-system"',
    ),
    "a duplicate namespace name": (
        lambda d: entry(d, "namespaces", 1).update(name="vision"),
        ".namespaces[1].name",
        "Rename one of the two",
    ),
}
