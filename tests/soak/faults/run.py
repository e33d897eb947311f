"""A fault run from its first job to its verdict."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Final

from holdfast.fallback.policy.parser import parse_policy
from holdfast.fallback.policy.policy import NoPolicy, Policy
from holdfast.rehearsal.timeline.recorder import JobTimelineRecorder
from holdfast.rehearsal.timeline.traces import JobTrace
from holdfast.scheduling.json import Json
from holdfast.scheduling.labels import CONTROLLER_NAMESPACE, LEASE
from holdfast.simulator.errors import RehearsalError
from holdfast.simulator.kubernetes_client.objects import mapping
from tests.soak.fault_proxy import running_proxy
from tests.soak.faults.environment import FaultEnvironment
from tests.soak.faults.injection import Injector, KillAtWrite
from tests.soak.faults.invariants import FaultRunResult, check_records
from tests.soak.faults.manifests import NAMESPACE, OUTAGE_SECONDS, PODS, job, job_name, ladder
from tests.soak.faults.observations import Record
from tests.soak.faults.plan import Plan
from tests.soak.faults.processes import Servers, restarted_controller

# What is counted when the controller is back is counted at that time, and its window begins then.
_APART: Final = timedelta(seconds=OUTAGE_SECONDS + 3)
_LEASE_SECONDS: Final = 90.0


@dataclass(frozen=True, kw_only=True)
class Settling:
    """Says when every job is where it is to stay; `seconds` is how long that may take."""

    recorder: JobTimelineRecorder
    injector: Injector
    jobs: Sequence[str]
    seconds: float

    def wait(self) -> None:
        """Wait until each job has ended or runs whole, and a controller leads. Raises RehearsalError where some do not."""
        try:
            self.recorder.wait(self.is_settled, "every job runs or has ended", seconds=self.seconds)
        except RehearsalError as error:
            with self.recorder.frozen():
                told = "; ".join(
                    f"{name}: {_told(self.recorder.job(name))}" for name in self._unsettled()[:5]
                )
                raise RehearsalError(f"{error}: {len(self._unsettled())} are not, as {told}") from error
        self._wait_led()

    def is_settled(self) -> bool:
        """Whether each job has ended or runs whole; to be request while nothing more is taken in."""
        return not self._unsettled()

    def pause(self) -> None:
        """Let the outages that were counted last be over, so that what comes next is another."""
        threading.Event().wait(_APART.total_seconds())

    def _unsettled(self) -> list[str]:
        return [name for name in self.jobs if not self._is_settled(self.recorder.job(name))]

    def _is_settled(self, trace: JobTrace) -> bool:
        if not trace.changes:
            return False
        last = trace.last
        if last.outcome:
            return True
        alive = trace.alive()
        is_whole = len(alive) == len(trace.running_in(last.pool)) == PODS
        is_hit = any(self.injector.is_struck(pod) for pod in alive)
        return last.phase == "Running" and not last.suspended and is_whole and not is_hit

    def _wait_led(self) -> None:
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


def _told(trace: JobTrace) -> str:
    if not trace.changes:
        return "never seen"
    last = trace.last
    pods = ", ".join(
        f"{pod.name} on {pod.node or 'no node'}{' ending' if pod.leaving_at else ''}" for pod in trace.alive()
    )
    return f"{last.phase} on {last.pool}{', suspended' if last.suspended else ''}, pods: {pods or 'none'}"


# How long a round may take: a job that yields to another pauses for up to 4 minutes, and what a job more asks of the
# control plane takes it up to a second for each of its moves.
_ROUND_SECONDS: Final = 400.0
_ROUND_SECONDS_PER_JOB: Final = 4.0
_MOST_GRACE: Final = 3
# Every job more that moves at the same time keeps the same two cores busy for as long.
_LAG: Final = timedelta(seconds=3)
_LAG_PER_JOB: Final = timedelta(milliseconds=50)
_AT_ONCE: Final = 8
_RETURNING: Final = {"returnAfter": "45s", "holdTimeout": "40s"}


def run_faults(environment: FaultEnvironment, plan: Plan, *, say: Callable[[str], None]) -> FaultRunResult:
    """Give the faults of a plan to so many jobs, and hold what became of them against the ladder's own function.

    Raises RehearsalError where a round does not come to rest.
    """
    random = Random(plan.seed)
    policy = ladder(plan.failures, _RETURNING if plan.returns else {})
    names = [job_name(number) for number in range(plan.jobs)]
    environment.prepare(policy)
    with ExitStack() as stack:
        proxy = stack.enter_context(
            running_proxy(environment.layout.kubeconfig, environment.folder, token=environment.token())
        )
        kill_at_write = KillAtWrite()
        proxy.decide = kill_at_write.decide
        controller = stack.enter_context(
            restarted_controller(proxy.kubeconfig, environment.folder / "chaos-controller.log")
        )
        recorder = stack.enter_context(JobTimelineRecorder(environment.client, NAMESPACE).recording())
        injector = Injector(
            client=environment.client,
            recorder=recorder,
            kill_at_write=kill_at_write,
            controller=controller,
            servers=Servers(environment.layout),
            say=say,
        )
        settling = Settling(
            recorder=recorder,
            injector=injector,
            jobs=names,
            seconds=_ROUND_SECONDS + _ROUND_SECONDS_PER_JOB * plan.jobs,
        )
        jobs = [job(number, ends_in=f"{random.randint(0, _MOST_GRACE)}s") for number in range(plan.jobs)]
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            list(pool.map(environment.apply, jobs))
        say(f"{plan.jobs} jobs made")
        settling.wait()
        say("every job runs")
        _give(plan, injector, settling, say)
        while True:
            with recorder.frozen():
                # A job may have set out for a better tier since, which is no end to be judged.
                if settling.is_settled():
                    return _outcome(recorder, names, injector, _parsed(policy), writes=proxy.writes)
            settling.wait()


def _give(plan: Plan, injector: Injector, settling: Settling, say: Callable[[str], None]) -> None:
    for number, faults in enumerate(plan.rounds, 1):
        say(f"round {number} of {len(plan.rounds)}")
        for fault in faults:
            injector.give(fault)
        settling.wait()
        if injector.kill_at_write.spare():
            say("no write was left for the controller to die at")
        settling.pause()
    injector.recover()
    settling.wait()


def _parsed(policy: Json) -> Policy:
    parsed = parse_policy(policy)
    if isinstance(parsed, NoPolicy):
        raise RehearsalError(f"the run's own policy cannot be used: {'; '.join(parsed.problems)}")
    return parsed


def _outcome(
    recorder: JobTimelineRecorder, names: Sequence[str], injector: Injector, policy: Policy, *, writes: int
) -> FaultRunResult:
    until, kills = datetime.now(UTC), tuple(injector.kills)
    records = [
        Record(
            trace=recorder.job(name),
            pods=PODS,
            vanished=injector.vanished,
            until=until,
            kills=kills,
            lag=_LAG + _LAG_PER_JOB * len(names),
        )
        for name in names
    ]
    return check_records(
        records, policy, overlaps=recorder.overlaps, deaths=injector.controller.deaths, writes=writes
    )
