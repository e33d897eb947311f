"""Records the jobs of a namespace and their pods with watches, from the start to the end of a block."""

import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Final

from pulumi_holdfast.controller.kube.objects import name_of, uid_of
from pulumi_holdfast.rehearsal.errors import Cancellation, RehearsalError
from pulumi_holdfast.rehearsal.kubernetes import BEGUN, KubeClient, WatchThread
from pulumi_holdfast.rehearsal.timeline.traces import JobTrace, job_of_pod, overlap
from pulumi_holdfast.rehearsal.watches import SYNCED, Event, ObjectSelector

JOBSET: Final = ("jobset.x-k8s.io/v1alpha2", "JobSet")
RAYJOB: Final = ("ray.io/v1", "RayJob")


class JobTimelineRecorder:
    """The traces of a namespace's jobs by name, and each time that two gangs of one ran together.

    `kinds` are the API versions and kinds of the jobs; the cluster must serve them.

    Other threads read them inside of `wait` or `frozen`, or after the end of `recording`.
    """

    def __init__(
        self, client: KubeClient, namespace: str, kinds: Sequence[tuple[str, str]] = (JOBSET,)
    ) -> None:
        self.jobs: dict[str, JobTrace] = {}
        self.overlaps: list[str] = []
        self._client = client
        self._namespace = namespace
        self._kinds = kinds
        self._changed = threading.Condition()
        self._listed: set[str] = set()

    @contextmanager
    def recording(self) -> Generator["JobTimelineRecorder"]:
        """Record for the length of the block; existing objects are known when it begins."""
        cancellation = Cancellation()
        client = self._client.under(cancellation)
        threads = [
            WatchThread(client, *kind, self._locked(take), ObjectSelector(namespace=self._namespace))
            for kind, take in (*((kind, self._on_job) for kind in self._kinds), (("v1", "Pod"), self._on_pod))
        ]
        for each in threads:
            each.start()
        for each in threads:
            each.wait_begun()
        try:
            yield self
        finally:
            cancellation.cancel()
            for each in threads:
                each.join()

    def wait(self, condition: Callable[[], bool], what: str, *, seconds: float) -> None:
        """Wait until a condition holds for what is recorded. Raises RehearsalError if it does not in time."""
        with self._changed:
            if not self._changed.wait_for(condition, timeout=seconds):
                raise RehearsalError(f"timed out after {seconds:.0f} s: {what}")

    @contextmanager
    def frozen(self) -> Generator["JobTimelineRecorder"]:
        """Record nothing for the length of the block, so that it reads a consistent state."""
        with self._changed:
            yield self

    def job(self, name: str) -> JobTrace:
        """Return the trace of a job, which may be empty."""
        return self.jobs.setdefault(name, JobTrace(name=name))

    def _locked(self, take: Callable[[Event], None]) -> Callable[[Event], None]:
        def guarded(event: Event) -> None:
            with self._changed:
                take(event)
                self._changed.notify_all()

        return guarded

    def _on_job(self, event: Event) -> None:
        what, job = event
        if event not in (BEGUN, SYNCED):
            trace = self.job(name_of(job))
            trace.is_there = what != "DELETED"
            trace.record_job(job, _now())

    def _on_pod(self, event: Event) -> None:
        what, pod = event
        if event == BEGUN:
            self._listed.clear()
            return
        if event == SYNCED:
            self._end_missing()
            return
        self._listed.add(uid_of(pod))
        name = job_of_pod(pod)
        if name is None:
            return
        trace = self.job(name)
        seen = trace.record_pod(pod, _now(), is_deleted=what == "DELETED")
        together = overlap(trace, seen)
        if together is not None and together not in self.overlaps:
            self.overlaps.append(together)

    def _end_missing(self) -> None:
        """Mark pods that the list does not contain as ended: they were deleted while the watch was down."""
        for trace in self.jobs.values():
            trace.end_missing(self._listed, _now())


def _now() -> datetime:
    return datetime.now(UTC)
