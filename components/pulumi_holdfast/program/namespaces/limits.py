"""Reads what limits the pods of a namespace: ResourceQuotas, LimitRanges, and the PriorityClasses that pods may name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Final

from pulumi_holdfast.ladder.json import UNKNOWN, Unknown
from pulumi_holdfast.ladder.quantities import parse_quantity
from pulumi_holdfast.program.clusters import is_same_cluster
from pulumi_holdfast.program.resources import (
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

_QUOTAS: Final = frozenset({"kubernetes:core/v1:ResourceQuota", "kubernetes:core/v1:ResourceQuotaPatch"})
_LIMIT_RANGES: Final = frozenset({"kubernetes:core/v1:LimitRange", "kubernetes:core/v1:LimitRangePatch"})
_PRIORITY_CLASS: Final = "kubernetes:scheduling.k8s.io/v1:PriorityClass"
#: The fields of a limit from which a container without a request gets its own, the last that is set before the others.
_DEFAULTING: Final = ("min", "max", "default", "defaultRequest")
#: Classes that every cluster has.
_SYSTEM: Final = ("system-cluster-critical", "system-node-critical")


@dataclass(frozen=True, kw_only=True)
class Quota:
    """A ResourceQuota of all pods of its namespace; `hard` is UNKNOWN if not even its keys are known."""

    resource: StackResource
    title: str
    namespace: str | Unknown
    hard: Mapping[str, Value] | Unknown


@once
def quotas_of(resources: Sequence[StackResource]) -> tuple[Quota, ...]:
    """Return the program's ResourceQuotas; of one with scopes, nothing is counted, and its scopes are named as not judged."""
    return tuple(_quota(each) for each in resources if each.type in _QUOTAS)


def _quota(resource: StackResource) -> Quota:
    spec, name = at(resource.props, "spec"), text_at(resource.props, "metadata", "name")
    hard = at(spec, "hard")
    has_scopes = bool(at(spec, "scopes") or at(spec, "scopeSelector"))
    return Quota(
        resource=resource,
        title=f"ResourceQuota {(name if isinstance(name, str) else resource.logical_name)!r}",
        namespace=text_at(resource.props, "metadata", "namespace") or "default",
        hard=UNKNOWN if hard is UNKNOWN else hard if is_object(hard) and not has_scopes else {},
    )


def default_requests(
    near: StackResource, namespace: str, resources: Sequence[StackResource]
) -> Mapping[str, Value] | Unknown:
    """Return what the LimitRange of a namespace gives to containers without requests of their own.

    UNKNOWN if several give something, of which any may count, or if it is not known.
    """
    found = [
        _defaults(each)
        for each in resources
        if each.type in _LIMIT_RANGES
        and (text_at(each.props, "metadata", "namespace") or "default") in (namespace, UNKNOWN)
        and is_same_cluster(each, near, resources) is not False
    ]
    given = [each for each in found if each]
    if UNKNOWN in given or len(given) > 1:
        return UNKNOWN
    return given[0] if given else {}


def _defaults(limit_range: StackResource) -> Mapping[str, Value] | Unknown:
    listed = items_at(limit_range.props, "spec", "limits")
    namespace = text_at(limit_range.props, "metadata", "namespace")
    if (
        listed is UNKNOWN
        or namespace is UNKNOWN
        or any(UNKNOWN in (each, at(each, "type")) for each in listed)
    ):
        return UNKNOWN
    given = [at(each, field) for each in listed for field in _DEFAULTING if at(each, "type") == "Container"]
    amounts = {key: value for each in given if is_object(each) for key, value in each.items()}
    return UNKNOWN if UNKNOWN in given or UNKNOWN in amounts.values() else amounts


def exceeded(
    containers: Sequence[Value], near: StackResource, namespace: str, resources: Sequence[StackResource]
) -> Iterator[str]:
    """Yield the bounds of the namespace's LimitRanges that containers certainly exceed: the API server rejects such pods."""
    for each in resources:
        if (
            each.type not in _LIMIT_RANGES
            or (text_at(each.props, "metadata", "namespace") or "default") != namespace
            or is_same_cluster(each, near, resources) is False
        ):
            continue
        name = text_at(each.props, "metadata", "name")
        listed = items_at(each.props, "spec", "limits")
        for limit in () if listed is UNKNOWN else listed:
            for bound, container in product(("max", "min"), containers):
                if at(limit, "type") == "Container":
                    yield from (
                        f"its container {text_at(container, 'name')} has {key} {asked}, and LimitRange {name} a {bound} of "
                        f"{allowed}: the API server rejects its pods"
                        for key, asked, allowed in _beyond(container, at(limit, bound), bound)
                    )


def _beyond(container: Value, bounds: Value, bound: str) -> Iterator[tuple[str, str, str]]:
    """Yield the resources of a container that are beyond bounds, with its amount and the bound."""
    for key, allowed in bounds.items() if is_object(bounds) else ():
        # The largest of the two is held to the maximum, the request to the minimum.
        fields = ("limits", "requests") if bound == "max" else ("requests", "limits")
        given = [at(container, "resources", each, key) for each in fields]
        asked = next((each for each in given if isinstance(each, str | int)), None)
        if asked is None or not isinstance(allowed, str | int):
            continue
        excess = parse_quantity(asked) - parse_quantity(allowed)
        if excess > 0 if bound == "max" else excess < 0:
            yield key, str(asked), str(allowed)


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
