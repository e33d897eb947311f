"""A JobSet walks its whole ladder: evictions, a pool that is sold out, on demand, and back up onto held capacity."""

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

from holdfast.rehearsal.scenarios.ladder_demo_policy import (
    EVICTIONS,
    NAMESPACE,
    OUTAGE_SECONDS,
    ShortLadder,
    short_ladder,
)
from holdfast.rehearsal.scenarios.ladder_walk import LadderWalk
from holdfast.rehearsal.scenarios.manifests import pod_count
from holdfast.rehearsal.scenarios.placement import name_of
from holdfast.rehearsal.scenarios.platform import Platform, played
from holdfast.rehearsal.scenarios.stock import restock, sell_out
from holdfast.rehearsal.scenarios.training_twin import twin_namespace
from holdfast.rehearsal.scenarios.waiting import SECONDS
from holdfast.rehearsal.timeline.following import Followed, Follower
from holdfast.rehearsal.timeline.moves import moves_of
from holdfast.rehearsal.timeline.traces import JobTrace
from holdfast.rehearsal.timeline.witness import Witness
from holdfast.scheduling.json import Json
from holdfast.simulator.kubernetes_client.cancellation import Cancellation
from holdfast.simulator.kubernetes_client.following import Event
from holdfast.simulator.kubernetes_client.summary import mapping

_CONTROLLER: Final = "holdfast-fallback"


def walk_the_ladder(platform: Platform, jobset: Json) -> LadderWalk:
    """Play the scene with this JobSet, which selects spot, in a training namespace of the scene's own.

    Raises KubeTimeout or RehearsalError where a step does not come about.
    """
    client = platform.client
    ladder = short_ladder(client.list("holdfast.dev/v1alpha1", "FallbackPolicy"))
    with twin_namespace(client, NAMESPACE, ladder.policy(), model=ladder.model):
        there = replace(platform, namespace=NAMESPACE)
        witness = Witness(client, NAMESPACE)
        with witness.watching(), _events_told(there), played(there, jobset):
            walk = _Walk(platform=there, witness=witness, ladder=ladder, jobset=jobset)
            platform.say(f"JobSet {walk.name} applied: its ladder is {', '.join(ladder.pools)}")
            try:
                return walk.play()
            finally:
                restock(client, ladder.pools[1])


@dataclass(frozen=True, kw_only=True)
class _Walk:
    platform: Platform
    witness: Witness
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
        return self.witness.job(self.name)

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
        with self.witness.look():
            return LadderWalk(
                jobset=self.name,
                pools=self.ladder.pools,
                evictions=max(change.evictions for change in self.trace.changes),
                restarts=self.trace.last.restarts,
                moves=moves_of(self.trace, self.pods),
                evicted_at=evicted_at,
                overlaps=tuple(self.witness.overlaps),
            )

    def _evict(self) -> datetime:
        with self.witness.look():
            node = min(pod.node for pod in self.trace.alive())
        interruption = self.platform.provisioner.interruption(node, self.platform.say)
        at = datetime.now(UTC)
        interruption.strike()
        return at

    def _wait_counted(self, evictions: int) -> None:
        """Wait until an eviction is counted, the gang is back on the same tier, and the outage is over."""
        first = self.ladder.pools[0]
        self.witness.wait(
            lambda: (
                self.trace.last.evictions == evictions
                and self.trace.last.restarts >= evictions
                and self._is_whole_on(first)
            ),
            f"{self.name} is back on {first} after {evictions} evictions",
            seconds=SECONDS,
        )
        self.platform.say(f"{self.name} is back on {first}")
        # The next eviction is to be another outage.
        threading.Event().wait(OUTAGE_SECONDS + 1)

    def _wait_on(self, pool: str, *, moves: int) -> None:
        self.witness.wait(
            lambda: self._is_whole_on(pool) and self.trace.last.moves == moves,
            f"{self.name} runs on {pool}",
            seconds=SECONDS,
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
    events = Followed(api_version="v1", kind="Event", namespace=platform.namespace)
    follower = Follower(platform.client.under(cancellation), events, _telling(platform.say))
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
