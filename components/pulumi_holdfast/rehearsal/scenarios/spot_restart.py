"""A JobSet on spot loses a node and restarts on a new one."""

import time
from dataclasses import dataclass, field

from pulumi_holdfast.controller.kube.objects import condition_of, name_of, uid_of
from pulumi_holdfast.ladder.json import Json, mapping
from pulumi_holdfast.rehearsal.errors import RehearsalError
from pulumi_holdfast.rehearsal.scenarios.manifests import pod_count
from pulumi_holdfast.rehearsal.scenarios.placement import PodPlacement, is_running, placements
from pulumi_holdfast.rehearsal.scenarios.platform import Platform, applied, apply
from pulumi_holdfast.rehearsal.scenarios.provisioning import WAIT_SECONDS


@dataclass(frozen=True, kw_only=True)
class SpotRestart:
    """Where the pods were before and after, and which node was interrupted.

    `evicted` are the pods whose DisruptionTarget condition names the interruption; `restarts` is the JobSet's own count;
    `seconds` is the time from the interruption until all pods run again.
    """

    jobset: str
    before: tuple[PodPlacement, ...]
    interrupted: str
    evicted: tuple[str, ...]
    after: tuple[PodPlacement, ...]
    restarts: int
    seconds: float


@dataclass(kw_only=True)
class ObservedPods:
    """What a watch has shown of a job's pods; `known` are the uids of those that ran before the interruption.

    `disruption` is the reason in the DisruptionTarget condition of interrupted pods.
    """

    known: frozenset[str]
    disruption: str
    evicted: set[str] = field(default_factory=set[str])
    running: dict[str, Json] = field(default_factory=dict[str, Json])

    def record(self, what: str, pod: Json) -> None:
        """Record one event of a watch."""
        if condition_of(pod, "DisruptionTarget").get("reason") == self.disruption:
            self.evicted.add(name_of(pod))
        if what != "DELETED" and is_running(pod):
            self.running[uid_of(pod)] = pod
        else:
            self.running.pop(uid_of(pod), None)

    def successors(self) -> list[Json]:
        """The running pods that did not run before."""
        return [pod for uid, pod in self.running.items() if uid not in self.known]


def restart_on_spot(platform: Platform, jobset: Json) -> SpotRestart:
    """Run the scenario with this JobSet. Raises KubeTimeout if a condition is not met in time."""
    name, pods = name_of(jobset), pod_count(jobset)
    selector = _pods_of(jobset)
    with applied(platform, jobset):
        before = _wait_until_it_runs(platform, jobset)
        lost = before[0]
        begin = time.monotonic()
        history = _interrupt_and_watch(platform, selector, lost, pods)
        seconds = time.monotonic() - begin
        after = placements(history.successors(), platform.nodes())
        restarts = _restarts(platform, name)
        for each in after:
            platform.say(f"{each.pod} runs on {each.capacity} {each.machine} (pool {each.pool})")
        platform.say(
            f"JobSet {name} was back after {seconds:.1f} s, restarts: {restarts} of {_limit(jobset)}"
        )
    return SpotRestart(
        jobset=name,
        before=before,
        interrupted=lost.node,
        evicted=tuple(sorted(history.evicted)),
        after=after,
        restarts=restarts,
        seconds=seconds,
    )


def leave_running(platform: Platform, jobset: Json) -> tuple[PodPlacement, ...]:
    """Apply a JobSet and return when its pods run. Raises KubeTimeout if they do not."""
    apply(platform, jobset)
    return _wait_until_it_runs(platform, jobset)


def _wait_until_it_runs(platform: Platform, jobset: Json) -> tuple[PodPlacement, ...]:
    name, pods = name_of(jobset), pod_count(jobset)
    platform.say(f"JobSet {name} applied: {pods} pods select spot")
    placed = platform.wait_for_pods(
        _pods_of(jobset), lambda found: len(found) == pods and all(map(is_running, found)), f"{name} runs"
    )
    for each in placed:
        platform.say(f"{each.pod} runs on {each.capacity} {each.machine} (pool {each.pool})")
    return placed


def _pods_of(jobset: Json) -> str:
    return f"jobset.sigs.k8s.io/jobset-name={name_of(jobset)}"


def _interrupt_and_watch(platform: Platform, selector: str, lost: PodPlacement, pods: int) -> ObservedPods:
    interrupt = platform.provisioner.interruption(lost.node, platform.say)
    history: ObservedPods | None = None
    known = frozenset(uid_of(pod) for pod in platform.pods(selector))
    for what, pod in platform.client.watch(
        "v1", "Pod", namespace=platform.namespace, label_selector=selector, timeout_seconds=WAIT_SECONDS
    ):
        if history is None:
            # Only after the watch has started: evicted pods exist only for a moment.
            history = ObservedPods(known=known, disruption=platform.provisioner.disruption)
            interrupt()
        history.record(what, pod)
        if len(history.successors()) == pods:
            _wait_until_gone(platform, lost)
            platform.say(f"node {lost.node} is gone")
            return history
    raise RehearsalError(
        f"the pods selected by {selector} did not run again within {WAIT_SECONDS:.0f} s of the interruption of {lost.node}"
    )


def _wait_until_gone(platform: Platform, lost: PodPlacement) -> None:
    """Wait until a node is gone; a later one may have its name."""
    platform.client.wait_for(
        "v1",
        "Node",
        lost.node,
        timeout_seconds=WAIT_SECONDS,
        condition=lambda found: found is None or uid_of(found) != lost.host,
        what=f"node {lost.node} is gone",
    )


def _restarts(platform: Platform, jobset: str) -> int:
    found = platform.client.wait_for(
        "jobset.x-k8s.io/v1alpha2",
        "JobSet",
        jobset,
        namespace=platform.namespace,
        timeout_seconds=WAIT_SECONDS,
        condition=lambda obj: bool(mapping((obj or {}).get("status")).get("restarts")),
        what=f"JobSet {jobset} counts its restart",
    )
    restarts = mapping((found or {}).get("status")).get("restarts")
    return restarts if isinstance(restarts, int) else 0


def _limit(jobset: Json) -> object:
    return mapping(mapping(jobset.get("spec")).get("failurePolicy")).get("maxRestarts", 0)
