"""Reads which tolerations the program's own admission adds to pods that select a pool.

A MutatingAdmissionPolicy is CEL, which is not evaluated here: its annotation contains the rule that it was made from.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, cast

from holdfast.policies.inputs.pool import taint_of
from holdfast.policies.resources import at, is_list, items_at, once, text_at
from holdfast.scheduling.json import UNKNOWN, Unknown
from holdfast.scheduling.labels import GPU_RESOURCE, POOL, TOLERATES
from holdfast.scheduling.reachability.facts import AddedToleration
from holdfast.scheduling.taints import Taint, Toleration

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holdfast.policies.resources import StackResource, Value

_GROUP: Final = "kubernetes:admissionregistration.k8s.io/"
_POLICY: Final = ":MutatingAdmissionPolicy"


def is_admission_policy(type_token: str) -> bool:
    """Whether the type is a MutatingAdmissionPolicy of any API version."""
    return type_token.startswith(_GROUP) and type_token.endswith(_POLICY)


def unreadable_tolerations(policy: StackResource) -> Iterator[str]:
    """Yield what is unreadable in the rule of a policy's annotation."""
    annotation = text_at(policy.props, "metadata", "annotations", TOLERATES)
    if isinstance(annotation, str) and not isinstance(taint_of(at(_parsed(annotation), "taint")), Taint):
        yield f"has an annotation {TOLERATES} that names no taint: it is taken to add no toleration."


def tolerations_for(
    pool: str | Unknown | None, resources: Sequence[StackResource]
) -> tuple[AddedToleration, ...] | Unknown:
    """Return the tolerations that the program's admission adds to pods in training namespaces that select a pool."""
    rules = _rules(resources)
    return UNKNOWN if rules is UNKNOWN else tuple(added for rule in rules for added in _added(rule, pool))


@once
def _rules(resources: Sequence[StackResource]) -> tuple[Value, ...] | Unknown:
    """Return the rules in the annotations of the program's policies."""
    policies = (each for each in resources if is_admission_policy(each.type))
    annotations = [text_at(each.props, "metadata", "annotations", TOLERATES) for each in policies]
    if UNKNOWN in annotations:
        return UNKNOWN
    return tuple(_parsed(each) for each in annotations if isinstance(each, str))


def _parsed(annotation: str) -> Value:
    try:
        return cast("Value", json.loads(annotation))
    except ValueError:
        return None


def _added(rule: Value, pool: str | Unknown | None) -> Iterator[AddedToleration]:
    taint = taint_of(at(rule, "taint"))
    if not isinstance(taint, Taint):
        return
    selections = items_at(rule, "selections")
    by_name = is_list(selections) and any(
        at(selection, "key") == POOL and pool in _values(selection) for selection in selections
    )
    resources = items_at(rule, "resources")
    by_gpus = is_list(resources) and GPU_RESOURCE in resources
    if by_name or by_gpus:
        yield AddedToleration(toleration=Toleration.of(taint), for_gpu_pods=not by_name)


def _values(selection: Value) -> Sequence[Value]:
    values = items_at(selection, "values")
    return values if is_list(values) else ()
