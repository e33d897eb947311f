"""One process of the controller: creates its parts and connects them; its log, its HTTP server, its signals and its clock."""

import asyncio
import json
import logging
import signal
import sys
import time
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from typing import Final

from aiohttp import web

from pulumi_holdfast.controller.jobs.actions import NOTIFIED
from pulumi_holdfast.controller.jobs.caches import Caches
from pulumi_holdfast.controller.jobs.pods_and_nodes import JobKey
from pulumi_holdfast.controller.jobs.reservations import reserved_for
from pulumi_holdfast.controller.kube.client import MOST_SECONDS, Backoff, Client, RequestSender
from pulumi_holdfast.controller.kube.connection import Connection
from pulumi_holdfast.controller.kube.events import EventRecorder, WebhookNotifier
from pulumi_holdfast.controller.kube.leader_election import Fence, LeaderElectionConfig, LeaderElector
from pulumi_holdfast.controller.kube.work_queue import OF_WORKERS, WorkQueue, utc_now
from pulumi_holdfast.controller.loop.action_executor import ActionExecutor, ReservationManager
from pulumi_holdfast.controller.loop.contention import GangContention
from pulumi_holdfast.controller.loop.informers import Informers, enqueue_on_change
from pulumi_holdfast.controller.loop.judgements import Judgements
from pulumi_holdfast.controller.loop.metrics import MetricName, Metrics, Sample
from pulumi_holdfast.controller.loop.observer import ApiAbsences, Observer, PodHistories
from pulumi_holdfast.controller.loop.policy_status import (
    ORPHAN_DELAY_SECONDS,
    STATUS_DELAY_SECONDS,
    DebouncedTask,
    JobIndex,
    PolicyStatusWriter,
)
from pulumi_holdfast.controller.loop.pools import OfferedPrices
from pulumi_holdfast.controller.loop.reconciler import EventReporter, Reconciler
from pulumi_holdfast.controller.loop.settings import Settings
from pulumi_holdfast.controller.other_clusters.away_jobs import AwayJobs
from pulumi_holdfast.ladder.errors import ConfigError

_log = logging.getLogger(__name__)


class Controller:
    """Everything between the API server and the state machine, for one process.

    `others`: connections to the other clusters of ladders, by name. `now` returns the time of day, `monotonic` seconds of a clock that is never set.
    """

    def __init__(
        self,
        settings: Settings,
        requests: RequestSender,
        metrics: Metrics,
        fence: Fence,
        *,
        others: Mapping[str, RequestSender] | None = None,
        now: Callable[[], datetime] = utc_now,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings = settings
        self._metrics = metrics
        self._fence = fence
        self._absences = ApiAbsences(now)
        client = Client(requests, may_write=fence.seconds_left, answered=self._absences.answered)
        self._caches = caches = Caches()
        self._queue = WorkQueue[JobKey](
            now=now, group=lambda key: key.namespace, most_at_once=settings.workers * OF_WORKERS
        )
        self._informers = Informers(client, caches)
        # Handlers run in the order of registration: the pod histories must be current when a job is enqueued.
        histories = PodHistories(caches, now=now)
        self._prices = OfferedPrices(
            settings.karpenter_metrics,
            now=now,
            node_pools=lambda: caches.node_pools,
            changed=self._prices_changed,
            read=self._prices_read,
        )
        caches.node_pools.add_handler(lambda _: self._prices.node_pools_changed())
        enqueue_on_change(caches, self._queue.add, self._queue.add_soon)
        self._recorder = EventRecorder(client, instance=settings.identity, written=self._event_written)
        self._notifier = WebhookNotifier(settings.webhook_url_file, NOTIFIED, sent=self._notification_sent)
        reporter = EventReporter(self._recorder, metrics, notify=self._notifier.notify)
        elsewhere = {
            name: Client(each, may_write=fence.seconds_left) for name, each in (others or {}).items()
        }
        self._away = AwayJobs(
            client, elsewhere, caches, now=now, changed=self._queue.add, report=reporter.record_one
        )
        self._judgements = Judgements(client, self._queue.add)
        observer = Observer(
            caches,
            histories,
            GangContention(self._queue.add),
            claims_are_served=lambda: self._informers.claims.is_served,
            now=now,
            monotonic=monotonic,
            absences=self._absences,
            prices=self._prices,
            away=self._away,
            judgements=self._judgements,
        )
        holder = ReservationManager(client, caches, image=settings.placeholder_image)
        self._job_index = JobIndex(self._namespace_changed)
        self._status_writer = PolicyStatusWriter(client, caches, self._job_index, now=now)
        self._status_task = DebouncedTask(
            "writing policy status", self._status_writer.write, seconds=STATUS_DELAY_SECONDS
        )
        self._orphan_task = DebouncedTask(
            "releasing orphaned reservations", holder.release_orphans, seconds=ORPHAN_DELAY_SECONDS
        )
        self._reconciler = Reconciler(
            self._queue,
            observer,
            ActionExecutor(client, caches, holder),
            reporter,
            self._job_index,
            metrics,
            is_leader=lambda: fence.is_open,
        )
        candidacy = LeaderElectionConfig(
            namespace=settings.namespace, name=settings.lease, identity=settings.identity
        )
        self._election = LeaderElector(client, candidacy, fence, now=now)
        self._add_handlers()
        self._add_gauges(histories)

    @property
    def is_ready(self) -> bool:
        """Whether every kind of object has been listed."""
        return self._informers.is_synced

    async def run(self) -> None:
        """Watch, compete for the Lease, and reconcile jobs while this replica leads, until canceled."""
        self._notifier.check()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._informers.run())
            # A leader with empty caches would only prevent another replica from leading.
            await self._informers.wait_synced()
            # Without them a job that must not move for its price would wait for the next reading.
            await self._prices.refresh()
            group.create_task(self._prices.run())
            group.create_task(self._queue.run())
            for _ in range(self._settings.workers):
                group.create_task(self._reconciler.work())
            group.create_task(self._election.run(self._lead))

    async def _lead(self) -> None:
        self._metrics.leader.set(1)
        if (renewed := self._election.renewed_before) is not None:
            # A replica that starts during an outage of the API server knows of it only from the lease.
            self._absences.add_since(renewed)
            self._election.renewed_before = None
        self._job_index.clear()
        for key in self._caches.all_keys():
            self._queue.add(key)
        for namespace, _ in self._caches.policies.known():
            self._namespace_changed(namespace)
        self._orphan_task.request()
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._keep_running("recording Events", self._recorder.run))
                group.create_task(self._keep_running("sending notifications", self._notifier.run))
                group.create_task(self._keep_running("writing policy status", self._status_task.run))
                group.create_task(
                    self._keep_running("releasing orphaned reservations", self._orphan_task.run)
                )
                group.create_task(self._keep_running("transferring jobs", self._away.run))
                group.create_task(self._keep_running("judging jobs", self._judgements.run))
        finally:
            self._metrics.leader.set(0)

    async def _keep_running(self, name: str, run: Callable[[], Awaitable[None]]) -> None:
        """Run one task of the leader, again after an error: each of them handles its errors, and none may end the moves of jobs."""
        backoff, clock = Backoff(), asyncio.get_running_loop().time
        while True:
            began = clock()
            try:
                await run()
            except Exception:  # noqa: BLE001  # as the text above says
                _log.exception("%s failed and is restarted", name)
                self._metrics.reconcile_errors.inc()
                if clock() - began > MOST_SECONDS:
                    backoff.succeed()
                await asyncio.sleep(backoff.seconds())
            else:
                return  # there is nothing to do

    def _add_handlers(self) -> None:
        self._caches.policies.add_handler(lambda change: self._namespace_changed(change.name[0]))
        self._caches.placeholders.add_handler(lambda _: self._orphan_task.request())
        for cache in self._caches.jobs.values():
            cache.add_handler(
                lambda change: None if change.after is not None else self._orphan_task.request()
            )
        self._caches.nodes.add_handler(
            lambda change: (
                self._orphan_task.request() if change.after and reserved_for(change.after) else None
            )
        )

    def _namespace_changed(self, namespace: str) -> None:
        self._status_writer.changed(namespace)
        self._status_task.request()

    def _prices_changed(self) -> None:
        for key in self._caches.all_keys():
            self._queue.add(key)

    def _prices_read(self, well: bool) -> None:
        self._metrics.price_reads.labels("succeeded" if well else "failed").inc()

    def _object_errors(self) -> Iterator[Sample]:
        counts = Counter[tuple[str, ...]]()
        for labels, count in (*self._informers.errors(), *self._away.errors()):
            counts[labels] += int(count)
        yield from counts.items()

    def _event_written(self, well: bool) -> None:
        self._metrics.event_writes.labels("written" if well else "dropped").inc()

    def _notification_sent(self, well: bool) -> None:
        self._metrics.notifications.labels("sent" if well else "dropped").inc()

    def _add_gauges(self, histories: PodHistories) -> None:
        show = self._metrics.gauge_on_scrape
        show(
            MetricName.JOBS,
            "Unfinished jobs, by tier and phase.",
            ("namespace", "pool", "phase"),
            self._job_index.counts,
        )
        show(
            MetricName.LATE_JOBS,
            "Jobs that will miss their deadline.",
            ("namespace", "pool"),
            self._job_index.late,
        )
        show(
            MetricName.NODE_PRICE,
            "What the cheapest node of a pool costs per hour, as Karpenter shows it.",
            ("pool",),
            self._prices.samples,
        )
        show(MetricName.QUEUE_LENGTH, "Jobs waiting to be reconciled.", (), lambda: [((), len(self._queue))])
        show(MetricName.POD_HISTORIES, "Jobs with a pod history.", (), lambda: [((), len(histories))])
        show(MetricName.CACHED_OBJECTS, "Objects cached.", ("kind",), self._informers.cached)
        show(
            MetricName.OBJECT_ERRORS,
            "Objects and changes that could not be processed.",
            ("kind",),
            self._object_errors,
        )
        show(MetricName.INFORMER_LISTS, "Lists started.", ("kind",), self._informers.lists)
        show(MetricName.INFORMER_WATCHES, "Watches started.", ("kind",), self._informers.watches)


_PROMETHEUS: Final = "text/plain; version=0.0.4; charset=utf-8"
_UNAVAILABLE: Final = 503


@asynccontextmanager
async def serve_http(
    address: str, port: int, *, is_ready: Callable[[], bool], metrics: Callable[[], bytes]
) -> AsyncGenerator[int]:
    """Serve `/healthz`, `/readyz` and `/metrics` while the block runs; yields the port.

    A process that answers is healthy. It is ready once it has listed the cluster: a standby replica is ready too.
    """

    async def health(_: web.Request) -> web.Response:
        return web.Response(text="ok")

    async def readiness(_: web.Request) -> web.Response:
        if is_ready():
            return web.Response(text="ok")
        return web.Response(status=_UNAVAILABLE, text="the cluster has not been listed yet")

    async def numbers(_: web.Request) -> web.Response:
        return web.Response(body=metrics(), headers={"Content-Type": _PROMETHEUS})

    app = web.Application()
    app.router.add_get("/healthz", health)
    app.router.add_get("/readyz", readiness)
    app.router.add_get("/metrics", numbers)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        site = web.TCPSite(runner, address, port)
        await site.start()
        yield int(runner.addresses[0][1])
    finally:
        await runner.cleanup()


# Attributes of every record; all others come from `extra`.
_ORDINARY: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class JsonFormatter(logging.Formatter):
    """Formats a record as one JSON line: time, level, message, logger, and the fields of `extra`.

    Callers log only named fields: no request, header, manifest or environment is ever logged, and so no secret of a job.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        fields: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
            "logger": record.name,
        }
        fields |= {name: value for name, value in vars(record).items() if name not in _ORDINARY}
        if record.exc_info:
            fields["exception"] = self.formatException(record.exc_info)
        return json.dumps(fields, default=str)


def log_to_stderr(level: str) -> None:
    """Log everything of `level` and above to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)


async def run(settings: Settings) -> None:
    """Run until SIGTERM or SIGINT; a leader then steps down.

    Raises ConfigError if the API server's address is unknown, OSError if the port is not available.
    """
    metrics = Metrics()
    connection = Connection(settings.access, seen=_observe_requests(metrics))
    others = other_connections(settings)
    controller = Controller(settings, connection, metrics, Fence(_boot_clock), others=others)
    try:
        async with serve_http(
            settings.address, settings.port, is_ready=lambda: controller.is_ready, metrics=metrics.text
        ):
            await _until_signalled(asyncio.create_task(controller.run()))
    finally:
        for each in (connection, *others.values()):
            await each.close()


def other_connections(settings: Settings) -> Mapping[str, Connection]:
    """Return the connections to other clusters.

    A cluster with an invalid kubeconfig is skipped, so that jobs at home are still reconciled.
    """
    found: dict[str, Connection] = {}
    for name, access in settings.other_clusters().items():
        try:
            found[name] = Connection(access)
        except ConfigError:
            _log.exception(
                "cluster %s is not reached: its tiers are skipped, and copies there are left alone", name
            )
    return found


async def _until_signalled(running: "asyncio.Task[None]") -> None:
    loop = asyncio.get_running_loop()
    for told in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(told, running.cancel)
    with suppress(asyncio.CancelledError):
        await running


def _boot_clock() -> float:
    """Return seconds of a clock that continues while the machine sleeps, if there is one."""
    boot = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if boot is None else time.clock_gettime(boot)


def _observe_requests(metrics: Metrics) -> Callable[[str, int, float], None]:
    def seen(method: str, status: int, seconds: float) -> None:
        metrics.request_seconds.labels(method, str(status)).observe(seconds)

    return seen
