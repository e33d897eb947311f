"""Ladders as FallbackPolicies declare them, tier by tier, as far as they are known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast.policies.known_values import UNKNOWN, Unknown, at, items_at, text_at, whole_number
from holdfast.policies.stack import once
from holdfast.policies.training_ladders import fallback_policies

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.policies.findings import StackResource


@dataclass(frozen=True, kw_only=True)
class Rung:
    """One tier as it is declared. `pool` is None where it names none."""

    pool: str | Unknown | None
    max_failures: int | Unknown | None
    has_timeout: bool | Unknown


@dataclass(frozen=True, kw_only=True)
class DeclaredLadder:
    """A FallbackPolicy; `rungs` is UNKNOWN where not even their number is known."""

    resource: StackResource
    namespace: str | Unknown
    rungs: tuple[Rung, ...] | Unknown

    @property
    def title(self) -> str:
        """How a message names it."""
        where = self.resource.logical_name if self.namespace is UNKNOWN else self.namespace
        return f"the ladder of namespace {where!r}"

    @property
    def pools(self) -> tuple[str, ...]:
        """The names of its pools that are known."""
        return (
            ()
            if self.rungs is UNKNOWN
            else tuple(rung.pool for rung in self.rungs if isinstance(rung.pool, str))
        )


@once
def ladders_of(resources: Sequence[StackResource]) -> tuple[DeclaredLadder, ...]:
    """The stack's FallbackPolicies."""
    return tuple(ladder_of(resource) for resource in fallback_policies(resources))


def ladder_of(resource: StackResource) -> DeclaredLadder:
    """One FallbackPolicy, as far as it is known; what is no list of tiers is an empty one."""
    tiers = items_at(resource.props, "spec", "tiers")
    return DeclaredLadder(
        resource=resource,
        namespace=text_at(resource.props, "metadata", "namespace") or "default",
        rungs=UNKNOWN
        if tiers is UNKNOWN
        else tuple(
            Rung(
                pool=UNKNOWN if tier is UNKNOWN else text_at(tier, "pool"),
                max_failures=whole_number(at(tier, "maxFailures")),
                has_timeout=_has(at(tier, "procurementTimeout")),
            )
            for tier in tiers
        ),
    )


def _has(value: object) -> bool | Unknown:
    return UNKNOWN if value is UNKNOWN else value is not None
