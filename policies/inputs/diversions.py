"""Reads what else decides where the pods of a namespace run: Fargate profiles of EKS, and the admission of other teams.

None of it is modeled: pods that it covers are not judged.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Final

from holdfast.policies.clusters import is_same_cluster
from holdfast.policies.inputs.admission import is_admission_policy
from holdfast.policies.resources import StackResource, Value, at, items_at, once, text_at
from holdfast.scheduling.json import UNKNOWN, Unknown

FARGATE: Final = "aws:eks/fargateProfile:FargateProfile"
#: The fields of pods that decide where they run, in a CEL expression or the path of a JSON patch.
_PLACING: Final = re.compile(
    r"\b(nodeSelector|nodeName|nodeAffinity|affinity|schedulerName|runtimeClassName)\b"
)
_OWN: Final = "holdfast.dev"
_PODS: Final = frozenset({"pods", "*"})


def diversions(
    ladder: StackResource, namespace: str | Unknown, resources: Sequence[StackResource]
) -> Iterator[str]:
    """Yield what decides where pods in the namespace of a ladder run, beside its pools."""
    for each in _deciding(resources):
        reason = _fargate(each, namespace) if each.type == FARGATE else _admission(each)
        if reason and is_same_cluster(each, ladder, resources) is not False:
            yield reason


@once
def _deciding(resources: Sequence[StackResource]) -> tuple[StackResource, ...]:
    return tuple(each for each in resources if each.type == FARGATE or is_admission_policy(each.type))


def _fargate(profile: StackResource, namespace: str | Unknown) -> str:
    """Say that EKS runs its pods on Fargate; a profile may select them by labels, which shapes do not declare."""
    selectors = items_at(profile.props, "selectors")
    names = [UNKNOWN] if selectors is UNKNOWN else [text_at(each, "namespace") for each in selectors]
    if any(UNKNOWN in (each, namespace) or fnmatchcase(str(namespace), str(each)) for each in names):
        return f"whether the Fargate profile {profile.logical_name!r} takes its pods is not judged"
    return ""


def _admission(policy: StackResource) -> str:
    """Say that a MutatingAdmissionPolicy sets fields by which pods are placed; those of Holdfast set only its own labels."""
    spec = at(policy.props, "spec")
    rules, mutations = items_at(spec, "matchConstraints", "resourceRules"), items_at(spec, "mutations")
    if rules is UNKNOWN or mutations is UNKNOWN:
        return ""
    covered = [items_at(each, "resources") for each in rules]
    covers = any(each in _PODS for listed in covered if listed is not UNKNOWN for each in listed)
    expressions = [text for each in mutations for text in _expressions(each)]
    if covers and any(_PLACING.search(each) and _OWN not in each for each in expressions):
        return f"where the MutatingAdmissionPolicy {policy.logical_name!r} places its pods is not judged"
    return ""


def _expressions(mutation: Value) -> Iterator[str]:
    for kind in ("applyConfiguration", "jsonPatch"):
        expression = text_at(mutation, kind, "expression")
        if isinstance(expression, str):
            yield expression
