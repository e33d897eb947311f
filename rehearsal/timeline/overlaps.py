"""Whether two gangs of one job are alive together. Pure."""

from holdfast.rehearsal.timeline.traces import JobTrace, PodTrace


def overlap(trace: JobTrace, pod: PodTrace) -> str | None:
    """Say which other gang is alive beside a pod of a job that has just been seen alive, None for none."""
    if pod.ended_at is not None:
        return None
    others = [other for other in trace.alive() if _is_of_another_gang(other, pod)]
    if not others:
        return None
    beside = ", ".join(sorted(f"{_called(other)}" for other in others))
    return f"{trace.name}: {_called(pod)} beside {beside}"


def _is_of_another_gang(one: PodTrace, other: PodTrace) -> bool:
    """A gang is what one start of the job made: on one tier, in one attempt, by one Job for each of its parts."""
    if (one.pool, one.attempt) != (other.pool, other.attempt):
        return True
    return one.child == other.child and one.owner != other.owner


def _called(pod: PodTrace) -> str:
    return f"{pod.name} ({pod.pool}, attempt {pod.attempt})"
