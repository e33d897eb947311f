"""The picture of a job that a fault run moved to the other cluster and back, from what was recorded in both. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Final

from pulumi_holdfast.ladder.ladder import cluster_of, pool_in
from pulumi_holdfast.rehearsal.timeline.picture import Picture, picture_of
from pulumi_holdfast.rehearsal.timeline.traces import JobChange, JobTrace, Move, PodTrace
from tests.soak.faults.manifests import POOLS, PREFIX

#: What is drawn of the time before a job leaves and after it is back.
_AROUND: Final = timedelta(seconds=20)


def stays_there(trace: JobTrace) -> Sequence[tuple[Move, Move]]:
    """Return each stay of a job in another cluster: the move there, and the move from there back home."""
    moves = _moves(trace.changes)
    return [
        (go, back)
        for go, back in pairwise(moves)
        if cluster_of(go.target) and not cluster_of(back.target) and back.resumed_at is not None
    ]


def _moves(changes: Iterable[JobChange]) -> list[Move]:
    """Return the moves of a job. One to another cluster ends when the copy has been created there."""
    found: list[Move] = []
    source, before = "", None
    for change in changes:
        is_moving = change.phase == "Suspending"
        if is_moving and (before is None or before.phase != "Suspending"):
            found.append(Move(source=source, target=change.pool, suspended_at=change.at))
        elif not is_moving and before is not None and before.phase == "Suspending":
            found[-1] = replace(found[-1], target=change.pool, resumed_at=change.at)
        source = source if is_moving else change.pool
        before = change
    return found


def picture_of_stay(cluster: str, pairs: Iterable[tuple[JobTrace, JobTrace]]) -> Picture | None:
    """Return the picture of a short stay in the other cluster of any job at home whose copy ran; None without one.

    One that ends with capacity at home is preferred.
    """
    stays = [
        (back.target != POOLS[0], back.suspended_at - go.suspended_at, number, (go, back, home, there))
        for number, (home, there) in enumerate(pairs)
        for go, back in stays_there(home)
        if any(_ran(pod, go.suspended_at, back.suspended_at) for pod in there.pods.values())
    ]
    if not stays:
        return None
    go, back, home, there = min(stays, key=lambda stay: stay[:3])[3]
    since, until = go.suspended_at - _AROUND, (back.resumed_at or back.suspended_at) + _AROUND
    pods = [
        *home.pods.values(),
        *(replace(pod, pool=pool_in(cluster, pod.pool)) for pod in there.pods.values()),
    ]
    # The copy may move on the ladder there.
    inner = [
        replace(move, source=pool_in(cluster, move.source), target=pool_in(cluster, move.target))
        for move in _moves(there.changes)
        if go.suspended_at < move.suspended_at < back.suspended_at
    ]
    back = replace(back, source=[go, *inner][-1].target)
    reasons = [_reason(home, go), *(_reason(there, move) for move in inner), _reason(home, back)]
    lanes = (POOLS[0], *(pool_in(cluster, pool) for pool in POOLS[1:]), POOLS[-1])
    return picture_of(
        f"{'RayJob' if any(pod.is_head for pod in pods) else 'JobSet'} {home.name} runs in another cluster, and returns",
        [_short(lane) for lane in lanes],
        [
            _shown(pod, since, until)
            for pod in pods
            if pod.born_at < until and (pod.ended_at is None or pod.ended_at > since) and not pod.is_head
        ],
        [
            replace(move, source=_short(move.source), target=_short(move.target))
            for move in (go, *inner, back)
        ],
        reasons,
        until,
    )


def _shown(pod: PodTrace, since: datetime, until: datetime) -> PodTrace:
    """Return what there is of a pod between two times."""
    bound_at = None if pod.bound_at is None or pod.bound_at > until else max(pod.bound_at, since)
    return replace(
        pod,
        pool=_short(pod.pool),
        born_at=max(pod.born_at, since),
        bound_at=bound_at,
        ended_at=min(pod.ended_at or until, until),
        lost=pod.lost if pod.lost_at is not None and pod.lost_at <= until else "",
    )


def _ran(pod: PodTrace, since: datetime, until: datetime) -> bool:
    return pod.running_at is not None and since < pod.running_at < until


def _reason(trace: JobTrace, move: Move) -> str:
    before = [change for change in trace.changes if change.at < move.suspended_at]
    if move.target == POOLS[0]:
        return "capacity reserved at home"
    return "no capacity" if before and before[-1].waiting_since is not None else "failures spent"


def _short(pool: str) -> str:
    return pool_in(cluster_of(pool), pool.rpartition("/")[2].removeprefix(PREFIX))
