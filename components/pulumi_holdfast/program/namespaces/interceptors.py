"""Reads what beside Kubernetes itself rejects, changes or deletes the pods of a namespace.

These are admission policies of the API server, webhooks, and the policies of Kyverno and Gatekeeper. None of them is evaluated: of
a policy whose text names no field that places pods, it is taken for granted that it lets jobs of the namespace run.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final, TypeAlias

from pulumi_holdfast.ladder.json import UNKNOWN, Unknown
from pulumi_holdfast.ladder.labels import TOLERATES
from pulumi_holdfast.ladder.reachability.affinity import Requirement
from pulumi_holdfast.program.namespaces.ladders import NAMESPACE_TYPE
from pulumi_holdfast.program.resources import (
    StackResource,
    Value,
    at,
    is_list,
    is_object,
    known_items,
    labels_at,
    of_type,
    once,
    text_at,
    texts_at,
)

_SCALES: Final = re.compile(r"kubernetes:autoscaling\.k8s\.io/v\w+:VerticalPodAutoscaler")
_TEMPLATE: Final = "kubernetes:templates.gatekeeper.sh/v1:ConstraintTemplate"
#: The fields of pods that decide where and whether they run, in a CEL expression, a pattern or the path of a JSON patch.
_PLACING: Final = re.compile(
    r"\b(nodeSelector|nodeName|nodeAffinity|affinity|schedulerName|runtimeClassName|schedulingGates|tolerations|"
    r"priorityClassName|topologySpreadConstraints|overhead)\b"
)
#: What a change of a pod may have beside them.
_SIZING: Final = re.compile(r"\bresources\b")
#: By which a rule bounds what pods request, where it does not only ask that they do.
_COMPARING: Final = re.compile(r"[<>]|quantity\(|(?:Greater|Less)Than")
#: In a rule about what changes of an object, or who changes it: a move of the ladder changes the job.
_ON_CHANGE: Final = re.compile(r"\boldObject\b|\buserInfo\b|\brequest\.operation\b")
_JOBS: Final = frozenset({"jobs", "jobsets", "rayjobs", "rayclusters", "*", "*/*"})
_JOB_KINDS: Final = frozenset({"Job", "JobSet", "RayJob", "RayCluster", "*"})
_CHANGING: Final = frozenset({"UPDATE", "*"})
_CHANGES: Final = "whether {policy} lets the ladder change its jobs is not judged"
_OWN: Final = "holdfast.dev"
#: Holdfast's own components with policies, in the URNs of what they make.
_OWN_PARENT: Final = re.compile(
    r"holdfast:index:(?:ControllerWritePolicy|JobAdmission|JobValidation|TrainingAdmission|TransferPolicy)\$"
)
_COVERED: Final = frozenset({"pods", "jobs", "jobsets", "rayjobs", "rayclusters", "*", "*/*"})
_KINDS: Final = frozenset({"Pod", "Job", "JobSet", "RayJob", "RayCluster", "*"})
#: What is created for each machine, by Karpenter and by the machine itself.
_MACHINES: Final = frozenset({"nodeclaims", "nodes"})
_MACHINE_KINDS: Final = frozenset({"NodeClaim", "Node"})
_CREATING: Final = frozenset({"CREATE", "*"})
_ADMITTING: Final = _CREATING | {"UPDATE"}
_NO_MACHINES: Final = "whether {policy} lets the machines of its pods be created is not judged"
_REJECTS_ALL: Final = "whether {policy}, which rejects all that it matches, lets its pods run is not judged"
#: Operators whose webhooks let pods of jobs run, by the start of the names of their configurations.
_OPERATORS: Final = re.compile(
    r"(jobset|kueue|kuberay|ray-operator|karpenter|cert-manager|gatekeeper|kyverno|azure-wi|pod-identity|aws-load-balancer|gpu-operator|"
    r"network-operator|opentelemetry|istio|linkerd|defaulting\.webhook\.karpenter|validation\.webhook\.karpenter)"
)


@dataclass(frozen=True, kw_only=True)
class Concerned:
    """A namespace whose jobs may be concerned; `labels` are None if another program makes it."""

    name: str | Unknown
    labels: Mapping[str, str | Unknown] | None

    def may_have(self, selector: Value) -> bool:
        """Whether a label selector may select it."""
        if not is_object(selector) or self.labels is None:
            return True
        wanted = at(selector, "matchLabels")
        pairs = wanted.items() if is_object(wanted) else ()
        requirements = [
            *(Requirement(key=key, operator="In", values=(str(value),)) for key, value in pairs),
            *(
                Requirement(
                    key=str(at(each, "key")),
                    operator=str(at(each, "operator")),
                    values=tuple(map(str, known_items(each, "values"))),
                )
                for each in known_items(selector, "matchExpressions")
            ),
        ]
        found = [(each, self.labels.get(each.key)) for each in requirements]
        return all(value is UNKNOWN or each.accepts(value) is not False for each, value in found)

    def may_be_one_of(self, names: Sequence[Value]) -> bool:
        """Whether one of these names, or patterns, may be its own."""
        return any(UNKNOWN in (self.name, each) or fnmatchcase(str(self.name), str(each)) for each in names)


def intercepted(
    namespace: str | Unknown, resources: Sequence[StackResource]
) -> Iterator[tuple[StackResource, str]]:
    """Yield what may reject, change or delete pods in a namespace, and why they are not judged for it, empty if they are."""
    own = concerned(namespace, resources)
    for each, read in _intercepting(resources):
        yield each, read(each, own, resources)


def concerned(namespace: str | Unknown, resources: Sequence[StackResource]) -> Concerned:
    """Return a namespace with the labels that the program gives it."""
    labels = _labels(resources).get(namespace)
    return Concerned(name=namespace, labels=None if labels is UNKNOWN else labels)


@once
def _labels(
    resources: Sequence[StackResource],
) -> Mapping[str | Unknown | None, Mapping[str, str | Unknown] | Unknown]:
    """Return the labels of the program's namespaces, by name."""
    found: dict[str | Unknown | None, Mapping[str, str | Unknown] | Unknown] = {}
    for each in of_type(resources, NAMESPACE_TYPE):
        name, labels = text_at(each.props, "metadata", "name"), labels_at(each.props, "metadata", "labels")
        own = {"kubernetes.io/metadata.name": name} if name is not None else {}
        found[name] = labels if labels is UNKNOWN else {**labels, **own}
    return found


def _title(resource: StackResource) -> str:
    return f"the {resource.type.rpartition(':')[2]} {resource.logical_name!r}"


def _covers(rules: Sequence[Value], of: frozenset[str] = _COVERED, by: frozenset[str] = _ADMITTING) -> bool:
    """Whether rules of admission are about pods or jobs, or these resources, that are created or changed."""
    return any(
        not of.isdisjoint(known_items(rule, "resources"))
        and not by.isdisjoint(known_items(rule, "operations") or ("*",))
        for rule in rules
    )


def _admission(policy: StackResource, namespace: Concerned, resources: Sequence[StackResource]) -> str:
    """Read a policy in CEL, of the API server or of Kyverno.

    Not one that goes by the ladder, and not one whose annotation says which tolerations it adds.
    """
    spec, kind = at(policy.props, "spec"), policy.type.rpartition(":")[2]
    matched = at(spec, "matchConstraints")
    bindings = _bindings(resources).get(text_at(policy.props, "metadata", "name"), ())
    acting = [each for each in bindings if _denies(each)]
    rules = known_items(matched, "resourceRules")
    if (acting or not bindings) and _denies(spec) and _covers(rules, _MACHINES, _CREATING):
        return _NO_MACHINES.format(policy=_title(policy))
    acts = not bindings or any(
        namespace.may_have(at(each, "matchResources", "namespaceSelector")) for each in acting
    )
    if (
        not acts
        or at(policy.props, "metadata", "annotations", TOLERATES) is not None
        or _OWN in str(at(spec, "paramKind", "apiVersion"))
        or not _denies(spec)
        or not _covers(rules)
        or not namespace.may_have(at(matched, "namespaceSelector"))
    ):
        return ""
    tested = f"{at(spec, 'validations')} {at(spec, 'variables')} {at(spec, 'matchConditions')}"
    changes = at(spec, "validations") is not None and _covers(rules, _JOBS, _CHANGING)
    if changes and _ON_CHANGE.search(tested):
        return _CHANGES.format(policy=_title(policy))
    if "Deleting" in kind:
        return f"whether {_title(policy)} deletes its jobs is not judged"
    if _places(at(spec, "mutations"), sizes=True) or any(
        _places(at(spec, part)) for part in ("validations", "variables")
    ):
        return f"where {_title(policy)} places its pods is not judged"
    # The variables of a policy without validations bound nothing.
    validations = at(spec, "validations")
    if validations is not None and any(_bounds(each) for each in (validations, at(spec, "variables"))):
        return f"what {_title(policy)} lets its pods request is not judged"
    if any(text_at(each, "expression") == "false" for each in known_items(spec, "validations")):
        return _REJECTS_ALL.format(policy=_title(policy))
    return ""


def is_enforced(policy: StackResource, resources: Sequence[StackResource]) -> bool:
    """Whether what an admission policy says holds: a binding of it rejects or changes, or all of its bindings are made elsewhere."""
    bindings = _bindings(resources).get(text_at(policy.props, "metadata", "name"), ())
    return not bindings or any(_denies(each) for each in bindings)


def _denies(spec: Value) -> bool:
    """Whether it may reject what it covers: its actions are not only to audit and to warn."""
    actions = texts_at(spec, "validationActions")
    return not isinstance(actions, frozenset) or "Deny" in actions


@once
def _bindings(resources: Sequence[StackResource]) -> Mapping[str | Unknown | None, Sequence[Value]]:
    """Return the specs of the bindings, by the policy that they name."""
    found = defaultdict[str | Unknown | None, list[Value]](list)
    for each in resources:
        if each.type.endswith("AdmissionPolicyBinding"):
            found[text_at(each.props, "spec", "policyName")].append(at(each.props, "spec"))
    return found


def _webhooks(configuration: StackResource, namespace: Concerned, _: Sequence[StackResource]) -> str:
    """Read the webhooks of a program, whose answers no policy shows; not those of operators, nor those that objects select."""
    if _OPERATORS.match(str(text_at(configuration.props, "metadata", "name") or configuration.logical_name)):
        return ""
    for each in known_items(configuration.props, "webhooks"):
        if (
            _covers(known_items(each, "rules"), _MACHINES, _CREATING)
            and at(each, "failurePolicy") != "Ignore"
        ):
            return _NO_MACHINES.format(policy=_title(configuration))
        is_chosen = at(each, "objectSelector", "matchLabels") is not None
        if (
            not is_chosen
            and _covers(known_items(each, "rules"))
            and namespace.may_have(at(each, "namespaceSelector"))
        ):
            return f"whether {_title(configuration)} lets its pods run as they are is not judged"
    return ""


def _kyverno(policy: StackResource, namespace: Concerned, _: Sequence[StackResource]) -> str:
    """Read a policy of Kyverno: what it changes, deletes or limits, and rejects; one that only audits does not."""
    own = None if "Cluster" in policy.type else text_at(policy.props, "metadata", "namespace")
    if own not in (None, UNKNOWN, namespace.name) and namespace.name is not UNKNOWN:
        return ""
    spec = at(policy.props, "spec")
    if "CleanupPolicy" in policy.type:
        deletes = _may_cover(at(spec, "match"), namespace, kinds=_KINDS)
        return f"whether {_title(policy)} of Kyverno deletes its jobs is not judged" if deletes else ""
    for rule in known_items(spec, "rules"):
        action = at(rule, "validate", "failureAction") or at(spec, "validationFailureAction")
        enforced = at(rule, "validate") if str(action).lower() == "enforce" else None
        if enforced is not None and not _MACHINE_KINDS.isdisjoint(_kinds_of(at(rule, "match"))):
            return _NO_MACHINES.format(policy=f"{_title(policy)} of Kyverno")
        if at(enforced, "deny") == {} and _may_cover(at(rule, "match"), namespace, kinds=_KINDS):
            return _REJECTS_ALL.format(policy=f"{_title(policy)} of Kyverno")
        tested = f"{enforced} {at(rule, 'preconditions')}"
        if (
            enforced is not None
            and _ON_CHANGE.search(tested)
            and _may_cover(at(rule, "match"), namespace, _JOB_KINDS)
        ):
            return _CHANGES.format(policy=f"{_title(policy)} of Kyverno")
        rejects = _places(enforced) or _bounds(enforced)
        if (rejects or _places(at(rule, "mutate"), sizes=True)) and _may_cover(at(rule, "match"), namespace):
            return f"where {_title(policy)} of Kyverno lets its pods run is not judged"
        if at(rule, "generate", "kind") in ("ResourceQuota", "LimitRange"):
            return f"what {_title(policy)} of Kyverno lets its pods request is not judged"
    return ""


def _may_cover(match: Value, namespace: Concerned, kinds: frozenset[str] = frozenset()) -> bool:
    """Whether a rule of Kyverno may be about pods, or these kinds, of a namespace; without a list it is about all."""
    found, of_kinds = _matched(match), _kinds_of(match)
    named = [name for each in found for name in known_items(each, "namespaces")]
    return (
        (not named or namespace.may_be_one_of(named))
        and all(namespace.may_have(at(each, "namespaceSelector")) for each in found)
        and (not kinds or not of_kinds or not kinds.isdisjoint(of_kinds))
    )


def _matched(match: Value) -> list[Value]:
    filters = [match, *(each for key in ("any", "all") for each in known_items(match, key))]
    return [at(each, "resources") for each in filters]


def _kinds_of(match: Value) -> set[str]:
    """Return the kinds that a rule of Kyverno is about, without their versions."""
    return {str(kind).rpartition("/")[2] for each in _matched(match) for kind in known_items(each, "kinds")}


def _gatekeeper(constraint: StackResource, namespace: Concerned, resources: Sequence[StackResource]) -> str:
    """Read a constraint, or a change, of Gatekeeper about pods; of a constraint whose template is here, what it is about."""
    spec = at(constraint.props, "spec")
    match, kind = at(spec, "match"), constraint.type.rpartition(":")[2]
    kinds = {str(each) for rule in known_items(match, "kinds") for each in known_items(rule, "kinds")}
    kinds |= {str(each) for rule in known_items(spec, "applyTo") for each in known_items(rule, "kinds")}
    named, excluded = known_items(match, "namespaces"), known_items(match, "excludedNamespaces")
    templates = [
        at(each.props, "spec")
        for each in of_type(resources, _TEMPLATE)
        if text_at(each.props, "spec", "crd", "spec", "names", "kind") == kind
    ]
    if at(spec, "enforcementAction") in ("dryrun", "warn"):
        return ""
    if not _MACHINE_KINDS.isdisjoint(kinds):
        return _NO_MACHINES.format(policy=f"{_title(constraint)} of Gatekeeper")
    if (
        (kinds and _KINDS.isdisjoint(kinds))
        or (named and not namespace.may_be_one_of(named))
        or (namespace.name is not UNKNOWN and excluded and namespace.may_be_one_of(excluded))
        or not namespace.may_have(at(match, "namespaceSelector"))
        or (templates and not any(_places(found) or _bounds(found) for found in templates))
        or ("mutations." in constraint.type and not _places(spec, sizes=True))
    ):
        return ""
    return f"whether {_title(constraint)} of Gatekeeper lets its pods run is not judged"


def _vertical(autoscaler: StackResource, namespace: Concerned, _: Sequence[StackResource]) -> str:
    """Read a VerticalPodAutoscaler of jobs, which changes what their pods request."""
    spec = at(autoscaler.props, "spec")
    here = text_at(autoscaler.props, "metadata", "namespace") or "default"
    acts = at(spec, "updatePolicy", "updateMode") != "Off" and at(spec, "targetRef", "kind") in _KINDS
    if acts and namespace.may_be_one_of([here]):
        return f"what {_title(autoscaler)} lets its pods request is not judged"
    return ""


_Reader: TypeAlias = Callable[[StackResource, Concerned, Sequence[StackResource]], str]
_READERS: Final[Mapping[re.Pattern[str], _Reader]] = {
    re.compile(
        r"kubernetes:(?:admissionregistration\.k8s\.io|policies\.kyverno\.io)/v\w+:"
        r"(?:Namespaced)?(?:Mutating|Validating|Deleting)(?:Admission)?Policy"
    ): _admission,
    re.compile(
        r"kubernetes:admissionregistration\.k8s\.io/v\w+:(?:Mutating|Validating)WebhookConfiguration"
    ): _webhooks,
    re.compile(r"kubernetes:kyverno\.io/v\w+:(?:Cluster)?(?:Cleanup)?Policy"): _kyverno,
    re.compile(
        r"kubernetes:(?:constraints|mutations)\.gatekeeper\.sh/v\w+:(?!AssignMetadata)\w+"
    ): _gatekeeper,
    _SCALES: _vertical,
}


@once
def _intercepting(resources: Sequence[StackResource]) -> tuple[tuple[StackResource, _Reader], ...]:
    return tuple(
        (each, read)
        for each in resources
        if each.type.startswith("kubernetes:") and not _OWN_PARENT.search(each.urn)
        for pattern, read in _READERS.items()
        if pattern.fullmatch(each.type)
    )


def _places(value: Value, *, sizes: bool = False) -> bool:
    """Whether a key or a text in a value names a field by which pods are placed; with `sizes`, or one that they request by."""
    if is_object(value):
        return any(_names(key, sizes=sizes) or _places(each, sizes=sizes) for key, each in value.items())
    if isinstance(value, str):
        return _names(value, sizes=sizes)
    return is_list(value) and any(_places(each, sizes=sizes) for each in value)


def _bounds(value: Value) -> bool:
    """Whether a rule compares what pods request with something."""
    text = str(value)
    return bool(_SIZING.search(text) and _COMPARING.search(text))


def _names(text: str, *, sizes: bool) -> bool:
    return bool(_PLACING.search(text) or (sizes and _SIZING.search(text)))
