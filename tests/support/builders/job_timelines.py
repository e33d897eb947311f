"""Jobs and pods as a watch shows them, and timelines of them."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Final

from pulumi_holdfast.ladder.json import Json, JsonValue
from pulumi_holdfast.ladder.labels import RESTART_ATTEMPT
from pulumi_holdfast.rehearsal.timeline.traces import JobTrace

START: Final = datetime(2030, 5, 1, 12, 0, tzinfo=UTC)


def after(seconds: float) -> datetime:
    """A time after the start."""
    return START + timedelta(seconds=seconds)


def job(*, suspended: bool = False, restarts: int = 0, outcome: str = "", **kept: JsonValue) -> Json:
    """A JobSet; `kept` is the state in its annotation."""
    annotations: Json = {"fallback.holdfast.dev/state": json.dumps(kept)} if kept else {}
    return {
        "metadata": {"name": "train", "uid": "train-uid", "annotations": annotations},
        "spec": {"suspend": suspended},
        "status": {"restarts": restarts, **({"terminalState": outcome} if outcome else {})},
    }


def pod(
    name: str,
    *,
    pool: str = "spot-a",
    attempt: int = 0,
    owner: str = "job-1",
    node: str = "",
    phase: str = "Pending",
    deleted: bool = False,
    lost: str = "",
) -> Json:
    """A pod of that JobSet."""
    labels: Json = {
        "jobset.sigs.k8s.io/jobset-name": "train",
        RESTART_ATTEMPT: str(attempt),
        "batch.kubernetes.io/job-name": "train-worker-0",
        "batch.kubernetes.io/controller-uid": owner,
    }
    conditions: list[Json] = [{"type": "DisruptionTarget", "status": "True", "reason": lost}] if lost else []
    return {
        "metadata": {
            "name": name,
            "uid": f"{name}-uid",
            "labels": labels,
            **({"deletionTimestamp": "2030-05-01T12:00:00Z"} if deleted else {}),
        },
        "spec": {"nodeSelector": {"holdfast.dev/pool": pool}, **({"nodeName": node} if node else {})},
        "status": {"phase": phase, "conditions": conditions},
    }


class TimelineBuilder:
    """Builds a timeline from events, in seconds since the start."""

    def __init__(self) -> None:
        self.trace = JobTrace(name="train")

    def job(self, seconds: float, **fields: JsonValue) -> TimelineBuilder:
        """Add a state of the job."""
        suspended, restarts = fields.pop("suspended", False), fields.pop("restarts", 0)
        outcome = fields.pop("outcome", "")
        assert isinstance(restarts, int), "a number"
        self.trace.record_job(
            job(suspended=suspended is True, restarts=restarts, outcome=str(outcome), **fields),
            after(seconds),
        )
        return self

    def gang(
        self, seconds: float, *, pool: str = "spot-a", attempt: int = 0, node: str = "n1"
    ) -> TimelineBuilder:
        """Add two pods that are created, are bound a second later, and run."""
        for number in range(2):
            name = f"{pool}-{attempt}-{number}"
            for at, shown in (
                (seconds, pod(name, pool=pool, attempt=attempt, owner=f"{pool}-{attempt}")),
                (
                    seconds + 1,
                    pod(
                        name,
                        pool=pool,
                        attempt=attempt,
                        owner=f"{pool}-{attempt}",
                        node=f"{node}-{number}",
                        phase="Running",
                    ),
                ),
            ):
                self.trace.record_pod(shown, after(at))
        return self

    def evicted(self, seconds: float, *, pool: str = "spot-a", attempt: int = 0) -> TimelineBuilder:
        """Add the eviction of the first pod of a gang, and the end of both pods a second later."""
        for number in range(2):
            name = f"{pool}-{attempt}-{number}"
            owner, node = f"{pool}-{attempt}", f"n1-{number}"
            lost = "EvictionByEvictionAPI" if number == 0 else ""
            shown = pod(
                name,
                pool=pool,
                attempt=attempt,
                owner=owner,
                node=node,
                phase="Running",
                deleted=True,
                lost=lost,
            )
            self.trace.record_pod(shown, after(seconds))
            self.trace.record_pod(shown, after(seconds + 1), is_deleted=True)
        return self


def moved(evictions: int = 1) -> TimelineBuilder:
    """A job that was evicted once and moved from `spot-a` to `spot-b`."""
    watched = TimelineBuilder().job(0, phase="Waiting", pool="spot-a").gang(0)
    watched.job(1.5, phase="Running", pool="spot-a")
    watched.evicted(100)
    watched.job(100.2, phase="Suspending", pool="spot-b", suspended=True, evictions=evictions)
    watched.job(102, phase="Waiting", pool="spot-b", moves=1)
    watched.gang(102.5, pool="spot-b")
    return watched.job(104, phase="Running", pool="spot-b", moves=1)
