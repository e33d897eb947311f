"""Records nodes and placeholders with watches of their own: which node was of which pool, and reserved for which job, when."""

from __future__ import annotations

import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from pulumi_holdfast.controller.jobs.pods_and_nodes import has_ended, node_of
from pulumi_holdfast.controller.jobs.reservations import reserved_for
from pulumi_holdfast.controller.kube.objects import metadata_of, name_of, text, uid_of
from pulumi_holdfast.ladder.json import Json, mapping
from pulumi_holdfast.ladder.labels import POOL, RESERVATION_NAMESPACE, RESERVED_FOR
from pulumi_holdfast.rehearsal.errors import Cancellation
from pulumi_holdfast.rehearsal.kubernetes import BEGUN, KubeClient, WatchThread
from pulumi_holdfast.rehearsal.watches import SYNCED, Event, ObjectSelector


@dataclass(frozen=True, kw_only=True)
class Reserved:
    """A node that is reserved for a job, by its taint or by a placeholder; `until` is None as long as it is."""

    job: str
    node: str
    since: datetime
    until: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class Placeholder:
    """A placeholder of a job in a pool, from `born_at`; it has a node from `bound_at` on."""

    job: str
    pool: str
    born_at: datetime
    node: str = ""
    bound_at: datetime | None = None
    ended_at: datetime | None = None


@dataclass(kw_only=True)
class NodeTimeline:
    """What was seen: the pool of each node, when nodes were gone, placeholders by uid, and nodes that were tainted for a job."""

    pools: dict[str, str] = field(default_factory=dict[str, str])
    gone: dict[str, datetime] = field(default_factory=dict[str, datetime])
    placeholders: dict[str, Placeholder] = field(default_factory=dict[str, Placeholder])
    taints: list[Reserved] = field(default_factory=list[Reserved])

    def held(self, job: str) -> Sequence[Reserved]:
        """Return the nodes on which a job had placeholders."""
        return [
            Reserved(job=job, node=each.node, since=each.bound_at, until=each.ended_at)
            for each in self.placeholders.values()
            if each.job == job and each.bound_at is not None
        ]

    def record_node(self, node: Json, at: datetime, *, is_deleted: bool) -> None:
        """Record a state of a node."""
        name, job = name_of(node), None if is_deleted else reserved_for(node)
        self.pools[name] = text(mapping(metadata_of(node).get("labels")).get(POOL))
        if is_deleted:
            self.gone.setdefault(name, at)
        standing = [each for each in self.taints if each.node == name and each.until is None]
        for each in standing:
            if each.job != job:
                self.taints[self.taints.index(each)] = replace(each, until=at)
        if job is not None and all(each.job != job for each in standing):
            self.taints.append(Reserved(job=job, node=name, since=at))

    def record_placeholder(self, pod: Json, at: datetime, *, is_deleted: bool) -> None:
        """Record a state of a placeholder."""
        labels, node = mapping(metadata_of(pod).get("labels")), node_of(pod)
        seen = self.placeholders.get(uid_of(pod)) or Placeholder(
            job=text(labels.get(RESERVED_FOR)), pool=text(labels.get(POOL)), born_at=at
        )
        is_over = is_deleted or has_ended(pod)
        self.placeholders[uid_of(pod)] = replace(
            seen,
            node=node,
            bound_at=seen.bound_at or (at if node else None),
            ended_at=seen.ended_at or (at if is_over else None),
        )

    def end_missing(self, kind: str, listed: set[str], at: datetime) -> None:
        """Mark everything of a kind that a new list does not contain as gone."""
        if kind == "Pod":
            for uid, each in self.placeholders.items():
                if uid not in listed and each.ended_at is None:
                    self.placeholders[uid] = replace(each, ended_at=at)
            return
        for name in self.pools.keys() - listed - self.gone.keys():
            self.gone[name] = at
            self.taints = [
                replace(each, until=at) if each.node == name and each.until is None else each
                for each in self.taints
            ]


class NodeRecorder:
    """Records a NodeTimeline for the length of `recording`."""

    def __init__(self, client: KubeClient) -> None:
        self._timeline = NodeTimeline()
        self._client = client
        self._lock = threading.Lock()
        self._listed: dict[str, set[str]] = {"Pod": set(), "Node": set()}

    @contextmanager
    def recording(self) -> Generator[NodeRecorder]:
        """Record for the length of the block; existing objects are known when it begins."""
        cancellation = Cancellation()
        threads = [
            WatchThread(
                self._client.under(cancellation),
                "v1",
                kind,
                lambda event, kind=kind: self._take(kind, event),
                ObjectSelector(namespace=namespace),
            )
            for kind, namespace in (("Pod", RESERVATION_NAMESPACE), ("Node", None))
        ]
        for each in threads:
            each.start()
        for each in threads:
            each.wait_begun()
        try:
            yield self
        finally:
            cancellation.cancel()
            for each in threads:
                each.join()

    def timeline(self) -> NodeTimeline:
        """Return what was seen until now; it does not change while it is checked."""
        with self._lock:
            return deepcopy(self._timeline)

    def _take(self, kind: str, event: Event) -> None:
        what, found = event
        now = datetime.now(UTC)
        with self._lock:
            if event == BEGUN:
                self._listed[kind].clear()
            elif event == SYNCED:
                self._timeline.end_missing(kind, self._listed[kind], now)
            elif kind == "Pod":
                self._listed[kind].add(uid_of(found))
                self._timeline.record_placeholder(found, now, is_deleted=what == "DELETED")
            else:
                self._listed[kind].add(name_of(found))
                self._timeline.record_node(found, now, is_deleted=what == "DELETED")
