"""Records the jobs of a namespace and their pods with watches, from the start to the end of a block."""

import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from holdfast.rehearsal.timeline.traces import JobTrace, job_of_pod, overlap
from holdfast.scheduling.json import Json, mapping
from holdfast.simulator.errors import RehearsalError
from holdfast.simulator.kubernetes_client.client import KubeClient
from holdfast.simulator.kubernetes_client.errors import Cancellation, KubeCancelled
from holdfast.simulator.kubernetes_client.watch import SYNCED, Event

BEGUN: Final[Event] = ("BEGUN", {})
"""Precedes the list at the start of each connection."""

_SECONDS: Final = 24 * 3600.0
# A killed API server is back within seconds.
_RETRY_SECONDS: Final = 0.3


@dataclass(frozen=True, kw_only=True)
class WatchTarget:
    """The objects to watch."""

    api_version: str
    kind: str
    namespace: str | None


class WatchThread(threading.Thread):
    """Passes each watch event to `take` until the client is cancelled.

    Each connection begins with BEGUN, every object as ADDED, and SYNCED: after a broken connection, an object that is not
    listed was deleted in the meantime.
    """

    def __init__(self, client: KubeClient, target: WatchTarget, take: Callable[[Event], None]) -> None:
        super().__init__(name=f"follow {target.kind}", daemon=True)
        self._client = client
        self._target = target
        self._take = take
        self._begun = threading.Event()

    def wait_begun(self) -> None:
        """Wait until the first list is complete."""
        self._begun.wait()

    def run(self) -> None:
        """Watch until cancelled; called by `start`."""
        pause = threading.Event()
        while True:
            try:
                self._watch()
            except KubeCancelled:
                self._begun.set()
                return
            except RehearsalError:
                pause.wait(_RETRY_SECONDS)

    def _watch(self) -> None:
        self._take(BEGUN)
        is_listing = True
        for event in self._client.watch(
            self._target.api_version,
            self._target.kind,
            namespace=self._target.namespace,
            timeout_seconds=_SECONDS,
            marks_lists=True,
        ):
            if event != SYNCED or is_listing:
                self._take(event)
            if event == SYNCED:
                is_listing = False
                self._begun.set()


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
            WatchThread(client, self._target(*kind), self._locked(take))
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

    def _target(self, api_version: str, kind: str) -> WatchTarget:
        return WatchTarget(api_version=api_version, kind=kind, namespace=self._namespace)

    def _locked(self, take: Callable[[Event], None]) -> Callable[[Event], None]:
        def guarded(event: Event) -> None:
            with self._changed:
                take(event)
                self._changed.notify_all()

        return guarded

    def _on_job(self, event: Event) -> None:
        what, job = event
        if event not in (BEGUN, SYNCED):
            trace = self.job(_text(job, "name"))
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
        self._listed.add(_text(pod, "uid"))
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


def _text(obj: Json, field: str) -> str:
    return str(mapping(obj.get("metadata")).get(field))


def _now() -> datetime:
    return datetime.now(UTC)
