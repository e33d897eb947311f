"""Reads what else decides where and whether the pods of a namespace run, and is not modeled: pods that it covers are not judged.

That is Fargate profiles of EKS, what intercepts pods, and fields that no rule reads of the namespace, its limits and its ladder.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Final

from holdfast.policies.clusters import is_same_cluster
from holdfast.policies.fields import unread
from holdfast.policies.inputs.interceptors import intercepted
from holdfast.policies.inputs.ladders import NAMESPACE_TYPE
from holdfast.policies.resources import StackResource, items_at, of_type, once, text_at
from holdfast.scheduling.json import UNKNOWN, Unknown

FARGATE: Final = "aws:eks/fargateProfile:FargateProfile"
_LIMITS: Final = frozenset(
    {NAMESPACE_TYPE, "kubernetes:core/v1:ResourceQuota", "kubernetes:core/v1:LimitRange"}
)


def diversions(
    ladder: StackResource, namespace: str | Unknown, resources: Sequence[StackResource]
) -> Iterator[str]:
    """Yield what decides where pods in the namespace of a ladder run, beside its pools."""
    found = (
        *((each, _fargate(each, namespace)) for each in of_type(resources, FARGATE)),
        *intercepted(namespace, resources),
        *_unread_in(resources).get(str(namespace), ()),
    )
    for each, reason in found:
        if reason and is_same_cluster(each, ladder, resources) is not False:
            yield reason
    yield from unread(ladder)


@once
def _unread_in(resources: Sequence[StackResource]) -> Mapping[str, Sequence[tuple[StackResource, str]]]:
    """Return what namespaces, and the limits in them, set that no rule judges, by the name of the namespace."""
    found: dict[str, list[tuple[StackResource, str]]] = {}
    for each in resources:
        if each.type in _LIMITS:
            field = "name" if each.type == NAMESPACE_TYPE else "namespace"
            name = str(text_at(each.props, "metadata", field) or "default")
            found.setdefault(name, []).extend((each, reason) for reason in unread(each))
    return found


def _fargate(profile: StackResource, namespace: str | Unknown) -> str:
    """Say that EKS runs its pods on Fargate; a profile may select them by labels, which shapes do not declare."""
    selectors = items_at(profile.props, "selectors")
    names = [UNKNOWN] if selectors is UNKNOWN else [text_at(each, "namespace") for each in selectors]
    if any(UNKNOWN in (each, namespace) or fnmatchcase(str(namespace), str(each)) for each in names):
        return f"whether the Fargate profile {profile.logical_name!r} takes its pods is not judged"
    return ""
