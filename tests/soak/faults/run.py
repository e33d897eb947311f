"""Runs a plan of faults in one cluster or two, from the first job to the checked result."""

import os
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Final

from pulumi_holdfast.ladder.fallback_policy import parse_policy
from pulumi_holdfast.ladder.json import Json, mapping
from pulumi_holdfast.ladder.labels import CONTROLLER_NAMESPACE, LEASE
from pulumi_holdfast.ladder.ladder import NoPolicy, Policy
from pulumi_holdfast.rehearsal.errors import RehearsalError
from pulumi_holdfast.rehearsal.timeline.recorder import JOBSET, RAYJOB
from pulumi_holdfast.rehearsal.timeline.traces import PodTrace
from tests.soak.fault_proxy import ApiRequest, Fault, running_proxy
from tests.soak.faults.both_sides import BothSides, check_both
from tests.soak.faults.deadlines import Programs, finish_by, late_by_fault
from tests.soak.faults.environment import FaultEnvironment, WatchedCluster, wait_for_releases, watched
from tests.soak.faults.holds import broken_holds
from tests.soak.faults.invariants import FaultRunResult, check_records
from tests.soak.faults.ledgers import NodeUse, wrong_bills
from tests.soak.faults.manifests import (
    NAMESPACE,
    OUTAGE_SECONDS,
    PODS,
    POOLS,
    TIERS,
    has_deadline,
    job,
    job_name,
    ladder,
    two_ladders,
)
from tests.soak.faults.observations import Record
from tests.soak.faults.plan import Link, Plan, Side, Step, Strike, Wait
from tests.soak.faults.programs import real_programs
from tests.soak.faults.two_clusters import Between, Overlaps
from tests.support.clusters.transfers import CLUSTER, allow_copies

_KINDS: Final = (JOBSET, RAYJOB)
#: A restarted controller counts an outage when it notices it, and the outage window begins then.
_APART: Final = timedelta(seconds=OUTAGE_SECONDS + 3)
_LEASE_SECONDS: Final = 90.0
_LOOK_SECONDS: Final = 0.5
# How long a round may take: a job that yields pauses for up to 4 minutes, and each job adds up to a second of load on
# the control plane per move; transfers take longer.
_ROUND_SECONDS: Final = 400.0
_ROUND_SECONDS_PER_JOB: Final = 4.0
_ROUND_SECONDS_OF_TWO: Final = 900.0
_ROUND_SECONDS_PER_JOB_OF_TWO: Final = 10.0
#: The longest grace period of a job, in seconds.
_MOST_GRACE: Final = 3
# Each job that moves at the same time adds load on the same two cores.
_LAG: Final = timedelta(seconds=3)
_LAG_PER_JOB: Final = timedelta(milliseconds=50)
_MOST_BUSY: Final = 4.0
_RETURNING: Final = {"returnAfter": "45s", "holdTimeout": "40s"}


def run_faults(
    environments: Mapping[Side, FaultEnvironment], plan: Plan, *, say: Callable[[str], None]
) -> FaultRunResult:
    """Run the jobs and the faults of a plan, and check what was recorded in the clusters.

    Raises RehearsalError if the jobs do not settle after a round.
    """
    random = Random(plan.seed)
    home, there = environments[Side.HOME], environments.get(Side.THERE)
    names = [job_name(number) for number in plan.jobs]
    paced = {job_name(number): PODS for number in plan.jobs if has_deadline(number)}
    returning = _RETURNING if plan.returns else {}
    with ExitStack() as stack:
        if there is None:
            policy = ladder(plan.failures, returning)
            home.prepare(policy)
            sides = {Side.HOME: stack.enter_context(watched(home, kinds=_KINDS, say=say))}
            between = overlaps = None
        else:
            first, elsewhere, last = plan.failures
            policy, policy_there = two_ladders(CLUSTER, (first, elsewhere, last), returning)
            between = Between(random=Random(plan.seed))
            sides = stack.enter_context(_both(home, there, (policy, policy_there), between, say))
            overlaps = Overlaps(home=home.client, there=there.client)
            stack.enter_context(overlaps.watched())
        run = FaultRun(sides=sides, between=between, jobs=names, say=say)
        deadline = finish_by(datetime.now(UTC), len(names))
        manifests = [
            job(number, ends_in=f"{random.randint(0, _MOST_GRACE)}s", finish_by=deadline)
            for number in plan.jobs
        ]
        at_home = sides[Side.HOME]
        stack.enter_context(Programs(at_home.recorder, paced, at_home.injector.complete).running())
        programs = real_programs(home, policy) if there is None else None
        if programs is not None:
            stack.enter_context(programs.followed())
        home.apply_at_once(manifests)
        say(f"{len(names)} jobs created")
        run.settle()
        say("every job runs")
        for number, steps in enumerate(plan.rounds, 1):
            say(f"round {number} of {len(plan.rounds)}")
            run.inject(steps)
        for side in sides.values():
            side.injector.recover()
        run.settle()
        left = programs.problems() if programs is not None else []
        left += [
            f"{each} ({side})" for side in sides for each in wait_for_releases(environments[side].client)
        ]
        while True:
            with run.frozen():
                # A job may have started a failback since; the check needs settled jobs.
                if not run.unsettled() and not _works_before(deadline, sides[Side.HOME], paced):
                    if overlaps is not None and between is not None:
                        return run.judged_in_both([*left, *overlaps.found], overlaps.looks, between)
                    judged = Judged(
                        cluster=at_home, policy=_parsed(policy), names=names, paced=paced, finish_by=deadline
                    )
                    say(judged.extent())
                    return judged.result(left)
            run.pause()
            run.settle()


@contextmanager
def _both(
    home: FaultEnvironment,
    there: FaultEnvironment,
    policies: tuple[Json, Json],
    between: Between,
    say: Callable[[str], None],
) -> Generator[Mapping[Side, WatchedCluster]]:
    """Run a controller in each cluster; that of home reaches the other cluster through a proxy."""
    for environment in (home, there):
        environment.prepare()
    access = allow_copies(home.client, there.client, there.layout.kubeconfig, namespace=NAMESPACE)
    for environment, policy in zip((home, there), policies, strict=True):
        environment.apply(policy)
    (home.folder / "between").mkdir()
    with (
        running_proxy(access, home.folder / "between") as proxy,
        watched(there, kinds=_KINDS, say=lambda text: say(f"there: {text}")) as watched_there,
        watched(
            home,
            *("--cluster", f"{CLUSTER}={proxy.kubeconfig}"),
            kinds=_KINDS,
            say=lambda text: say(f"home: {text}"),
        ) as watched_home,
    ):
        kill_at_write = watched_home.injector.kill_at_write

        def decide(request: ApiRequest) -> Fault:
            fault = between.decide(request)
            is_counted = fault is Fault.PASS and not kill_at_write.is_partitioned
            return kill_at_write.decide(request) if is_counted else fault

        proxy.decide = decide
        yield {Side.HOME: watched_home, Side.THERE: watched_there}


@dataclass(frozen=True, kw_only=True)
class FaultRun:
    """A run under way; `between` is None in one cluster."""

    sides: Mapping[Side, WatchedCluster]
    between: Between | None
    jobs: Sequence[str]
    say: Callable[[str], None]

    def inject(self, steps: Sequence[Step]) -> None:
        """Carry out one round, join the clusters again, and wait until every job has settled."""
        for step in steps:
            match step:
                case Strike():
                    self.sides[step.side].injector.inject(step.fault)
                case Wait():
                    threading.Event().wait(step.seconds)
                case Link():
                    self.say(f"the clusters' link is {step.value}")
                    self._join(step)
        self._join(Link.WHOLE)
        self.settle()
        for side in self.sides.values():
            if side.injector.kill_at_write.cancel():
                self.say("the controller made too few writes to be killed at one")
        self.pause()

    def pause(self) -> None:
        """Wait until the last outage windows are over, so that the next faults are another outage."""
        threading.Event().wait(_APART.total_seconds())

    def settle(self) -> None:
        """Wait until no transfer and no move is under way, and controllers lead. Raises RehearsalError after the limit."""
        seconds, per_job = (
            (_ROUND_SECONDS, _ROUND_SECONDS_PER_JOB)
            if self.between is None
            else (_ROUND_SECONDS_OF_TWO, _ROUND_SECONDS_PER_JOB_OF_TWO)
        )
        deadline = time.monotonic() + seconds + per_job * len(self.jobs)
        while unsettled := self.unsettled():
            if time.monotonic() > deadline:
                raise RehearsalError(f"{len(unsettled)} jobs do not run: {'; '.join(unsettled[:5])}")
            threading.Event().wait(_LOOK_SECONDS)
        for side in self.sides.values():
            _wait_for_leader(side)

    def unsettled(self) -> list[str]:
        """Return where each job is that neither has ended nor runs completely, in one cluster alone."""
        with self.frozen():
            return [
                f"{name} is {' and '.join(f'{self._described(side, name)} ({side})' for side in self.sides)}"
                for name in self.jobs
                if not self._is_settled(name)
            ]

    @contextmanager
    def frozen(self) -> Generator[None]:
        """Record nothing for the length of the block."""
        with ExitStack() as stack:
            for side in self.sides.values():
                stack.enter_context(side.recorder.frozen())
            yield

    def judged_in_both(self, others: Sequence[str], looks: int, between: Between) -> FaultRunResult:
        """Check what was recorded in both clusters; `others` are problems that were found elsewhere."""
        home, there = self.sides[Side.HOME], self.sides[Side.THERE]
        both = BothSides(
            cluster=CLUSTER,
            home={name: home.recorder.job(name) for name in self.jobs},
            there={name: there.recorder.job(name) for name in self.jobs},
            home_nodes=home.nodes.timeline(),
            there_nodes=there.nodes.timeline(),
            vanished={side: each.injector.vanished for side, each in self.sides.items()},
            kills={side: tuple(each.injector.kills) for side, each in self.sides.items()},
            lag=_lag_of(len(self.jobs)),
            until=datetime.now(UTC),
        )
        gangs = [
            f"two gangs at once: {each}" for side in self.sides.values() for each in side.recorder.overlaps
        ]
        checked = check_both(
            both,
            others=[*others, *gangs],
            looks=looks,
            deaths=sum(each.injector.controller.deaths for each in self.sides.values()),
            requests=between.hit,
        )
        return replace(checked, writes=home.proxy.writes)

    def _join(self, link: Link) -> None:
        if self.between is not None:
            self.between.link = link

    def _is_settled(self, name: str) -> bool:
        """Whether a job has ended, or runs completely in one cluster and has nothing in the other."""
        home = self.sides[Side.HOME].recorder.job(name)
        if not home.changes:
            return False
        last, has_copy, is_there = home.last, False, False
        if Side.THERE in self.sides:
            there = self.sides[Side.THERE].recorder.job(name)
            has_copy = bool(there.changes) and there.is_there
            is_there = has_copy or bool(there.alive())
        if last.phase == "Away" and not last.outcome:
            is_empty = last.waiting_since is None and not home.alive()
            return has_copy and is_empty and self._is_whole(Side.THERE, name)
        return not is_there and (bool(last.outcome) or self._is_whole(Side.HOME, name))

    def _is_whole(self, side: Side, name: str) -> bool:
        trace, injector = self.sides[side].recorder.job(name), self.sides[side].injector
        last, alive = trace.last, [pod for pod in trace.alive() if not pod.is_head]
        return (
            last.phase == "Running"
            and not last.suspended
            and len(alive) == len(trace.running_in(last.pool)) == PODS
            and not any(injector.is_struck(pod) for pod in alive)
        )

    def _described(self, side: Side, name: str) -> str:
        trace = self.sides[side].recorder.job(name)
        if not trace.changes or not trace.is_there:
            return f"absent, {len(trace.alive())} pods"
        last = trace.last
        ended = f", {last.outcome}" if last.outcome else ""
        pods = ", ".join(_described(pod) for pod in trace.alive()) or "no pods"
        return f"{last.phase} on {last.pool}{', suspended' if last.suspended else ''}{ended} ({pods})"


def _described(pod: PodTrace) -> str:
    return f"{pod.name} on {pod.node or 'no node'}{' ending' if pod.leaving_at else ''}"


def _wait_for_leader(cluster: WatchedCluster) -> None:
    since = datetime.now(UTC)

    def is_renewed(lease: Json | None) -> bool:
        renewed = mapping((lease or {}).get("spec")).get("renewTime")
        return isinstance(renewed, str) and datetime.fromisoformat(renewed) > since

    cluster.injector.client.wait_for(
        "coordination.k8s.io/v1",
        "Lease",
        LEASE,
        namespace=CONTROLLER_NAMESPACE,
        timeout_seconds=_LEASE_SECONDS,
        condition=is_renewed,
        what="a controller leads",
    )


def _parsed(policy: Json) -> Policy:
    parsed = parse_policy(policy)
    if isinstance(parsed, NoPolicy):
        raise RehearsalError(f"the policy of the run is not valid: {'; '.join(parsed.problems)}")
    return parsed


def _works_before(deadline: datetime, cluster: WatchedCluster, paced: Mapping[str, int]) -> bool:
    """Whether a job with a deadline still works before it: whether it keeps it is known only then."""
    return datetime.now(UTC) < deadline and any(not cluster.recorder.job(name).last.outcome for name in paced)


@dataclass(frozen=True, kw_only=True)
class Judged:
    """A run in one cluster that has settled, as it was recorded."""

    cluster: WatchedCluster
    policy: Policy
    names: Sequence[str]
    paced: Mapping[str, int]
    finish_by: datetime

    def extent(self) -> str:
        """Return how much there was to check."""
        traces, nodes = (
            [self.cluster.recorder.job(name) for name in self.names],
            self.cluster.nodes.timeline(),
        )
        written = sum(len(trace.ledgers) for trace in traces)
        held = len({(each.job, each.pool) for each in nodes.placeholders.values()})
        kept = sum(trace.name in self.paced and trace.last.outcome == "Completed" for trace in traces)
        return (
            f"Checked: {written} written ledgers, {held} reservations, {len(nodes.pools)} nodes, and "
            f"{len(self.paced)} deadlines, {kept} of their jobs completed"
        )

    def result(self, left: Sequence[str]) -> FaultRunResult:
        """Check jobs, ledgers, deadlines and reservations."""
        nodes, injector, lag = self.cluster.nodes.timeline(), self.cluster.injector, _lag_of(len(self.names))
        records = [
            Record(
                trace=self.cluster.recorder.job(name),
                pods=PODS,
                vanished=injector.vanished,
                until=datetime.now(UTC),
                kills=tuple(injector.kills),
                lag=lag,
                is_paced=name in self.paced,
            )
            for name in self.names
        ]
        jobs = NodeUse(nodes, records)
        bills = [
            f"{each.trace.name}: {problem}"
            for each in records
            for problem in wrong_bills(each, each.trace.ledgers, jobs, TIERS)
        ]
        holds = broken_holds(
            nodes,
            {each.trace.uid: PODS for each in records},
            hold_timeout=self.policy.hold_timeout,
            late=lag,
            kills=injector.kills,
            until=records[0].until,
        )
        return check_records(
            records,
            self.policy,
            overlaps=self.cluster.recorder.overlaps,
            others=[*left, *bills, *self._late(records), *holds],
            deaths=injector.controller.deaths,
            writes=self.cluster.proxy.writes,
        )

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


def _lag_of(jobs: int) -> timedelta:
    """How late watches and writes may be: on a machine with other work, by as much as its cores are asked for too much."""
    busy = os.getloadavg()[2] / (os.cpu_count() or 1)
    return (_LAG + _LAG_PER_JOB * jobs) * min(_MOST_BUSY, max(1.0, busy))
