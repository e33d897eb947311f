"""Watches the gangs of a namespace's JobSets, to see that no two of one job are alive at once."""

import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import POOL
from pulumi_holdfast.rehearsal.errors import Cancellation, KubeCancelled
from pulumi_holdfast.rehearsal.kubernetes import KubeClient
from tests.support.json_objects import obj

_NAME = "jobset.sigs.k8s.io/jobset-name"


@dataclass
class Gangs:
    """The pods of every JobSet of a namespace that are alive now, by the pool they select."""

    alive: dict[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])
    overlaps: list[str] = field(default_factory=list[str])

    def take(self, what: str, pod: Json) -> None:
        """Take in one state of a pod."""
        metadata, status = obj(pod["metadata"]), obj(pod.get("status"))
        name = str(metadata["name"])
        job = str(obj(metadata.get("labels")).get(_NAME))
        pool = str(obj(obj(pod["spec"]).get("nodeSelector")).get(POOL))
        if what == "DELETED" or status.get("phase") in {"Failed", "Succeeded"}:
            self.alive.pop(name, None)
            return
        self.alive[name] = (job, pool)
        others = {other for other, (of, there) in self.alive.items() if of == job and there != pool}
        if others:
            self.overlaps.append(f"{name} in {pool} beside {sorted(others)}")


@contextmanager
def watched_gangs(client: KubeClient, namespace: str) -> Generator[Gangs]:
    """Watch for the length of the block."""
    gangs, cancellation = Gangs(), Cancellation()
    watching = client.under(cancellation)

    def watch() -> None:
        with suppress(KubeCancelled):
            for what, pod in watching.watch(
                "v1", "Pod", namespace=namespace, label_selector=_NAME, timeout_seconds=3600
            ):
                gangs.take(what, pod)

    thread = threading.Thread(target=watch, name="watch gangs", daemon=True)
    thread.start()
    try:
        yield gangs
    finally:
        cancellation.cancel()
        thread.join(30)
