"""Whether a RayJob's head answers: while it does not, KubeRay asks it again for ever."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.fallback.jobs.memory import part_of
from holdfast.fallback.jobs.nodes import NodeState, state_of_node
from holdfast.fallback.jobs.pods import has_ended, is_ready, is_terminating, node_of
from holdfast.fallback.jobs.rayjob_status import RUNNING, deployment_status
from holdfast.fallback.state_machine.observation import Part

if TYPE_CHECKING:
    from datetime import datetime

    from holdfast.fallback.jobs.memory import RayMemory
    from holdfast.fallback.jobs.snapshot import Snapshot
    from holdfast.scheduling.json import Json


def head_silent_since(memory: RayMemory, seen: Snapshot) -> datetime | None:
    """Return since when we see that a running job's head is not there, not ready, or on a node that is lost.

    Only while the job runs: before that its head is starting, and a slow start is nobody's loss. A head that answers
    again ends it: its operator then submits the job anew by itself.
    """
    if deployment_status(seen.job) != RUNNING or any(_answers(pod, seen) for pod in seen.pods):
        return None
    return memory.head_silent_since or seen.now


def _answers(pod: Json, seen: Snapshot) -> bool:
    if part_of(pod) is not Part.HEAD or has_ended(pod) or is_terminating(pod) or not is_ready(pod):
        return False
    # A head's node that is lost leaves it "ready" for as long as the node controller waits.
    return state_of_node(node_of(pod), seen.nodes, seen.claims) in {NodeState.LIVE, NodeState.DRAINING}
