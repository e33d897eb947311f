"""The controller's Prometheus metrics: their names, labels and buckets."""

from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from typing import Final

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

# The shortest value is a move on a simulated cluster, the longest a wait for capacity that ends in giving up.
_MOVE_SECONDS: Final = (0.5, 1, 2, 5, 10, 30, 60, 120, 300, 600, 1800)
_WAIT_SECONDS: Final = (1, 5, 15, 30, 60, 120, 300, 600, 1800, 3600, 14400)
_RECONCILE_SECONDS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5)
_REQUEST_SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10)

Sample = tuple[tuple[str, ...], float]


class MetricName(StrEnum):
    """Every metric of the controller. docs/fallback.md explains each of them; a unit test compares the two."""

    MOVES = "holdfast_fallback_moves_total"
    OUTAGES = "holdfast_fallback_outages_total"
    CAPACITY_WAIT_SECONDS = "holdfast_fallback_capacity_wait_seconds"
    MOVE_SECONDS = "holdfast_fallback_move_seconds"
    JOBS = "holdfast_fallback_jobs"
    LATE_JOBS = "holdfast_fallback_late_jobs"
    NODE_SECONDS = "holdfast_fallback_node_seconds_total"
    COST = "holdfast_fallback_cost_total"
    ON_DEMAND_COST = "holdfast_fallback_on_demand_cost_total"
    NODE_PRICE = "holdfast_fallback_node_price"
    PRICE_READS = "holdfast_fallback_price_reads_total"
    JOB_EVENTS = "holdfast_fallback_job_events_total"
    EVENT_WRITES = "holdfast_fallback_event_writes_total"
    NOTIFICATIONS = "holdfast_fallback_notifications_total"
    FAILED_WRITES = "holdfast_fallback_failed_writes_total"
    RECONCILE_SECONDS = "holdfast_fallback_reconcile_seconds"
    RECONCILE_ERRORS = "holdfast_fallback_reconcile_errors_total"
    QUEUE_LENGTH = "holdfast_fallback_queue_length"
    POD_HISTORIES = "holdfast_fallback_pod_histories"
    CACHED_OBJECTS = "holdfast_fallback_cached_objects"
    INFORMER_LISTS = "holdfast_fallback_informer_lists"
    INFORMER_WATCHES = "holdfast_fallback_informer_watches"
    OBJECT_ERRORS = "holdfast_fallback_object_errors"
    REQUEST_SECONDS = "holdfast_fallback_request_seconds"
    LEADER = "holdfast_fallback_leader"


class _GaugeOnScrape(Collector):
    """A gauge whose values are read at each scrape."""

    def __init__(
        self, name: str, text: str, labels: Iterable[str], read: Callable[[], Iterable[Sample]]
    ) -> None:
        self._name, self._text, self._labels, self._read = name, text, tuple(labels), read

    def collect(self) -> Iterator[Metric]:
        family = GaugeMetricFamily(self._name, self._text, labels=self._labels)
        for values, value in self._read():
            family.add_metric(values, value)
        yield family


class Metrics:
    """All metrics, in their own registry. `process` adds the CPU and memory of the process."""

    def __init__(self, *, process: bool = True) -> None:
        # Prometheus derives the start of each series from the scrapes; as own series they double the text.
        disable_created_metrics()
        self._registry = CollectorRegistry()
        if process:
            ProcessCollector(registry=self._registry)
        self.moves = self._counter(MetricName.MOVES, "Tiers entered.", "namespace", "pool", "purpose")
        self.outages = self._counter(
            MetricName.OUTAGES, "Outages counted against a tier, by cause.", "namespace", "pool", "cause"
        )
        self.node_seconds = self._counter(
            MetricName.NODE_SECONDS,
            "Time of the nodes of jobs, added up over the nodes.",
            "namespace",
            "pool",
            "capacity",
        )
        self.cost = self._counter(
            MetricName.COST, "What nodes of jobs have cost.", "namespace", "pool", "capacity"
        )
        self.on_demand_cost = self._counter(
            MetricName.ON_DEMAND_COST,
            "What nodes of jobs would have cost at the price of the ladder's on-demand tier.",
            "namespace",
            "pool",
            "capacity",
        )
        self.price_reads = self._counter(
            MetricName.PRICE_READS, "Reads of Karpenter's prices that succeeded or failed.", "outcome"
        )
        self.job_events = self._counter(
            MetricName.JOB_EVENTS, "Events of jobs, by reason.", "namespace", "reason"
        )
        self.event_writes = self._counter(
            MetricName.EVENT_WRITES, "Events written to the API server, or dropped.", "outcome"
        )
        self.notifications = self._counter(
            MetricName.NOTIFICATIONS, "Notifications sent through the webhook, or dropped.", "outcome"
        )
        self.failed_writes = self._counter(
            MetricName.FAILED_WRITES, "Writes for a job that failed and are retried.", "reason"
        )
        self.reconcile_errors = self._counter(
            MetricName.RECONCILE_ERRORS, "Reconciliations and other tasks that ended in an internal error."
        )
        self.capacity_wait_seconds = self._histogram(
            MetricName.CAPACITY_WAIT_SECONDS,
            "Time until every pod of a gang had a node.",
            _WAIT_SECONDS,
            "namespace",
            "pool",
        )
        self.move_seconds = self._histogram(
            MetricName.MOVE_SECONDS,
            "Time from a job's suspension until every pod had a node again.",
            _MOVE_SECONDS,
            "namespace",
            "pool",
        )
        self.reconcile_seconds = self._histogram(
            MetricName.RECONCILE_SECONDS,
            "Time to observe a job and to decide, without requests.",
            _RECONCILE_SECONDS,
        )
        self.request_seconds = self._histogram(
            MetricName.REQUEST_SECONDS,
            "Time of requests to the API server; a watch counts when it ends.",
            _REQUEST_SECONDS,
            "method",
            "status",
        )
        self.leader = Gauge(MetricName.LEADER, "1 while this replica leads.", registry=self._registry)

    def gauge_on_scrape(
        self, name: MetricName, text: str, labels: Iterable[str], read: Callable[[], Iterable[Sample]]
    ) -> None:
        """Add a gauge whose values are read at each scrape; `read` yields label values and a value."""
        self._registry.register(_GaugeOnScrape(name, text, labels, read))

    def text(self) -> bytes:
        """Return all metrics in Prometheus' text format."""
        return generate_latest(self._registry)

    def _counter(self, name: MetricName, text: str, *labels: str) -> Counter:
        return Counter(name, text, labels, registry=self._registry)

    def _histogram(self, name: MetricName, text: str, buckets: tuple[float, ...], *labels: str) -> Histogram:
        return Histogram(name, text, labels, buckets=buckets, registry=self._registry)
