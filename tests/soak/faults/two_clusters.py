"""A second cluster beside the one of a fault run: what becomes of requests between them, and jobs that run in both."""

import threading
import time
from collections import Counter
from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Final

from pulumi_holdfast.ladder.json import mapping
from pulumi_holdfast.rehearsal.control_plane.configuration import Layout
from pulumi_holdfast.rehearsal.errors import FAILURES
from pulumi_holdfast.rehearsal.kubernetes import KubeClient
from pulumi_holdfast.rehearsal.timeline.traces import job_of_pod
from tests.soak.fault_proxy import ApiRequest, Fault
from tests.soak.faults.environment import FaultEnvironment
from tests.soak.faults.manifests import NAMESPACE
from tests.soak.faults.plan import Link, Side
from tests.support.clusters.fallback import ladder_cluster

_SHORTEST_PAUSE: Final = 0.1

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
