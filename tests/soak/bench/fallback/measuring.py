"""Moves and restarts of so many jobs at once, measured on one cluster right after each other."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, TypeVar

from holdfast.rehearsal.timeline.traces import JobTrace
from holdfast.rehearsal.timeline.witness import JOBSET, Witness
from holdfast.scheduling.json import Json
from holdfast.scheduling.labels import LADDER
from holdfast.simulator.kubernetes_client.client import KubeClient
from holdfast.simulator.kubernetes_client.summary import mapping
from tests.soak.bench.fallback.costs import Cost, Meter, between
from tests.soak.bench.fallback.timing import Steps, move_of, restart_of
from tests.soak.bench.fallback.yard import NAMESPACE, PODS, POOLS, job, job_name, ladder

_FIELD_MANAGER: Final = "holdfast-bench"
_AT_ONCE: Final = 16
_POLICY: Final = "holdfast.dev/v1alpha1"
# How long one wave may take until every job is placed again: a hundred jobs took 100 s on two cores that ran tests, too.
_WAVE_SECONDS: Final = 300.0
_WAVE_SECONDS_PER_JOB: Final = 2.0
_STOP_AT_ONCE: Final = 60.0


@dataclass(frozen=True, kw_only=True)
class Wave:
    """One eviction of each of so many jobs at once: the steps of each, and what both controllers spent on it."""

    steps: tuple[Steps, ...]
    fallback: Cost
    jobset: Cost


@dataclass(frozen=True, kw_only=True)
class Measured:
    """The same jobs evicted twice: moved, and restarted where they are."""

    jobs: int
    move: Wave
    restart: Wave


@dataclass(frozen=True, kw_only=True)
class Yard:
    """A cluster with the namespace and the nodes of the measurement."""

    client: KubeClient
    meter: Meter

    def measure(self, jobs: int) -> Measured:
        """Measure with so many jobs. Raises RehearsalError where they are not placed in time."""
        names = [job_name(number) for number in range(jobs)]
        witness = Witness(self.client, NAMESPACE)
        self._follow(ladder(1, -1))
        with witness.watching():
            _at_once(self._apply, [job(number) for number in range(jobs)])
            _wait(witness, names, "are placed", lambda trace: _is_whole(trace, POOLS[0]))
            move = self._wave(witness, names, lambda trace, at: move_of(trace, at, PODS, POOLS[1]), POOLS[1])
            restart = self._wave(witness, names, lambda trace, at: restart_of(trace, at, PODS), POOLS[1])
            _at_once(lambda name: self.client.delete(JOBSET, "JobSet", name, namespace=NAMESPACE), names)
            _wait(witness, names, "are gone", lambda trace: not trace.is_there and not trace.alive())
        return Measured(jobs=jobs, move=move, restart=restart)

    def _wave(
        self,
        witness: Witness,
        names: Sequence[str],
        steps_of: "Callable[[JobTrace, datetime], Steps | None]",
        pool: str,
    ) -> Wave:
        before = self.meter.read()
        with witness.look():
            pods = {name: min(pod.name for pod in witness.job(name).alive()) for name in names}
        at: dict[str, datetime] = {}

        def evict(name: str) -> None:
            at[name] = datetime.now(UTC)
            self.client.evict(NAMESPACE, pods[name])

        _at_once(evict, names)
        _wait(
            witness,
            names,
            "are placed again",
            lambda trace: steps_of(trace, at[trace.name]) is not None and _is_whole(trace, pool),
        )
        after = self.meter.read()
        with witness.look():
            found = [steps_of(witness.job(name), at[name]) for name in names]
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


def _wait(witness: Witness, names: Sequence[str], what: str, condition: Callable[[JobTrace], bool]) -> None:
    """Wait until something holds of every job; those of which it did are not asked again."""
    left = list(names)

    def is_over() -> bool:
        while left and condition(witness.job(left[-1])):
            left.pop()
        return not left

    seconds = _WAVE_SECONDS + _WAVE_SECONDS_PER_JOB * len(names)
    witness.wait(is_over, f"{len(names)} jobs {what}", seconds=seconds)


def _is_whole(trace: JobTrace, pool: str) -> bool:
    if not trace.changes:
        return False
    last = trace.last
    is_there = (last.phase, last.pool, last.suspended) == ("Running", pool, False)
    return is_there and len(trace.running_in(pool)) == PODS
