"""Jobs that are tried out: a shape on the pools of its ladder, as the proof sees it and as a cluster is given it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from holdfast.components.admission.pod_admission import policy_annotations, policy_name
from holdfast.components.admission.rules import karpenter_rules
from holdfast.components.pools.karpenter import KWOK, node_pool_spec
from holdfast.policies.declared.reading import declared_pools
from holdfast.scheduling.labels import GPU_RESOURCE, POOL, ZONE
from holdfast.scheduling.machines import machine_catalogue
from holdfast.scheduling.pools import Pool
from holdfast.scheduling.reachability.checks import Failed, check_pool
from holdfast.scheduling.reachability.facts import TierFacts
from holdfast.scheduling.reachability.walk import Walk, walk
from tests.support.json_objects import obj, objects
from tests.support.stack_resources import NODE_POOL_TYPE, resource
from tests.support.training_pods import expression, required_affinity

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holdfast.components.admission.rules import TolerationRule
    from holdfast.policies.findings import StackResource
    from holdfast.policies.known_values import Value
    from holdfast.scheduling.json import Json
    from holdfast.scheduling.labels import CapacityType
    from holdfast.scheduling.reachability.checks import CheckResult
    from holdfast.scheduling.reachability.facts import PoolFacts
    from holdfast.scheduling.reachability.shape import Shape
    from holdfast.scheduling.taints import Taint, Toleration

#: Where admission adds to what pods tolerate, and where it does not.
TRAINING: Final = "tried-training"
ELSEWHERE: Final = "tried-elsewhere"

#: The one node class of all pools.
NODE_CLASS: Final = "tried"

#: A pod can be bound, and evicted at once, while its node is just losing the taint that new nodes have.
_NEW: Final[Json] = {"key": "karpenter.sh/unregistered", "operator": "Exists"}

_ADMISSION: Final = "kubernetes:admissionregistration.k8s.io/v1:MutatingAdmissionPolicy"


@dataclass(frozen=True, kw_only=True)
class TriedTier:
    """A tier and the pool that it names: one of ours, with what a hand may have written over it.

    `limits`, `requirements`, `labels` and `taints` are such; limits of None are those which the component writes.
    """

    name: str
    machines: tuple[str, ...]
    capacity: CapacityType
    max_nodes: int
    zones: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    taints: tuple[Taint, ...] = ()
    requirements: tuple[Json, ...] = ()
    limits: Json | None = None
    max_failures: int | None = None
    has_timeout: bool = False

    @property
    def pool(self) -> Pool:
        """The pool as the configuration has it, and as admission's rules are made of it."""
        gpus = any(machine_catalogue("local")[each].gpus for each in self.machines)
        return Pool(name=self.name, capacity=self.capacity, has_gpus=gpus, max_nodes=self.max_nodes)

    @property
    def node_pool(self) -> Json:
        """The NodePool."""
        machines = [machine_catalogue("local")[each] for each in self.machines]
        spec = node_pool_spec(self.pool, machines, KWOK, NODE_CLASS, 1, zones=self.zones)
        template = obj(spec["template"])
        labels, inner = obj(obj(template["metadata"])["labels"]), obj(template["spec"])
        written: Json = {
            **inner,
            "taints": [*objects(inner["taints"]), *map(_as_written, self.taints)],
            "requirements": [*objects(inner["requirements"]), *self.requirements],
        }
        return {
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodePool",
            "metadata": {"name": self.name},
            "spec": {
                **spec,
                "limits": spec["limits"] if self.limits is None else self.limits,
                "template": {"metadata": {"labels": {**labels, **self.labels}}, "spec": written},
            },
        }


@dataclass(frozen=True, kw_only=True)
class TriedJob:
    """A job and its ladder; `is_admitted`: its pods are made in a training namespace."""

    name: str
    shape: Shape
    tiers: tuple[TriedTier, ...]
    is_admitted: bool = True

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

    def _spec(self, tier: TriedTier) -> Json:
        requests = self.shape.requests
        gpus = {GPU_RESOURCE: str(requests.gpus)} if requests.gpus else {}
        amounts: Json = {"cpu": f"{requests.cpu_millis}m", "memory": f"{requests.memory_mib}Mi", **gpus}
        resources: Json = {"requests": amounts, "limits": gpus}
        return {
            "nodeSelector": {**self.shape.selector, POOL: tier.name},
            "affinity": _affinity(self.shape),
            "tolerations": [_NEW, *(_written(each) for each in self.shape.tolerations)],
            "containers": [{"name": "train", "image": "train", "resources": resources}],
        }

    def facts(self, tier: TriedTier, rules: Sequence[TolerationRule]) -> PoolFacts:
        """What is read of a tier's NodePool in a program whose admission has these rules."""
        policies = [_policy(rule) for rule in rules] if self.is_admitted else []
        (read,) = declared_pools([resource(NODE_POOL_TYPE, tier.name, tier.node_pool), *policies])
        return read.facts

    def results(self, tier: TriedTier, rules: Sequence[TolerationRule]) -> tuple[CheckResult, ...]:
        """What the proof has against the tier."""
        return check_pool(self.shape, self.facts(tier, rules))

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
                    node_pools=(self.facts(tier, rules),),
                )
                for number, tier in enumerate(self.tiers, start=1)
            ],
        )


def rules_of(jobs: Sequence[TriedJob]) -> tuple[TolerationRule, ...]:
    """The admission of a program that has all their pools."""
    return karpenter_rules(tier.pool for job in jobs for tier in job.tiers)


def takes(found: Sequence[CheckResult]) -> bool | None:
    """Whether a tier of which this was found takes the job; None where it hangs on something."""
    if any(isinstance(doubt, Failed) for doubt in found):
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


def _as_written(taint: Taint) -> Json:
    """A NodePool refuses the empty value."""
    return {key: value for key, value in taint.as_taint().items() if value}


def _written(toleration: Toleration) -> Json:
    value: Json = {"operator": "Exists"} if toleration.value is None else {"value": toleration.value}
    return {"key": toleration.key, "effect": toleration.effect, **value}
