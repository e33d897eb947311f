"""What was seen of one job, moment by moment, for whoever looks into what went wrong. Pure."""

from collections.abc import Iterator
from dataclasses import asdict
from datetime import datetime

from holdfast.rehearsal.timeline.traces import PodTrace
from tests.soak.faults.record import Record


def evidence(record: Record) -> str:
    """Return a line for each thing that was seen of the job, its pods and their nodes, and for each kill."""
    return "".join(f"{at:%H:%M:%S.%f} {what}\n" for at, what in sorted(_moments(record)))


def _moments(record: Record) -> Iterator[tuple[datetime, str]]:
    for change in record.trace.changes:
        said = {name: value for name, value in asdict(change).items() if name != "at"}
        yield change.at, " ".join(f"{name}={value}" for name, value in said.items())
    nodes = {pod.node for pod in record.trace.pods.values()}
    for pod in record.trace.pods.values():
        yield from ((at, f"{pod.name} {what}") for at, what in _life(pod) if at is not None)
    yield from ((at, f"{node} vanishes") for node, at in record.vanished.items() if node in nodes)
    yield from ((at, "the controller or its API server is killed") for at in record.kills)


def _life(pod: PodTrace) -> Iterator[tuple[datetime | None, str]]:
    yield pod.born_at, f"is made for {pod.pool}"
    yield pod.bound_at, f"is bound to {pod.node}"
    yield pod.running_at, "runs"
    yield pod.lost_at, f"is lost: {pod.lost}"
    yield pod.leaving_at, "is told to end"
    yield pod.ended_at, "has ended"
