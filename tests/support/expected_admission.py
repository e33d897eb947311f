"""What admission must decide about JobSets on a ladder, stated without CEL, and the objects that it reads."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from holdfast.components.admission.job_validation import LONGEST_MESSAGE, MOST_SENTENCES, job_validations
from holdfast.components.admission.rules import NodeSelection
from holdfast.components.fallback_policy.ladder import ladder_spec
from holdfast.policies.program.jobs.jobs import declared_jobs
from holdfast.scheduling.json import UNKNOWN, Json
from holdfast.scheduling.labels import CAPACITY_TYPE, EFA_RESOURCE, GPU_RESOURCE, POOL
from holdfast.scheduling.ladder import Ladder
from holdfast.scheduling.machines import Machine
from holdfast.scheduling.pools import Pool, PoolSummary, summarize_pool
from holdfast.scheduling.quantities import parse_quantity
from holdfast.scheduling.reachability import messages
from holdfast.scheduling.reachability.affinity import Requirement
from holdfast.scheduling.reachability.checks import Failed
from holdfast.scheduling.reachability.facts import AddedToleration, Limits, TierFacts
from holdfast.scheduling.reachability.facts import PoolFacts as DeclaredFacts
from holdfast.scheduling.reachability.label_values import LabelValues
from holdfast.scheduling.reachability.machine_capacity import Provisioner, listed_label_values, non_dominated
from holdfast.scheduling.reachability.shape import MOST_REQUESTED, Resources, Shape, is_in_bytes
from holdfast.scheduling.reachability.together import check_together
from holdfast.scheduling.reachability.walk import Outcome, check_tier, walk_together
from holdfast.scheduling.taints import GPU, Toleration
from tests.support.builders.program_jobs import JOB_SET, declared
from tests.support.builders.training_jobs import POOLS, RULES, ladder
from tests.support.json_objects import obj, objects
from tests.support.strategies.admitted_jobs import DEVICES

_API_VERSION: Final = "admissionregistration.k8s.io/v1"


def validation_objects(capacity: Sequence[NodeSelection], claims: Sequence[str] = ()) -> list[Json]:
    """The policies that judge jobs and their bindings, on a cluster whose pods are under the usual rules."""
    return [
        {"apiVersion": _API_VERSION, "kind": kind, "metadata": {"name": each.name}, "spec": spec}
        for each in job_validations(RULES, capacity, claims)
        for kind, spec in (
            ("ValidatingAdmissionPolicy", each.policy),
            ("ValidatingAdmissionPolicyBinding", each.binding),
        )
    ]


def facts_of(pool: Pool, *machines: Machine, labels: Mapping[str, str] | None = None) -> PoolSummary:
    """What is known of a pool of these machines."""
    return summarize_pool(pool, machines, pool.taints, labels, provisioner=Provisioner.LOCAL)


def ladder_with(known: Mapping[str, PoolSummary], written: Ladder, namespace: str) -> Json:
    """The ladder of a namespace with the facts of its pools."""
    return {**ladder(namespace=namespace), "spec": ladder_spec(written, known)}


def shapes_of(jobset: Json) -> tuple[Shape, ...]:
    """The shapes of a JobSet all of whose jobs follow, with those that end before they begin."""
    ended: dict[str, frozenset[str]] = {}
    items = objects(obj(jobset["spec"])["replicatedJobs"])
    for item in items:
        waits = {str(each["name"]): each["status"] for each in objects(item.get("dependsOn"))}
        direct = {name for name, status in waits.items() if status == "Complete"}
        ended[str(item["name"])] = frozenset(direct).union(*(ended[name] for name in waits))
    return tuple(
        replace(_shape(str(item["name"]), item), after=ended[str(item["name"])], one_per_node=apart)
        for item, apart in zip(items, _one_per_node(jobset), strict=True)
    )


def _one_per_node(jobset: Json) -> Iterator[bool]:
    """Whether no two pods of a template share a node, as the policy pack reads it."""
    (job,) = declared_jobs([declared(JOB_SET, jobset)])
    for each in job.all_templates:
        shape = each.shape
        yield shape is not UNKNOWN and shape.one_per_node


def _shape(name: str, item: Json) -> Shape:
    job = obj(obj(item["template"])["spec"])
    pod = obj(obj(job["template"])["spec"])
    # Admission replaces the capacity type by the pool of the tier.
    selector = {
        key: str(value)
        for key, value in obj(pod.get("nodeSelector")).items()
        if key not in {POOL, CAPACITY_TYPE}
    }
    required = obj(
        obj(obj(pod.get("affinity")).get("nodeAffinity")).get(
            "requiredDuringSchedulingIgnoredDuringExecution"
        )
    )
    return Shape(
        name=name,
        pods=int(str(item.get("replicas", 1))) * int(str(job.get("parallelism", 1))),
        requests=_requests(pod),
        selector=selector,
        affinity=tuple(
            tuple(_requirement(each) for each in objects(term.get("matchExpressions")))
            for term in objects(required.get("nodeSelectorTerms"))
        ),
        tolerations=tuple(_toleration(each) for each in objects(pod.get("tolerations"))),
    )


def _requirement(expression: Json) -> Requirement:
    values = expression.get("values", ())
    return Requirement(
        key=str(expression["key"]),
        operator=str(expression["operator"]),
        values=tuple(str(value) for value in values) if isinstance(values, list | tuple) else (),
    )


def _toleration(written: Json) -> Toleration:
    exists = written.get("operator") == "Exists"
    return Toleration(
        key=str(written.get("key", "")),
        value=None if exists else str(written.get("value", "")),
        effect=str(written.get("effect", "")),
    )


def _requests(pod: Json) -> Resources:
    asked = [obj(obj(each.get("resources")).get("requests")) for each in objects(pod["containers"])]

    def sum_of(resource: str, unit: int) -> int:
        return math.ceil(sum(parse_quantity(each.get(resource, "0")) for each in asked) * unit)

    devices = {
        name: math.ceil(sum_of(name, 1) / (2**20 if is_in_bytes(name) else 1))
        for name in {*DEVICES} - {EFA_RESOURCE}
    }
    return Resources(
        cpu_millis=min(sum_of("cpu", 1000), MOST_REQUESTED),
        memory_mib=min(math.ceil(sum_of("memory", 1) / 2**20), MOST_REQUESTED),
        gpus=sum_of(GPU_RESOURCE, 1),
        efa=sum_of(EFA_RESOURCE, 1),
        devices={name: min(amount, MOST_REQUESTED) for name, amount in devices.items() if amount},
    )


def tiers_of(written: Ladder, known: Mapping[str, PoolSummary]) -> tuple[TierFacts, ...]:
    """The tiers of a ladder as the API server sees them; of a pool without facts nothing is known."""
    return tuple(
        TierFacts(
            number=number,
            pool=tier.pool,
            max_failures=tier.max_failures,
            has_timeout=tier.procurement_timeout is not None,
            node_pools=(_declared(tier.pool, known[tier.pool]),)
            if tier.pool in known and not tier.cluster
            else (),
            may_be_external=tier.pool not in known,
            cluster=tier.cluster,
        )
        for number, tier in enumerate(written.tiers, start=1)
    )


def _declared(name: str, facts: PoolSummary) -> DeclaredFacts:
    names = {pool.name: pool for pool in POOLS}
    by_name = names[name].taints if name in names else ()
    return DeclaredFacts(
        name=name,
        title=f"pool {name}",
        capacity_types=frozenset({facts.capacity.value}),
        labels={
            **facts.labels,
            **{
                key: LabelValues(values=frozenset(values))
                for key, values in listed_label_values(facts.machine_capacities, facts.zones).items()
            },
        },
        taints=facts.taints,
        # A FallbackPolicy does not list which labels follow from which machine type.
        machines=tuple(replace(each, labels={}) for each in non_dominated(facts.machine_capacities)),
        limits=Limits(nodes=facts.max_nodes),
        added_tolerations=(
            *(AddedToleration(toleration=Toleration.of(taint)) for taint in by_name),
            AddedToleration(toleration=Toleration.of(GPU), for_gpu_pods=True),
        ),
    )


def refusal_of(jobset: Json, tiers: Sequence[TierFacts]) -> str | None:
    """In which words a JobSet that follows from the first tier is refused; None where it is let in."""
    shapes = shapes_of(jobset)
    found = walk_together(shapes, tiers)
    if found.outcome not in {Outcome.STUCK, Outcome.FALLS_OFF}:
        return None
    message = " ".join([*_sentences(shapes, found.steps[-1].tier, tiers)][:MOST_SENTENCES])
    return message if len(message) <= LONGEST_MESSAGE else f"{message[:LONGEST_MESSAGE]}…"


def _sentences(shapes: Sequence[Shape], tier: TierFacts, tiers: Sequence[TierFacts]) -> Iterator[str]:
    is_last = tier is tiers[-1]
    where = messages.TIER.format(number=tier.number, pool=tier.pool)
    found = [(shape.title, [*check_tier(shape, tier, is_last=is_last)]) for shape in shapes]
    found.append((messages.THE_JOB, [*check_together(shapes, tier.node_pools[0])]))
    for who, results in found:
        broken = [f"{each.reason}. {each.fix}" for each in results if isinstance(each, Failed)]
        if broken:
            why = " ".join(broken if is_last else [*broken, messages.NO_WAY_PAST])
            yield messages.CANNOT_FALL_BACK.format(who=who, where=where, why=why)
