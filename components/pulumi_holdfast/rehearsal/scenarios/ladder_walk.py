"""The ladder scenario: a JobSet fails over tier by tier, down to on-demand, and fails back to reserved capacity."""

import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

from pulumi_holdfast.controller.kube.objects import name_of, namespace_of
from pulumi_holdfast.ladder.json import Json, mapping, sequence
from pulumi_holdfast.ladder.labels import LADDER, SPOT
from pulumi_holdfast.local.karpenter import SPOT_SHARE
from pulumi_holdfast.rehearsal.errors import Cancellation, RehearsalError
from pulumi_holdfast.rehearsal.kubernetes import WatchThread
from pulumi_holdfast.rehearsal.scenarios.karpenter import restock, sell_out
from pulumi_holdfast.rehearsal.scenarios.manifests import pod_count
from pulumi_holdfast.rehearsal.scenarios.namespace_clone import cloned_namespace
from pulumi_holdfast.rehearsal.scenarios.node_termination import lose_node
from pulumi_holdfast.rehearsal.scenarios.platform import Platform, applied
from pulumi_holdfast.rehearsal.scenarios.provisioning import WAIT_SECONDS
from pulumi_holdfast.rehearsal.scenarios.training import (
    Attempt,
    TrainingPlace,
    TrainingRun,
    node_costs,
    read_attempts,
    setting_of,
    trained,
    undisturbed_weights,
    unmet_by_training,
)
from pulumi_holdfast.rehearsal.timeline.picture import Picture, picture_of
from pulumi_holdfast.rehearsal.timeline.recorder import JobTimelineRecorder
from pulumi_holdfast.rehearsal.timeline.steps import StepPoint, render_steps, sampled
from pulumi_holdfast.rehearsal.timeline.traces import JobTrace, Move, PodTrace, moves_of
from pulumi_holdfast.rehearsal.watches import Event, ObjectSelector

NAMESPACE: Final = "training-demo"
EVICTIONS: Final = 3
#: Losses within this many seconds are one outage; an interruption takes less than one second here.
OUTAGE_SECONDS: Final = 3
_POLICY: Final = "holdfast.dev/v1alpha1"
# The simulated cloud has a machine ready within the 10 s of Karpenter's batching; a busy computer takes longer.
_ENOUGH: Final = "2m"
_NOT_LONG: Final = "10s"
_RETURN_AFTER: Final = "15s"
_TIERS: Final = 3
# Within two checkpoints, so that a lost machine loses steps.
_STEPS_FIRST: Final = 50
_POLL_SECONDS: Final = 0.2


@dataclass(frozen=True, kw_only=True)
class ShortLadder:
    """A ladder of two spot tiers and one on-demand tier, from the ladder of the namespace `model`."""

    model: str
    tiers: Sequence[Json]

    @property
    def pools(self) -> tuple[str, ...]:
        """Its pools, first tier first."""
        return tuple(str(tier["pool"]) for tier in self.tiers)

    @property
    def prices(self) -> Mapping[str, float]:
        """What a node of each pool costs in the simulated cloud, relative to on-demand."""
        is_spot = {
            str(each["pool"]): mapping(each.get("facts")).get("capacity") == SPOT for each in self.tiers
        }
        return {pool: SPOT_SHARE if spot else 1.0 for pool, spot in is_spot.items()}

    def policy(self) -> Json:
        """Return the FallbackPolicy of NAMESPACE."""
        first, second, last = self.tiers
        return {
            "apiVersion": _POLICY,
            "kind": "FallbackPolicy",
            "metadata": {"name": LADDER, "namespace": NAMESPACE},
            "spec": {
                "tiers": [
                    {**first, "maxFailures": EVICTIONS, "procurementTimeout": _ENOUGH},
                    {**second, "maxFailures": EVICTIONS, "procurementTimeout": _NOT_LONG},
                    last,
                ],
                "outageWindow": f"{OUTAGE_SECONDS}s",
                "returnAfter": _RETURN_AFTER,
                "holdTimeout": _ENOUGH,
            },
        }


def short_ladder(policies: Sequence[Json]) -> ShortLadder:
    """Return a short ladder from the first policy with enough tiers. Raises RehearsalError if there is none."""
    for policy in sorted(policies, key=namespace_of):
        tiers = [mapping(tier) for tier in sequence(mapping(policy.get("spec")).get("tiers"))]
        if len(tiers) >= _TIERS and namespace_of(policy) != NAMESPACE:
            return ShortLadder(model=namespace_of(policy), tiers=(tiers[0], tiers[1], tiers[-1]))
    raise RehearsalError(
        f"no training namespace has a ladder of {_TIERS} tiers: add one under `namespaces` in the stack file, "
        "and bring the stack up again"
    )


@dataclass(frozen=True, kw_only=True)
class LadderWalk:
    """The result of the scenario.

    `pools` are the ladder's, first tier first; `evictions` counted on the first tier, the last of them at `evicted_at`;
    `restarts` is the JobSet's own count; `overlaps` names each time that two gangs ran together; `gang` are all its pods; `training` is what its programs did.
    """

    jobset: str
    pools: tuple[str, ...]
    evictions: int
    restarts: int
    moves: tuple[Move, ...]
    evicted_at: datetime
    overlaps: tuple[str, ...]
    gang: tuple[PodTrace, ...]
    ended_at: datetime
    training: TrainingRun


HEADS = ("move", "reason", "decided", "pods gone", "resumed", "all placed", "total")


def walk_reasons(seen: LadderWalk) -> tuple[str, ...]:
    """Return why each move of a walk as expected was made."""
    return (f"{seen.evictions} evictions", "no capacity", "capacity reserved above")


def walk_picture(seen: LadderWalk) -> Picture:
    """Return the walk as a picture."""
    return picture_of(
        f"JobSet {seen.jobset} on the ladder {', '.join(seen.pools)}",
        seen.pools,
        seen.gang,
        seen.moves,
        walk_reasons(seen),
        seen.ended_at,
    )


def steps_picture(seen: LadderWalk) -> str:
    """Return the training's steps over time as SVG."""
    return render_steps(
        f"The steps of {seen.jobset} on {', '.join(seen.pools)}: {trained(seen.training)}",
        seen.pools,
        seen.training.points,
    )


def walk_rows(seen: LadderWalk) -> list[tuple[str, ...]]:
    """Return a row for each move, with the seconds of each of its steps."""
    return [
        (
            f"{move.source} → {move.target}",
            reason,
            _seconds(seen.evicted_at if number == 0 else None, move.suspended_at),
            _seconds(move.suspended_at, move.gone_at),
            _seconds(move.gone_at, move.resumed_at),
            _seconds(move.resumed_at, move.bound_at),
            _seconds(move.suspended_at, move.bound_at),
        )
        for number, (move, reason) in enumerate(zip(seen.moves, walk_reasons(seen), strict=False))
    ]


def walked(seen: LadderWalk) -> str:
    """Return the path in one line."""
    way = " → ".join([*(move.source for move in seen.moves[:1]), *(move.target for move in seen.moves)])
    return f"{way}; {seen.evictions} evictions, restarts: {seen.restarts}"


def unmet_by_walk(seen: LadderWalk) -> list[str]:
    """Failover by evictions, failover by lack of capacity, failback; each eviction counts once; never two gangs."""
    best, second, last = seen.pools
    wanted = [(best, second), (second, last), (last, best)]
    found = [(move.source, move.target) for move in seen.moves]
    unbound = [move.target for move in seen.moves if move.bound_at is None and move.target != second]
    problems = [
        (found != wanted, f"the path was {_path(found)} and not {_path(wanted)}"),
        (seen.evictions != EVICTIONS, f"{EVICTIONS} evictions were counted as {seen.evictions}"),
        (bool(unbound), f"not every pod found a node in {', '.join(unbound)}"),
        (bool(seen.overlaps), f"two gangs ran together: {'; '.join(seen.overlaps)}"),
    ]
    return [*(problem for is_wrong, problem in problems if is_wrong), *unmet_by_training(seen.training)]


def _path(moves: Sequence[tuple[str, str]]) -> str:
    return ", ".join(f"{source} → {target}" for source, target in moves) or "none"


def _seconds(start: datetime | None, end: datetime | None) -> str:
    return "–" if start is None or end is None else f"{(end - start).total_seconds():.1f} s"


_CONTROLLER: Final = "holdfast-fallback"


def walk_the_ladder(platform: Platform, jobset: Json, place: TrainingPlace) -> LadderWalk:
    """Run the scenario with this JobSet, which selects spot and trains, in a training namespace of its own.

    Raises KubeTimeout or RehearsalError if a condition is not met in time.
    """
    client = platform.client
    ladder = short_ladder(client.list("holdfast.dev/v1alpha1", "FallbackPolicy"))
    undisturbed = undisturbed_weights(place, jobset)
    around = (ladder.policy(), *place.objects(NAMESPACE))
    with cloned_namespace(client, NAMESPACE, *around, model=ladder.model):
        there = replace(platform, namespace=NAMESPACE)
        recorder = JobTimelineRecorder(client, NAMESPACE)
        with recorder.recording(), events_printed(there), applied(there, jobset):
            walk = _Walk(
                platform=there,
                recorder=recorder,
                ladder=ladder,
                jobset=jobset,
                place=place,
                undisturbed=undisturbed,
            )
            platform.say(f"JobSet {walk.name} applied: its ladder is {', '.join(ladder.pools)}")
            try:
                return walk.run()
            finally:
                restock(client, ladder.pools[1])


@dataclass(frozen=True, kw_only=True)
class _Walk:
    platform: Platform
    recorder: JobTimelineRecorder
    ladder: ShortLadder
    jobset: Json
    place: TrainingPlace
    undisturbed: str

    @property
    def name(self) -> str:
        return name_of(self.jobset)

    @property
    def pods(self) -> int:
        return pod_count(self.jobset)

    @property
    def trace(self) -> JobTrace:
        return self.recorder.job(self.name)

    def run(self) -> LadderWalk:
        with sampled(self._last_step) as points:
            evicted_at = self._walk()
        with self.recorder.frozen():
            attempts, ended_at = self._attempts(), datetime.now(UTC)
            gang = tuple(self.trace.pods.values())
            return LadderWalk(
                jobset=self.name,
                pools=self.ladder.pools,
                evictions=max(change.evictions for change in self.trace.changes),
                restarts=self.trace.last.restarts,
                moves=moves_of(self.trace, self.pods),
                evicted_at=evicted_at,
                overlaps=tuple(self.recorder.overlaps),
                gang=gang,
                ended_at=ended_at,
                training=TrainingRun(
                    steps=round(setting_of(self.jobset, "STEPS")),
                    attempts=attempts,
                    undisturbed=self.undisturbed,
                    seconds_per_step=setting_of(self.jobset, "SECONDS_PER_STEP"),
                    costs=node_costs(attempts, gang, self.ladder.prices, ended_at),
                    points=tuple(points),
                ),
            )

    def _walk(self) -> datetime:
        """Lose machines and tiers until the training is complete; return when the last eviction of the first tier was."""
        first, second, last = self.ladder.pools
        self._wait_on(first, moves=0)
        self._evict()
        self._wait_counted(1)
        self._lose()
        self._wait_counted(2)
        sell_out(self.platform.client, second)
        self.platform.say(f"{second} has no capacity")
        evicted_at = self._evict()
        self._wait_on(last, moves=2)
        # So that Karpenter makes new nodes for the placeholders.
        self.platform.provisioner.release_empty_nodes()
        self._wait_on(first, moves=3)
        self._wait_complete()
        return evicted_at

    def _last_step(self) -> StepPoint | None:
        with self.recorder.frozen():
            last = next(iter(self._attempts()[::-1]), None)
        if last is None or last.pod.ended_at is not None:
            return None
        return StepPoint(at=datetime.now(UTC), attempt=last.pod.uid, pool=last.pod.pool, step=last.reached)

    def _attempts(self) -> tuple[Attempt, ...]:
        return read_attempts(self.place, NAMESPACE, self.trace.pods.values())

    def _node_in_use(self) -> str:
        """A node of the gang, once the training has taken steps in this attempt."""
        for _ in range(round(WAIT_SECONDS / _POLL_SECONDS)):
            with self.recorder.frozen():
                alive = self.trace.alive()
                last = next(iter(self._attempts()[::-1]), None)
            if last is not None and last.pod.ended_at is None and len(last.steps) >= _STEPS_FIRST:
                self.platform.say(f"{self.name} is at step {last.reached}")
                return min(pod.node for pod in alive)
            threading.Event().wait(_POLL_SECONDS)
        raise RehearsalError(
            f"{self.name} has taken no step within {WAIT_SECONDS:.0f} s: read its pods' logs"
        )

    def _lose(self) -> None:
        """Let a machine disappear without notice to its pods."""
        node = self._node_in_use()
        self.platform.say(f"node {node} is lost without notice")
        lose_node(self.platform.client, node)

    def _evict(self) -> datetime:
        node = self._node_in_use()
        interrupt = self.platform.provisioner.interruption(node, self.platform.say)
        at = datetime.now(UTC)
        interrupt()
        return at

    def _wait_counted(self, evictions: int) -> None:
        """Wait until an eviction is counted, the gang runs on the same tier again, and the outage is over."""
        first = self.ladder.pools[0]
        self.recorder.wait(
            lambda: (
                self.trace.last.evictions == evictions
                and self.trace.last.restarts >= evictions
                and self._is_whole_on(first)
            ),
            f"{self.name} is back on {first} after {evictions} evictions",
            seconds=WAIT_SECONDS,
        )
        self.platform.say(f"{self.name} is back on {first}")
        # The next eviction must be another outage.
        threading.Event().wait(OUTAGE_SECONDS + 1)

    def _wait_complete(self) -> None:
        self.recorder.wait(
            lambda: bool(self.trace.last.outcome), f"{self.name} completes", seconds=WAIT_SECONDS
        )
        self.platform.say(f"{self.name} is {self.trace.last.outcome}")

    def _wait_on(self, pool: str, *, moves: int) -> None:
        self.recorder.wait(
            lambda: self._is_whole_on(pool) and self.trace.last.moves == moves,
            f"{self.name} runs on {pool}",
            seconds=WAIT_SECONDS,
        )
        self.platform.say(f"all {self.pods} pods of {self.name} run on {pool}")

    def _is_whole_on(self, pool: str) -> bool:
        if not self.trace.changes:
            return False  # the watch has not shown it yet
        last = self.trace.last
        is_there = (last.phase, last.pool, last.suspended) == ("Running", pool, False)
        return is_there and len(self.trace.running_in(pool)) == self.pods


@contextmanager
def events_printed(platform: Platform) -> Generator[None]:
    """Print the controller's Events while the block runs."""
    cancellation = Cancellation()
    client, selection = platform.client.under(cancellation), ObjectSelector(namespace=platform.namespace)
    follower = WatchThread(client, "v1", "Event", _printer(platform.say), selection)
    follower.start()
    follower.wait_begun()
    try:
        yield
    finally:
        cancellation.cancel()
        follower.join()


def _printer(say: Callable[[str], None]) -> Callable[[Event], None]:
    def handle(event: Event) -> None:
        what, seen = event
        # A repeated Event is the same object with a higher count.
        if what in {"ADDED", "MODIFIED"} and mapping(seen.get("source")).get("component") == _CONTROLLER:
            say(f"  {seen.get('reason')}: {seen.get('message')}")

    return handle
