"""Single mistakes in ladders and training namespaces, which are the same in every cloud's document."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.builders.configurations import entry, tier
from tests.support.shape_mistakes import SHAPE_MISTAKES

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.builders.configurations import Document

LADDER_MISTAKES: dict[str, tuple[Callable[[Document], object], str, str]] = {
    # the mistake: how it is made, the field that is named, and a part of the fix
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
    "one pool twice in a ladder": (
        lambda d: tier(d, 0, 1).update(pool="a100-spot", maxFailures=-1),
        ".namespaces[0].ladder[1].pool",
        "Remove this tier",
    ),
    "a duration without a unit": (
        lambda d: tier(d, 0, 0).update(procurementTimeout="15"),
        ".namespaces[0].ladder[0].procurementTimeout",
        "Write 15m, 15s or 15h.",
    ),
    "a duration that YAML read as a number": (
        lambda d: tier(d, 0, 0).update(procurementTimeout=15),
        ".namespaces[0].ladder[0].procurementTimeout",
        "Write 15m, 15s or 15h.",
    ),
    "fewer failures than none": (
        lambda d: tier(d, 0, 0).update(maxFailures=-2),
        ".namespaces[0].ladder[0].maxFailures",
        "for example, `maxFailures: 5`",
    ),
    "an empty ladder": (
        lambda d: entry(d, "namespaces", 0).update(ladder=[]),
        ".namespaces[0].ladder",
        "such as `- {pool: ",
    ),
    "a way back up from the only tier": (
        lambda d: entry(d, "namespaces", 0).update(ladder=[{"pool": "a100"}], fallback={"returnAfter": "4h"}),
        ".namespaces[0].fallback.returnAfter",
        "Leave it out",
    ),
    "capacity held for nobody": (
        lambda d: entry(d, "namespaces", 0).update(fallback={"holdTimeout": "10m"}),
        ".namespaces[0].fallback.holdTimeout",
        "Add returnAfter",
    ),
    "failures with a typo": (
        lambda d: entry(d, "namespaces", 0).update(fallback={"failures": "eviction"}),
        ".namespaces[0].fallback.failures",
        'Write "evictions".',
    ),
    "a tier's setting beside the ladder": (
        lambda d: entry(d, "namespaces", 0).update(fallback={"maxFailures": 5}),
        ".namespaces[0].fallback.maxFailures",
        "on each tier of the ladder",
    ),
    **SHAPE_MISTAKES,
    "too many failures to be meant": (
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
    "two namespaces of one name": (
        lambda d: entry(d, "namespaces", 1).update(name="vision"),
        ".namespaces[1].name",
        "Rename one of the two",
    ),
}
