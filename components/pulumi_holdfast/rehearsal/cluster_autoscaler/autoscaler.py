"""The autoscaler's loop: observes pods and nodes, buys machines, deletes empty ones, and sends events."""

import logging
import secrets
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Final

from pulumi_holdfast.controller.kube.client import ApiError
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.rehearsal.api_server import NoSuchKind
from pulumi_holdfast.rehearsal.clouds.machines import Nodes
from pulumi_holdfast.rehearsal.cluster_autoscaler.node_groups import Bought, NodeGroup, NodeGroups
from pulumi_holdfast.rehearsal.cluster_autoscaler.observation import (
    PodNeeds,
    class_priorities,
    empty_nodes,
    node_infos,
    options,
    pending,
    upcoming,
)
from pulumi_holdfast.rehearsal.cluster_autoscaler.scale_up import Purchase, plan
from pulumi_holdfast.rehearsal.errors import FAILURES, Cancellation, KubeCancelled
from pulumi_holdfast.rehearsal.kubernetes import KubeClient
from pulumi_holdfast.rehearsal.objects import now

TRIGGERED: Final = "TriggeredScaleUp"
NOT_TRIGGERED: Final = "NotTriggerScaleUp"
FAILED: Final = "FailedScaleUp"
_COMPONENT: Final = "cluster-autoscaler"


class Events:
    """Sends events about pods, without repeating the last message."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client
        self._told: dict[str, str] = {}

    def triggered(self, pods: Iterable[PodNeeds], group: str, *, before: int, after: int, limit: int) -> None:
        """Report a scale-up."""
        for pod in pods:
            self._tell(
                pod, TRIGGERED, f"pod triggered scale-up: [{{{group} {before}->{after} (max: {limit})}}]"
            )

    def unschedulable(self, pod: PodNeeds, reasons: str) -> None:
        """Report that no scale-up helps a pod."""
        self._tell(pod, NOT_TRIGGERED, f"pod didn't trigger scale-up: {reasons}")

    def out_of_stock(self, pods: Iterable[PodNeeds], message: str) -> None:
        """Report a scale-up that failed because the pool is out of stock."""
        for pod in pods:
            self._tell(pod, FAILED, message)

    def forget(self, pods: Iterable[PodNeeds]) -> None:
        """Forget the last messages of other pods; `pods` are the pending ones."""
        waiting = {pod.uid for pod in pods}
        self._told = {uid: told for uid, told in self._told.items() if uid in waiting}

    def _tell(self, pod: PodNeeds, reason: str, message: str) -> None:
        if self._told.get(pod.uid) == message:
            return
        self._told[pod.uid] = message
        try:
            self._client.create(_event(pod, reason, message))
        except ApiError:
            # The pod's namespace is being deleted.
            return


def _event(pod: PodNeeds, reason: str, message: str) -> Json:
    at = now()
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{pod.name}.{secrets.token_hex(8)}", "namespace": pod.namespace},
        "involvedObject": {
            "apiVersion": "v1",
            "kind": "Pod",
            "name": pod.name,
            "namespace": pod.namespace,
            "uid": pod.uid,
        },
        "reason": reason,
        "message": message,
        "type": "Warning" if reason == FAILED else "Normal",
        "source": {"component": _COMPONENT},
        "reportingComponent": _COMPONENT,
        "firstTimestamp": at,
        "lastTimestamp": at,
        "count": 1,
    }


# A real autoscaler runs every ten seconds.
_PAUSE_SECONDS: Final = 1.0
# The time until an empty node is deleted, and the backoff of a zone that was out of stock.
EMPTY_SECONDS: Final = 600.0
_BACKOFF_SECONDS: Final = 300.0

_log = logging.getLogger(__name__)


class Autoscaler:
    """The autoscaler of the clusters of a simulated cloud, which share the API server of `client`.

    `groups` are the node groups to resize; `nodes` is the cluster that machines join; `empty_seconds` is the time until an
    empty node is deleted.
    """

    def __init__(
        self,
        client: KubeClient,
        groups: NodeGroups,
        nodes: Nodes,
        *,
        empty_seconds: float = EMPTY_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._groups = groups
        self._nodes = nodes
        self._events = Events(client)
        self._empty_seconds = empty_seconds
        self._clock = clock
        self._empty_since: dict[str, float] = {}
        self._backing_off_until: dict[tuple[str, str], float] = {}

    def run(self, cancellation: Cancellation) -> None:
        """Run until cancelled."""
        while True:
            try:
                self.step()
            except KubeCancelled:
                return
            except FAILURES as error:
                _log.warning("the autoscaler retries: %s", error)
            except Exception:  # noqa: BLE001 - the loop must survive any failure
                _log.exception("the autoscaler failed and retries")
            try:
                cancellation.pause(_PAUSE_SECONDS)
            except KubeCancelled:
                return

    def step(self) -> None:
        """Observe once and act."""
        if not self._groups.groups():
            return
        restored, lost = self._groups.restore()
        for one in lost:
            self._back_off(one.pool, one.zone)
        pools = self._groups.groups()
        pods, nodes = self._client.list("v1", "Pod"), self._client.list("v1", "Node")
        bought = self._grow(pools, pods, nodes)
        ended = self._shrink(pools, pods, nodes)
        if restored or bought or ended:
            self._nodes.keep(self._groups.machines)

    def _grow(self, pools: Sequence[NodeGroup], pods: Sequence[Json], nodes: Sequence[Json]) -> bool:
        waiting = pending(pods)
        self._events.forget(waiting)
        if not waiting:
            return False
        now = self._clock()
        backing_off = {where for where, until in self._backing_off_until.items() if until > now}
        growing = [seen for seen in pools if seen.template.is_autoscaled]
        on_offer = options(growing, backing_off, class_priorities(self._classes()))
        there = [*node_infos(nodes, pods), *upcoming(pools, nodes)]
        planned = plan(waiting, there, on_offer, datetime.now(UTC))
        for pod, reasons in planned.unschedulable:
            self._events.unschedulable(pod, reasons)
        return bool(planned.purchases) and self._buy(pools, planned.purchases)

    def _classes(self) -> list[Json]:
        try:
            return self._client.list("cloud.google.com/v1", "ComputeClass")
        except NoSuchKind:
            return []

    def _buy(self, pools: Sequence[NodeGroup], purchases: Sequence[Purchase]) -> bool:
        by_id = {seen.pool.id: seen for seen in pools}
        counts = {(seen.pool.id, zone): _count(seen, zone) for seen in pools for zone in seen.template.zones}
        done = self._groups.buy(purchases)
        for one in done:
            self._tell(one, by_id[one.purchase.pool], counts)
        return any(one.instance for one in done)

    def _tell(self, one: Bought, seen: NodeGroup, counts: dict[tuple[str, str], int]) -> None:
        pool, zone, pods = one.purchase.pool, one.purchase.zone, one.purchase.pods
        if one.instance is None:
            _log.info("%s is sold out in %s", seen.template.name, zone)
            self._back_off(pool, zone)
            message = self._groups.out_of_stock(zone)
            if message is not None:
                self._events.out_of_stock(pods, message)
            return
        group = self._groups.group_of(seen, one.instance)
        before = counts[pool, zone]
        counts[pool, zone] = before + 1
        _log.info("%s is bought for %s", one.instance.name, _names(pods))
        limit = seen.template.maximum
        self._events.triggered(pods, group, before=before, after=before + 1, limit=limit)

    def _shrink(self, pools: Sequence[NodeGroup], pods: Sequence[Json], nodes: Sequence[Json]) -> int:
        ours = {one.name for seen in pools for one in seen.instances}
        empty = empty_nodes(nodes, pods) & ours
        now = self._clock()
        self._empty_since = {name: self._empty_since.get(name, now) for name in empty}
        due = [name for name, since in self._empty_since.items() if now - since >= self._empty_seconds]
        return self._groups.end(due) if due else 0

    def _back_off(self, pool: str, zone: str) -> None:
        self._backing_off_until[pool, zone] = self._clock() + _BACKOFF_SECONDS


def _count(seen: NodeGroup, zone: str) -> int:
    return sum(one.zone == zone for one in seen.instances)


def _names(pods: Iterable[PodNeeds]) -> str:
    return ", ".join(f"{pod.namespace}/{pod.name}" for pod in pods)
