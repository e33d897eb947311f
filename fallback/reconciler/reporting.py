"""Says what is to be said of jobs: as Events, as log lines and as numbers."""

import logging
from collections.abc import Iterable

from holdfast.fallback.api.event_recorder import Occurrence, Recorder, Subject
from holdfast.fallback.jobs.snapshot import JobKey
from holdfast.fallback.reconciler.acting import KIND_OF
from holdfast.fallback.reconciler.metrics import Metrics
from holdfast.fallback.state_machine.events import Report
from holdfast.fallback.state_machine.observation import Observation
from holdfast.fallback.state_machine.state import JobState, Phase, UnreadableState

_log = logging.getLogger(__name__)


class Reporter:
    """Says each report once, and each standing one when it is new or differs."""

    def __init__(self, recorder: Recorder, metrics: Metrics) -> None:
        self._recorder = recorder
        self._metrics = metrics
        self._standing: dict[JobKey, dict[str, str]] = {}

    def say(self, key: JobKey, uid: str, reports: Iterable[Report]) -> None:
        """Say what a decision reports, once its actions are done."""
        known = self._standing.get(key, {})
        standing: dict[str, str] = {}
        for report in reports:
            if report.is_standing:
                standing[report.reason] = report.message
                if known.get(report.reason) == report.message:
                    continue
            self.complain(key, uid, report)
        if standing:
            self._standing[key] = standing
        else:
            self._standing.pop(key, None)

    def count(
        self,
        key: JobKey,
        before: JobState | UnreadableState | None,
        after: JobState | None,
        seen: Observation,
    ) -> None:
        """Count what has become of a job between two states."""
        if not isinstance(before, JobState) or after is None:
            return
        where = (key.namespace, after.pool)
        if after.moves > before.moves:
            self._metrics.moves.labels(*where, before.purpose or "").inc(after.moves - before.moves)
        else:
            for cause, more in (
                ("eviction", after.evictions - before.evictions),
                ("application", after.application_failures - before.application_failures),
                ("unexplained", after.unexplained - before.unexplained),
            ):
                if more > 0:
                    self._metrics.outages.labels(*where, cause).inc(more)
        if before.phase is Phase.WAITING and after.phase is Phase.RUNNING:
            if before.waiting_since is not None:
                waited = before.waited + (seen.now - before.waiting_since)
                self._metrics.waits.labels(*where).observe(max(0.0, waited.total_seconds()))
            if before.suspended_at is not None:
                took = (seen.now - before.suspended_at).total_seconds()
                self._metrics.move_seconds.labels(*where).observe(max(0.0, took))

    def forget(self, key: JobKey) -> None:
        """Forget a job that is gone."""
        self._standing.pop(key, None)

    def complain(self, key: JobKey, uid: str, report: Report) -> None:
        """Say one thing, whatever stands."""
        subject = Subject(kind=KIND_OF[key.kind], namespace=key.namespace, name=key.name, uid=uid)
        self._recorder.say(
            Occurrence(
                subject=subject, reason=report.reason, message=report.message, is_warning=report.is_warning
            )
        )
        self._metrics.reports.labels(key.namespace, report.reason).inc()
        _log.log(
            logging.WARNING if report.is_warning else logging.INFO,
            "%s",
            report.message,
            extra={"reason": report.reason, "job": "/".join(key), "uid": uid},
        )
