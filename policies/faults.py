"""Applies a rule that may raise an internal error: only verdicts that depend on the resource at fault are missing.

If a rule raises, it is applied to parts of the stack to find the resources that cause the error: namespaces with their
ladders and the pools that these name, and other pools. Everything else is judged.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from pulumi_holdfast.ladder.json import UNKNOWN
from pulumi_holdfast.ladder.labels import POOL
from pulumi_holdfast.program.clusters import is_cluster
from pulumi_holdfast.program.pools.aks import is_agent_pool
from pulumi_holdfast.program.pools.eks import NODE_GROUP
from pulumi_holdfast.program.pools.gke import NODE_POOL
from pulumi_holdfast.program.pools.karpenter import is_node_pool
from pulumi_holdfast.program.resources import (
    NAMESPACE_TYPES,
    Stack,
    StackResource,
    Value,
    is_fallback_policy,
    is_list,
    is_object,
    items_at,
    text_at,
)
from pulumi_holdfast.program.settings import Settings
from rule import STOP_ON_FAULT, Finding, Group, Rule
from rules import verdicts

#: A rule that raises with more resources than this raises with any: it is not tried further, and proves nothing.
_MOST_AT_FAULT: Final = 30


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A rule that is not disabled, with what it receives. `stops`: what it proves stops the run."""

    rule: Rule
    settings: Settings
    stops: bool = True


@dataclass(frozen=True, kw_only=True)
class _Suspect:
    """Resources that are left out together if a rule raises with them; `title` names them in the message."""

    title: str
    resources: tuple[StackResource, ...]


class _TooManyFaultsError(Exception):
    """A rule raises with more resources than are worth trying."""


def apply_rule(asked: Asked, stack: Stack) -> Sequence[Finding]:
    """Return the findings of a rule, and one for each resource with which it raises."""
    try:
        return asked.rule.find(stack, asked.settings)
    except Exception as fault:  # noqa: BLE001 - whatever a program registers, the other rules are applied
        whole = _failed(asked, fault)
    try:
        return _apply_in_parts(asked, stack)
    except Exception:  # noqa: BLE001 - it raises for another reason than a pool or a ladder
        return [whole]


def _apply_in_parts(asked: Asked, stack: Stack) -> Sequence[Finding]:
    """Return the findings of a rule without the resources at fault. Raises the rule's error if it has another cause."""
    pools = [each for each in stack if _is_pool(each.type)]
    ladders = [each for each in stack if is_fallback_policy(each.type)]
    spaces = list(dict.fromkeys(map(_namespace_of, ladders)))
    inside = [each for each in stack if not _is_pool(each.type) and _namespace_of(each) in spaces]
    apart = {id(each) for each in (*pools, *inside)}
    trial = _Trial(asked, stack, kept={id(each) for each in stack} - apart)
    trial.find()
    # Each namespace with the pools of its ladder: a rule that reads pools only for ladders raises here.
    namespaces: list[_Suspect] = []
    for name in spaces:
        members = [each for each in inside if _namespace_of(each) == name]
        own = [each for each in members if is_fallback_policy(each.type)]
        named = [pool for pool in pools if any(_may_name(each, pool) for each in own)]
        title = f"the namespace of ladder {own[0].logical_name!r}"
        namespaces.append(_Suspect(title=title, resources=(own[0], *members, *named)))
    of_namespaces = trial.add(namespaces)
    others = (pool for pool in pools if not trial.has(pool))
    of_pools = trial.add([_Suspect(title=f"{each.logical_name!r}", resources=(each,)) for each in others])
    found = trial.find()
    if of_pools and asked.rule.group is Group.PLATFORM:
        # What it misses, such as a pool that accepts any pod, may be the pool that is left out.
        found = [replace(each, proven=False) for each in found]
    return [*found, *(_failed(asked, fault, suspect) for suspect, fault in (*of_namespaces, *of_pools))]


class _Trial:
    """A rule on a growing part of a stack with which it does not raise."""

    def __init__(self, asked: Asked, stack: Stack, kept: set[int]) -> None:
        self._asked, self._stack, self._kept = asked, stack, kept
        self._faults = 0

    def has(self, resource: StackResource) -> bool:
        """Whether the part has a resource."""
        return id(resource) in self._kept

    def find(self, more: Sequence[_Suspect] = ()) -> Sequence[Finding]:
        """Return the findings on the part and `more`, in the order of the program."""
        tried = self._kept | {id(each) for suspect in more for each in suspect.resources}
        part = Stack(each for each in self._stack if id(each) in tried)
        return self._asked.rule.find(part, self._asked.settings)

    def add(self, suspects: Sequence[_Suspect]) -> list[tuple[_Suspect, Exception]]:
        """Add the suspects with which the rule does not raise, halving those with which it does; return the others."""
        if not suspects:
            return []
        try:
            self.find(suspects)
        except Exception as fault:
            if len(suspects) > 1:
                middle = len(suspects) // 2
                return [*self.add(suspects[:middle]), *self.add(suspects[middle:])]
            self._faults += 1
            if self._faults > _MOST_AT_FAULT:
                raise _TooManyFaultsError from fault
            return [(suspects[0], fault)]
        self._kept |= {id(each) for suspect in suspects for each in suspect.resources}
        return []


def _is_pool(type_token: str) -> bool:
    """Whether the type is a pool, or a cluster, which may declare pools inside."""
    return (
        is_node_pool(type_token)
        or type_token in (NODE_POOL, NODE_GROUP)
        or is_agent_pool(type_token)
        or is_cluster(type_token)
    )


def _namespace_of(resource: StackResource) -> Value:
    """Return the namespace that a resource is, or is in; None for neither."""
    if resource.type in NAMESPACE_TYPES:
        return text_at(resource.props, "metadata", "name")
    own = text_at(resource.props, "metadata", "namespace")
    return own or "default" if is_fallback_policy(resource.type) else own


def _may_name(ladder: StackResource, pool: StackResource) -> bool:
    """Whether a ladder names a pool label of the resource, or one of both is unknown."""
    tiers = items_at(ladder.props, "spec", "tiers")
    named = {UNKNOWN} if tiers is UNKNOWN else {text_at(each, "pool") for each in tiers}
    labels = set(_labels(pool.props))
    return UNKNOWN in labels or UNKNOWN in named or bool(labels & named)


def _labels(value: Value) -> Iterator[object]:
    """Yield the values of the pool label anywhere in a resource: its fault may be where readers look for it."""
    if is_object(value):
        for key, inside in value.items():
            if key == POOL:
                yield inside if isinstance(inside, str) else UNKNOWN
            else:
                yield from _labels(inside)
    elif is_list(value):
        for inside in value:
            yield from _labels(inside)
    elif value is UNKNOWN:
        yield UNKNOWN


def _failed(asked: Asked, fault: Exception, suspect: _Suspect | None = None) -> Finding:
    """Return the finding about a rule that raised: it proves nothing."""
    at = traceback.extract_tb(fault.__traceback__)[-1]
    return Finding(
        urn="" if suspect is None else suspect.resources[0].urn,
        message=f"rule {asked.rule.name!r} failed, so it proves nothing {f'of {suspect.title}' if suspect else 'here'}: "
        f"{type(fault).__name__}: {fault} ({Path(at.filename).name}:{at.lineno}). This is a bug in the policy pack: please "
        f"report it. To let the run pass, set `{STOP_ON_FAULT}: false` of {verdicts.RULE.name!r}.",
        proven=asked.settings.get(STOP_ON_FAULT) is not False,
    )
