"""Reads what else decides where the pods of a namespace run: Fargate profiles of EKS, and the admission of other teams.

The latter are admission policies of the API server, and those of Kyverno.

None of it is modeled: pods that it covers are not judged.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Final

from holdfast.policies.clusters import is_same_cluster
from holdfast.policies.fields import unread
from holdfast.policies.inputs.ladders import NAMESPACE_TYPE
from holdfast.policies.resources import (
    StackResource,
    Value,
    at,
    is_list,
    is_object,
    items_at,
    known_items,
    once,
    text_at,
)
from holdfast.scheduling.json import UNKNOWN, Unknown

FARGATE: Final = "aws:eks/fargateProfile:FargateProfile"
_ADMISSION: Final = re.compile(
    r"kubernetes:admissionregistration\.k8s\.io/v\w+:(?:Mutating|Validating)AdmissionPolicy"
)
_KYVERNO: Final = re.compile(r"kubernetes:kyverno\.io/v\w+:(?:ClusterPolicy|Policy)")
#: The fields of pods that decide where they run, in a CEL expression, a pattern or the path of a JSON patch.
_PLACING: Final = re.compile(
    r"\b(nodeSelector|nodeName|nodeAffinity|affinity|schedulerName|runtimeClassName)\b"
)
_OWN: Final = "holdfast.dev"
_LIMITS: Final = frozenset(
    {NAMESPACE_TYPE, "kubernetes:core/v1:ResourceQuota", "kubernetes:core/v1:LimitRange"}
)
_PODS: Final = frozenset({"pods", "*"})


def diversions(
    ladder: StackResource, namespace: str | Unknown, resources: Sequence[StackResource]
) -> Iterator[str]:
    """Yield what decides where pods in the namespace of a ladder run, beside its pools."""
    for each in _deciding(resources):
        if each.type == FARGATE:
            reason = _fargate(each, namespace)
        else:
            reason = _kyverno(each, namespace) if _KYVERNO.fullmatch(each.type) else _admission(each)
        if reason and is_same_cluster(each, ladder, resources) is not False:
            yield reason
    yield from unread(ladder)
    for each, reasons in _unread_in(resources).get(str(namespace), ()):
        if is_same_cluster(each, ladder, resources) is True:
            yield from reasons


@once
def _unread_in(
    resources: Sequence[StackResource],
) -> Mapping[str, Sequence[tuple[StackResource, tuple[str, ...]]]]:
    """Return what namespaces, and the limits in them, set that no rule judges, by the name of the namespace."""
    found: dict[str, list[tuple[StackResource, tuple[str, ...]]]] = {}
    for each in resources:
        if each.type in _LIMITS and (reasons := unread(each)):
            field = "name" if each.type == NAMESPACE_TYPE else "namespace"
            found.setdefault(str(text_at(each.props, "metadata", field) or "default"), []).append(
                (each, reasons)
            )
    return found


@once
def _deciding(resources: Sequence[StackResource]) -> tuple[StackResource, ...]:
    return tuple(
        each
        for each in resources
        if each.type == FARGATE or _ADMISSION.fullmatch(each.type) or _KYVERNO.fullmatch(each.type)
    )


def _fargate(profile: StackResource, namespace: str | Unknown) -> str:
    """Say that EKS runs its pods on Fargate; a profile may select them by labels, which shapes do not declare."""
    selectors = items_at(profile.props, "selectors")
    names = [UNKNOWN] if selectors is UNKNOWN else [text_at(each, "namespace") for each in selectors]
    if any(UNKNOWN in (each, namespace) or fnmatchcase(str(namespace), str(each)) for each in names):
        return f"whether the Fargate profile {profile.logical_name!r} takes its pods is not judged"
    return ""


def _admission(policy: StackResource) -> str:
    """Say that an admission policy sets or tests fields by which pods are placed; those of Holdfast use only its own labels."""
    spec, kind = at(policy.props, "spec"), policy.type.rpartition(":")[2]
    rules = known_items(spec, "matchConstraints", "resourceRules")
    covers = any(each in _PODS for rule in rules for each in known_items(rule, "resources"))
    if covers and any(_places(at(spec, part)) for part in ("mutations", "validations", "variables")):
        return f"where the {kind} {policy.logical_name!r} places its pods is not judged"
    return ""


def _kyverno(policy: StackResource, namespace: str | Unknown) -> str:
    """Say that a policy of Kyverno sets such fields, or rejects pods by them; one that only audits does not."""
    own = text_at(policy.props, "metadata", "namespace") if policy.type.endswith(":Policy") else None
    if own not in (None, UNKNOWN, namespace) and namespace is not UNKNOWN:
        return ""
    spec = at(policy.props, "spec")
    for rule in known_items(spec, "rules"):
        action = at(rule, "validate", "failureAction") or at(spec, "validationFailureAction")
        rejects = str(action).lower() == "enforce" and _places(at(rule, "validate"))
        if (rejects or _places(at(rule, "mutate"))) and _may_cover(at(rule, "match"), namespace):
            return f"where the {policy.type.rpartition(':')[2]} {policy.logical_name!r} of Kyverno lets its pods run is not judged"
    return ""


def _may_cover(match: Value, namespace: str | Unknown) -> bool:
    """Whether a rule of Kyverno may be about pods of a namespace; without a list of namespaces it is about all."""
    filters = [match, *(each for key in ("any", "all") for each in known_items(match, key))]
    named = [
        str(each)
        for found in filters
        for each in known_items(found, "resources", "namespaces")
        if each is not UNKNOWN
    ]
    return namespace is UNKNOWN or not named or any(fnmatchcase(namespace, each) for each in named)


def _places(value: Value) -> bool:
    """Whether a key or a text in a value names a field by which pods are placed."""
    if is_object(value):
        return any(_PLACING.search(key) or _places(each) for key, each in value.items())
    if isinstance(value, str):
        return bool(_PLACING.search(value)) and _OWN not in value
    return is_list(value) and any(_places(each) for each in value)
