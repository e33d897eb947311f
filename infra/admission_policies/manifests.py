"""The admission policies of any program, and its FallbackPolicies with the pools' facts that the policies read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from holdfast.components.admission.job_admission import capacity_selections, job_manifests
from holdfast.components.admission.job_validation import job_validations
from holdfast.components.admission.rules import (
    AdmissionRule,
    NodeSelection,
    TolerationRule,
    aks_rules,
    gke_rules,
    karpenter_rules,
)
from holdfast.components.fallback_policy.definition import API_VERSION, DEFINITION, KIND, definition_spec
from holdfast.infra.admission_policies.facts import tier_facts
from holdfast.policies.program.namespaces.ladder_pools import LadderPools
from holdfast.policies.program.namespaces.ladders import DeclaredLadder, ladders_of
from holdfast.policies.program.pools.all_pools import DeclaredPool
from holdfast.policies.program.resources import StackResource, Value, is_list, is_object
from holdfast.policies.rule import PACK_DEFAULTS
from holdfast.scheduling.errors import ConfigError
from holdfast.scheduling.json import UNKNOWN, Json, JsonValue
from holdfast.scheduling.labels import GPU_RESOURCE, POOL
from holdfast.scheduling.reachability.node_labels import Provisioner

_ADMISSION: Final = "admissionregistration.k8s.io/v1"


def admission_manifests(resources: Sequence[StackResource], *, warn: bool = False) -> list[Json]:
    """Return the manifests in the order in which to apply them; `warn`: jobs get warnings and are never rejected.

    Raises ConfigError if there is no FallbackPolicy, or one has a value that is not known.
    """
    ladders = ladders_of(resources)
    if not ladders:
        raise _problem("FallbackPolicy", "none", "one FallbackPolicy or more among the files")
    named = {pool.resource.urn: pool for each in ladders for pool in _pools(each, resources)}
    pools = tuple(named.values())
    return [
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": DEFINITION},
            "spec": definition_spec(),
        },
        *_policies(pools, warn=warn),
        *(_with_facts(each, resources) for each in ladders),
    ]


def _pools(ladder: DeclaredLadder, resources: Sequence[StackResource]) -> Iterator[DeclaredPool]:
    near = LadderPools.of(ladder, resources, PACK_DEFAULTS)
    for name in ladder.pools:
        yield from near.named(name)


def _with_facts(ladder: DeclaredLadder, resources: Sequence[StackResource]) -> Json:
    """Return the FallbackPolicy with the facts of its pools; a tier whose pool is not found keeps its facts."""
    near = LadderPools.of(ladder, resources, PACK_DEFAULTS)
    props = ladder.resource.props
    spec = _known(props.get("spec"), f"{ladder.title}: spec")
    tiers: list[JsonValue] = []
    for tier in items if isinstance(items := spec.get("tiers"), list) else ():
        written = tier if isinstance(tier, dict) else {}
        # A pool of another cluster may have the name of one here.
        named = () if written.get("cluster") else near.named(str(written.get("pool")))
        facts = tier_facts([pool.facts for pool in named])
        tiers.append({**written, **({} if facts is None else {"facts": facts})})
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": _known({"name": ladder.name, "namespace": ladder.namespace}, f"{ladder.title}: metadata"),
        "spec": {**spec, "tiers": tiers},
    }


def _known(value: Value, field: str) -> dict[str, JsonValue]:
    """Return an object all of whose values are known."""
    found = _json(value, field)
    return found if isinstance(found, dict) else {}


def _json(value: Value, field: str) -> JsonValue:
    if value is UNKNOWN:
        raise _problem(field, "a value that only the update knows", "values that are known")
    if is_object(value):
        return {key: _json(each, f"{field}.{key}") for key, each in value.items()}
    if is_list(value):
        return [_json(each, f"{field}[{index}]") for index, each in enumerate(value)]
    # A state has only floats.
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, str | bool | int | float) else None


def _problem(field: str, value: str, allowed: str) -> ConfigError:
    fix = "Add the manifest of the FallbackPolicy, or export the stack after an update."
    return ConfigError.of(field=field, value=value, allowed=allowed, fix=fix)


def _policies(pools: Sequence[DeclaredPool], *, warn: bool) -> Iterator[Json]:
    rules, capacity = _rules(pools), _capacity(pools)
    for each in job_manifests(capacity):
        yield from _objects("MutatingAdmissionPolicy", each.name, each.policy, each.binding)
    for each in job_validations(rules, capacity):
        binding: Json = {**each.binding, "validationActions": ["Warn"]} if warn else each.binding
        yield from _objects("ValidatingAdmissionPolicy", each.name, each.policy, binding)


def _objects(kind: str, name: str, policy: Json, binding: Json) -> Iterator[Json]:
    for each, spec in ((kind, policy), (f"{kind}Binding", binding)):
        yield {"apiVersion": _ADMISSION, "kind": each, "metadata": {"name": name}, "spec": spec}


def _rules(pools: Sequence[DeclaredPool]) -> list[TolerationRule]:
    """Return the tolerations that the program's own admission, and the cloud, add to pods that select these pools."""
    found: list[TolerationRule] = []
    for pool in pools:
        if pool.facts.taints is UNKNOWN or pool.facts.added_tolerations is UNKNOWN:
            continue
        by_name = (NodeSelection(key=POOL, values=(pool.facts.name,)),)
        found += [
            TolerationRule(
                name="added",
                taint=taint,
                selections=() if each.for_gpu_pods else by_name,
                resources=(GPU_RESOURCE,) if each.for_gpu_pods else (),
            )
            for each in pool.facts.added_tolerations
            for taint in pool.facts.taints
            if each.selecting is None and each.toleration.tolerates(taint)
        ]
    return found


def _capacity(pools: Sequence[DeclaredPool]) -> tuple[NodeSelection, ...]:
    """Return the labels with which pods select spot on the clouds of these pools."""
    of_cloud: Mapping[Provisioner, Sequence[AdmissionRule]] = {
        Provisioner.GKE: gke_rules(()),
        Provisioner.AKS: aks_rules(()),
        Provisioner.NAP: aks_rules(()),
    }
    used = sorted({pool.provisioner for pool in pools}) or [Provisioner.EKS]
    rules = [rule for each in used for rule in of_cloud.get(each, karpenter_rules(()))]
    return capacity_selections(rules)
