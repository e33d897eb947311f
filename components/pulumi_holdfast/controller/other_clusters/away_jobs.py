"""Jobs that are away: takes the steps of their transfers, and caches the status of their copies.

It has its own queue and workers, so that a cluster that does not answer delays no reconciliation at home.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Final, NamedTuple

from pulumi_holdfast.controller.jobs.actions import EventReason, JobEvent
from pulumi_holdfast.controller.jobs.cached_objects import CachedJob
from pulumi_holdfast.controller.jobs.caches import Caches
from pulumi_holdfast.controller.jobs.kinds import KIND_OF, KINDS
from pulumi_holdfast.controller.jobs.observation import CopyStatus
from pulumi_holdfast.controller.jobs.pods_and_nodes import JobKey
from pulumi_holdfast.controller.jobs.state import Phase
from pulumi_holdfast.controller.kube.cache import Change
from pulumi_holdfast.controller.kube.client import ApiError, Client, LeadershipLost, Unreachable
from pulumi_holdfast.controller.kube.objects import metadata_of
from pulumi_holdfast.controller.kube.work_queue import OF_WORKERS, WorkQueue
from pulumi_holdfast.controller.other_clusters import copies
from pulumi_holdfast.controller.other_clusters.protocol import TransferStage
from pulumi_holdfast.controller.other_clusters.transfers import (
    SeenThere,
    SomethingRemains,
    Transfers,
    cluster_id,
)
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import LADDER
from pulumi_holdfast.ladder.ladder import Policy, cluster_of, pool_there

_log = logging.getLogger(__name__)

# Copies are read, not watched: the rights in another cluster end at its training namespaces.
_COPY_INTERVAL: Final = timedelta(seconds=10)
# While a job may run nowhere.
_STEP_INTERVAL: Final = timedelta(seconds=1)

_LEFTOVERS_SECONDS: Final = 60.0
_IDENTITY_SECONDS: Final = 5.0
_WORKERS: Final = 8


class AwayJobs:
    """The jobs of this cluster whose copies run in others. `clients`: of the other clusters, by name.

    `changed` is called with a job when the status of its copy changes, `report` with events for its user.
    """

    def __init__(
        self,
        home: Client,
        clients: Mapping[str, Client],
        caches: Caches,
        *,
        now: Callable[[], datetime],
        changed: Callable[[JobKey], None],
        report: Callable[[JobKey, str, JobEvent], None],
    ) -> None:
        self._home = home
        self._clients = clients
        self._caches = caches
        self._now = now
        self._changed = changed
        self._report = report
        self._queue = self._new_queue()
        self._runs = False
        self._copies: dict[JobKey, CopyStatus] = {}
        self._silent: dict[_Place, str] = {}
        self._reported: dict[JobKey, str] = {}
        self._errors = Counter[str]()
        if clients:
            for kind, cache in caches.jobs.items():
                cache.add_handler(partial(self._job_changed, kind))

    def clusters(self, key: JobKey) -> Collection[str]:
        """Return the clusters in which a copy of a job may run: those that answered the last request about such copies."""
        return {cluster for cluster in self._clients if _place(cluster, key) not in self._silent}

    def copy_of(self, key: JobKey) -> CopyStatus | None:
        """Return the last known status of a job's copy; None if there is none."""
        return self._copies.get(key)

    def errors(self) -> Iterator[tuple[tuple[str, ...], float]]:
        """Yield how many jobs and copies of each kind could not be processed."""
        for plural, count in self._errors.items():
            yield (plural,), count

    async def run(self) -> None:
        """Take the steps of all transfers until canceled. Only the leader may run it."""
        if not self._clients:
            return
        transfers = Transfers(
            self._home,
            self._clients,
            home_id=await self._identity(),
            now=self._now,
            seen=self._seen,
            failed=self._failed,
        )
        self._queue, self._runs = self._new_queue(), True
        for key in self._caches.all_keys():
            self._queue.add(key)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._queue.run())
                for _ in range(_WORKERS):
                    group.create_task(self._work(transfers))
                for cluster in self._clients:
                    group.create_task(self._remove_leftovers(transfers, cluster))
        finally:
            self._runs = False

    def _new_queue(self) -> WorkQueue[JobKey]:
        return WorkQueue(now=self._now, group=_namespace_of, most_at_once=_WORKERS * OF_WORKERS)

    async def _identity(self) -> str:
        while True:
            try:
                return await cluster_id(self._home)
            except (ApiError, Unreachable) as error:
                _log.warning("the identity of this cluster cannot be read: %s", error)
                await asyncio.sleep(_IDENTITY_SECONDS)

    def _job_changed(self, kind: str, change: Change[CachedJob]) -> None:
        # A replica that does not lead takes no steps.
        if self._runs:
            self._queue.add(JobKey(kind, *change.name))

    async def _work(self, transfers: Transfers) -> None:
        while True:
            key = await self._queue.get()
            try:
                await self._try_step(transfers, key)
            except Exception:  # noqa: BLE001  # an error in one job must not stop the others
                self._failed(key)
                self._queue.retry(key)
            finally:
                self._queue.done(key)

    def _failed(self, key: JobKey) -> None:
        """Count and log an error of a job or a copy, in the handler of that error."""
        self._errors[KIND_OF[key.kind].plural] += 1
        _log.exception("a transfer failed", extra={"job": "/".join(key)})

    async def _try_step(self, transfers: Transfers, key: JobKey) -> None:
        try:
            await self._step(transfers, key)
        except SomethingRemains as waits:
            _log.info("%s", waits, extra={"job": "/".join(key)})
            self._queue.add_at(key, self._now() + _STEP_INTERVAL)
        except LeadershipLost:
            self._queue.retry(key)
        except Unreachable as error:
            _log.warning("%s", error, extra={"job": "/".join(key)})
            self._queue.retry(key)
        except ApiError as error:
            self._rejected(key, error)

    async def _step(self, transfers: Transfers, key: JobKey) -> None:
        """Take the next step of a job's transfer, if it has one."""
        cached = self._caches.job(key)
        job = None if cached is None or cached.excess else cached.read()
        pool = "" if job is None else self._pool_elsewhere(key.namespace, job)
        if job is None or (not pool and copies.may_run_here(job)):
            self._copies.pop(key, None)
            self._reported.pop(key, None)
            self._queue.forget(key)
            return
        action = await transfers.step(key, cluster=cluster_of(pool), pool=pool_there(pool))
        self._queue.succeed(key)
        if action is not None:
            self._queue.add(key)
            return
        record = copies.record_of(job)
        is_silent = _place(record.cluster, key) in self._silent
        is_settled = (pool and record.stage is TransferStage.AWAY) or is_silent
        self._queue.add_at(key, self._now() + (_COPY_INTERVAL if is_settled else _STEP_INTERVAL))

    def _pool_elsewhere(self, namespace: str, job: Json) -> str:
        """Return the pool of another cluster that a job's ladder has it in, empty for a job that belongs at home."""
        state = copies.state_of(job)
        if state is None or state.phase is not Phase.AWAY or metadata_of(job).get("deletionTimestamp"):
            return ""
        cached = self._caches.policies.get(namespace, LADDER)
        is_foreign = (
            cached is not None
            and isinstance(cached.policy, Policy)
            and cached.policy.rank_of(state.pool) is None
        )
        return "" if is_foreign else state.pool

    def _seen(self, key: JobKey, cluster: str, seen: SeenThere | None) -> None:
        if seen is None:
            self._silent.setdefault(_place(cluster, key), "")
            return
        self._silent.pop(_place(cluster, key), None)
        cached = self._caches.job(key)
        if cached is None or cached.excess or copies.may_run_here(cached.read()):
            return  # what is left there of a job that is deleted, or at home
        before = self._copies.pop(key, None)
        if seen.status is not None:
            self._copies[key] = seen.status
        if before != seen.status:
            self._changed(key)
        if seen.view.copy is not None and seen.view.copy.origin != cached.uid:
            self._tell(
                key,
                f"The cluster {cluster} has another {key.kind} of this name, so no copy of the job is created there: rename the job.",
            )

    def _rejected(self, key: JobKey, error: ApiError) -> None:
        self._queue.retry(key, error.retry_after_seconds)
        if error.is_conflict or error.is_missing or error.is_overload:
            _log.info("%s", error, extra={"job": "/".join(key), "status": error.status})
            return
        self._tell(key, f"A step of the job's transfer is rejected, and is retried: {error}")

    def _tell(self, key: JobKey, message: str) -> None:
        """Report once why a transfer cannot continue."""
        cached = self._caches.job(key)
        if cached is None or self._reported.get(key) == message:
            return
        self._reported[key] = message
        report = JobEvent(reason=EventReason.WRITE_REJECTED, message=message, is_warning=True)
        self._report(key, cached.uid, report)

    async def _remove_leftovers(self, transfers: Transfers, cluster: str) -> None:
        """Remove copies that no transfer needs, at regular times; this also shows whether the cluster answers."""
        while True:
            namespaces = [namespace for _, namespace in self._caches.namespaces.known()]
            places = [_Place(cluster, namespace, kind) for namespace in namespaces for kind in KINDS]
            for place in places:
                try:
                    await transfers.remove_leftovers(*place)
                except Unreachable as error:
                    _log.warning("%s: %s", cluster, error)
                    self._silent |= dict.fromkeys(places, str(error))
                    break
                except LeadershipLost:
                    break
                except ApiError as error:
                    self._refused(place, str(error))
                except Exception as error:  # noqa: BLE001  # one place must not stop the others
                    self._failed(JobKey(place.kind, place.namespace, ""))
                    self._silent[place] = str(error)
                else:
                    self._silent.pop(place, None)
            await asyncio.sleep(_LEFTOVERS_SECONDS)

    def _refused(self, place: "_Place", why: str) -> None:
        """Record that copies cannot be read, and log it once: most namespaces have no tier there, and need no access."""
        if self._silent.get(place) != why:
            self._silent[place] = why
            _log.info("%s, %s in the namespace %s: %s", place.cluster, place.kind, place.namespace, why)


class _Place(NamedTuple):
    """Where copies may be: those of a kind in a namespace of a cluster."""

    cluster: str
    namespace: str
    kind: str


def _place(cluster: str, key: JobKey) -> _Place:
    return _Place(cluster, key.namespace, key.kind)


def _namespace_of(key: JobKey) -> str:
    return key.namespace
