"""Reads what else decides where and whether the pods of a namespace run, and is not modeled: pods that it covers are not judged.

That is Fargate profiles of EKS, what intercepts pods, the default queue of Kueue, custom resources of kinds that no rule reads, and
fields that no rule reads of the namespace, its limits and its ladder.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Final

from pulumi_holdfast.ladder.json import UNKNOWN, Unknown
from pulumi_holdfast.program.clusters import is_same_cluster
from pulumi_holdfast.program.fields import unread
from pulumi_holdfast.program.namespaces.interceptors import intercepted
from pulumi_holdfast.program.namespaces.ladders import NAMESPACE_TYPE
from pulumi_holdfast.program.resources import StackResource, items_at, of_type, once, text_at

FARGATE: Final = "aws:eks/fargateProfile:FargateProfile"
_LIMITS: Final = frozenset(
    {NAMESPACE_TYPE, "kubernetes:core/v1:ResourceQuota", "kubernetes:core/v1:LimitRange"}
)

#: Kueue sets the queue of a job without one to the namespace's LocalQueue of this name.
_DEFAULT_QUEUE: Final = "default"
_QUEUE: Final = re.compile(r"kubernetes:kueue\.x-k8s\.io/v\w+:LocalQueue")
#: Resources of the API groups of Kubernetes itself, and of charts and manifests.
_BUILT_IN: Final = re.compile(
    r"kubernetes:(?:(?:core|apps|autoscaling|batch|extensions|policy|helm\.sh|kustomize|yaml|"
    r"(?:admissionregistration|apiextensions|apiregistration|auditregistration|authentication|authorization|certificates|coordination|"
    r"discovery|events|flowcontrol\.apiserver|internal\.apiserver|meta|networking|node|rbac\.authorization|resource|scheduling|storage|"
    r"storagemigration)\.k8s\.io)[/:].*|[^.]*)"
)
#: Kinds whose objects are read by rules.
_READ: Final = re.compile(
    r"karpenter\.sh:Node(?:Pool|Claim)(?:Patch)?|(?:[\w-]+\.)*(?:holdfast\.dev|karpenter\.k8s\.aws|karpenter\.azure\.com|karpenter\.kwok\.sh|eks\.amazonaws\.com|"
    r"crd\.k8s\.amazonaws\.com|networking\.k8s\.aws|cilium\.io|projectcalico\.org|crd\.antrea\.io|policy\.networking\.k8s\.io|kyverno\.io|"
    r"gatekeeper\.sh|autoscaling\.k8s\.io|cloud\.google\.com|jobset\.x-k8s\.io|ray\.io):\w+"
)
#: API groups whose objects place, change and end no pods but their own: they monitor, deliver, route, keep secrets and certificates,
#: back up, make resources of a cloud or jobs of other kinds. Kueue's act on jobs with a queue.
_HARMLESS: Final = re.compile(
    r"(?:[\w-]+\.)*(?:monitoring\.coreos\.com|azmonitoring\.coreos\.com|monitoring\.googleapis\.com|opentelemetry\.io|grafana\.com|"
    r"integreatly\.org|datadoghq\.com|victoriametrics\.com|argoproj\.io|fluxcd\.io|app\.k8s\.io|gateway\.networking\.k8s\.io|"
    r"gateway\.envoyproxy\.io|inference\.networking\.x-k8s\.io|networking\.gke\.io|elbv2\.k8s\.aws|traefik\.io|istio\.io|linkerd\.io|"
    r"externaldns\.k8s\.io|external-secrets\.io|secrets-store\.csi\.x-k8s\.io|bitnami\.com|secrets\.hashicorp\.com|cert-manager\.io|"
    r"snapshot\.storage\.k8s\.io|velero\.io|services\.k8s\.aws|crossplane\.io|upbound\.io|cnrm\.cloud\.google\.com|azure\.com|"
    r"kubeflow\.org|sparkoperator\.k8s\.io|kserve\.io|leaderworkerset\.x-k8s\.io|tekton\.dev|keda\.sh|aquasecurity\.github\.io|"
    r"wgpolicyk8s\.io|kueue\.x-k8s\.io)"
)


def diversions(
    ladder: StackResource, namespace: str | Unknown, resources: Sequence[StackResource]
) -> Iterator[str]:
    """Yield what decides where pods in the namespace of a ladder run, beside its pools."""
    found = (
        *((each, _fargate(each, namespace)) for each in of_type(resources, FARGATE)),
        *intercepted(namespace, resources),
        *_unread_in(resources).get(str(namespace), ()),
        *_unread_kinds(resources).get(str(namespace), ()),
        *_unread_kinds(resources).get("", ()),
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


@once
def _unread_kinds(resources: Sequence[StackResource]) -> Mapping[str, Sequence[tuple[StackResource, str]]]:
    """Return the custom resources that may concern pods of their namespace, by its name; those of no namespace by none."""
    found: dict[str, list[tuple[StackResource, str]]] = {}
    for each in resources:
        if reason := _of_kind(each):
            found.setdefault(str(text_at(each.props, "metadata", "namespace") or ""), []).append(
                (each, reason)
            )
    return found


def _of_kind(resource: StackResource) -> str:
    if not resource.type.startswith("kubernetes:") or _BUILT_IN.fullmatch(resource.type):
        return ""
    group, _, kind = resource.type.removeprefix("kubernetes:").partition("/")
    kind, name = kind.rpartition(":")[2], text_at(resource.props, "metadata", "name")
    if _QUEUE.fullmatch(resource.type) and name == _DEFAULT_QUEUE:
        return (
            f"whether Kueue's queue {name!r}, which jobs of its namespace without a queue get, leads them to on-demand is not judged: "
            "the ladder does not move jobs of a queue"
        )
    if _READ.fullmatch(f"{group}:{kind}") or _HARMLESS.fullmatch(group):
        return ""
    title = name if isinstance(name, str) else resource.logical_name
    return f"whether {kind} {title!r} keeps its pods from running is not judged: no rule reads {kind}s of {group}"


def _fargate(profile: StackResource, namespace: str | Unknown) -> str:
    """Say that EKS runs its pods on Fargate; a profile may select them by labels, which shapes do not declare."""
    selectors = items_at(profile.props, "selectors")
    names = [UNKNOWN] if selectors is UNKNOWN else [text_at(each, "namespace") for each in selectors]
    if any(UNKNOWN in (each, namespace) or fnmatchcase(str(namespace), str(each)) for each in names):
        return f"whether the Fargate profile {profile.logical_name!r} takes its pods is not judged"
    return ""
