"""Runs a plan of faults, from the first job to the checked result."""

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Final

from pulumi_holdfast.ladder.fallback_policy import parse_policy
from pulumi_holdfast.ladder.json import Json, mapping
from pulumi_holdfast.ladder.labels import CONTROLLER_NAMESPACE, LEASE
from pulumi_holdfast.ladder.ladder import NoPolicy, Policy
from pulumi_holdfast.rehearsal.errors import RehearsalError
from pulumi_holdfast.rehearsal.timeline.recorder import JOBSET, RAYJOB, JobTimelineRecorder
from pulumi_holdfast.rehearsal.timeline.traces import JobTrace
from tests.soak.faults.deadlines import Programs, finish_by, late_by_fault
from tests.soak.faults.environment import FaultEnvironment, wait_for_releases, watched
from tests.soak.faults.holds import broken_holds
from tests.soak.faults.injection import Injector
from tests.soak.faults.invariants import FaultRunResult, check_records
from tests.soak.faults.ledgers import NodeUse, wrong_bills
from tests.soak.faults.manifests import (
    OUTAGE_SECONDS,
    PODS,
    POOLS,
    TIERS,
    has_deadline,
    job,
    job_name,
    ladder,
)
from tests.soak.faults.nodes import NodeTimeline
from tests.soak.faults.observations import Record
from tests.soak.faults.plan import Plan

#: A restarted controller counts an outage when it notices it, and the outage window begins then.
APART: Final = timedelta(seconds=OUTAGE_SECONDS + 3)
_LEASE_SECONDS: Final = 90.0


@dataclass(frozen=True, kw_only=True)
class Settling:
    """Waits until no move is in progress; `seconds` is the limit."""

    recorder: JobTimelineRecorder
    injector: Injector
    jobs: Sequence[str]
    seconds: float

    def wait(self) -> None:
        """Wait until each job has ended or runs completely, and a controller leads. Raises RehearsalError after the limit."""
        try:
            self.recorder.wait(self.is_settled, "every job runs or has ended", seconds=self.seconds)
        except RehearsalError as error:
            with self.recorder.frozen():
                jobs = "; ".join(
                    f"{name}: {_describe(self.recorder.job(name))}" for name in self._unsettled()[:5]
                )
                raise RehearsalError(
                    f"{error}: {len(self._unsettled())} are not, for example {jobs}"
                ) from error
        self._wait_for_leader()

    def is_settled(self) -> bool:
        """Whether each job has ended or runs whole; to be request while nothing more is taken in."""
        return not self._unsettled()

    def pause(self) -> None:
        """Wait until the last outage windows are over, so that the next faults are another outage."""
        threading.Event().wait(APART.total_seconds())

    def _unsettled(self) -> list[str]:
        return [name for name in self.jobs if not self._is_settled(self.recorder.job(name))]

    def _is_settled(self, trace: JobTrace) -> bool:
        if not trace.changes:
            return False
        last = trace.last
        if last.outcome:
            return True
        alive = [pod for pod in trace.alive() if not pod.is_head]
        is_whole = len(alive) == len(trace.running_in(last.pool)) == PODS
        is_hit = any(self.injector.is_struck(pod) for pod in alive)
        return last.phase == "Running" and not last.suspended and is_whole and not is_hit

    def _wait_for_leader(self) -> None:
        since = datetime.now(UTC)

        def is_renewed(lease: "Json | None") -> bool:
            renewed = mapping((lease or {}).get("spec")).get("renewTime")
            return isinstance(renewed, str) and datetime.fromisoformat(renewed) > since

        self.injector.client.wait_for(
            "coordination.k8s.io/v1",
            "Lease",
            LEASE,
            namespace=CONTROLLER_NAMESPACE,
            timeout_seconds=_LEASE_SECONDS,
            condition=is_renewed,
            what="a controller leads",
        )


def _describe(trace: JobTrace) -> str:
    if not trace.changes:
        return "never seen"
    last = trace.last
    pods = ", ".join(
        f"{pod.name} on {pod.node or 'no node'}{' ending' if pod.leaving_at else ''}" for pod in trace.alive()
    )
    return f"{last.phase} on {last.pool}{', suspended' if last.suspended else ''}, pods: {pods or 'none'}"


# How long a round may take: a job that yields pauses for up to 4 minutes, and each job adds up to a second of load on
# the control plane per move.
_ROUND_SECONDS: Final = 400.0
_ROUND_SECONDS_PER_JOB: Final = 4.0
#: The longest grace period of a job, in seconds.
MOST_GRACE: Final = 3
# Each job that moves at the same time adds load on the same two cores.
_LAG: Final = timedelta(seconds=3)
_LAG_PER_JOB: Final = timedelta(milliseconds=50)
_MOST_BUSY: Final = 4.0
RETURNING: Final = {"returnAfter": "45s", "holdTimeout": "40s"}


def run_faults(environment: FaultEnvironment, plan: Plan, *, say: Callable[[str], None]) -> FaultRunResult:
    """Run the jobs and the faults of a plan, and check the result against the controller's state machine.

    Raises RehearsalError if the jobs do not settle after a round.
    """
    random = Random(plan.seed)
    policy = ladder(plan.failures, RETURNING if plan.returns else {})
    names = [job_name(number) for number in range(plan.jobs)]
    paced = {job_name(number): PODS for number in range(plan.jobs) if has_deadline(number)}
    environment.prepare(policy)
    with ExitStack() as stack:
        cluster = stack.enter_context(watched(environment, kinds=(JOBSET, RAYJOB), say=say))
        recorder, injector = cluster.recorder, cluster.injector
        settling = Settling(
            recorder=recorder,
            injector=injector,
            jobs=names,
            seconds=_ROUND_SECONDS + _ROUND_SECONDS_PER_JOB * plan.jobs,
        )
        deadline = finish_by(datetime.now(UTC), plan.jobs)
        jobs = [
            job(number, ends_in=f"{random.randint(0, MOST_GRACE)}s", finish_by=deadline)
            for number in range(plan.jobs)
        ]
        stack.enter_context(Programs(recorder, paced, injector.complete).running())
        environment.apply_at_once(jobs)
        say(f"{plan.jobs} jobs created")
        settling.wait()
        say("every job runs")
        _inject(plan, injector, settling, say)
        left = wait_for_releases(environment.client)
        while True:
            with recorder.frozen():
                # A job may have started a failback since; the check needs settled jobs.
                if settling.is_settled() and not _works_before(deadline, recorder, paced):
                    judged = Judged(
                        recorder=recorder,
                        injector=injector,
                        nodes=cluster.nodes.timeline(),
                        policy=_parsed(policy),
                        names=names,
                        paced=paced,
                        finish_by=deadline,
                    )
                    say(judged.extent())
                    return judged.result(left, writes=cluster.proxy.writes)
            settling.pause()
            settling.wait()


def _inject(plan: Plan, injector: Injector, settling: Settling, say: Callable[[str], None]) -> None:
    for number, faults in enumerate(plan.rounds, 1):
        say(f"round {number} of {len(plan.rounds)}")
        for fault in faults:
            injector.inject(fault)
        settling.wait()
        if injector.kill_at_write.cancel():
            say("the controller made too few writes to be killed at one")
        settling.pause()
    injector.recover()
    settling.wait()


def _parsed(policy: Json) -> Policy:
    parsed = parse_policy(policy)
    if isinstance(parsed, NoPolicy):
        raise RehearsalError(f"the policy of the run is not valid: {'; '.join(parsed.problems)}")
    return parsed


def _works_before(deadline: datetime, recorder: JobTimelineRecorder, paced: Mapping[str, int]) -> bool:
    """Whether a job with a deadline still works before it: whether it keeps it is known only then."""
    return datetime.now(UTC) < deadline and any(not recorder.job(name).last.outcome for name in paced)


@dataclass(frozen=True, kw_only=True)
class Judged:
    """A run that has settled, as it was recorded."""

    recorder: JobTimelineRecorder
    injector: Injector
    nodes: NodeTimeline
    policy: Policy
    names: Sequence[str]
    paced: Mapping[str, int]
    finish_by: datetime

    def extent(self) -> str:
        """Return how much there was to check."""
        written = sum(len(self.recorder.job(name).ledgers) for name in self.names)
        held = len({(each.job, each.pool) for each in self.nodes.placeholders.values()})
        kept = sum(self.recorder.job(name).last.outcome == "Completed" for name in self.paced)
        return (
            f"Checked: {written} written ledgers, {held} reservations, {len(self.nodes.pools)} nodes, and "
            f"{len(self.paced)} deadlines, {kept} of their jobs completed"
        )

    def result(self, left: Sequence[str], *, writes: int) -> FaultRunResult:
        """Check jobs, ledgers, deadlines and reservations."""
        records = self._records(datetime.now(UTC))
        return check_records(
            records,
            self.policy,
            overlaps=self.recorder.overlaps,
            others=[*left, *self._bills(records), *self._late(records), *self._holds(records)],
            deaths=self.injector.controller.deaths,
            writes=writes,
        )

    def _records(self, until: datetime) -> list[Record]:
        return [
            Record(
                trace=self.recorder.job(name),
                pods=PODS,
                vanished=self.injector.vanished,
                until=until,
                kills=tuple(self.injector.kills),
                lag=lag_of(len(self.names)),
                is_paced=name in self.paced,
            )
            for name in self.names
        ]

    def _bills(self, records: Sequence[Record]) -> Iterator[str]:
        jobs = NodeUse(self.nodes, records)
        for each in records:
            found = wrong_bills(each, each.trace.ledgers, jobs, TIERS)
            yield from (f"{each.trace.name}: {problem}" for problem in found)

    def _late(self, records: Sequence[Record]) -> Iterator[str]:
        for each in records:
            late = late_by_fault(
                each.trace,
                PODS,
                finish_by=self.finish_by,
                until=each.until,
                last_pool=POOLS[-1],
                kills=each.kills,
            )
            if each.is_paced and late is not None:
                yield f"{each.trace.name}: {late}"

    def _holds(self, records: Sequence[Record]) -> Sequence[str]:
        return broken_holds(
            self.nodes,
            {each.trace.uid: PODS for each in records},
            hold_timeout=self.policy.hold_timeout,
            late=lag_of(len(self.names)),
            kills=self.injector.kills,
            until=records[0].until,
        )


def lag_of(jobs: int) -> timedelta:
    """How late watches and writes may be: on a machine with other work, by as much as its cores are asked for too much."""
    busy = os.getloadavg()[2] / (os.cpu_count() or 1)
    return (_LAG + _LAG_PER_JOB * jobs) * min(_MOST_BUSY, max(1.0, busy))
