"""Reads which tolerations the program's own admission adds to pods that select a pool.

A MutatingAdmissionPolicy is CEL, which is not evaluated here: its annotation contains the rule that it was made from.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, cast

from pulumi_holdfast.ladder.json import UNKNOWN, Unknown
from pulumi_holdfast.ladder.labels import GPU_RESOURCE, POOL, TOLERATES
from pulumi_holdfast.ladder.reachability.facts import AddedToleration
from pulumi_holdfast.ladder.reachability.node_labels import Provisioner
from pulumi_holdfast.ladder.taints import Taint, Toleration
from pulumi_holdfast.program.pools.pool import PoolLabel, taint_of
from pulumi_holdfast.program.resources import StackResource, Value, at, is_list, items_at, once, text_at

_GROUP: Final = "kubernetes:admissionregistration.k8s.io/"
_POLICY: Final = ":MutatingAdmissionPolicy"
_EXTENDED_RESOURCE: Final = AddedToleration(toleration=Toleration(key=GPU_RESOURCE), for_gpu_pods=True)


@dataclass(frozen=True, kw_only=True)
class _AdmissionRule:
    """The toleration that a policy adds: to pods that select one of `pools`, or to all that request GPUs."""

    toleration: Toleration
    pools: frozenset[str]
    for_gpu_pods: bool


def is_admission_policy(type_token: str) -> bool:
    """Whether the type is a MutatingAdmissionPolicy of any API version."""
    return type_token.startswith(_GROUP) and type_token.endswith(_POLICY)


def tolerations_for(
    pool: PoolLabel, provisioner: Provisioner, resources: Sequence[StackResource]
) -> tuple[AddedToleration, ...] | Unknown:
    """Return the tolerations that the program's admission, and the cloud, add to pods in training namespaces that select a pool."""
    rules = _rules(resources)
    if rules is UNKNOWN:
        return UNKNOWN
    by_cloud = (_EXTENDED_RESOURCE,) if provisioner.tolerates_gpu_taint else ()
    by_program = (
        AddedToleration(toleration=rule.toleration, for_gpu_pods=pool not in rule.pools)
        for rule in rules
        if pool in rule.pools or rule.for_gpu_pods
    )
    return (*by_program, *by_cloud)


@once
def _rules(resources: Sequence[StackResource]) -> tuple[_AdmissionRule, ...] | Unknown:
    """Return the rules in the annotations of the program's policies."""
    policies = (each for each in resources if is_admission_policy(each.type))
    annotations = [text_at(each.props, "metadata", "annotations", TOLERATES) for each in policies]
    if UNKNOWN in annotations:
        return UNKNOWN
    rules = (_rule(_parsed(each)) for each in annotations if isinstance(each, str))
    return tuple(rule for rule in rules if rule is not None)


def _parsed(annotation: str) -> Value:
    try:
        return cast("Value", json.loads(annotation))
    except ValueError:
        return None


def _rule(given: Value) -> _AdmissionRule | None:
    """Return a rule; None if it names no taint."""
    taint = taint_of(at(given, "taint"))
    if not isinstance(taint, Taint):
        return None
    selections = [each for each in _listed(given, "selections") if at(each, "key") == POOL]
    return _AdmissionRule(
        toleration=Toleration.of(taint),
        pools=frozenset(
            pool for each in selections for pool in _listed(each, "values") if isinstance(pool, str)
        ),
        for_gpu_pods=GPU_RESOURCE in _listed(given, "resources"),
    )


def _listed(value: Value, key: str) -> Sequence[Value]:
    values = items_at(value, key)
    return values if is_list(values) else ()
