"""Decides which changes of a JobSet's pods and child Jobs may lead to an action: only these are reconciled at once.

Of some thirty changes in a move, three lead to a write. The others change at most a warning or a timer: they are reconciled
with the next urgent one, or within seconds. Any other change is urgent.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from pulumi_holdfast.controller.api.cache import Change
from pulumi_holdfast.controller.api.client import JOBSET
from pulumi_holdfast.controller.api.objects import annotations_of
from pulumi_holdfast.controller.jobs.child_jobs import is_complete
from pulumi_holdfast.controller.jobs.kinds import job_of_child, job_of_pod
from pulumi_holdfast.controller.jobs.pods_and_nodes import (
    has_ended,
    is_terminating,
    may_end,
    node_of,
    phase_of,
)
from pulumi_holdfast.controller.jobs.snapshot import JobKey
from pulumi_holdfast.controller.reconciler.caches import Caches
from pulumi_holdfast.ladder.json import Json, JsonValue, mapping, sequence

# Written while a pod starts; whether it is ready is not read of a JobSet's pod.
_STARTING: Final = frozenset({"phase", "containerStatuses", "conditions"})


def is_urgent_pod(caches: Caches, change: Change[Json]) -> bool:
    """Whether a change of a JobSet's pod may lead to an action.

    The wait for a pod without a node is the same if the pod does not exist, and lasts until the last pod of the gang has one. A
    pod that starts already has its node, and one that has failed is counted at that time. A suspended job waits until none of its
    pods is left.
    """
    before, after = change.before, change.after
    pod = after if after is not None else before
    key = None if pod is None else job_of_pod(pod)
    if pod is None or key is None or key.kind != JOBSET.name:
        return True
    if _is_suspended(caches, key):
        # A pod that exits 0 on SIGTERM completes its job: the warning has to come while the pod is there.
        return phase_of(pod) == "Succeeded" or _has_no_pods(caches, key)
    if before is None:
        return bool(node_of(pod)) or may_end(pod)
    if after is None:
        return phase_of(before) != "Failed"
    if not node_of(before) and node_of(after) and not may_end(after):
        # A gang of which pods have succeeded needs fewer nodes than it has pods.
        has_succeeded = any(_has_ended_in_part(child) for child in caches.children_of(key))
        return has_succeeded or all(node_of(each) for each in caches.pods_of(key))
    return _without_start(before) != _without_start(after)


def is_urgent_child(caches: Caches, change: Change[Json]) -> bool:
    """Whether a change of a JobSet's child Job may lead to an action.

    For a running job only a change of the expected pods, because JobSet restarts it in any other case. For a suspended job
    without pods the conditions of its resumption: a new child Job is suspended some time later.
    """
    before, after = change.before, change.after
    child = after if after is not None else before
    key = None if child is None else job_of_child(child)
    if child is None or key is None or key.kind != JOBSET.name:
        return True
    is_suspended = _is_suspended(caches, key)
    if is_suspended and not _has_no_pods(caches, key):
        return False
    if before is None or after is None:
        return _has_ended_in_part(child) or (is_suspended and (after is None or bool(_conditions(child))))
    read = _of_suspended if is_suspended else _of_running
    return read(before) != read(after)


def _is_suspended(caches: Caches, key: JobKey) -> bool:
    job = caches.job(key)
    return job is not None and job.suspended


def _has_no_pods(caches: Caches, key: JobKey) -> bool:
    return all(has_ended(each) and not is_terminating(each) for each in caches.pods_of(key))


def _without_start(pod: Json) -> JsonValue:
    status = mapping(pod.get("status"))
    kept = {name: value for name, value in status.items() if name not in _STARTING}
    conditions = _without(sequence(status.get("conditions")), "Ready")
    metadata = annotations_of(pod) if has_ended(pod) else pod.get("metadata")
    return [metadata, pod.get("spec"), kept, conditions, phase_of(pod) if has_ended(pod) else None]


def _of_suspended(child: Json) -> JsonValue:
    spec = mapping(child.get("spec"))
    return [spec.get("suspend"), spec.get("template"), _conditions(child)]


def _conditions(child: Json) -> Sequence[JsonValue]:
    return sequence(mapping(child.get("status")).get("conditions"))


def _has_ended_in_part(child: Json) -> bool:
    return is_complete(child) or bool(mapping(child.get("status")).get("succeeded"))


def _of_running(child: Json) -> JsonValue:
    completions = mapping(child.get("spec")).get("completions")
    return [completions, mapping(child.get("status")).get("succeeded"), is_complete(child)]


def _without(conditions: Iterable[JsonValue], kind: str) -> list[JsonValue]:
    return [each for each in conditions if mapping(each).get("type") != kind]
