"""What a walk down the ladder and back up has shown. Pure: the facts, what is wrong with them, and their table."""

import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

from holdfast.rehearsal.scenarios.karpenter import restock, sell_out
from holdfast.rehearsal.scenarios.manifests import pod_count
from holdfast.rehearsal.scenarios.namespace_clone import cloned_namespace
from holdfast.rehearsal.scenarios.placement import name_of
from holdfast.rehearsal.scenarios.platform import Platform, applied
from holdfast.rehearsal.scenarios.provisioning import WAIT_SECONDS
from holdfast.rehearsal.timeline.recorder import JobTimelineRecorder, WatchTarget, WatchThread
from holdfast.rehearsal.timeline.traces import JobTrace, Move, moves_of
from holdfast.scheduling.json import Json
from holdfast.scheduling.labels import LADDER
from holdfast.simulator.errors import RehearsalError
from holdfast.simulator.kubernetes_client.errors import Cancellation
from holdfast.simulator.kubernetes_client.objects import mapping, sequence
from holdfast.simulator.kubernetes_client.watch import Event

NAMESPACE: Final = "training-demo"
EVICTIONS: Final = 3
#: How close to each other losses are one outage, in seconds: a reclaim here takes a fraction of one.
OUTAGE_SECONDS: Final = 3
_POLICY: Final = "holdfast.dev/v1alpha1"
# A machine of the simulated cloud is there within Karpenter's own 10 s; a busy computer needs longer.
_ENOUGH: Final = "2m"
_NOT_LONG: Final = "10s"
_RETURN_AFTER: Final = "15s"
_TIERS: Final = 3


@dataclass(frozen=True, kw_only=True)
class ShortLadder:
    """A ladder of two tiers on spot and one on demand, of the pools of the namespace `model`."""

    model: str
    tiers: Sequence[Json]

    @property
    def pools(self) -> tuple[str, ...]:
        """Its pools, best first."""
        return tuple(str(tier["pool"]) for tier in self.tiers)

    def policy(self) -> Json:
        """Return the ladder as the jobs of NAMESPACE follow it."""
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
    """Make one of the first ladder that is long enough. Raises RehearsalError where none is."""
    for policy in sorted(policies, key=_namespace_of):
        tiers = [mapping(tier) for tier in sequence(mapping(policy.get("spec")).get("tiers"))]
        if len(tiers) >= _TIERS and _namespace_of(policy) != NAMESPACE:
            return ShortLadder(model=_namespace_of(policy), tiers=(tiers[0], tiers[1], tiers[-1]))
    raise RehearsalError(
        f"no training namespace has a ladder of {_TIERS} tiers: add one under `namespaces` in the stack file, "
        "and bring the stack up again"
    )


def _namespace_of(policy: Json) -> str:
    return str(mapping(policy.get("metadata")).get("namespace"))


@dataclass(frozen=True, kw_only=True)
class LadderWalk:
    """What was seen.

    `pools` are the ladder's, best first; `evictions` were counted against the first, the last of them given at
    `evicted_at`; `restarts` is the JobSet's own count; `overlaps` names each time that two gangs were alive together.
    """

    jobset: str
    pools: tuple[str, ...]
    evictions: int
    restarts: int
    moves: tuple[Move, ...]
    evicted_at: datetime
    overlaps: tuple[str, ...]


HEADS = ("move", "because of", "decided", "pods gone", "resumed", "nodes for all", "in all")


def walk_rows(seen: LadderWalk) -> list[tuple[str, ...]]:
    """Return a line for each move, with the seconds that each of its steps took."""
    why = (f"{seen.evictions} evictions", "no capacity", "capacity held above")
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
        for number, (move, reason) in enumerate(zip(seen.moves, why, strict=False))
    ]


def walked(seen: LadderWalk) -> str:
    """Return the way in one line."""
    way = " → ".join([*(move.source for move in seen.moves[:1]), *(move.target for move in seen.moves)])
    return f"{way}; {seen.evictions} evictions, restarts: {seen.restarts}"


def unmet_by_walk(seen: LadderWalk) -> list[str]:
    """Down by evictions, down by a lack of capacity, and back up; each eviction counted once; never two gangs."""
    best, second, last = seen.pools
    wanted = [(best, second), (second, last), (last, best)]
    found = [(move.source, move.target) for move in seen.moves]
    unbound = [move.target for move in seen.moves if move.bound_at is None and move.target != second]
    problems = [
        (found != wanted, f"the way was {_way(found)} and not {_way(wanted)}"),
        (seen.evictions != EVICTIONS, f"{EVICTIONS} evictions were counted as {seen.evictions}"),
        (bool(unbound), f"not every pod found a node in {', '.join(unbound)}"),
        (bool(seen.overlaps), f"two gangs were alive together: {'; '.join(seen.overlaps)}"),
    ]
    return [problem for is_wrong, problem in problems if is_wrong]


def _way(moves: Sequence[tuple[str, str]]) -> str:
    return ", ".join(f"{source} → {target}" for source, target in moves) or "none"


def _seconds(start: datetime | None, end: datetime | None) -> str:
    return "–" if start is None or end is None else f"{(end - start).total_seconds():.1f} s"


_CONTROLLER: Final = "holdfast-fallback"


def walk_the_ladder(platform: Platform, jobset: Json) -> LadderWalk:
    """Play the scene with this JobSet, which selects spot, in a training namespace of the scene's own.

    Raises KubeTimeout or RehearsalError where a step does not come about.
    """
    client = platform.client
    ladder = short_ladder(client.list("holdfast.dev/v1alpha1", "FallbackPolicy"))
    with cloned_namespace(client, NAMESPACE, ladder.policy(), model=ladder.model):
        there = replace(platform, namespace=NAMESPACE)
        recorder = JobTimelineRecorder(client, NAMESPACE)
        with recorder.recording(), _events_told(there), applied(there, jobset):
            walk = _Walk(platform=there, recorder=recorder, ladder=ladder, jobset=jobset)
            platform.say(f"JobSet {walk.name} applied: its ladder is {', '.join(ladder.pools)}")
            try:
                return walk.play()
            finally:
                restock(client, ladder.pools[1])


@dataclass(frozen=True, kw_only=True)
class _Walk:
    platform: Platform
    recorder: JobTimelineRecorder
    ladder: ShortLadder
    jobset: Json

    @property
    def name(self) -> str:
        return name_of(self.jobset)

    @property
    def pods(self) -> int:
        return pod_count(self.jobset)

    @property
    def trace(self) -> JobTrace:
        return self.recorder.job(self.name)

    def play(self) -> LadderWalk:
        first, second, last = self.ladder.pools
        self._wait_on(first, moves=0)
        for number in range(1, EVICTIONS):
            self._evict()
            self._wait_counted(number)
        sell_out(self.platform.client, second)
        self.platform.say(f"{second} is sold out")
        evicted_at = self._evict()
        self._wait_on(last, moves=2)
        # So that what is held above is bought for it.
        self.platform.provisioner.release_empty_nodes()
        self._wait_on(first, moves=3)
        with self.recorder.frozen():
            return LadderWalk(
                jobset=self.name,
                pools=self.ladder.pools,
                evictions=max(change.evictions for change in self.trace.changes),
                restarts=self.trace.last.restarts,
                moves=moves_of(self.trace, self.pods),
                evicted_at=evicted_at,
                overlaps=tuple(self.recorder.overlaps),
            )

    def _evict(self) -> datetime:
        with self.recorder.frozen():
            node = min(pod.node for pod in self.trace.alive())
        interruption = self.platform.provisioner.interruption(node, self.platform.say)
        at = datetime.now(UTC)
        interruption.interrupt()
        return at

    def _wait_counted(self, evictions: int) -> None:
        """Wait until an eviction is counted, the gang is back on the same tier, and the outage is over."""
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
        # The next eviction is to be another outage.
        threading.Event().wait(OUTAGE_SECONDS + 1)

    def _wait_on(self, pool: str, *, moves: int) -> None:
        self.recorder.wait(
            lambda: self._is_whole_on(pool) and self.trace.last.moves == moves,
            f"{self.name} runs on {pool}",
            seconds=WAIT_SECONDS,
        )
        self.platform.say(f"all {self.pods} pods of {self.name} run on {pool}")

    def _is_whole_on(self, pool: str) -> bool:
        if not self.trace.changes:
            return False  # applied, and the watch has not shown it yet
        last = self.trace.last
        is_there = (last.phase, last.pool, last.suspended) == ("Running", pool, False)
        return is_there and len(self.trace.running_in(pool)) == self.pods


@contextmanager
def _events_told(platform: Platform) -> Generator[None]:
    """Tell what the controller says of jobs, while it says it."""
    cancellation = Cancellation()
    events = WatchTarget(api_version="v1", kind="Event", namespace=platform.namespace)
    follower = WatchThread(platform.client.under(cancellation), events, _telling(platform.say))
    follower.start()
    follower.wait_begun()
    try:
        yield
    finally:
        cancellation.cancel()
        follower.join()


def _telling(say: Callable[[str], None]) -> Callable[[Event], None]:
    def tell(event: Event) -> None:
        what, seen = event
        # The same thing said again is the same Event, counted on.
        if what in {"ADDED", "MODIFIED"} and mapping(seen.get("source")).get("component") == _CONTROLLER:
            say(f"  {seen.get('reason')}: {seen.get('message')}")

    return tell
