"""The settings of two stacks between which jobs move, from their files. Pure.

A stack file can name the other stack, or not. In a rehearsal both are stacks of its own state, and the issuer of home's tokens
is known only once home is up. So home starts without the other cluster, the other one accepts its jobs, and home gets a tier
there: in the order of docs/another-cluster.md.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pulumi_holdfast.ladder.json import Json, JsonValue, mapping, sequence
from pulumi_holdfast.rehearsal.errors import RehearsalError

_PLATFORM: Final = "holdfast:platform"
_OTHERS: Final = ("clusters", "acceptsFrom")
# What a tier gets that no file names.
_FAILURES: Final = 3
_TIMEOUT: Final = "20m"


@dataclass(frozen=True, kw_only=True)
class StackSettings:
    """The content of a stack's file; `reference` is the full name of the stack in the state that both share."""

    name: str
    reference: str
    settings: Json

    @property
    def platform(self) -> Json:
        """The document under holdfast:platform."""
        return mapping(mapping(self.settings.get("config")).get(_PLATFORM))

    def ladders(self) -> Mapping[str, Sequence[Json]]:
        """The tiers of each training namespace."""
        return {
            str(each["name"]): [mapping(tier) for tier in sequence(each.get("ladder"))]
            for each in map(mapping, sequence(self.platform.get("namespaces")))
        }

    def section(self, field: str, key: str, other: str) -> Json:
        """The entry of a list whose field `key` names the stack `other`; empty if there is none."""
        entries = map(mapping, sequence(self.platform.get(field)))
        return mapping(
            next((each for each in entries if str(each.get(key)).rpartition("/")[2] == other), None)
        )

    def changed(self, document: Json) -> Json:
        """The settings with another document."""
        config = mapping(self.settings.get("config"))
        return {**self.settings, "config": {**config, _PLATFORM: document}}


def alone(stack: StackSettings) -> Json:
    """Return the settings without other clusters: no job leaves, and none is accepted."""
    return stack.changed(_alone(stack))


def _alone(stack: StackSettings) -> Json:
    document = {key: value for key, value in stack.platform.items() if key not in _OTHERS}
    return _with_ladders(
        document,
        {name: [tier for tier in tiers if "cluster" not in tier] for name, tiers in stack.ladders().items()},
    )


def accepting(stack: StackSettings, home: StackSettings, *, issuer: str) -> Json:
    """Return the settings with which a stack accepts the jobs of `home`, whose tokens have this issuer.

    Its file's entry for home stays, with this issuer and home's name here. Raises RehearsalError without a common namespace.
    """
    given = stack.section("acceptsFrom", "checkpoints", home.name)
    entry: Json = {
        "name": cluster_name(home.name),
        "namespaces": [*common_namespaces(home, stack)],
        **given,
        "issuer": issuer,
        "checkpoints": home.reference,
    }
    return stack.changed({**_alone(stack), "acceptsFrom": [entry]})


def leaving(stack: StackSettings, there: StackSettings) -> Json:
    """Return the settings with which jobs of a stack move to the stack `there`.

    Tiers there that its file has stay. Otherwise each common namespace gets one below its first tier, with the first pool of the
    ladder there. Raises RehearsalError without a common namespace.
    """
    cluster = str(stack.section("clusters", "stack", there.name).get("name") or cluster_name(there.name))
    kept = {
        name: [tier for tier in tiers if tier.get("cluster", cluster) == cluster]
        for name, tiers in stack.ladders().items()
    }
    if not any("cluster" in tier for tiers in kept.values() for tier in tiers):
        ladders = there.ladders()
        for name in common_namespaces(stack, there):
            away: Json = {
                "cluster": cluster,
                "pool": ladders[name][0]["pool"],
                "maxFailures": _FAILURES,
                "procurementTimeout": _TIMEOUT,
            }
            kept[name] = [*kept[name][:1], away, *kept[name][1:]]
    document = {**_alone(stack), "clusters": [{"name": cluster, "stack": there.reference}]}
    return stack.changed(_with_ladders(document, kept))


def common_namespaces(home: StackSettings, there: StackSettings) -> list[str]:
    """The training namespaces that both have, with at least two tiers at home. Raises RehearsalError if there is none."""
    beyond = there.ladders()
    found = [name for name, tiers in home.ladders().items() if len(tiers) > 1 and beyond.get(name)]
    if not found:
        raise RehearsalError(
            f"{home.name} has no training namespace of two tiers that {there.name} has too: give one the same name in both files"
        )
    return found


def cluster_name(stack: str) -> str:
    """The name of a stack's cluster for the other one."""
    return re.sub(r"[^a-z0-9-]+", "-", stack.lower()).strip("-")


def _with_ladders(document: Json, ladders: Mapping[str, Sequence[Json]]) -> Json:
    namespaces: JsonValue = [
        {**each, "ladder": [*ladders[str(each["name"])]]}
        for each in map(mapping, sequence(document.get("namespaces")))
    ]
    return {**document, "namespaces": namespaces}
