"""Reads what of a program keeps jobs from running on sound pools: network policies that part a gang, and operators on spot."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from holdfast.policies.clusters import is_same_cluster
from holdfast.policies.inputs.pod_templates import SPOT_SELECTIONS
from holdfast.policies.resources import (
    StackResource,
    Value,
    at,
    is_list,
    is_object,
    items_at,
    known_items,
    of_type,
    text_at,
    texts_at,
)
from holdfast.scheduling.json import UNKNOWN, Unknown

_NETWORK_POLICY: Final = "kubernetes:networking.k8s.io/v1:NetworkPolicy"
_RELEASE: Final = "kubernetes:helm.sh/v3:Release"
#: Charts without whose pods no machine comes, or no job is started again.
_OPERATORS: Final = frozenset({"jobset", "kuberay-operator", "karpenter", "kueue"})


def obstacles(
    ladder: StackResource, namespace: str | Unknown, resources: Sequence[StackResource]
) -> Iterator[str]:
    """Yield what keeps the jobs in the namespace of a ladder from running, although its pools are sound."""
    for each in of_type(resources, _RELEASE):
        chart = str(at(each.props, "chart")).rpartition("/")[2]
        if (
            chart in _OPERATORS
            and _selects_spot(at(each.props, "values"))
            and is_same_cluster(each, ladder, resources) is not False
        ):
            yield f"the operator {chart} selects spot: while spot is sold out, nothing starts jobs or their machines"
    here = [
        each
        for each in of_type(resources, _NETWORK_POLICY)
        if text_at(each.props, "metadata", "namespace") == namespace
        and is_same_cluster(each, ladder, resources) is not False
    ]
    for direction, peers in (("Ingress", "from"), ("Egress", "to")):
        closing = [each for each in here if _isolates_all(each, direction)]
        if closing and not any(_opens(each, direction, peers) for each in here):
            yield (
                f"NetworkPolicy {closing[0].logical_name!r} closes {direction.lower()} of all pods, and no other one of this program "
                "opens it between pods of the namespace"
            )


def _selects_spot(value: Value) -> bool:
    """Whether a selector, or an affinity, anywhere in a chart's values has a label by which pods select spot."""
    if is_list(value):
        return any(_selects_spot(each) for each in value)
    if not is_object(value):
        return False
    if any(value.get(key) == wanted for key, wanted in SPOT_SELECTIONS.items()):
        return True
    required = SPOT_SELECTIONS.get(str(value.get("key")))
    return (required is not None and value.get("values") == [required]) or any(
        _selects_spot(each) for key, each in value.items() if not key.startswith("preferred")
    )


def _isolates_all(policy: StackResource, direction: str) -> bool:
    """Whether it allows all pods of its namespace nothing in this direction but what policies name."""
    spec = at(policy.props, "spec")
    types = texts_at(spec, "policyTypes")
    listed = frozenset({"Ingress", *(("Egress",) if at(spec, "egress") else ())}) if types is None else types
    selector = at(spec, "podSelector")
    is_for_all = (
        is_object(selector) and not at(selector, "matchLabels") and not at(selector, "matchExpressions")
    )
    return listed is not UNKNOWN and direction in listed and is_for_all


def _opens(policy: StackResource, direction: str, peers: str) -> bool:
    """Whether a rule of it may let pods of the namespace reach each other."""
    rules = items_at(policy.props, "spec", direction.lower())
    return rules is UNKNOWN or any(
        not at(rule, peers) or any(at(peer, "ipBlock") is None for peer in known_items(rule, peers))
        for rule in rules
    )
