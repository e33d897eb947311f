"""Pulumi's view of a stack's resources, turned into ours.

Pulumi's policy SDK raises at the touch of a property that a preview cannot know, and then turns the whole policy
into advice, real violations beside it included. Here such a property becomes `UNKNOWN`, and each rule decides
what hangs on it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, cast

from pulumi_policy.proxy import UnknownValueError

from policies.findings import StackResource
from policies.known_values import UNKNOWN, Value

if TYPE_CHECKING:
    from collections.abc import Callable

    from pulumi_policy import PolicyResource


def stack_resources(
    resources: Sequence[PolicyResource], asked: Mapping[str, Mapping[str, Value]]
) -> tuple[StackResource, ...]:
    """Return Pulumi's resources with their unknown properties explicit.

    `asked` is what they were asked to be, by URN: it stands in for properties that are not shown.
    """
    return tuple(
        StackResource(
            type=resource.resource_type,
            urn=resource.urn,
            props={**asked.get(resource.urn, {}), **known_props(resource.props)},
            is_protected=resource.opts.protect,
            parent="" if resource.parent is None else resource.parent.urn,
            refers_to={
                name: tuple(each.urn for each in made_of)
                for name, made_of in resource.property_dependencies.items()
            },
        )
        for resource in resources
    )


def known_props(props: Mapping[str, object]) -> Mapping[str, Value]:
    """Return a resource's properties with what is unknown explicit."""
    return {key: touched(lambda key=key: props[key]) for key in props}


def touched(read: Callable[[], object]) -> Value:
    """Return what a read gives, or `UNKNOWN` when the SDK refuses it."""
    try:
        return explicit(read())
    except UnknownValueError:
        return UNKNOWN


def explicit(value: object) -> Value:
    """Return a property value with everything unknown beneath it explicit."""
    if isinstance(value, Mapping):
        mapping = cast("Mapping[str, object]", value)
        return {key: touched(lambda key=key: mapping[key]) for key in mapping}
    if isinstance(value, Sequence) and not isinstance(value, str):
        items = cast("Sequence[object]", value)
        return [touched(lambda index=index: items[index]) for index in range(len(items))]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    # Assets and archives: no rule looks inside one, and its text says what it is.
    return str(value)
