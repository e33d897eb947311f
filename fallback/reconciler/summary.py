"""What is reported in a FallbackPolicy: a summary for people, from which nothing is ever read back. Pure."""

from collections.abc import Iterable
from typing import Final

from holdfast.fallback.policy.policy import NoPolicy, Policy
from holdfast.fallback.reconciler.roster import Place
from holdfast.fallback.state_machine.state import Phase
from holdfast.scheduling.json import Json

# What the definition takes.
_MOST_PROBLEMS: Final = 16
_LONGEST_PROBLEM: Final = 1024
_LONGEST_SUMMARY: Final = 512

_BETWEEN_TIERS: Final = frozenset({Phase.SUSPENDING, Phase.PAUSED})


def policy_status(policy: Policy | NoPolicy, generation: int, places: Iterable[Place]) -> Json:
    """Return the status of a FallbackPolicy, whole: each field is there, so that a patch leaves nothing old."""
    all_places = list(places)
    pools = [tier.pool for tier in policy.tiers] if isinstance(policy, Policy) else []
    moving = sum(place.phase in _BETWEEN_TIERS for place in all_places)
    problems = policy.problems if isinstance(policy, NoPolicy) else ()
    return {
        "observedGeneration": generation,
        "summary": _summary(all_places, moving, problems)[:_LONGEST_SUMMARY],
        "jobs": len(all_places),
        "moving": moving,
        "tiers": [_tier(pool, all_places) for pool in pools],
        "problems": [problem[:_LONGEST_PROBLEM] for problem in problems[:_MOST_PROBLEMS]],
    }


def _tier(pool: str, places: list[Place]) -> Json:
    there = [place for place in places if place.pool == pool and place.phase not in _BETWEEN_TIERS]
    return {"pool": pool, "jobs": len(there), "waiting": sum(each.phase is Phase.WAITING for each in there)}


def _summary(places: list[Place], moving: int, problems: tuple[str, ...]) -> str:
    if problems:
        return f"Cannot be followed: {problems[0]}"
    if not places:
        return "No job follows it"
    waiting = sum(place.phase is Phase.WAITING for place in places)
    running = sum(place.phase is Phase.RUNNING for place in places)
    parts = [f"{running} running"]
    parts += [f"{count} {word}" for count, word in ((waiting, "waiting"), (moving, "moving")) if count]
    stopped = len(places) - running - waiting - moving
    return ", ".join([*parts, *([f"{stopped} stopped"] if stopped else [])])
