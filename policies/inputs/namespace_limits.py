"""Reads what limits the pods of a namespace: ResourceQuotas, LimitRanges, and the PriorityClasses that pods may name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from holdfast.policies.clusters import is_same_cluster
from holdfast.policies.resources import (
    StackResource,
    Value,
    at,
    is_object,
    items_at,
    of_type,
    once,
    text_at,
    whole_number,
)
from holdfast.scheduling.json import UNKNOWN, Unknown, all_true

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
    """A limit of one type, `Pod` or `Container`, in a LimitRange.

    `requests` and `limits` are what a container without its own gets; `most` and `least` are the most and the least that are
    allowed.
    """

    title: str
    kind: str
    requests: Mapping[str, Value]
    limits: Mapping[str, Value]
    most: Mapping[str, Value]
    least: Mapping[str, Value]


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
        UNKNOWN in (each, *(at(each, field) for field in ("type", *_DEFAULTING))) for each in listed
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
