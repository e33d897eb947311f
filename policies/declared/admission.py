"""Which tolerations pods are given on their way to a pool: by the program's own admission, or by the cloud.

A MutatingAdmissionPolicy is CEL, which is not read here: the rule it was made of stands in its annotation.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, cast

from holdfast.policies.known_values import UNKNOWN, Unknown, at, is_list, items_at, text_at
from holdfast.policies.node_pools import taint_of
from holdfast.policies.stack import once
from holdfast.scheduling.labels import GPU_RESOURCE, POOL, TOLERATES
from holdfast.scheduling.reachability.facts import AddedToleration
from holdfast.scheduling.taints import Taint, Toleration

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holdfast.policies.findings import StackResource
    from holdfast.policies.known_values import Value

_GROUP: Final = "kubernetes:admissionregistration.k8s.io/"
_POLICY: Final = ":MutatingAdmissionPolicy"


def is_admission(type_token: str) -> bool:
    """Whether the type is a MutatingAdmissionPolicy, of any API version."""
    return type_token.startswith(_GROUP) and type_token.endswith(_POLICY)


def unreadable_tolerates(policy: StackResource) -> Iterator[str]:
    """Yield what cannot be read of the rule in a policy's annotation."""
    written = text_at(policy.props, "metadata", "annotations", TOLERATES)
    if isinstance(written, str) and not isinstance(taint_of(at(_parsed(written), "taint")), Taint):
        yield f"has an annotation {TOLERATES} that names no taint, so that its pods are taken to tolerate nothing by it."


def tolerations_for(
    pool: str | Unknown | None, resources: Sequence[StackResource]
) -> tuple[AddedToleration, ...] | Unknown:
    """What the program's admission adds to pods in training namespaces that select a pool by name."""
    rules = _written(resources)
    return UNKNOWN if rules is UNKNOWN else tuple(added for rule in rules for added in _added(rule, pool))


@once
def _written(resources: Sequence[StackResource]) -> tuple[Value, ...] | Unknown:
    """The rules in the annotations of the program's policies."""
    policies = (each for each in resources if is_admission(each.type))
    written = [text_at(each.props, "metadata", "annotations", TOLERATES) for each in policies]
    if UNKNOWN in written:
        return UNKNOWN
    return tuple(_parsed(each) for each in written if isinstance(each, str))


def _parsed(written: str) -> Value:
    try:
        return cast("Value", json.loads(written))
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
