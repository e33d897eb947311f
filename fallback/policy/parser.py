"""Reading a FallbackPolicy object.

The API server has held it to its schema; but a definition may be older or newer than the controller, and tests and
replays bring objects that no API server has seen. So everything is looked at again, and what is wrong is a text.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from holdfast.fallback.policy.facts import read_facts
from holdfast.fallback.policy.policy import NoPolicy, Policy, PolicyTier
from holdfast.fallback.policy.reading import Fields, Problems
from holdfast.scheduling.ladder import FOREVER, MOST_FAILURES, Failures

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.scheduling.json import Json


def parse_policy(policy: Json | None) -> Policy | NoPolicy:
    """Read the object; None for a namespace without one. What is wrong with it is in the NoPolicy, as texts.

    Fields that are not known are left out of account: they are a newer definition's.
    """
    if policy is None:
        return NoPolicy()
    problems = Problems()
    parsed = _policy(Fields(policy, "", problems).section("spec"), problems)
    return NoPolicy(problems=problems.texts) if problems.texts else parsed


def _policy(spec: Fields, problems: Problems) -> Policy:
    tiers = tuple(_tier(fields) for fields in spec.sections("tiers"))
    _check_tiers(tiers, problems)
    ladder = Policy(tiers=tiers)
    failures = spec.choice("failures", [each.value for each in Failures])
    return replace(
        ladder,
        failures=Failures(failures) if failures else ladder.failures,
        outage_window=spec.duration("outageWindow") or ladder.outage_window,
        give_up_after=spec.duration("giveUpAfter"),
        application_failures=_count(spec, "applicationFailures", ladder.application_failures),
        return_after=spec.duration("returnAfter"),
        hold_timeout=spec.duration("holdTimeout") or ladder.hold_timeout,
        start_timeout=spec.duration("startTimeout") or ladder.start_timeout,
        deadline=spec.duration("deadline"),
    )


def _tier(fields: Fields) -> PolicyTier:
    return PolicyTier(
        pool=fields.text("pool") or "",
        max_failures=fields.integer("maxFailures", FOREVER, MOST_FAILURES),
        procurement_timeout=fields.duration("procurementTimeout"),
        facts=read_facts(fields.section("facts")),
    )


def _count(spec: Fields, name: str, default: int) -> int:
    count = spec.integer(name, FOREVER, MOST_FAILURES)
    return default if count is None else count


def _check_tiers(tiers: tuple[PolicyTier, ...], problems: Problems) -> None:
    if not tiers:
        problems.add(
            "spec.tiers", "no tier", "one tier or more, the last on-demand", "Add the pool to run on."
        )
    first: Mapping[str, int] = {tier.pool: rank for rank, tier in reversed(list(enumerate(tiers)))}
    for rank, tier in enumerate(tiers):
        at = f"spec.tiers[{rank}]"
        if not tier.pool:
            problems.add(f"{at}.pool", "no pool", "the name of a pool", "Name the pool of this tier.")
        elif first[tier.pool] != rank:
            problems.add(
                f"{at}.pool",
                f'"{tier.pool}" a second time',
                "each pool once in a ladder",
                f"Remove this tier, or raise maxFailures of tier [{first[tier.pool]}].",
            )
