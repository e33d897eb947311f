"""From what was seen of jobs to seconds. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import median, quantiles

from holdfast.rehearsal.timeline.traces import JobTrace, PodTrace


@dataclass(frozen=True, kw_only=True)
class Steps:
    """One job from its eviction on, in seconds since then.

    Of a move: `decided` when it was suspended, `gone` when its last pod had ended, `resumed`, `bound` when every pod of
    the next gang has a node. A restart is not suspended: of it `decided` and `resumed` are None.
    """

    gone: float
    bound: float
    decided: float | None = None
    resumed: float | None = None


@dataclass(frozen=True, kw_only=True)
class Spread:
    """The middle of many figures, and what 19 of 20 stay below."""

    median: float
    most: float


def restart_of(trace: JobTrace, evicted_at: datetime, pods: int) -> Steps | None:
    """Return the steps of JobSet's own restart; None while it is not over."""
    before, after = _gangs(trace, evicted_at)
    return _steps(before, after, evicted_at, pods)


def move_of(trace: JobTrace, evicted_at: datetime, pods: int, target: str) -> Steps | None:
    """Return the steps of a move to another pool; None while it is not over."""
    before, after = _gangs(trace, evicted_at)
    steps = _steps(before, [pod for pod in after if pod.pool == target], evicted_at, pods)
    since = [change for change in trace.changes if change.at >= evicted_at]
    decided = next((change.at for change in since if change.suspended), None)
    resumed = next(
        (change.at for change in since if decided and change.at > decided and not change.suspended), None
    )
    if steps is None or decided is None or resumed is None:
        return None
    return Steps(
        gone=steps.gone,
        bound=steps.bound,
        decided=(decided - evicted_at).total_seconds(),
        resumed=(resumed - evicted_at).total_seconds(),
    )


def spread(figures: Iterable[float]) -> Spread:
    """Return the spread of one figure or more."""
    kept = sorted(figures)
    most = quantiles(kept, n=20)[-1] if len(kept) > 1 else kept[-1]
    return Spread(median=median(kept), most=min(most, kept[-1]))


def _gangs(trace: JobTrace, evicted_at: datetime) -> tuple[list[PodTrace], list[PodTrace]]:
    pods = list(trace.pods.values())
    before = [pod for pod in pods if pod.born_at <= evicted_at and pod.is_alive(evicted_at)]
    return before, [pod for pod in pods if pod.born_at > evicted_at]


def _steps(
    before: Sequence[PodTrace], after: Sequence[PodTrace], evicted_at: datetime, pods: int
) -> Steps | None:
    ended = [pod.ended_at for pod in before if pod.ended_at is not None]
    bound = sorted(pod.bound_at for pod in after if pod.bound_at is not None)
    if not ended or len(ended) < len(before) or len(bound) < pods:
        return None
    return Steps(
        gone=(max(ended) - evicted_at).total_seconds(),
        bound=(bound[pods - 1] - evicted_at).total_seconds(),
    )
