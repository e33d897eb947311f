"""Reads what limits the pods of a namespace: ResourceQuotas, LimitRanges, and the PriorityClasses that pods may name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pulumi_holdfast.ladder.json import UNKNOWN, Unknown, all_true
from pulumi_holdfast.program.clusters import is_same_cluster
from pulumi_holdfast.program.resources import (
    StackResource,
    Value,
    amount,
    at,
    is_object,
    items_at,
    of_type,
    once,
    text_at,
    whole_number,
)

_QUOTAS: Final = frozenset({"kubernetes:core/v1:ResourceQuota", "kubernetes:core/v1:ResourceQuotaPatch"})
_LIMIT_RANGES: Final = frozenset({"kubernetes:core/v1:LimitRange", "kubernetes:core/v1:LimitRangePatch"})
_PRIORITY_CLASS: Final = "kubernetes:scheduling.k8s.io/v1:PriorityClass"
#: The fields of a limit from which a container without requests or limits gets its own.
_DEFAULTING: Final = ("max", "min", "default", "defaultRequest")
#: Classes that every cluster has.
_SYSTEM: Final = ("system-cluster-critical", "system-node-critical")


@dataclass(frozen=True, kw_only=True)
class Scope:
    """One scope of a quota: it counts only the pods that match."""

    name: str
    operator: str = "Exists"
    values: tuple[str, ...] = ()

    def covers(self, *, priority: str | None, has_deadline: bool | None) -> bool | Unknown:
        """Whether it covers pods that request CPUs; None for a priority class or a deadline that is not declared."""
        match self.name:
            case "BestEffort":
                return False
            case "NotBestEffort":
                return True
            case "Terminating" | "NotTerminating" if has_deadline is not None:
                return has_deadline is (self.name == "Terminating")
            case "PriorityClass" if priority is not None:
                return {
                    "In": priority in self.values,
                    "NotIn": priority not in self.values,
                    "Exists": True,
                    "DoesNotExist": False,
                }.get(self.operator, UNKNOWN)
            case _:
                return UNKNOWN


@dataclass(frozen=True, kw_only=True)
class Quota:
    """A ResourceQuota; `hard` is UNKNOWN if not even its keys are known, `scopes` if not all of them are."""

    resource: StackResource
    title: str
    namespace: str | Unknown
    hard: Mapping[str, Value] | Unknown
    scopes: tuple[Scope, ...] | Unknown

    def covers(self, *, priority: str | None, has_deadline: bool | None) -> bool | Unknown:
        """Whether it counts pods that request CPUs."""
        if self.scopes is UNKNOWN:
            return UNKNOWN
        return all_true(each.covers(priority=priority, has_deadline=has_deadline) for each in self.scopes)


@once
def quotas_of(resources: Sequence[StackResource]) -> tuple[Quota, ...]:
    """Return the program's ResourceQuotas."""
    return tuple(_quota(each) for each in resources if each.type in _QUOTAS)


def _quota(resource: StackResource) -> Quota:
    hard = at(resource.props, "spec", "hard")
    return Quota(
        resource=resource,
        title=f"ResourceQuota {_name(resource)}",
        namespace=text_at(resource.props, "metadata", "namespace") or "default",
        hard=UNKNOWN if hard is UNKNOWN else hard if is_object(hard) else {},
        scopes=_scopes(at(resource.props, "spec")),
    )


def _scopes(spec: Value) -> tuple[Scope, ...] | Unknown:
    names, selected = items_at(spec, "scopes"), items_at(spec, "scopeSelector", "matchExpressions")
    if names is UNKNOWN or selected is UNKNOWN or UNKNOWN in names:
        return UNKNOWN
    scopes = [Scope(name=str(each)) for each in names]
    for each in selected:
        parts = (at(each, "scopeName"), at(each, "operator"), items_at(each, "values"))
        if UNKNOWN in parts or parts[2] is UNKNOWN or UNKNOWN in parts[2]:
            return UNKNOWN
        scopes.append(Scope(name=str(parts[0]), operator=str(parts[1]), values=tuple(map(str, parts[2]))))
    return tuple(scopes)


def _name(resource: StackResource) -> str:
    name = text_at(resource.props, "metadata", "name")
    return repr(name if isinstance(name, str) else resource.logical_name)


@dataclass(frozen=True, kw_only=True)
class LimitRange:
    """A limit of one type, such as `Pod` or `Container`, in a LimitRange.

    `requests` and `limits` are what a container without its own gets; `most` and `least` are the most and the least that are
    allowed.
    """

    title: str
    kind: str
    requests: Mapping[str, Value]
    limits: Mapping[str, Value]
    most: Mapping[str, Value]
    least: Mapping[str, Value]


@dataclass(frozen=True, kw_only=True)
class ContainerDefaults:
    """What the LimitRanges of a namespace give to containers without their own requests and limits.

    The API server goes through them in no defined order, and the first that has an amount gives it
    (components/pulumi_holdfast/cli/kubectl/pkg/admission/limitranger of Kubernetes). Where they differ, these are the least amounts, and the resources are
    among the open ones.
    """

    requests: Mapping[str, Value]
    limits: Mapping[str, Value]
    open_requests: frozenset[str]
    open_limits: frozenset[str]

    @classmethod
    def of(cls, ranges: Sequence[LimitRange]) -> ContainerDefaults:
        """Return the defaults of these limits."""
        of_containers = [each for each in ranges if each.kind == "Container"]
        requests, limits = (
            [each.requests for each in of_containers],
            [each.limits for each in of_containers],
        )
        return cls(
            requests=_least(requests),
            limits=_least(limits),
            open_requests=_differing(requests),
            open_limits=_differing(limits),
        )

    def open_of(self, requests: Value, limits: Value) -> frozenset[str]:
        """Return the resources of which a container gets an amount that is not defined; its own limit is its request, too."""
        return frozenset(
            {each for each in self.open_limits if at(limits, each) is None}
            | {each for each in self.open_requests if at(requests, each) is None and at(limits, each) is None}
        )


def _least(given: Sequence[Mapping[str, Value]]) -> Mapping[str, Value]:
    found: dict[str, Value] = {}
    for key, value in (pair for each in given for pair in each.items()):
        amounts = amount(found.get(key, value)), amount(value)
        if amounts[0] is UNKNOWN or amounts[1] is UNKNOWN:
            found[key] = UNKNOWN
        elif key not in found or (amounts[1] or 0) < (amounts[0] or 0):
            found[key] = value
    return found


def _differing(given: Sequence[Mapping[str, Value]]) -> frozenset[str]:
    amounts = {(key, amount(value)) for each in given for key, value in each.items()}
    return frozenset(key for key, times in Counter(key for key, _ in amounts).items() if times > 1)


def limit_ranges_near(
    resource: StackResource, namespace: str, resources: Sequence[StackResource]
) -> tuple[LimitRange, ...]:
    """Return the limits of a namespace in the cluster of a resource."""
    return tuple(
        limit
        for each in _limit_ranges(resources)
        if (text_at(each.props, "metadata", "namespace") or "default") == namespace
        and is_same_cluster(each, resource, resources) is True
        for limit in _limits(each)
    )


def may_have_other_limits(
    resource: StackResource, namespace: str, resources: Sequence[StackResource]
) -> bool:
    """Whether a LimitRange of the program may limit a namespace in the cluster of a resource in a way that is not known."""
    return any(
        UNKNOWN in (where, is_here) or _is_open(each)
        for each in _limit_ranges(resources)
        if (where := text_at(each.props, "metadata", "namespace") or "default") in (namespace, UNKNOWN)
        and (is_here := is_same_cluster(each, resource, resources)) is not False
    )


def _is_open(limit_range: StackResource) -> bool:
    listed = items_at(limit_range.props, "spec", "limits")
    return listed is UNKNOWN or any(
        UNKNOWN in (each, at(each, "type"), given, *_amounts(given).values())
        for each in listed
        for given in (at(each, field) for field in _DEFAULTING)
    )


@once
def _limit_ranges(resources: Sequence[StackResource]) -> tuple[StackResource, ...]:
    return tuple(each for each in resources if each.type in _LIMIT_RANGES)


def _limits(resource: StackResource) -> Iterator[LimitRange]:
    listed = items_at(resource.props, "spec", "limits")
    for each in () if listed is UNKNOWN else listed:
        most, least, default, requests = (_amounts(at(each, field)) for field in _DEFAULTING)
        limits = {**most, **default}
        # The API server fills in the defaults in this order.
        yield LimitRange(
            title=f"LimitRange {_name(resource)}",
            kind=str(at(each, "type")),
            requests={**least, **limits, **requests},
            limits=limits,
            most=most,
            least=least,
        )


def _amounts(value: Value) -> Mapping[str, Value]:
    return value if is_object(value) else {}


@once
def priority_classes(resources: Sequence[StackResource]) -> Mapping[str, int | None]:
    """Return the PriorityClasses that the program makes, and those that every cluster has; None for a value that is not known."""
    made = {
        name: _priority(each)
        for each in of_type(resources, _PRIORITY_CLASS)
        if isinstance(name := text_at(each.props, "metadata", "name"), str)
    }
    return {**dict.fromkeys(_SYSTEM), **made}


def default_priority(near: StackResource, resources: Sequence[StackResource]) -> int | None:
    """Return the priority of pods without a class in the cluster of a resource; None if the program does not set it."""
    return next(
        (
            _priority(each)
            for each in of_type(resources, _PRIORITY_CLASS)
            if at(each.props, "globalDefault") is True and is_same_cluster(each, near, resources) is True
        ),
        None,
    )


def _priority(priority_class: StackResource) -> int | None:
    value = whole_number(at(priority_class.props, "value"))
    return value if isinstance(value, int) else None
