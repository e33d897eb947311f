"""Node affinity that ties pods to one kind of capacity: no move can change it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.fallback.jobs.values import mapping, objects, text
from holdfast.scheduling.labels import CAPACITY_KEYS, POOL

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from holdfast.scheduling.json import Json


def pinned_by_affinity(pod_specs: Iterable[Json], kind: str) -> str | None:
    """Return why templates cannot be moved to another tier, and the fix; None where they can.

    JobSet lets no affinity be changed, and a pool that a selector adds beside one may have no node in common with it.
    """
    keys = sorted({key for spec in pod_specs for key in _required_keys(spec)} & {POOL, *CAPACITY_KEYS})
    if not keys:
        return None
    return (
        f"its node affinity requires {', '.join(keys)}, which ties it to one kind of capacity: create the {kind} anew "
        "with a nodeSelector in its place"
    )


def _required_keys(pod_spec: Json) -> Iterator[str]:
    affinity = mapping(mapping(pod_spec.get("affinity")).get("nodeAffinity"))
    required = mapping(affinity.get("requiredDuringSchedulingIgnoredDuringExecution"))
    for term in objects(required.get("nodeSelectorTerms")):
        yield from (text(each.get("key")) for each in objects(term.get("matchExpressions")))
