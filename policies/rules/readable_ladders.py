"""What cannot be read of a FallbackPolicy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holdfast.policies.declared.amounts import amount
from holdfast.policies.known_values import UNKNOWN, at, is_list, is_object, whole_number
from holdfast.policies.rules.versions import version_problems

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holdfast.policies.findings import StackResource
    from holdfast.policies.known_values import Value

_AMOUNTS: Final = ("pods", "cpu", "memory", "gpus")


def ladder_problems(ladder: StackResource) -> Iterator[str]:
    """Yield what cannot be read of a ladder and of the shapes of its jobs."""
    yield from version_problems(ladder, "v1alpha1")
    tiers, shapes = at(ladder.props, "spec", "tiers"), at(ladder.props, "spec", "shapes")
    if is_list(tiers):
        for number, tier in enumerate(tiers, start=1):
            yield from tier_problems(number, tier)
        yield from twice(tiers)
    elif tiers is not UNKNOWN:
        yield "has no list under `spec.tiers`, so that its ladder is taken for empty."
    if is_list(shapes):
        for place, shape in enumerate(shapes):
            yield from shape_problems(place, shape)
    elif shapes not in (None, UNKNOWN):
        yield "has no list under `spec.shapes`, so that its jobs are taken to be of the default shape."


def tier_problems(number: int, tier: Value) -> Iterator[str]:
    """Yield what cannot be read of one tier."""
    where = f"`spec.tiers[{number - 1}]`"
    if tier is UNKNOWN:
        return
    if not is_object(tier):
        yield f"has no tier under {where}, so that tier {number} is passed over."
        return
    if at(tier, "pool") is not UNKNOWN and not isinstance(at(tier, "pool"), str):
        yield f"names no pool under {where}, so that tier {number} is taken for one that nobody can be on."
    failures = at(tier, "maxFailures")
    if failures is not None and whole_number(failures) is None:
        yield f"has {failures!r} for `maxFailures` under {where}, which is no whole number and is passed over."


def twice(tiers: Sequence[Value]) -> Iterator[str]:
    """Yield the pools that a ladder comes back to: the API server refuses it, and the walk is no ladder any more."""
    first: dict[str, int] = {}
    for number, tier in enumerate(tiers, start=1):
        pool = at(tier, "pool")
        if not isinstance(pool, str):
            continue
        if pool in first:
            yield (
                f"comes back to pool {pool!r} in tier {number}, which is tier {first[pool]} already: a job cannot tell the "
                "two apart. Name each pool once, and raise its `maxFailures` instead."
            )
        first.setdefault(pool, number)


def shape_problems(place: int, shape: Value) -> Iterator[str]:
    """Yield what cannot be read of a declared shape."""
    where = f"`spec.shapes[{place}]`"
    if shape is UNKNOWN:
        return
    if not is_object(shape):
        yield f"has no shape under {where}, which is taken for the smallest there is."
        return
    for key in _AMOUNTS:
        given = shape.get(key)
        if given is not None and amount(given) is None:
            yield f"has {given!r} for `{key}` under {where}, which is no amount: the least is taken for it."
