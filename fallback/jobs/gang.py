"""How many of the pods that a tier must place have a node, and how many of them have started."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast.fallback.jobs.nodes import NodeState, state_of_node
from holdfast.fallback.jobs.pods import bound_at, has_ended, has_started, is_terminating, node_of

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from holdfast.fallback.jobs.snapshot import Snapshot
    from holdfast.scheduling.json import Json


@dataclass(frozen=True, kw_only=True)
class Placement:
    """So many pods are there, so many of those have a live node, and have started; `starting_since`: see the observation."""

    made: int
    placed: int
    started: int
    starting_since: datetime | None


def placement_of(pods: Iterable[Json], seen: Snapshot) -> Placement:
    """Return how far a gang's pods are; those that end or have ended are none of it any more."""
    made = [pod for pod in pods if not is_terminating(pod) and not has_ended(pod)]
    placed = [pod for pod in made if _is_placed(pod, seen)]
    waiting = [pod for pod in placed if not has_started(pod)]
    return Placement(
        made=len(made),
        placed=len(placed),
        started=len(placed) - len(waiting),
        starting_since=min((bound_at(pod) or seen.now for pod in waiting), default=None),
    )


def left(pods: Iterable[Json]) -> int:
    """How many pods exist and have not ended, those that terminate included."""
    return sum(not has_ended(pod) for pod in pods)


def _is_placed(pod: Json, seen: Snapshot) -> bool:
    """Whether a pod has a live node. One that is being emptied still runs it, and one not seen yet is just new."""
    node = node_of(pod)
    if not node:
        return False
    return state_of_node(node, seen.nodes, seen.claims) in {NodeState.LIVE, NodeState.DRAINING}
