"""Looking at a job of a real API server as the controller does: its pods watched, everything else read."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from holdfast.fallback.jobs.kinds import KINDS, job_of_child, job_of_pod
from holdfast.fallback.jobs.pod_history import PodHistory, with_pod
from holdfast.fallback.jobs.snapshot import JobKey, Snapshot
from holdfast.simulator.kubernetes_client.errors import Cancellation, KubeCancelled
from tests.support.fallback_cluster import NAMESPACE
from tests.support.json_objects import obj

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping

    from holdfast.fallback.state_machine.observation import Observation
    from holdfast.scheduling.json import Json
    from holdfast.simulator.kubernetes_client.client import KubeClient

SECONDS = 60.0


class Looker:
    """Looks at one job, and remembers what it saw of its pods."""

    def __init__(self, client: KubeClient, kind: str, name: str) -> None:
        self.kind = KINDS[kind]
        self.key = JobKey(kind, NAMESPACE, name)
        self._client = client
        self._memory = PodHistory()
        self._lock = threading.Lock()

    def job(self) -> Json:
        """The job as it is."""
        found = self._client.get(self.kind.api_version, self.kind.kind, self.key.name, NAMESPACE)
        assert found is not None, f"{self.key.name} is there"
        return found

    def snapshot(self) -> Snapshot:
        """The job with everything around it."""
        client = self._client
        children = [
            *client.list("batch/v1", "Job", namespace=NAMESPACE),
            *client.list("ray.io/v1", "RayCluster", namespace=NAMESPACE),
        ]
        claims = client.list("karpenter.sh/v1", "NodeClaim")
        return Snapshot(
            job=self.job(),
            now=datetime.now(UTC),
            pods=tuple(
                pod for pod in client.list("v1", "Pod", namespace=NAMESPACE) if job_of_pod(pod) == self.key
            ),
            children=tuple(child for child in children if job_of_child(child) == self.key),
            nodes=_by_name(client.list("v1", "Node")),
            claims={str(obj(claim.get("status")).get("nodeName")): claim for claim in claims},
        )

    def look(self) -> Observation:
        """What the ladder would decide by now."""
        snapshot = self.snapshot()
        with self._lock:
            seen, self._memory = self.kind.observe(snapshot, self._memory)
        return seen

    def wait(self, condition: Callable[[Observation], bool], what: str) -> Observation:
        """Look until a condition holds."""
        deadline = time.monotonic() + SECONDS
        while not condition(seen := self.look()):
            assert time.monotonic() < deadline, f"{what}: {seen}"
            threading.Event().wait(0.1)
        return seen

    def patch(self, patch: Json) -> Json:
        """Write to the job as the controller does."""
        return self._client.merge_patch(
            self.kind.api_version, self.kind.kind, self.key.name, patch, namespace=NAMESPACE
        )

    def delete_outdated_children(self) -> None:
        """Delete the child Jobs that were made from another template."""
        for child in self.kind.outdated_children(self.snapshot()):
            name = str(obj(child["metadata"])["name"])
            self._client.delete("batch/v1", "Job", name, namespace=NAMESPACE, propagation="Background")

    @contextmanager
    def watching(self) -> Generator[None]:
        """Take in every event of the job's pods for the length of the block."""
        cancellation = Cancellation()
        begun = threading.Event()
        watcher = threading.Thread(target=self._watch, args=(cancellation, begun), daemon=True)
        watcher.start()
        begun.wait(SECONDS)
        try:
            yield
        finally:
            cancellation.cancel()
            watcher.join()

    def _watch(self, cancellation: Cancellation, begun: threading.Event) -> None:
        client = self._client.under(cancellation)
        try:
            for what, pod in client.watch("v1", "Pod", namespace=NAMESPACE, timeout_seconds=10 * SECONDS):
                begun.set()
                if job_of_pod(pod) == self.key:
                    with self._lock:
                        self._memory = with_pod(
                            self._memory, pod, datetime.now(UTC), is_deleted=what == "DELETED"
                        )
        except KubeCancelled:
            begun.set()


def _by_name(nodes: list[Json]) -> Mapping[str, Json]:
    return {str(obj(node["metadata"])["name"]): node for node in nodes}
