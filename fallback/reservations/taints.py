"""The taint that keeps strangers off a held node, and the label by which such nodes are found.

Tried: without the taint a stranger wins the node 0.07 s after the placeholder has gone, or pushes it out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holdfast.fallback.jobs.values import mapping, metadata_of, objects, text
from holdfast.scheduling.labels import HELD_FOR

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.scheduling.json import Json

_EFFECT: Final = "NoSchedule"


def holder_of(node: Json) -> str | None:
    """The uid of the job that a node is held for."""
    return next((text(taint.get("value")) for taint in _taints(node) if taint.get("key") == HELD_FOR), None)


def hold_patch(node: Json, uid: str) -> Json | None:
    """The merge patch that holds a node for a job; None for a node that is held already, for it or for another.

    The list of taints is replaced as a whole, so the patch carries the resource version it was made from.
    """
    if holder_of(node) is not None:
        return None
    taint: Json = {"key": HELD_FOR, "value": uid, "effect": _EFFECT}
    return _patch(node, [*_taints(node), taint], uid)


def release_patch(node: Json) -> Json | None:
    """The merge patch that lets everybody onto a node again; None for one that is not held."""
    is_labelled = HELD_FOR in mapping(metadata_of(node).get("labels"))
    if holder_of(node) is None and not is_labelled:
        return None
    return _patch(node, [taint for taint in _taints(node) if taint.get("key") != HELD_FOR], None)


def _patch(node: Json, taints: Sequence[Json], label: str | None) -> Json:
    return {
        "metadata": {
            "resourceVersion": text(metadata_of(node).get("resourceVersion")),
            "labels": {HELD_FOR: label},
        },
        "spec": {"taints": taints},
    }


def _taints(node: Json) -> tuple[Json, ...]:
    return objects(mapping(node.get("spec")).get("taints"))
