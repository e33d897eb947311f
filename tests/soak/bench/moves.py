"""Measures moves and restarts of many jobs at once on one cluster: seconds of each step, and what the controllers cost."""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from statistics import median, quantiles
from typing import Final, TypeVar

import psutil

from pulumi_holdfast.ladder.json import Json, mapping
from pulumi_holdfast.ladder.labels import LADDER
from pulumi_holdfast.rehearsal.control_plane.processes import processes_in, python_modules_in
from pulumi_holdfast.rehearsal.errors import RehearsalError
from pulumi_holdfast.rehearsal.kubernetes import KubeClient
from pulumi_holdfast.rehearsal.operator_runner.controllers import FALLBACK
from pulumi_holdfast.rehearsal.operator_runner.operator_runner import RunnerLayout
from pulumi_holdfast.rehearsal.timeline.recorder import JOBSET, JobTimelineRecorder
from pulumi_holdfast.rehearsal.timeline.traces import JobTrace, PodTrace
from tests.soak.bench.moves_manifests import NAMESPACE, PODS, POOLS, job, job_name, ladder

_JOBSET_CONTROLLER: Final = "jobset-controller"


@dataclass(frozen=True, kw_only=True)
class Cost:
    """CPU seconds of a process, and its resident memory in bytes."""

    cpu_seconds: float
    bytes: int


@dataclass(frozen=True, kw_only=True)
class Meter:
    """Reads the cost of the fallback controller and of the JobSet controller of a stack."""

    fallback: psutil.Process
    jobset: psutil.Process

    @classmethod
    def of(cls, layout: RunnerLayout) -> "Meter":
        """Return the meter of a stack that runs one of each. Raises RehearsalError otherwise."""
        fallback = python_modules_in(layout.folder, FALLBACK)
        jobset = processes_in(layout.folder, [_JOBSET_CONTROLLER])
        if len(fallback) != 1 or len(jobset) != 1:
            raise RehearsalError(
                f"{len(fallback)} fallback and {len(jobset)} JobSet controllers run; the measurement needs one of each"
            )
        return cls(fallback=fallback[0].process, jobset=jobset[0].process)

    def read(self) -> tuple[Cost, Cost]:
        """Return the cost of the fallback controller and of the JobSet controller so far."""
        return _read(self.fallback), _read(self.jobset)


def between(before: Cost, after: Cost) -> Cost:
    """Return the CPU seconds between two readings, and the memory of the second."""
    return Cost(cpu_seconds=after.cpu_seconds - before.cpu_seconds, bytes=after.bytes)


def _read(process: psutil.Process) -> Cost:
    times = process.cpu_times()
    return Cost(cpu_seconds=times.user + times.system, bytes=process.memory_info().rss)


_FIELD_MANAGER: Final = "holdfast-bench"
_AT_ONCE: Final = 16
_POLICY: Final = "holdfast.dev/v1alpha1"
# How long one wave may take: a hundred jobs took 100 s on two cores with other load.
_WAVE_SECONDS: Final = 300.0
_WAVE_SECONDS_PER_JOB: Final = 2.0


@dataclass(frozen=True, kw_only=True)
class Steps:
    """The steps of one job after its eviction, in seconds since then.

    Of a move: `decided` is its suspension, `gone` the end of its last pod, `resumed` its resumption, `bound` the time at
    which every pod of the next gang has a node. A restart has no suspension: `decided` and `resumed` are None.
    """

    gone: float
    bound: float
    decided: float | None = None
    resumed: float | None = None


@dataclass(frozen=True, kw_only=True)
class Spread:
    """The median of several figures, and their 95th percentile."""

    median: float
    most: float


def restart_of(trace: JobTrace, evicted_at: datetime, pods: int) -> Steps | None:
    """Return the steps of a restart by JobSet, None while it is in progress."""
    before, after = _gangs(trace, evicted_at)
    return _steps(before, after, evicted_at, pods)


def move_of(trace: JobTrace, evicted_at: datetime, pods: int, target: str) -> Steps | None:
    """Return the steps of a move to another pool, None while it is in progress."""
    before, after = _gangs(trace, evicted_at)
    steps = _steps(before, [pod for pod in after if pod.pool == target], evicted_at, pods)
    since = [change for change in trace.changes if change.at >= evicted_at]
    decided = next((change.at for change in since if change.suspended), None)
    resumed = next(
        (change.at for change in since if decided and change.at > decided and not change.suspended), None
    )
    if steps is None or decided is None or resumed is None:
        return None
    return Steps(
        gone=steps.gone,
        bound=steps.bound,
        decided=(decided - evicted_at).total_seconds(),
        resumed=(resumed - evicted_at).total_seconds(),
    )


def spread(figures: Iterable[float]) -> Spread:
    """Return the spread of one figure or more."""
    kept = sorted(figures)
    most = quantiles(kept, n=20)[-1] if len(kept) > 1 else kept[-1]
    return Spread(median=median(kept), most=min(most, kept[-1]))


def _gangs(trace: JobTrace, evicted_at: datetime) -> tuple[list[PodTrace], list[PodTrace]]:
    pods = list(trace.pods.values())
    before = [pod for pod in pods if pod.born_at <= evicted_at and pod.is_alive(evicted_at)]
    return before, [pod for pod in pods if pod.born_at > evicted_at]


def _steps(
    before: Sequence[PodTrace], after: Sequence[PodTrace], evicted_at: datetime, pods: int
) -> Steps | None:
    ended = [pod.ended_at for pod in before if pod.ended_at is not None]
    bound = sorted(pod.bound_at for pod in after if pod.bound_at is not None)
    if not ended or len(ended) < len(before) or len(bound) < pods:
        return None
    return Steps(
        gone=(max(ended) - evicted_at).total_seconds(), bound=(bound[pods - 1] - evicted_at).total_seconds()
    )


@dataclass(frozen=True, kw_only=True)
class Wave:
    """One eviction of each job at the same time: the steps of each job, and the cost of both controllers."""

    steps: tuple[Steps, ...]
    fallback: Cost
    jobset: Cost


@dataclass(frozen=True, kw_only=True)
class Measured:
    """The same jobs evicted twice: the first time they move, the second time they restart on their tier."""

    jobs: int
    move: Wave
    restart: Wave


@dataclass(frozen=True, kw_only=True)
class MoveBenchmark:
    """A cluster with the namespace and the nodes of the benchmark."""

    client: KubeClient
    meter: Meter

    def measure(self, jobs: int) -> Measured:
        """Measure with `jobs` jobs. Raises RehearsalError if they are not placed in time."""
        names = [job_name(number) for number in range(jobs)]
        recorder = JobTimelineRecorder(self.client, NAMESPACE)
        self._follow(ladder(1, -1))
        with recorder.recording():
            _at_once(self._apply, [job(number) for number in range(jobs)])
            _wait(recorder, names, "are placed", lambda trace: _is_whole(trace, POOLS[0]))
            move = self._wave(recorder, names, lambda trace, at: move_of(trace, at, PODS, POOLS[1]), POOLS[1])
            restart = self._wave(recorder, names, lambda trace, at: restart_of(trace, at, PODS), POOLS[1])
            _at_once(lambda name: self.client.delete(*JOBSET, name, namespace=NAMESPACE), names)
            _wait(recorder, names, "are gone", lambda trace: not trace.is_there and not trace.alive())
        return Measured(jobs=jobs, move=move, restart=restart)

    def _wave(
        self,
        recorder: JobTimelineRecorder,
        names: Sequence[str],
        steps_of: "Callable[[JobTrace, datetime], Steps | None]",
        pool: str,
    ) -> Wave:
        before = self.meter.read()
        with recorder.frozen():
            pods = {name: min(pod.name for pod in recorder.job(name).alive()) for name in names}
        at: dict[str, datetime] = {}

        def evict(name: str) -> None:
            at[name] = datetime.now(UTC)
            self.client.evict(NAMESPACE, pods[name])

        _at_once(evict, names)
        _wait(
            recorder,
            names,
            "are placed again",
            lambda trace: steps_of(trace, at[trace.name]) is not None and _is_whole(trace, pool),
        )
        after = self.meter.read()
        with recorder.frozen():
            found = [steps_of(recorder.job(name), at[name]) for name in names]
        return Wave(
            steps=tuple(steps for steps in found if steps is not None),
            fallback=between(before[0], after[0]),
            jobset=between(before[1], after[1]),
        )

    def _follow(self, policy: Json) -> None:
        applied = self.client.apply(policy, field_manager=_FIELD_MANAGER, force=True)
        generation = mapping(applied.get("metadata")).get("generation")
        self.client.wait_for(
            _POLICY,
            "FallbackPolicy",
            LADDER,
            namespace=NAMESPACE,
            timeout_seconds=_WAVE_SECONDS,
            condition=lambda found: (
                mapping((found or {}).get("status")).get("observedGeneration") == generation
            ),
            what="the controller has seen the ladder",
        )

    def _apply(self, obj: Json) -> None:
        self.client.apply(obj, field_manager=_FIELD_MANAGER, force=True)


T = TypeVar("T")


def _at_once(do: Callable[[T], object], each: Sequence[T]) -> None:
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        list(pool.map(do, each))


def _wait(
    recorder: JobTimelineRecorder, names: Sequence[str], what: str, condition: Callable[[JobTrace], bool]
) -> None:
    """Wait until a condition has held for every job once."""
    left = list(names)

    def is_over() -> bool:
        while left and condition(recorder.job(left[-1])):
            left.pop()
        return not left

    seconds = _WAVE_SECONDS + _WAVE_SECONDS_PER_JOB * len(names)
    recorder.wait(is_over, f"{len(names)} jobs {what}", seconds=seconds)


def _is_whole(trace: JobTrace, pool: str) -> bool:
    if not trace.changes:
        return False
    last = trace.last
    is_there = (last.phase, last.pool, last.suspended) == ("Running", pool, False)
    return is_there and len(trace.running_in(pool)) == PODS
