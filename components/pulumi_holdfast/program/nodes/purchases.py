"""Reads the IAM policies of a program that let some machines of EC2 be bought only, such as those on spot.

They concern Karpenter whatever its node class is, and whichever program makes it. Whose requests a policy concerns is not shown, so
nothing here stops a run. Node groups buy by roles of AWS' services, which such policies do not bind.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Final

from pulumi_holdfast.program.nodes.node_roles import actions, statements
from pulumi_holdfast.program.resources import StackResource, Value, at, is_object, known_items, once

_POLICY: Final = re.compile(r"aws:(?:iam/(?:policy|role|rolePolicy|userPolicy)|organizations/policy):\w+")
_STARTS: Final = "ec2:runinstances"
#: Only a provisioner, such as Karpenter, starts fleets; people who may start machines of some types do not.
_STARTS_FLEETS: Final = "ec2:createfleet"
#: The conditions by which policies choose machines.
_CHOOSING: Final = frozenset({"ec2:InstanceMarketType", "ec2:InstanceType"})


@once
def limited_purchases(resources: Sequence[StackResource]) -> tuple[str, ...]:
    """Return the policies of the program that forbid, or do not allow, to buy machines of one market, or of some types."""
    return tuple(
        f"whether {each.type.rpartition(':')[2]} {each.logical_name!r}, which {limit}, lets it buy them is not judged"
        for each in resources
        if _POLICY.fullmatch(each.type)
        for limit in sorted({limit for document in _documents(each) for limit in _limits(document)})
    )


def _documents(policy: StackResource) -> Iterator[Value]:
    yield at(policy.props, "policy") or at(policy.props, "content")
    yield from (at(each, "policy") for each in known_items(policy.props, "inlinePolicies"))


def _limits(document: Value) -> Iterator[str]:
    found = [each for each in statements(document) if _has(each, _STARTS) or _has(each, _STARTS_FLEETS)]
    denied = [each for each in found if at(each, "Effect") == "Deny"]
    yield from (f"denies machines by {key}" for each in denied for key in _chosen_by(each))
    allowed = [each for each in found if at(each, "Effect") == "Allow"]
    is_of_provisioner = any(_has(each, _STARTS_FLEETS) for each in allowed)
    allows_any = any(at(each, "Resource") in ("*", ["*"]) and not _chosen_by(each) for each in allowed)
    if is_of_provisioner and not allows_any:
        yield from (f"allows machines by {key}" for each in allowed for key in _chosen_by(each))


def _has(statement: Value, action: str) -> bool:
    return any(fnmatchcase(action, each.lower()) for each in actions(statement))


def _chosen_by(statement: Value) -> frozenset[str]:
    """Return the conditions of a statement that choose machines."""
    conditions = at(statement, "Condition")
    keys = {
        str(key).lower()
        for tests in (conditions.values() if is_object(conditions) else ())
        for key in (tests if is_object(tests) else ())
    }
    return frozenset(key for key in _CHOOSING if key.lower() in keys)
