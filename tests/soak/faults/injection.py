"""Injects the faults of a plan into a cluster."""

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from pulumi_holdfast.controller.kube.client import ApiError
from pulumi_holdfast.controller.kube.objects import name_of
from pulumi_holdfast.ladder.json import Json, mapping
from pulumi_holdfast.ladder.labels import POOL
from pulumi_holdfast.rehearsal.kubernetes import KubeClient
from pulumi_holdfast.rehearsal.scenarios.karpenter import restock, sell_out
from pulumi_holdfast.rehearsal.timeline.recorder import JobTimelineRecorder
from pulumi_holdfast.rehearsal.timeline.traces import PodTrace
from tests.soak.fault_proxy import ApiRequest, Fault
from tests.soak.faults.manifests import NAMESPACE, POOLS, has_deadline, job_name, limits
from tests.soak.faults.plan import (
    Complete,
    Evict,
    KillController,
    KillServer,
    Partition,
    PlannedFault,
    Recover,
    RunOut,
    Shortage,
    SlowDown,
    TakeNode,
)
from tests.soak.faults.processes import API_SERVER, ETCD, RestartedController, Servers


@dataclass(kw_only=True)
class KillAtWrite:
    """Counts the controller's writes, and calls a function at one of them."""

    #: No request reaches the API server.
    is_partitioned: bool = False
    _left: int = 0
    _fault: Fault = Fault.PASS
    _kill: Callable[[], None] | None = None

    def kill_at(self, write: int, kill: Callable[[], None], *, is_done: bool) -> None:
        """Call `kill` at the `write`-th write from now; with `is_done` the API server still handles it, otherwise not."""
        self._left, self._kill = write, kill
        self._fault = Fault.LOSE_ANSWER if is_done else Fault.LOSE

    def cancel(self) -> bool:
        """Cancel the kill; return whether it was pending."""
        was_pending, self._kill = self._kill is not None, None
        return was_pending

    def decide(self, request: ApiRequest) -> Fault:
        """Count a request; return the fault to inject."""
        if self.is_partitioned:
            return Fault.LOSE
        kill = self._kill
        if kill is None or not request.is_write:
            return Fault.PASS
        self._left -= 1
        if self._left:
            return Fault.PASS
        self._kill = None
        kill()
        return self._fault


_KARPENTER: Final = "karpenter.sh/v1"
_NODE_CLASS: Final = "karpenter.kwok.sh/v1alpha1"
_SIMULATED: Final = "kwok.x-k8s.io/node"
_NAMED: Final = 3


@dataclass(kw_only=True)
class Injector:
    """Injects faults. `vanished` are the nodes that were lost without notice, with the times; `struck` is what else was hit.

    `struck` holds names of nodes and uids of pods; `kills` the times at which the controller
    or the API server was killed, or one was separated from the other.
    """

    client: KubeClient
    recorder: JobTimelineRecorder
    kill_at_write: KillAtWrite
    controller: RestartedController
    servers: Servers
    break_watches: Callable[[], None]
    say: Callable[[str], None]
    vanished: dict[str, datetime] = field(default_factory=dict[str, datetime])
    struck: set[str] = field(default_factory=set[str])
    kills: list[datetime] = field(default_factory=list[datetime])

    def inject(self, fault: PlannedFault) -> None:
        """Inject one fault and print it."""
        match fault:
            case Evict():
                self._evict(fault.jobs)
            case TakeNode():
                self._take_node(fault)
            case RunOut():
                self._run_out(fault)
            case Recover():
                self._recover()
            case SlowDown():
                self._slow_down(fault)
            case Complete():
                self._complete(fault.jobs)
            case KillController():
                when = "after the API server has it" if fault.is_done else "before the API server has it"
                self.say(f"the controller is killed at its write {fault.write} from now, {when}")
                self.kill_at_write.kill_at(fault.write, self._kill_controller, is_done=fault.is_done)
            case KillServer():
                names = (API_SERVER, ETCD) if fault.with_etcd else (API_SERVER,)
                self.say(f"{' and '.join(names)} killed")
                self.kills.append(datetime.now(UTC))
                self.servers.kill(names)
            case Partition():
                self._separate(fault.seconds)

    def recover(self) -> None:
        """Let every tier have capacity and start machines without delay."""
        self._recover()
        self.kill_at_write.cancel()

    def is_struck(self, pod: PodTrace) -> bool:
        """Whether a pod or its node was hit by a fault."""
        return pod.uid in self.struck or pod.node in self.struck or pod.node in self.vanished

    def _kill_controller(self) -> None:
        self.kills.append(datetime.now(UTC))
        self.controller.kill()

    def _separate(self, seconds: int) -> None:
        self.say(f"the controller does not reach the API server for {seconds} s")
        self.kills.append(datetime.now(UTC))
        self.kill_at_write.is_partitioned = True
        try:
            self.break_watches()
            threading.Event().wait(seconds)
        finally:
            self.kill_at_write.is_partitioned = False
        # What happened in the meantime is learned only now.
        self.kills.append(datetime.now(UTC))

    def _evict(self, jobs: Iterable[int]) -> None:
        evicted: list[str] = []
        for number in jobs:
            with self.recorder.frozen():
                alive = self.recorder.job(job_name(number)).alive()
            pods = [pod for pod in alive if pod.running_at and not pod.is_head]
            pod = min(pods, key=lambda each: each.name, default=None)
            if pod is not None and _is_done(lambda pod=pod: self.client.evict(NAMESPACE, pod.name)):
                evicted.append(pod.name)
                self.struck.add(pod.uid)
        self.say(f"evicted: {_few(evicted)}")

    def _take_node(self, fault: TakeNode) -> None:
        nodes = self._nodes_of(POOLS[fault.tier])
        if not nodes:
            self.say(f"there is no node of {POOLS[fault.tier]} to take")
            return
        node = nodes[int(fault.place * len(nodes))]
        if fault.is_announced:
            self.say(f"{node} is drained and taken")
            self.struck.add(node)
            for claim in self._claims_of(node):
                self.client.delete(_KARPENTER, "NodeClaim", claim)
        else:
            self.say(f"{node} vanishes")
            self._vanish(node)

    def _run_out(self, fault: RunOut) -> None:
        pool = POOLS[fault.tier]
        if fault.shortage is Shortage.STOCK:
            sell_out(self.client, pool)
        else:
            self._limit(pool, has_capacity=False)
        nodes = self._nodes_of(pool)
        self.say(f"{pool} has no capacity ({fault.shortage}), and its {len(nodes)} nodes vanish")
        for node in nodes:
            self._vanish(node)

    def _recover(self) -> None:
        for pool in POOLS:
            restock(self.client, pool)
            self._limit(pool, has_capacity=True)
            self._delay(pool, None)

    def _slow_down(self, fault: SlowDown) -> None:
        self.say(f"machines of {POOLS[fault.tier]} take {fault.seconds} s more")
        self._delay(POOLS[fault.tier], f"{fault.seconds}s")

    def complete(self, job: str) -> None:
        """Let the program of a job end with success."""
        patch: Json = {"metadata": {"annotations": {"holdfast.dev/complete": "true"}}}
        with self.recorder.frozen():
            alive = self.recorder.job(job).alive()
        # The program of a RayJob runs on its head.
        for pod in [each.name for each in alive if each.is_head] or [each.name for each in alive]:
            _is_done(lambda pod=pod: self.client.merge_patch("v1", "Pod", pod, patch, namespace=NAMESPACE))

    def _complete(self, jobs: Iterable[int]) -> None:
        # A job with a deadline completes when its work is done, and not before.
        names = [job_name(number) for number in jobs if not has_deadline(number)]
        self.say(f"completed: {_few(names)}")
        for name in names:
            self.complete(name)

    def _limit(self, pool: str, *, has_capacity: bool) -> None:
        patch: Json = {"spec": {"limits": limits(has_capacity=has_capacity)}}
        self.client.merge_patch(_KARPENTER, "NodePool", pool, patch)

    def _delay(self, pool: str, delay: str | None) -> None:
        patch: Json = {"spec": {"nodeRegistrationDelay": delay}}
        self.client.merge_patch(_NODE_CLASS, "KWOKNodeClass", pool, patch)

    def _vanish(self, node: str) -> None:
        """End a machine without notice: its kubelet, its Node and its NodeClaim disappear without a drain."""
        self.vanished[node] = datetime.now(UTC)
        claims = self._claims_of(node)
        patch: Json = {"metadata": {"annotations": {_SIMULATED: None}}}
        _is_done(lambda: self.client.merge_patch("v1", "Node", node, patch))
        self._drop("v1", "Node", node)
        for claim in claims:
            self._drop(_KARPENTER, "NodeClaim", claim)

    def _drop(self, api_version: str, kind: str, name: str) -> None:
        patch: Json = {"metadata": {"finalizers": None}}
        _is_done(lambda: self.client.merge_patch(api_version, kind, name, patch))
        self.client.delete(api_version, kind, name, propagation="Background")
        _is_done(lambda: self.client.merge_patch(api_version, kind, name, patch))

    def _nodes_of(self, pool: str) -> list[str]:
        return sorted(
            name_of(node) for node in self.client.list("v1", "Node", label_selector=f"{POOL}={pool}")
        )

    def _claims_of(self, node: str) -> list[str]:
        claims = self.client.list(_KARPENTER, "NodeClaim")
        return [name_of(each) for each in claims if mapping(each.get("status")).get("nodeName") == node]


def _few(names: Sequence[str]) -> str:
    """Return the first names, and the number of the others."""
    told = ", ".join(names[:_NAMED]) or "none"
    return f"{told} and {len(names) - _NAMED} more" if len(names) > _NAMED else told


def _is_done(request: Callable[[], object]) -> bool:
    """Send a request; return False if its object is gone or has changed."""
    try:
        request()
    except ApiError as error:
        if error.is_missing or error.is_conflict:
            return False
        raise
    return True
