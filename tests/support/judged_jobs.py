"""Jobs and ladders as the API server judges them, and the same judged in Python."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from holdfast.components.admission.job_validation import (
    LONGEST_MESSAGE,
    MOST_SENTENCES,
    job_validations,
)
from holdfast.components.fallback_policy.ladder import ladder_spec
from holdfast.scheduling.labels import GPU_RESOURCE, POOL
from holdfast.scheduling.pools import PoolSummary, summarize_pool
from holdfast.scheduling.quantities import parse_quantity
from holdfast.scheduling.reachability import messages
from holdfast.scheduling.reachability.affinity import Requirement
from holdfast.scheduling.reachability.checks import Failed, check_together
from holdfast.scheduling.reachability.facts import AddedToleration, Limits, TierFacts
from holdfast.scheduling.reachability.facts import PoolSummary as DeclaredFacts
from holdfast.scheduling.reachability.machine_capacity import Provisioner
from holdfast.scheduling.reachability.shape import Resources, Shape
from holdfast.scheduling.reachability.walk import Outcome, check_tier, walk_together
from holdfast.scheduling.taints import GPU, Toleration
from tests.support.job_objects import jobs_of, ladder
from tests.support.json_objects import obj, objects
from tests.support.training_pods import POOLS, RULES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from holdfast.components.admission.rules import NodeSelection
    from holdfast.scheduling.json import Json
    from holdfast.scheduling.ladder import Ladder
    from holdfast.scheduling.machines import Machine
    from holdfast.scheduling.pools import Pool

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
    """The shapes of a JobSet all of whose jobs follow."""
    return tuple(_shape(name, spec) for name, spec in jobs_of(jobset).items())


def _shape(name: str, job: Json) -> Shape:
    pod = obj(obj(job["template"])["spec"])
    selector = {key: str(value) for key, value in obj(pod.get("nodeSelector")).items() if key != POOL}
    required = obj(
        obj(obj(pod.get("affinity")).get("nodeAffinity")).get(
            "requiredDuringSchedulingIgnoredDuringExecution"
        )
    )
    return Shape(
        name=name,
        pods=int(str(job.get("parallelism", 1))),
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

    return Resources(
        cpu_millis=sum_of("cpu", 1000),
        memory_mib=math.ceil(sum_of("memory", 1) / 2**20),
        gpus=sum_of(GPU_RESOURCE, 1),
    )


def tiers_of(written: Ladder, known: Mapping[str, PoolSummary]) -> tuple[TierFacts, ...]:
    """The tiers of a ladder as the API server sees them; of a pool without facts nothing is known."""
    return tuple(
        TierFacts(
            number=number,
            pool=tier.pool,
            max_failures=tier.max_failures,
            has_timeout=tier.procurement_timeout is not None,
            node_pools=(_declared(tier.pool, known[tier.pool]),) if tier.pool in known else (),
            may_be_external=tier.pool not in known,
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
        labels=facts.labels,
        taints=facts.taints,
        machines=facts.machine_capacities,
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
        broken = [f"{doubt.reason}. {doubt.fix}" for doubt in results if isinstance(doubt, Failed)]
        if broken:
            why = " ".join(broken if is_last else [*broken, messages.NO_WAY_PAST])
            yield messages.CANNOT_FALL_BACK.format(who=who, where=where, why=why)
