"""A JobSet trains on spot, loses its node and comes back on a new one."""

import time
from dataclasses import dataclass, field

from rehearsal.errors import RehearsalError
from rehearsal.kube.summary import mapping, sequence
from rehearsal.scenes.manifests import pod_count
from rehearsal.scenes.placement import Placement, is_running, name_of, placements, uid_of
from rehearsal.scenes.platform import SECONDS, Platform, apply, played, wait_until_claim_is_gone
from scheduling.json import Json

EVICTED = "EvictionByEvictionAPI"


@dataclass(frozen=True, kw_only=True)
class SpotRestart:
    """What was seen: where the pods were before and after, which node was taken, and how they left it.

    `evicted` are the pods that left through the Eviction API; `restarts` is the JobSet's own count;
    `seconds` the time from the interruption until all pods ran again.
    """

    jobset: str
    before: tuple[Placement, ...]
    interrupted: str
    evicted: tuple[str, ...]
    after: tuple[Placement, ...]
    restarts: int
    seconds: float


@dataclass(kw_only=True)
class PodHistory:
    """What has been seen of a job's pods since `known`, the uids of those that ran at first."""

    known: frozenset[str]
    evicted: set[str] = field(default_factory=set[str])
    running: dict[str, Json] = field(default_factory=dict[str, Json])

    def record(self, what: str, pod: Json) -> None:
        """Take in one event of a watch."""
        if _was_evicted(pod):
            self.evicted.add(name_of(pod))
        if what != "DELETED" and is_running(pod):
            self.running[uid_of(pod)] = pod
        else:
            self.running.pop(uid_of(pod), None)

    def successors(self) -> list[Json]:
        """The pods that run and did not at first."""
        return [pod for uid, pod in self.running.items() if uid not in self.known]


def restart_on_spot(platform: Platform, jobset: Json) -> SpotRestart:
    """Play the scene with this JobSet. Raises KubeTimeout where a step does not come about."""
    name, pods = name_of(jobset), pod_count(jobset)
    selector = _pods_of(jobset)
    with played(platform, jobset):
        before = _wait_until_it_runs(platform, jobset)
        interrupted = before[0].node
        begin = time.monotonic()
        history = _interrupt_and_watch(platform, selector, interrupted, pods)
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
        interrupted=interrupted,
        evicted=tuple(sorted(history.evicted)),
        after=after,
        restarts=restarts,
        seconds=seconds,
    )


def leave_running(platform: Platform, jobset: Json) -> tuple[Placement, ...]:
    """Apply a JobSet, and leave it when its pods run. Raises KubeTimeout where they do not."""
    apply(platform, jobset)
    return _wait_until_it_runs(platform, jobset)


def _wait_until_it_runs(platform: Platform, jobset: Json) -> tuple[Placement, ...]:
    name, pods = name_of(jobset), pod_count(jobset)
    platform.say(f"JobSet {name} applied: {pods} pods select spot")
    placed = platform.wait_for_pods(
        _pods_of(jobset),
        lambda found: len(found) == pods and all(map(is_running, found)),
        f"{name} runs",
    )
    for each in placed:
        platform.say(f"{each.pod} runs on {each.capacity} {each.machine} (pool {each.pool})")
    return placed


def _pods_of(jobset: Json) -> str:
    return f"jobset.sigs.k8s.io/jobset-name={name_of(jobset)}"


def _interrupt_and_watch(platform: Platform, selector: str, node: str, pods: int) -> PodHistory:
    claim = claim_of(platform, node)
    history: PodHistory | None = None
    known = frozenset(uid_of(pod) for pod in platform.pods(selector))
    for what, pod in platform.client.watch(
        "v1", "Pod", namespace=platform.namespace, label_selector=selector, timeout_seconds=SECONDS
    ):
        if history is None:
            # Only now, with the watch begun: the evicted pods are there for a moment.
            history = PodHistory(known=known)
            interrupt(platform, node, claim)
        history.record(what, pod)
        if len(history.successors()) == pods:
            wait_until_claim_is_gone(platform, claim)
            platform.say(f"node {node} is gone")
            return history
    raise RehearsalError(
        f"the pods selected by {selector} did not run again within {SECONDS:.0f} s of the interruption of {node}"
    )


def interrupt(platform: Platform, node: str, claim: str) -> None:
    """Take a spot node as an interruption takes it.

    On a cloud, the notice of an interruption reaches Karpenter through a queue, and all that Karpenter does about
    it is to delete the NodeClaim. The rest is the same code here and there: the node is tainted, its pods are
    evicted through the Eviction API, and the machine is ended. So the deletion stands for the notice. What is not
    played is the cloud ending the machine after its two minutes although pods are still on it.
    """
    platform.say(f"spot interruption: node {node} is taken")
    if not platform.client.delete("karpenter.sh/v1", "NodeClaim", claim):
        raise RehearsalError(
            f"node {node} was already gone when it was to be interrupted: run the scene again"
        )


def claim_of(platform: Platform, node: str) -> str:
    """The NodeClaim of a node; waits for the moment in which a new node is not yet entered in it."""

    def of_node(claims: list[Json]) -> list[str]:
        return [name_of(each) for each in claims if mapping(each.get("status")).get("nodeName") == node]

    claims = platform.client.wait_list(
        "karpenter.sh/v1",
        "NodeClaim",
        timeout_seconds=SECONDS,
        condition=lambda claims: bool(of_node(claims)),
        what=f"Karpenter owns node {node}",
    )
    return of_node(claims)[0]


def _restarts(platform: Platform, jobset: str) -> int:
    found = platform.client.wait_for(
        "jobset.x-k8s.io/v1alpha2",
        "JobSet",
        jobset,
        namespace=platform.namespace,
        timeout_seconds=SECONDS,
        condition=lambda obj: bool(mapping((obj or {}).get("status")).get("restarts")),
        what=f"JobSet {jobset} counts its restart",
    )
    restarts = mapping((found or {}).get("status")).get("restarts")
    return restarts if isinstance(restarts, int) else 0


def _limit(jobset: Json) -> object:
    return mapping(mapping(jobset.get("spec")).get("failurePolicy")).get("maxRestarts", 0)


def _was_evicted(pod: Json) -> bool:
    conditions = [mapping(each) for each in sequence(mapping(pod.get("status")).get("conditions"))]
    return any(
        each.get("type") == "DisruptionTarget" and each.get("reason") == EVICTED for each in conditions
    )
