"""Reconciles a job: observe, decide, carry out the actions, record the events; and retry when any of that fails."""

import logging
import time
from collections.abc import Callable, Iterable
from typing import Final

from pulumi_holdfast.controller.jobs.actions import EventReason, JobEvent, standing_event
from pulumi_holdfast.controller.jobs.cached_objects import CachedJob
from pulumi_holdfast.controller.jobs.kinds import KIND_OF
from pulumi_holdfast.controller.jobs.observation import Observation
from pulumi_holdfast.controller.jobs.pods_and_nodes import JobKey
from pulumi_holdfast.controller.jobs.state import JobState, Ledger, Phase, UnreadableState
from pulumi_holdfast.controller.kube.client import ApiError, LeadershipLost, Unreachable
from pulumi_holdfast.controller.kube.events import EventRecorder, InvolvedObject, ObjectEvent
from pulumi_holdfast.controller.kube.objects import metadata_of, text
from pulumi_holdfast.controller.kube.work_queue import WorkQueue
from pulumi_holdfast.controller.loop.action_executor import ActionExecutor, JobChanged, OutdatedObservation
from pulumi_holdfast.controller.loop.metrics import Metrics
from pulumi_holdfast.controller.loop.observer import JobContext, Observer
from pulumi_holdfast.controller.loop.policy_status import JobIndex
from pulumi_holdfast.controller.state_machine.decision import Decision, decide
from pulumi_holdfast.controller.state_machine.ledger import on_demand_price, use_of

_log = logging.getLogger(__name__)

#: The label of pools that neither a ladder nor a node has.
OTHER_POOL: Final = "other"


class EventReporter:
    """Records events as Kubernetes Events, log lines and metrics; a standing event when it is new or its message changes."""

    def __init__(
        self,
        recorder: EventRecorder,
        metrics: Metrics,
        *,
        notify: Callable[[ObjectEvent], None] = lambda _: None,
    ) -> None:
        self._recorder = recorder
        self._notify = notify
        self._metrics = metrics
        self._standing: dict[JobKey, set[tuple[str, str]]] = {}

    def record(self, key: JobKey, uid: str, reports: Iterable[JobEvent]) -> None:
        """Record the events of a decision, once its actions are carried out."""
        known = self._standing.get(key, set())
        standing = set[tuple[str, str]]()
        for report in reports:
            if report.is_standing:
                condition = (report.reason, report.compared or report.message)
                standing.add(condition)
                if condition in known:
                    continue
            self.record_one(key, uid, report)
        if standing:
            self._standing[key] = standing
        else:
            self._standing.pop(key, None)

    def count(
        self,
        key: JobKey,
        before: JobState | UnreadableState | None,
        after: JobState | None,
        observation: Observation,
        on_demand: float | None = None,
    ) -> None:
        """Count what has changed between two states of a job; `on_demand` is the price of a node of the ladder's on-demand tier."""
        if not isinstance(before, JobState) or after is None or after is before:
            return
        self._count_spending(key.namespace, before.ledger, after.ledger, observation, on_demand)
        where = (key.namespace, _pool_label(after.pool, observation))
        if after.moves > before.moves:
            self._metrics.moves.labels(*where, before.purpose or "").inc(after.moves - before.moves)
        else:
            for cause, more in (
                ("eviction", after.evictions - before.evictions),
                ("application", after.application_failures - before.application_failures),
                ("unexplained", after.unexplained - before.unexplained),
            ):
                if more > 0:
                    # The state of a job that moves for its last outage has the next tier's pool already.
                    lost_on = _pool_label(before.pool, observation)
                    self._metrics.outages.labels(key.namespace, lost_on, cause).inc(more)
        if before.phase is Phase.WAITING and after.phase is Phase.RUNNING:
            if before.waiting_since is not None:
                waited = before.waited + (observation.now - before.waiting_since)
                self._metrics.capacity_wait_seconds.labels(*where).observe(max(0.0, waited.total_seconds()))
            if before.suspended_at is not None:
                took = (observation.now - before.suspended_at).total_seconds()
                self._metrics.move_seconds.labels(*where).observe(max(0.0, took))

    def _count_spending(
        self,
        namespace: str,
        before: Ledger | None,
        after: Ledger | None,
        observation: Observation,
        on_demand: float | None,
    ) -> None:
        for use in after.uses if after is not None else ():
            earlier = use_of(before, use.pool)
            if use == earlier or use.is_elsewhere:
                continue  # the controller there counts it
            labels = (namespace, _pool_label(use.pool, observation), use.capacity or "")
            seconds = (use.node_time - earlier.node_time).total_seconds()
            cost = (use.cost or 0.0) - (earlier.cost or 0.0)
            self._metrics.node_seconds.labels(*labels).inc(seconds)
            self._metrics.cost.labels(*labels).inc(cost)
            # Without one of the two prices nothing is saved that could be shown.
            instead = cost if on_demand is None or use.cost is None else on_demand * seconds / 3600
            self._metrics.on_demand_cost.labels(*labels).inc(instead)

    def forget(self, key: JobKey) -> None:
        """Remove a deleted job."""
        self._standing.pop(key, None)

    def record_one(self, key: JobKey, uid: str, report: JobEvent) -> None:
        """Record one event, even if it was recorded before."""
        subject = InvolvedObject(kind=KIND_OF[key.kind], namespace=key.namespace, name=key.name, uid=uid)
        said = ObjectEvent(
            subject=subject, reason=report.reason, message=report.message, is_warning=report.is_warning
        )
        self._recorder.record(said)
        self._notify(said)
        self._metrics.job_events.labels(key.namespace, report.reason).inc()
        _log.log(
            logging.WARNING if report.is_warning else logging.INFO,
            "%s",
            report.message,
            extra={"reason": report.reason, "job": "/".join(key), "uid": uid},
        )


def _pool_label(pool: str, observation: Observation) -> str:
    """Return the label of a pool that the ladder or the job's nodes have: a state may name any, since users may edit it."""
    nodes = {kind.pool for kind in (*observation.node_time, *observation.nodes)}
    return pool if pool in observation.pools or pool in nodes else OTHER_POOL


class Reconciler:
    """Reconciles one job at a time.

    A replica that does not lead observes jobs too, and writes nothing: it has their pod histories when it becomes leader.
    """

    def __init__(
        self,
        queue: WorkQueue[JobKey],
        observer: Observer,
        executor: ActionExecutor,
        reporter: EventReporter,
        job_index: JobIndex,
        metrics: Metrics,
        *,
        is_leader: Callable[[], bool],
    ) -> None:
        self._queue = queue
        self._observer = observer
        self._executor = executor
        self._reporter = reporter
        self._job_index = job_index
        self._metrics = metrics
        self._is_leader = is_leader
        self._rejected_versions: dict[JobKey, str] = {}

    async def work(self) -> None:
        """Take jobs from the queue until canceled."""
        while True:
            key = await self._queue.get()
            try:
                await self.reconcile(key)
            finally:
                self._queue.done(key)

    async def reconcile(self, key: JobKey) -> None:
        """Reconcile one job. Raises nothing: failures are retried."""
        try:
            await self._reconcile(key)
        except Exception:  # noqa: BLE001  # an error in one job must not stop the others
            _log.exception("reconciling a job failed", extra={"job": "/".join(key)})
            self._metrics.reconcile_errors.inc()
            self._queue.retry(key)

    async def _reconcile(self, key: JobKey) -> None:
        excess = self._observer.too_large(key)
        if excess is not None:
            self._leave(key, excess)
            return
        began = time.perf_counter()
        context = self._observer.observe(key)
        if context is None:
            self._forget(key)
            return
        if not self._is_leader():
            return
        if self._rejected_versions.get(key) == _version(context):
            # The server has a later version, which the watch is about to deliver: until then it rejects every write.
            self._queue.retry(key)
            return
        decision = decide(context.state, context.seen, context.policy)
        self._metrics.reconcile_seconds.observe(time.perf_counter() - began)
        if not await self._act(context, decision):
            return
        self._rejected_versions.pop(key, None)
        self._observer.settle(context)
        self._queue.succeed(key)
        self._queue.add_at(key, decision.requeue_at)
        self._reporter.record(key, context.seen.uid, decision.events)
        price = on_demand_price(context.seen, context.policy)
        self._reporter.count(key, context.state, decision.state, context.seen, price)
        state = decision.state
        self._job_index.set(key, state, pool=state and _pool_label(state.pool, context.seen))

    async def _act(self, context: JobContext, decision: Decision) -> bool:
        """Carry out a decision; returns whether all of it succeeded."""
        key = context.key
        try:
            await self._executor.execute(context, decision.actions)
        except LeadershipLost:
            self._metrics.failed_writes.labels("not_leader").inc()
        except OutdatedObservation as error:
            _log.info("not carried out: %s", error, extra={"job": "/".join(key)})
            self._metrics.failed_writes.labels(error.reason).inc()
            self._queue.retry(key)
        except Unreachable as error:
            _log.warning("%s", error, extra={"job": "/".join(key)})
            self._metrics.failed_writes.labels("unreachable").inc()
            self._queue.retry(key)
        except ApiError as error:
            self._handle_rejection(context, error)
        else:
            return True
        return False

    def _handle_rejection(self, context: JobContext, error: ApiError) -> None:
        key = context.key
        self._metrics.failed_writes.labels(str(error.status)).inc()
        self._queue.retry(key, error.retry_after_seconds)
        if isinstance(error, JobChanged):
            self._rejected_versions[key] = _version(context)
            return
        # The conflict is about a node or a child Job: the job itself may never change again.
        if error.is_conflict or error.is_missing or error.is_overload:
            _log.info("%s", error, extra={"job": "/".join(key), "status": error.status})
            return
        report = JobEvent(
            reason=EventReason.WRITE_REJECTED,
            message=f"The API server rejects a write of the fallback controller, which is retried: {error}",
            is_warning=True,
        )
        self._reporter.record_one(key, context.seen.uid, report)

    def _leave(self, key: JobKey, job: CachedJob) -> None:
        """Do nothing more for a job that is too large."""
        self._rejected_versions.pop(key, None)
        self._observer.forget(key)
        self._job_index.set(key, None)
        self._queue.succeed(key)
        if job.follows and self._is_leader():
            said = standing_event(
                EventReason.CANNOT_FOLLOW, f"The job does not follow its ladder. {job.excess}"
            )
            self._reporter.record(key, job.uid, [said])

    def _forget(self, key: JobKey) -> None:
        self._rejected_versions.pop(key, None)
        self._observer.forget(key)
        self._reporter.forget(key)
        self._job_index.set(key, None)
        self._queue.forget(key)


def _version(context: JobContext) -> str:
    return text(metadata_of(context.job).get("resourceVersion"))
