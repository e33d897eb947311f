"""Jobs and tiers whose reachability the rules predict and a real cluster decides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal, TypeAlias, cast, get_args

from pulumi_holdfast.kubernetes.admission.pod_admission import policy_annotations, policy_name
from pulumi_holdfast.kubernetes.admission.rules import TolerationRule, karpenter_rules
from pulumi_holdfast.kubernetes.karpenter_pool import KWOK, node_pool_spec
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import GPU_RESOURCE, POOL, ZONE, CapacityType
from pulumi_holdfast.ladder.machines import machine_catalogue
from pulumi_holdfast.ladder.pools import Pool
from pulumi_holdfast.ladder.reachability.checks import CheckResult, Failed
from pulumi_holdfast.ladder.reachability.facts import PoolFacts, TierFacts
from pulumi_holdfast.ladder.reachability.shape import EPHEMERAL_STORAGE, Shape
from pulumi_holdfast.ladder.reachability.walk import Walk, check_tier, walk
from pulumi_holdfast.ladder.taints import Taint, Toleration
from pulumi_holdfast.program.jobs.pod_templates import PodTemplate
from pulumi_holdfast.program.pools.all_pools import declared_pools
from pulumi_holdfast.program.resources import StackResource, Value
from tests.support.builders.stack_resources import NODE_POOL_TYPE, resource
from tests.support.builders.training_jobs import expression, required_affinity
from tests.support.json_objects import obj, objects

#: Where admission adds to what pods tolerate, and where it does not.
TRAINING: Final = "tried-training"
ELSEWHERE: Final = "tried-elsewhere"

#: The one node class of all pools.
NODE_CLASS: Final = "tried"

#: A pod can be bound, and evicted at once, while its node is just losing the taint that new nodes have.
_NEW: Final[Json] = {"key": "karpenter.sh/unregistered", "operator": "Exists"}

#: The zones of each term of a volume's node affinity.
VolumeTerms: TypeAlias = tuple[tuple[str, ...], ...]

#: How the containers of a pod share its requests.
Containers: TypeAlias = Literal["one", "two", "sidecar", "init", "both"]
CONTAINERS: Final[tuple[Containers, ...]] = get_args(Containers)

_ADMISSION: Final = "kubernetes:admissionregistration.k8s.io/v1:MutatingAdmissionPolicy"


@dataclass(frozen=True, kw_only=True)
class TriedTier:
    """A tier and the pool that it names: one of ours, with what a hand may have written over it.

    `limits`, `requirements`, `labels` and `taints` are such; limits of None are those which the component writes.
    If
    `is_open`, its requirements are all there are. `beside` are more NodePools that have its label.
    """

    name: str
    machines: tuple[str, ...]
    capacity: CapacityType
    max_nodes: int
    zones: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    taints: tuple[Taint, ...] = ()
    requirements: tuple[Json, ...] = ()
    is_open: bool = False
    weight: int = 1
    beside: tuple[TriedTier, ...] = ()
    limits: Json | None = None
    max_failures: int | None = None
    has_timeout: bool = False

    @property
    def pool(self) -> Pool:
        """The pool as the configuration has it, and as admission's rules are made of it."""
        gpus = any(machine_catalogue("local")[each].gpus for each in self.machines)
        return Pool(name=self.name, capacity=self.capacity, has_gpus=gpus, max_nodes=self.max_nodes)

    @property
    def node_pools(self) -> tuple[Json, ...]:
        """The NodePools whose nodes have its label."""
        return (self.node_pool(self.name), *(each.node_pool(self.name) for each in self.beside))

    def node_pool(self, label: str) -> Json:
        """The NodePool, with this pool label."""
        machines = [machine_catalogue("local")[each] for each in self.machines]
        spec = node_pool_spec(self.pool, machines, KWOK, NODE_CLASS, self.weight, zones=self.zones)
        template = obj(spec["template"])
        labels, inner = obj(obj(template["metadata"])["labels"]), obj(template["spec"])
        written: Json = {
            **inner,
            "taints": [*objects(inner["taints"]), *map(_as_written, self.taints)],
            "requirements": [*(() if self.is_open else objects(inner["requirements"])), *self.requirements],
        }
        return {
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodePool",
            "metadata": {"name": self.name},
            "spec": {
                **spec,
                "limits": spec["limits"] if self.limits is None else self.limits,
                "template": {"metadata": {"labels": {**labels, POOL: label, **self.labels}}, "spec": written},
            },
        }


@dataclass(frozen=True, kw_only=True)
class TriedJob:
    """A job and its ladder; `is_admitted`: its pods are made in a training namespace.

    `containers` is how the containers of a pod share its requests; `volumes` are those that its pods mount. The shape is read
    from the pods, if `is_read`.
    """

    name: str
    shape: Shape
    tiers: tuple[TriedTier, ...]
    is_admitted: bool = True
    containers: Containers = "one"
    volumes: tuple[VolumeTerms, ...] = ()
    is_read: bool = False

    @property
    def namespace(self) -> str:
        """Where its pods are."""
        return TRAINING if self.is_admitted else ELSEWHERE

    def gang(self, tier: TriedTier) -> Json:
        """Its whole gang, as it asks for a tier."""
        labels = {"tried": tier.name}
        return {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": {"name": tier.name, "namespace": self.namespace},
            "spec": {
                "replicas": self.shape.pods,
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": self._spec(tier)},
            },
        }

    def pod(self, tier: TriedTier, name: str) -> Json:
        """One pod as those of the gang, and none of it."""
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": self.namespace},
            "spec": self._spec(tier),
        }

    def volume_objects(self, tier: TriedTier) -> tuple[Json, ...]:
        """The PersistentVolumes that its pods mount on a tier, and their claims."""
        return tuple(
            made
            for number, terms in enumerate(self.volumes)
            for made in _volume(f"{tier.name}-{number}", self.namespace, terms)
        )

    def _spec(self, tier: TriedTier) -> Json:
        inits, containers = self._containers()
        affinity: Json = {
            **_affinity(replace(self.shape, zones=None) if self.volumes else self.shape),
            **(_one_per_node(tier) if self.shape.one_per_node else {}),
            **(_in_one_zone(tier) if self.shape.same_placement else {}),
        }
        return {
            "nodeSelector": {**self.shape.selector, POOL: tier.name},
            "affinity": affinity,
            "tolerations": [_NEW, *(_written(each) for each in self.shape.tolerations)],
            **({"initContainers": inits} if inits else {}),
            "containers": containers,
            "volumes": [
                {"name": f"data-{number}", "persistentVolumeClaim": {"claimName": f"{tier.name}-{number}"}}
                for number in range(len(self.volumes))
            ],
        }

    def _containers(self) -> tuple[list[Json], list[Json]]:
        """Its init containers and containers, which together request what the shape does."""
        whole = self._resources()
        requests = obj(whole["requests"])
        cpu, memory = self.shape.requests.cpu_millis, self.shape.requests.memory_mib

        def part(name: str, of_cpu: int, of_memory: int) -> Json:
            amounts: Json = {"cpu": f"{of_cpu}m", "memory": f"{of_memory}Mi"}
            return {"name": name, "image": "train", "resources": {"requests": amounts}}

        def rest(of_cpu: int, of_memory: int) -> Json:
            amounts: Json = {**requests, "cpu": f"{of_cpu}m", "memory": f"{of_memory}Mi"}
            return {"name": "train", "image": "train", "resources": {**whole, "requests": amounts}}

        side: Json = {**part("proxy", cpu // 4, memory // 4), "restartPolicy": "Always"}
        match self.containers:
            case "sidecar":
                return [side], [rest(cpu - cpu // 4, memory - memory // 4)]
            case "init":
                return [part("fetch", cpu, memory)], [rest(cpu // 2, memory // 2)]
            case "both":
                fetch = part("fetch", cpu - cpu // 4, memory - memory // 4)
                return [side, fetch], [rest(cpu // 2, memory // 2)]
            case "two":
                return [], [rest(cpu - cpu // 3, memory - memory // 3), part("log", cpu // 3, memory // 3)]
            case _:
                return [], [rest(cpu, memory)]

    def _resources(self) -> Json:
        requests = self.shape.requests
        gpus = {GPU_RESOURCE: str(requests.gpus)} if requests.gpus else {}
        devices = {
            name: f"{amount}Mi" if name == EPHEMERAL_STORAGE else str(amount)
            for name, amount in requests.devices.items()
        }
        amounts: Json = {
            "cpu": f"{requests.cpu_millis}m",
            "memory": f"{requests.memory_mib}Mi",
            **gpus,
            **devices,
        }
        limited = {name: amount for name, amount in devices.items() if name != EPHEMERAL_STORAGE}
        return {"requests": amounts, "limits": {**gpus, **limited}}

    def judged(self, tier: TriedTier) -> Shape:
        """The shape that is judged: read from the pods as the policies read those of a program, where it is to be read."""
        if not self.is_read:
            return self.shape
        template = obj(obj(self.gang(tier)["spec"])["template"])
        read = PodTemplate(
            name=self.name,
            pods=self.shape.pods,
            template=cast("Value", template),
            labels={"tried": tier.name},
            zones=self.shape.zones,
        ).shape
        assert isinstance(read, Shape), "nothing of it is unknown"
        # The pods of these tests may select capacity by affinity.
        return replace(read, selector=self.shape.selector, affinity=self.shape.affinity)

    def facts(self, tier: TriedTier, rules: Sequence[TolerationRule]) -> tuple[PoolFacts, ...]:
        """What is read of a tier's NodePools in a program whose admission has these rules."""
        policies = [_policy(rule) for rule in rules] if self.is_admitted else []
        made = [
            resource(NODE_POOL_TYPE, f"{tier.name}-{number}", node_pool)
            for number, node_pool in enumerate(tier.node_pools)
        ]
        return tuple(read.facts for read in declared_pools([*made, *policies]))

    def results(self, tier: TriedTier, rules: Sequence[TolerationRule]) -> tuple[CheckResult, ...]:
        """What the proof has against the tier."""
        facts = TierFacts(number=1, pool=tier.name, node_pools=self.facts(tier, rules))
        return tuple(check_tier(self.judged(tier), facts, is_last=False))

    def walk(self, rules: Sequence[TolerationRule]) -> Walk:
        """The proof of the whole ladder."""
        return walk(
            self.shape,
            [
                TierFacts(
                    number=number,
                    pool=tier.name,
                    max_failures=tier.max_failures,
                    has_timeout=tier.has_timeout,
                    node_pools=self.facts(tier, rules),
                )
                for number, tier in enumerate(self.tiers, start=1)
            ],
        )


def rules_of(jobs: Sequence[TriedJob]) -> tuple[TolerationRule, ...]:
    """The admission of a program that has all their pools."""
    return karpenter_rules(tier.pool for job in jobs for tier in job.tiers)


def takes(found: Sequence[CheckResult]) -> bool | None:
    """Whether a tier of which this was found takes the job; None where it hangs on something."""
    if any(isinstance(each, Failed) for each in found):
        return False
    return None if found else True


def _policy(rule: TolerationRule) -> StackResource:
    annotations: Mapping[str, Value] = {**policy_annotations(rule)}
    return resource(_ADMISSION, policy_name(rule), {"metadata": {"annotations": annotations}})


def _affinity(shape: Shape) -> Json:
    """The required alternatives, each in one of the zones that a volume binds its pod to."""
    zones = [] if shape.zones is None else [expression(ZONE, "In", *sorted(shape.zones))]
    terms = [
        [*(expression(each.key, each.operator, *each.values) for each in term), *zones]
        for term in (shape.affinity or ((),))
    ]
    return required_affinity(*terms) if any(terms) else {}


def _volume(name: str, namespace: str, terms: VolumeTerms) -> tuple[Json, Json]:
    """A volume that can be mounted in the zones of each term, and the claim that is bound to it."""
    size: Json = {"storage": "1Gi"}
    shared = {"accessModes": ["ReadWriteMany"], "storageClassName": ""}
    volume: Json = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            **shared,
            "capacity": size,
            "claimRef": {"namespace": namespace, "name": name},
            "nfs": {"server": "files", "path": "/"},
            "nodeAffinity": {
                "required": {
                    "nodeSelectorTerms": [
                        {"matchExpressions": [expression(ZONE, "In", *zones)]} for zones in terms
                    ]
                }
            },
        },
    }
    claim: Json = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {**shared, "resources": {"requests": size}, "volumeName": name},
    }
    return volume, claim


def _in_one_zone(tier: TriedTier) -> Json:
    """All pods of the gang in one zone."""
    term: Json = {"labelSelector": {"matchLabels": {"tried": tier.name}}, "topologyKey": ZONE}
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def _one_per_node(tier: TriedTier) -> Json:
    """No two pods of the gang on one node."""
    term: Json = {
        "labelSelector": {"matchLabels": {"tried": tier.name}},
        "topologyKey": "kubernetes.io/hostname",
    }
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def _as_written(taint: Taint) -> Json:
    """A NodePool refuses the empty value."""
    return {key: value for key, value in taint.as_taint().items() if value}


def _written(toleration: Toleration) -> Json:
    value: Json = {"operator": "Exists"} if toleration.value is None else {"value": toleration.value}
    return {"key": toleration.key, "effect": toleration.effect, **value}
