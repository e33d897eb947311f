"""What became of the JobSets of a namespace while somebody watched."""

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from holdfast.rehearsal.timeline.traces import JOB_NAME, JobTrace, overlap
from holdfast.scheduling.json import Json
from holdfast.simulator.errors import RehearsalError
from holdfast.simulator.kubernetes_client.client import KubeClient
from holdfast.simulator.kubernetes_client.errors import Cancellation, KubeCancelled
from holdfast.simulator.kubernetes_client.objects import mapping
from holdfast.simulator.kubernetes_client.watch import SYNCED, Event

BEGUN: Final[Event] = ("BEGUN", {})
"""Before the first list of a connection."""

_SECONDS: Final = 24 * 3600.0
# An API server that was killed is back after some seconds.
_RETRY_SECONDS: Final = 0.3


@dataclass(frozen=True, kw_only=True)
class WatchTarget:
    """Which objects to follow."""

    api_version: str
    kind: str
    namespace: str
    label_selector: str | None = None


class WatchThread(threading.Thread):
    """Hands on each event until the client's cancellation.

    Each connection begins with BEGUN, everything there is as ADDED, and SYNCED: whoever was cut off finds out what went
    meanwhile.
    """

    def __init__(self, client: KubeClient, followed: WatchTarget, take: Callable[[Event], None]) -> None:
        super().__init__(name=f"follow {followed.kind}", daemon=True)
        self._client = client
        self._followed = followed
        self._take = take
        self._begun = threading.Event()

    def wait_begun(self) -> None:
        """Wait until what is there has been told."""
        self._begun.wait()

    def run(self) -> None:
        """Follow; called by `start`."""
        pause = threading.Event()
        while True:
            try:
                self._follow()
            except KubeCancelled:
                self._begun.set()
                return
            except RehearsalError:
                pause.wait(_RETRY_SECONDS)

    def _follow(self) -> None:
        self._take(BEGUN)
        is_listing = True
        for event in self._client.watch(
            self._followed.api_version,
            self._followed.kind,
            namespace=self._followed.namespace,
            label_selector=self._followed.label_selector,
            timeout_seconds=_SECONDS,
            marks_lists=True,
        ):
            if event != SYNCED or is_listing:
                self._take(event)
            if event == SYNCED:
                is_listing = False
                self._begun.set()


JOBSET: Final = "jobset.x-k8s.io/v1alpha2"


class JobTimelineRecorder:
    """The traces of a namespace's JobSets by name, and each time that two gangs of one were alive together.

    Other threads read them inside of `wait` or `frozen`, or once nobody watches any more.
    """

    def __init__(self, client: KubeClient, namespace: str) -> None:
        self.jobs: dict[str, JobTrace] = {}
        self.overlaps: list[str] = []
        self._client = client
        self._namespace = namespace
        self._changed = threading.Condition()
        self._listed: set[str] = set()

    @contextmanager
    def recording(self) -> Generator["JobTimelineRecorder"]:
        """Watch for the length of the block; what is there is known when it begins."""
        cancellation = Cancellation()
        client = self._client.under(cancellation)
        followers = [
            WatchThread(client, self._followed(JOBSET, "JobSet"), self._guarded(self._take_job)),
            WatchThread(client, self._followed("v1", "Pod", JOB_NAME), self._guarded(self._take_pod)),
        ]
        for each in followers:
            each.start()
        for each in followers:
            each.wait_begun()
        try:
            yield self
        finally:
            cancellation.cancel()
            for each in followers:
                each.join()

    def wait(self, condition: Callable[[], bool], what: str, *, seconds: float) -> None:
        """Wait until something holds of what was seen. Raises RehearsalError where it does not in time."""
        with self._changed:
            if not self._changed.wait_for(condition, timeout=seconds):
                raise RehearsalError(f"not so after {seconds:.0f} s: {what}")

    @contextmanager
    def frozen(self) -> Generator["JobTimelineRecorder"]:
        """Keep what was seen as it is for the length of the block."""
        with self._changed:
            yield self

    def job(self, name: str) -> JobTrace:
        """Return what was seen of a JobSet, which may be nothing yet."""
        return self.jobs.setdefault(name, JobTrace(name=name))

    def _followed(self, api_version: str, kind: str, label_selector: str | None = None) -> WatchTarget:
        return WatchTarget(
            api_version=api_version, kind=kind, namespace=self._namespace, label_selector=label_selector
        )

    def _guarded(self, take: Callable[[Event], None]) -> Callable[[Event], None]:
        def guarded(event: Event) -> None:
            with self._changed:
                take(event)
                self._changed.notify_all()

        return guarded

    def _take_job(self, event: Event) -> None:
        what, job = event
        if event not in (BEGUN, SYNCED):
            trace = self.job(_text(job, "name"))
            trace.is_there = what != "DELETED"
            trace.record_job(job, _now())

    def _take_pod(self, event: Event) -> None:
        what, pod = event
        if event == BEGUN:
            self._listed.clear()
            return
        if event == SYNCED:
            self._end_missing()
            return
        self._listed.add(_text(pod, "uid"))
        labels = mapping(mapping(pod.get("metadata")).get("labels"))
        trace = self.job(str(labels.get(JOB_NAME)))
        seen = trace.record_pod(pod, _now(), is_deleted=what == "DELETED")
        together = overlap(trace, seen)
        if together is not None and together not in self.overlaps:
            self.overlaps.append(together)

    def _end_missing(self) -> None:
        """Take those for ended that the list has not told: they went while nobody watched."""
        for trace in self.jobs.values():
            trace.end_missing(self._listed, _now())


def _text(obj: Json, field: str) -> str:
    return str(mapping(obj.get("metadata")).get(field))


def _now() -> datetime:
    return datetime.now(UTC)
