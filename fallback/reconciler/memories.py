"""What is remembered of each job's pods, taken in as it happens: a pod that was lost is gone before anybody looks."""

from collections.abc import Callable
from datetime import datetime

from holdfast.fallback.api.cache import Change
from holdfast.fallback.jobs.kinds import job_of_pod
from holdfast.fallback.jobs.pod_history import JobMemory, note
from holdfast.fallback.jobs.snapshot import JobKey
from holdfast.fallback.reconciler.caches import Caches
from holdfast.scheduling.json import Json


class Memories:
    """The memory of every job, by its key."""

    def __init__(self, caches: Caches, *, now: Callable[[], datetime]) -> None:
        self._caches = caches
        self._now = now
        self._memories: dict[JobKey, JobMemory] = {}
        for cache in caches.pods.values():
            cache.listen(self._note)

    def __len__(self) -> int:
        return len(self._memories)

    def of(self, key: JobKey) -> JobMemory:
        """Return what is remembered of a job."""
        return self._memories.get(key) or JobMemory()

    def keep(self, key: JobKey, memory: JobMemory) -> None:
        """Remember what a look at a job has made of its memory."""
        if memory == JobMemory():
            self._memories.pop(key, None)
        else:
            self._memories[key] = memory

    def forget(self, key: JobKey) -> None:
        """Forget a job that is gone. Its pods that are left are noted again as they go, for nobody."""
        self._memories.pop(key, None)

    def _note(self, change: Change[Json]) -> None:
        pod = change.after if change.after is not None else change.before
        key = job_of_pod(pod) if pod is not None else None
        if pod is None or key is None:
            return
        self._memories[key] = note(self.of(key), pod, self._now(), is_deleted=change.after is None)
        if change.after is None and self._caches.job(key) is None and not self._caches.pods_of(key):
            self.forget(key)
