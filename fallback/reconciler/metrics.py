"""What the controller counts, for Prometheus."""

from collections.abc import Callable, Iterable, Iterator
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

# From a move on a simulated cluster to a wait for capacity that is given up.
_MOVE_SECONDS: Final = (0.5, 1, 2, 5, 10, 30, 60, 120, 300, 600, 1800)
_WAIT_SECONDS: Final = (1, 5, 15, 30, 60, 120, 300, 600, 1800, 3600, 14400)
_LOOK_SECONDS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5)
_REQUEST_SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10)

Sample = tuple[tuple[str, ...], float]


class _Snapshot(Collector):
    """A gauge that is read when it is asked for."""

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
    """All metrics, in a registry of their own. `process` adds the process's CPU and memory."""

    def __init__(self, *, process: bool = True) -> None:
        # When each series began is told by the scrapes; as series of their own they are half of all text.
        disable_created_metrics()
        self._registry = registry = CollectorRegistry()
        if process:
            ProcessCollector(registry=registry)
        self.moves = Counter(
            "holdfast_fallback_moves", "Tiers entered.", ["namespace", "pool", "purpose"], registry=registry
        )
        self.outages = Counter(
            "holdfast_fallback_outages",
            "Outages counted against a tier, by what they were.",
            ["namespace", "pool", "cause"],
            registry=registry,
        )
        self.waits = Histogram(
            "holdfast_fallback_capacity_wait_seconds",
            "How long a gang waited until every pod had a node.",
            ["namespace", "pool"],
            buckets=_WAIT_SECONDS,
            registry=registry,
        )
        self.move_seconds = Histogram(
            "holdfast_fallback_move_seconds",
            "From a job's suspension until every pod had a node again.",
            ["namespace", "pool"],
            buckets=_MOVE_SECONDS,
            registry=registry,
        )
        self.reports = Counter(
            "holdfast_fallback_reports", "Things said of jobs.", ["namespace", "reason"], registry=registry
        )
        self.refusals = Counter(
            "holdfast_fallback_refused_writes", "Writes that did not come about.", ["why"], registry=registry
        )
        self.looks = Histogram(
            "holdfast_fallback_look_seconds",
            "Time to observe a job and decide, without any request.",
            buckets=_LOOK_SECONDS,
            registry=registry,
        )
        self.failures = Counter(
            "holdfast_fallback_failed_looks", "Looks that ended in an error of our own.", registry=registry
        )
        self.requests = Histogram(
            "holdfast_fallback_request_seconds",
            "Requests to the API server; watches are counted when they end.",
            ["method", "status"],
            buckets=_REQUEST_SECONDS,
            registry=registry,
        )
        self.events = Counter("holdfast_fallback_events", "Events.", ["outcome"], registry=registry)
        self.is_leader = Gauge("holdfast_fallback_leads", "1 while this replica leads.", registry=registry)

    def show(self, name: str, text: str, labels: Iterable[str], read: Callable[[], Iterable[Sample]]) -> None:
        """Add a gauge that is read when it is asked for; `read` yields label values and a value."""
        self._registry.register(_Snapshot(name, text, labels, read))

    def text(self) -> bytes:
        """Return all of it in Prometheus' text format."""
        return generate_latest(self._registry)
