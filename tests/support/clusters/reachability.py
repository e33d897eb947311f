"""Puts jobs on the pools of a ladder with the real scheduler and Karpenter, to compare with what the rules predict.

All pods are pending before the first NodePool exists: Karpenter plans for all pending pods together, so that it never
sees a part of a gang. A simulated node has the capacity that its pods requested and no more (kwok/cloudprovider, toNode),
so that the limits of a pool count too little: a policy gives each node the capacity of its machine.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import count
from typing import Final

from pulumi_holdfast.controller.kube.objects import labels_of, name_of
from pulumi_holdfast.kubernetes.karpenter_pool import KWOK
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import GPU_RESOURCE, INSTANCE_TYPE, POOL, ZONE, CapacityType
from pulumi_holdfast.ladder.machines import Machine, machine_catalogue
from pulumi_holdfast.ladder.reachability.affinity import ABSENT, OTHERS, any_holds
from pulumi_holdfast.ladder.reachability.pod_capacity import alternatives
from pulumi_holdfast.ladder.reachability.shape import Resources
from pulumi_holdfast.program import resources
from pulumi_holdfast.program.resources import cpu_millis, memory_mib
from pulumi_holdfast.rehearsal.kubernetes import KubeClient
from tests.support.builders.tried_jobs import ELSEWHERE, NODE_CLASS, TriedJob, TriedTier
from tests.support.clusters.admission import policy_and_binding, wait_until_enforced
from tests.support.clusters.operators import condition_of, is_ready
from tests.support.json_objects import obj

_NAME: Final = "whole-machines"
_POOL: Final = "karpenter.sh/nodepool"


def sell_whole_machines(client: KubeClient) -> None:
    """Have every node that Karpenter makes say what its machine has; returns once that is in force."""
    for manifest in policy_and_binding(_NAME, _spec(), {"policyName": _NAME}):
        client.apply(manifest, field_manager="tests")
    wait_until_enforced(client, _is_whole)


def allocatable(node: Json) -> Resources:
    """What pods get of a node, as it says itself."""
    there = obj(obj(node["status"])["allocatable"])
    cpu, memory, gpus = (
        cpu_millis(there["cpu"]),
        memory_mib(there["memory"]),
        resources.count(there.get(GPU_RESOURCE)),
    )
    assert isinstance(cpu, int), f"a node says how many CPUs it has: {there}"
    assert isinstance(memory, int), f"and how much memory: {there}"
    return Resources(cpu_millis=cpu, memory_mib=memory, gpus=gpus if isinstance(gpus, int) else 0)


def _spec() -> Json:
    nodes: Json = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["nodes"]}
    machines = json.dumps({each.name: _capacity(each) for each in machine_catalogue("local").values()})
    patch = f'[JSONPatch{{op: "add", path: "/status/capacity", value: {machines}[object.metadata.labels["{INSTANCE_TYPE}"]]}}]'
    return {
        "failurePolicy": "Fail",
        "reinvocationPolicy": "Never",
        "matchConstraints": {"resourceRules": [nodes]},
        "matchConditions": [
            {"name": "bought", "expression": f'"{_POOL}" in object.metadata.?labels.orValue({{}})'}
        ],
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": patch}}],
    }


def _capacity(machine: Machine) -> Json:
    gpus = {GPU_RESOURCE: str(machine.gpus)} if machine.gpus else {}
    return {
        "cpu": str(machine.vcpus),
        "memory": f"{machine.memory_mib}Mi",
        "ephemeral-storage": "100Gi",
        "pods": "110",
        **gpus,
    }


def _is_whole(client: KubeClient) -> bool:
    node: Json = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "asks", "labels": {_POOL: "asks", INSTANCE_TYPE: "p4d.24xlarge"}},
    }
    seen = client.apply(node, field_manager="tests", dry_run=True)
    return obj(obj(seen.get("status")).get("capacity")).get(GPU_RESOURCE) == "8"


#: Karpenter's settings. Each plan takes all pods that wait: with the usual second, there is one for every few NodePools
#: that get ready.
BATCHES: Final[Json] = {"batchIdleDuration": "5s", "batchMaxDuration": "40s"}

_SECONDS: Final = 240.0
# So many plans in a row that each buy for a pool: no gang that is drawn needs as many.
_ENDLESS: Final = 6
_KARPENTER: Final = "karpenter.sh/v1"

#: A pool apart, whose pods show that a plan was made: a plan is made for all pods that wait.
_CONTROL: Final = TriedTier(
    name="control", machines=("m7i.large",), capacity=CapacityType.ON_DEMAND, max_nodes=20
)


@dataclass(frozen=True, kw_only=True)
class Trial:
    """A job on one of its tiers. `bound`: how many of its pods came onto nodes of the pool; `said`: why no more."""

    job: TriedJob
    tier: TriedTier
    bound: int
    said: str = ""

    @property
    def is_whole(self) -> bool:
        """Whether the whole gang had nodes at once."""
        return self.bound == self.job.shape.pods


def try_out(client: KubeClient, jobs: Sequence[TriedJob]) -> tuple[Trial, ...]:
    """Try every job on each of its tiers, all at once, until Karpenter has no more to give."""
    asked = [(job, tier) for job in jobs for tier in job.tiers]
    _make_volumes(client, [each for job, tier in asked for each in job.volume_objects(tier)])
    _all_at_once(client.create, [job.gang(tier) for job, tier in asked])
    everybody = sum(job.shape.pods for job, _ in asked)
    client.wait_list(
        "v1",
        "Pod",
        label_selector="tried",
        timeout_seconds=_SECONDS,
        condition=lambda pods: len(pods) == everybody,
        what=f"{everybody} pods wait",
    )
    _all_at_once(
        client.create,
        [_node_class(), *(made for _, tier in asked for made in tier.node_pools), *_CONTROL.node_pools],
    )
    client.wait_list(
        _KARPENTER,
        "NodePool",
        timeout_seconds=_SECONDS,
        condition=lambda pools: all(is_ready(pool) for pool in pools),
        what="every pool is ready",
    )
    _settle(client)
    for job, tier in asked:
        _wait_until_placed(client, job, tier)
    # Karpenter may go on to make nodes that the scheduler does not use for pods of open NodePools, and refuses none of them.
    said = _refusals(
        client,
        [(job, tier) for job, tier in asked if not tier.is_open and _bound(client, tier) < job.shape.pods],
    )
    return tuple(
        Trial(job=job, tier=tier, bound=_bound(client, tier), said=said.get(tier.name, ""))
        for job, tier in asked
    )


def _make_volumes(client: KubeClient, made: Sequence[Json]) -> None:
    """Create volumes and their claims; Karpenter makes no node for pods whose claims are not bound."""
    _all_at_once(client.create, made)
    client.wait_list(
        "v1",
        "PersistentVolumeClaim",
        timeout_seconds=_SECONDS,
        condition=lambda claims: (
            2 * len(claims) == len(made)
            and all(obj(each["status"]).get("phase") == "Bound" for each in claims)
        ),
        what="every claim is bound",
    )


def _settle(client: KubeClient) -> None:
    """Wait until Karpenter has planned for every pod that waits, with every machine there, and bought no other.

    For a pod that the scheduler refuses on nodes that Karpenter thinks fit, it buys another with every plan: such a pool does
    not settle, and its pods have had their chance.
    """
    before: Mapping[str, set[str]] = {}
    grown: Mapping[str, int] = {}
    for number in count():
        _wait_for_plan(client, f"control-{number}")
        bought = _wait_for_machines(client)
        grown = {
            pool: grown.get(pool, 0) + 1 for pool in bought if bought[pool] - before.get(pool, set[str]())
        }
        if all(times >= _ENDLESS for times in grown.values()):
            return
        before = bought


def _wait_for_plan(client: KubeClient, name: str) -> None:
    """Wait until a pod that is made now has got a node: a machine of its own, so that a plan is needed."""
    client.create(_control_pod(name))
    client.wait_for(
        "v1",
        "Pod",
        name,
        namespace=ELSEWHERE,
        timeout_seconds=_SECONDS,
        condition=lambda pod: pod is not None and _is_bound(pod),
        what=f"Karpenter makes a plan for {name}",
    )


def _wait_for_machines(client: KubeClient) -> Mapping[str, set[str]]:
    """Wait until every machine takes pods; return the names of machines by their pool."""
    names: dict[str, set[str]] = {}
    for claim in client.list(_KARPENTER, "NodeClaim"):
        if not _is_control(claim):
            names.setdefault(_pool_of(claim), set()).add(name_of(claim))
    client.wait_list(
        _KARPENTER,
        "NodeClaim",
        timeout_seconds=_SECONDS,
        condition=lambda found: all(_takes_pods(each) for each in found),
        what="every machine takes pods",
    )
    return names


def _wait_until_placed(client: KubeClient, job: TriedJob, tier: TriedTier) -> None:
    """Wait until the scheduler has placed the gang, or as much of it as the pool's nodes have room for."""
    # Karpenter may buy a node whose label has a value that the scheduler does not accept.
    nodes = [
        node
        for node in client.list("v1", "Node", label_selector=f"{POOL}={tier.name}")
        if _may_take(node, job)
    ]
    rooms = {name_of(node): allocatable(node) for node in nodes}
    zone_of = {name_of(node): str(labels_of(node).get(ZONE)) for node in nodes}

    def is_placed(pods: list[Json]) -> bool:
        there = Counter(str(obj(pod["spec"])["nodeName"]) for pod in pods if _is_bound(pod))
        used = {zone_of.get(node) for node in there} if job.shape.same_placement else set[str | None]()
        return there.total() == job.shape.pods or not any(
            min(job.shape.requests.times_in(room), 1 if job.shape.one_per_node else job.shape.pods)
            > there[node]
            for node, room in rooms.items()
            if not used or zone_of[node] in used
        )

    client.wait_list(
        "v1",
        "Pod",
        label_selector=f"tried={tier.name}",
        timeout_seconds=_SECONDS,
        condition=is_placed,
        what=f"the scheduler places the pods of {tier.name} on the nodes that were bought for them",
    )


def _may_take(node: Json, job: TriedJob) -> bool:
    labels = {key: str(value) for key, value in labels_of(node).items()}
    terms = alternatives(job.shape)
    return not terms or any_holds(terms, {**labels, OTHERS: ABSENT}) is not False


def _refusals(client: KubeClient, asked: Iterable[tuple[TriedJob, TriedTier]]) -> dict[str, str]:
    """What Karpenter says of one more pod of each gang that is not whole, by tier.

    It says it once of a pod, and of those that wait it may have done so before it knew the pool.
    """
    asking = {f"{tier.name}-asks": (job, tier) for job, tier in asked}
    _all_at_once(client.create, [job.pod(tier, name) for name, (job, tier) in asking.items()])
    told: dict[str, str] = {}

    def all_told(events: list[Json]) -> bool:
        told.update({name: said for event in events for name, said in _refusal(event)})
        return asking.keys() <= told.keys()

    client.wait_list(
        "v1",
        "Event",
        timeout_seconds=_SECONDS,
        condition=all_told,
        what="Karpenter refuses one more pod of each gang that is not whole",
    )
    return {tier.name: told[name] for name, (_, tier) in asking.items()}


def _refusal(event: Json) -> Iterable[tuple[str, str]]:
    source = obj(event.get("source")).get("component") or event.get("reportingComponent")
    if (event.get("reason"), source) == ("FailedScheduling", "karpenter"):
        yield str(obj(event["involvedObject"])["name"]), str(event.get("message"))


def _bound(client: KubeClient, tier: TriedTier) -> int:
    """How many pods of the gang are on nodes, which are the pool's own."""
    found = [pod for pod in client.list("v1", "Pod", label_selector=f"tried={tier.name}") if _is_bound(pod)]
    nodes = {name_of(node) for node in client.list("v1", "Node", label_selector=f"{POOL}={tier.name}")}
    assert all(obj(pod["spec"])["nodeName"] in nodes for pod in found), f"{tier.name} has nodes of its own"
    return len(found)


def _all_at_once(make: Callable[[Json], Json], manifests: Sequence[Json]) -> None:
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(make, manifests))


def _is_bound(pod: Json) -> bool:
    return bool(obj(pod["spec"]).get("nodeName")) and "deletionTimestamp" not in obj(pod["metadata"])


def _takes_pods(claim: Json) -> bool:
    return condition_of(claim, "Initialized").get("status") == "True"


def _is_control(claim: Json) -> bool:
    return _pool_of(claim) == _CONTROL.name


def _pool_of(claim: Json) -> str:
    return str(labels_of(claim).get(_POOL))


def _node_class() -> Json:
    return {"apiVersion": KWOK.api_version, "kind": KWOK.kind, "metadata": {"name": NODE_CLASS}, "spec": {}}


def _control_pod(name: str) -> Json:
    """A pod that fills one machine of the control pool.

    Karpenter plans for pods in the order of their CPUs, this one last, and breaks a plan off after a minute: on a busy machine
    a pod with more CPUs would be served by a plan that did not reach all others.
    """
    requests: Json = {"cpu": "1m", "memory": "5Gi"}
    container: Json = {"name": "train", "image": "train", "resources": {"requests": requests}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": ELSEWHERE},
        "spec": {"nodeSelector": {POOL: _CONTROL.name}, "containers": [container]},
    }
