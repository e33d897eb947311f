"""Single mistakes in the shapes and quotas of training namespaces, which are the same in every cloud's document."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from tests.support.builders.configurations import entry

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


SHAPE_MISTAKES: dict[str, tuple[Callable[[Document], object], str, str]] = {
    # the mistake: how it is made, the field that is named, and a part of the fix
    "memory without a unit": (
        _shaped(memory=512),
        ".namespaces[0].shapes[0].memory",
        "Write 512Gi or 512Mi",
    ),
    "memory in a unit that Kubernetes does not have": (
        _shaped(memory="512GB"),
        ".namespaces[0].shapes[0].memory",
        "a number and Mi, Gi or Ti",
    ),
    "CPUs with the unit of memory": (
        _shaped(cpu="48Gi"),
        ".namespaces[0].shapes[0].cpu",
        "a number of CPUs",
    ),
    "a truth where CPUs belong": (
        _shaped(cpu=True),
        ".namespaces[0].shapes[0].cpu",
        "a number of CPUs",
    ),
    "a pod of no CPUs": (_shaped(cpu=0), ".namespaces[0].shapes[0].cpu", "Write at least 1m."),
    "a gang of no pods": (_shaped(pods=0), ".namespaces[0].shapes[0].pods", "for example, `pods: 4`"),
    "GPUs in quotes": (_shaped(gpus="8"), ".namespaces[0].shapes[0].gpus", "for example, `gpus: 8`"),
    "a shape without a name": (
        lambda d: entry(d, "namespaces", 0).update(shapes=[{"gpus": 8}]),
        ".namespaces[0].shapes[0].name",
        "Add `name: finetune`.",
    ),
    "a shape's name that is no label": (
        _shaped(name="Fine_Tune"),
        ".namespaces[0].shapes[0].name",
        'Write "fine-tune".',
    ),
    "two shapes of one name": (
        lambda d: entry(d, "namespaces", 0).update(shapes=[FINETUNE, {"name": "fit"}, FINETUNE]),
        ".namespaces[0].shapes[2].name",
        "Rename one of the two",
    ),
    "a kind of GPU for no GPU": (
        _shaped(gpus=0, accelerator="a100"),
        ".namespaces[0].shapes[0].accelerator",
        "Add gpus",
    ),
    "a job's own field in a shape": (
        _shaped(parallelism=4),
        ".namespaces[0].shapes[0].parallelism",
        "Write pods.",
    ),
    "a single shape that is no list": (
        lambda d: entry(d, "namespaces", 0).update(shapes=FINETUNE),
        ".namespaces[0].shapes",
        "for example, `shapes: [{name: finetune",
    ),
    "more shapes than can be held": (
        lambda d: entry(d, "namespaces", 0).update(shapes=[{"name": f"s{i}"} for i in range(17)]),
        ".namespaces[0].shapes",
        "for example, `shapes: [{name: finetune",
    ),
    "shapes under another name": (
        lambda d: entry(d, "namespaces", 0).update(jobs=[FINETUNE]),
        ".namespaces[0].jobs",
        "Write shapes",
    ),
    "a quota of fewer GPUs than a gang has": (
        _bounded({"gpus": 31}, FINETUNE),
        ".namespaces[0].quota.gpus",
        "Write 32 or more",
    ),
    "a quota of fewer pods than a gang has": (
        _bounded({"pods": 3}, FINETUNE),
        ".namespaces[0].quota.pods",
        "Write 4 or more",
    ),
    "a quota without GPUs on a ladder that has them": (
        _bounded({"gpus": 0}),
        ".namespaces[0].quota.gpus",
        "Leave it out",
    ),
    "a quota that is and is not": (
        _bounded({"enforced": False, "gpus": 64}),
        ".namespaces[0].quota.gpus",
        "Leave out the one or the other.",
    ),
    "a quota of CPUs": (
        _bounded({"cpu": 400}),
        ".namespaces[0].quota.cpu",
        "refuses every pod that does not say",
    ),
    "a quota that is a word": (_bounded("none"), ".namespaces[0].quota", "for example, `quota: {gpus: 64}`"),
    "a quota that lets no pod in": (
        _bounded({"pods": 0}),
        ".namespaces[0].quota.pods",
        "for example, `pods: 500`",
    ),
}
