"""Runs jobs on a ladder with a tier in a second cluster while both clusters, and what is between them, fail."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Final

from pulumi_holdfast.ladder.json import mapping
from pulumi_holdfast.rehearsal.control_plane.configuration import Layout
from pulumi_holdfast.rehearsal.errors import FAILURES, RehearsalError
from pulumi_holdfast.rehearsal.kubernetes import KubeClient
from pulumi_holdfast.rehearsal.timeline.recorder import JOBSET, RAYJOB
from pulumi_holdfast.rehearsal.timeline.traces import PodTrace, job_of_pod
from tests.soak.fault_proxy import ApiRequest, Fault, running_proxy
from tests.soak.faults.both_sides import BothSides, TwoClusterResult, check_both
from tests.soak.faults.environment import FaultEnvironment, WatchedCluster, wait_for_releases, watched
from tests.soak.faults.manifests import NAMESPACE, PODS, job, job_name, two_ladders
from tests.soak.faults.run import APART, MOST_GRACE, RETURNING, lag_of
from tests.soak.faults.two_plan import Link, Side, Strike, TwoClusterPlan, Wait
from tests.support.clusters.fallback import ladder_cluster
from tests.support.clusters.transfers import CLUSTER, allow_copies

_ROUND_SECONDS: Final = 900.0
_ROUND_SECONDS_PER_JOB: Final = 10.0
_LOOK_SECONDS: Final = 0.5
_SHORTEST_PAUSE: Final = 0.1
_KINDS: Final = (JOBSET, RAYJOB)

#: What becomes of reads and writes while the link is disturbed.
_OF_READS: Final = (*[Fault.PASS] * 8, Fault.LOSE, Fault.LOSE_ANSWER)
_OF_WRITES: Final = (Fault.PASS, Fault.LOSE, Fault.LOSE_ANSWER, Fault.LATE, Fault.TWICE)


@dataclass(kw_only=True)
class Between:
    """Decides what becomes of requests from home's controller to the other cluster; `hit` counts it."""

    random: Random
    link: Link = Link.WHOLE
    hit: Counter[Fault] = field(default_factory=Counter[Fault])

    def decide(self, request: ApiRequest) -> Fault:
        """Return the fault of a request."""
        fault = Fault.LOSE if self.link is Link.CUT else Fault.PASS
        if self.link is Link.DISTURBED:
            fault = self.random.choice(_OF_WRITES if request.is_write else _OF_READS)
        self.hit[fault] += 1
        return fault


@dataclass(kw_only=True)
class Overlaps:
    """Jobs that had pods in both clusters at once, by lists of both: one there before and after that at home."""

    home: KubeClient
    there: KubeClient
    found: list[str] = field(default_factory=list[str])
    looks: int = 0

    @contextmanager
    def watched(self) -> Generator[None]:
        """Look for the length of the block."""
        ended = threading.Event()

        def watch() -> None:
            pause = _SHORTEST_PAUSE
            while not ended.wait(pause):
                began = time.monotonic()
                try:
                    self._look()
                except (*FAILURES, OSError):
                    continue  # the API server is killed
                # Lists of hundreds of pods take half of a core at most.
                pause = max(_SHORTEST_PAUSE, time.monotonic() - began)

        watcher = threading.Thread(target=watch, name="watch both clusters", daemon=True)
        watcher.start()
        try:
            yield
        finally:
            ended.set()
            watcher.join(60)

    def _look(self) -> None:
        before, at_home, after = (_pods(each) for each in (self.there, self.home, self.there))
        self.looks += 1
        for name, pods in at_home.items():
            both = before.get(name, set[str]()) & after.get(name, set[str]())
            if both:
                self.found.append(f"{name} has {sorted(pods)} at home, and {sorted(both)} there")


def _pods(client: KubeClient) -> Mapping[str, set[str]]:
    found: dict[str, set[str]] = {}
    for pod in client.list("v1", "Pod", namespace=NAMESPACE):
        metadata, name = mapping(pod.get("metadata")), job_of_pod(pod)
        if name and mapping(pod.get("status")).get("phase") not in {"Failed", "Succeeded"}:
            found.setdefault(name, set()).add(f"{metadata.get('name')} {metadata.get('uid')}")
    return found


@dataclass(frozen=True, kw_only=True)
class TwoClusterRun:
    """A run under way."""

    sides: Mapping[Side, WatchedCluster]
    between: Between
    jobs: Sequence[str]
    say: Callable[[str], None]

    def inject(self, number: int, steps: Sequence[Strike | Link | Wait]) -> None:
        """Carry out one round, join the clusters again, and wait until every job runs or has ended."""
        self.say(f"round {number}")
        for step in steps:
            match step:
                case Strike():
                    self.sides[step.side].injector.inject(step.fault)
                case Wait():
                    threading.Event().wait(step.seconds)
                case Link():
                    self.say(f"the clusters' link is {step.value}")
                    self.between.link = step
        self.between.link = Link.WHOLE
        self.settle()
        for side in self.sides.values():
            side.injector.kill_at_write.cancel()
        threading.Event().wait(APART.total_seconds())

    def settle(self) -> None:
        """Wait until no transfer and no move is under way. Raises RehearsalError after the limit."""
        deadline = time.monotonic() + _ROUND_SECONDS + _ROUND_SECONDS_PER_JOB * len(self.jobs)
        while unsettled := self.unsettled():
            if time.monotonic() > deadline:
                raise RehearsalError(f"{len(unsettled)} jobs do not run: {'; '.join(unsettled[:5])}")
            threading.Event().wait(_LOOK_SECONDS)

    def unsettled(self) -> list[str]:
        """Return where each job is that neither has ended nor runs completely, in one cluster alone."""
        with self.frozen():
            return [
                f"{name} is {self._described(Side.HOME, name)} at home, {self._described(Side.THERE, name)} there"
                for name in self.jobs
                if not self.is_settled(name)
            ]

    @contextmanager
    def frozen(self) -> Generator[None]:
        """Record nothing in both clusters for the length of the block."""
        with ExitStack() as stack:
            for side in self.sides.values():
                stack.enter_context(side.recorder.frozen())
            yield

    def is_settled(self, name: str) -> bool:
        """Whether a job has ended, or runs completely in one cluster and has nothing in the other."""
        home = self.sides[Side.HOME].recorder.job(name)
        there = self.sides[Side.THERE].recorder.job(name)
        if not home.changes:
            return False
        has_copy = bool(there.changes) and there.is_there
        last = home.last
        if last.phase == "Away" and not last.outcome:
            return (
                has_copy
                and last.waiting_since is None
                and not home.alive()
                and self._is_whole(Side.THERE, name)
            )
        is_gone = not has_copy and not there.alive()
        return is_gone and (bool(last.outcome) or self._is_whole(Side.HOME, name))

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


@contextmanager
def two_environments(folder: Path) -> Generator[Mapping[Side, FaultEnvironment]]:
    """Two clusters with JobSet, KubeRay and Karpenter for the length of the block."""
    with ExitStack() as stack:
        clusters = {side: stack.enter_context(ladder_cluster(folder / side)) for side in Side}
        yield {
            side: FaultEnvironment(
                client=each.client, layout=Layout.of(each.stack, each.workspace), folder=folder / side
            )
            for side, each in clusters.items()
        }


def run_two_clusters(
    environments: Mapping[Side, FaultEnvironment], plan: TwoClusterPlan, *, say: Callable[[str], None]
) -> TwoClusterResult:
    """Run the jobs and the faults of a plan, and check what was recorded. Raises RehearsalError if jobs do not settle."""
    random = Random(plan.seed)
    policies = two_ladders(CLUSTER, plan.failures, RETURNING)
    names = [job_name(number) for number in plan.jobs]
    home, there = (environments[side] for side in (Side.HOME, Side.THERE))
    for environment in (home, there):
        environment.prepare()
    access = allow_copies(home.client, there.client, there.layout.kubeconfig, namespace=NAMESPACE)
    for environment, policy in zip((home, there), policies, strict=True):
        environment.apply(policy)
    with ExitStack() as stack:
        (home.folder / "between").mkdir()
        proxy = stack.enter_context(running_proxy(access, home.folder / "between"))
        other = ("--cluster", f"{CLUSTER}={proxy.kubeconfig}")
        sides = {
            Side.THERE: stack.enter_context(
                watched(there, kinds=_KINDS, say=lambda text: say(f"there: {text}"))
            ),
            Side.HOME: stack.enter_context(
                watched(home, *other, kinds=_KINDS, say=lambda text: say(f"home: {text}"))
            ),
        }
        between = Between(random=Random(plan.seed))
        kill_at_write = sides[Side.HOME].injector.kill_at_write

        def decide(request: ApiRequest) -> Fault:
            fault = between.decide(request)
            is_counted = fault is Fault.PASS and not kill_at_write.is_partitioned
            return kill_at_write.decide(request) if is_counted else fault

        proxy.decide = decide
        overlaps = Overlaps(home=home.client, there=there.client)
        stack.enter_context(overlaps.watched())
        run = TwoClusterRun(sides=sides, between=between, jobs=names, say=say)
        manifests = [
            job(number, ends_in=f"{random.randint(0, MOST_GRACE)}s", finish_by=datetime.now(UTC))
            for number in plan.jobs
        ]
        home.apply_at_once(manifests)
        say(f"{len(names)} jobs created")
        run.settle()
        say("every job runs")
        for number, steps in enumerate(plan.rounds, 1):
            run.inject(number, steps)
        for side in sides.values():
            side.injector.recover()
        run.settle()
        left = [
            f"{each} {where}"
            for environment, where in ((home, "at home"), (there, "there"))
            for each in wait_for_releases(environment.client)
        ]
        while True:
            run.settle()
            with run.frozen():
                if all(run.is_settled(name) for name in names):
                    return check_both(
                        BothSides(
                            cluster=CLUSTER,
                            home={name: sides[Side.HOME].recorder.job(name) for name in names},
                            there={name: sides[Side.THERE].recorder.job(name) for name in names},
                            home_nodes=sides[Side.HOME].nodes.timeline(),
                            there_nodes=sides[Side.THERE].nodes.timeline(),
                            vanished={side: each.injector.vanished for side, each in sides.items()},
                            kills={side: tuple(each.injector.kills) for side, each in sides.items()},
                            lag=lag_of(len(names)),
                            until=datetime.now(UTC),
                        ),
                        others=[
                            *left,
                            *overlaps.found,
                            *(
                                f"two gangs at once: {found}"
                                for side in sides.values()
                                for found in side.recorder.overlaps
                            ),
                        ],
                        looks=overlaps.looks,
                        deaths=sum(each.injector.controller.deaths for each in sides.values()),
                        requests=between.hit,
                    )
