"""Decisions about a resource, as the messages the engine reads."""

from collections.abc import Iterable

from pulumi.runtime.proto import provider_pb2

from holdfast.simulator.clouds.naming import is_autoname
from holdfast.simulator.clouds.resource_type import ResourceType
from holdfast.simulator.clouds.schema.checking import Violation
from holdfast.simulator.pulumi.diff_answers import diff_response
from holdfast.simulator.pulumi.diffing import changes
from holdfast.simulator.pulumi.values import Properties, has_unknown, reveal


def resource_diff(
    kind: ResourceType, logical_name: str, *, old: Properties, new: Properties
) -> provider_pb2.DiffResponse:
    """Return what a change of inputs means for a resource.

    A replacement is made before its predecessor goes, unless both would bear the name the program fixed.
    """
    keeps = _given_name(kind, logical_name, old)
    clashes = keeps is not None and keeps == _given_name(kind, logical_name, new)
    found = changes(old, new)
    replacing = [change for change in found if change.within(frozenset(kind.immutable))]
    return diff_response(found, replacing=replacing, deletes_first=clashes)


def check_failures(found: Iterable[Violation]) -> list[provider_pb2.CheckFailure]:
    """Return violations as the engine shows them."""
    return [provider_pb2.CheckFailure(property=one.path, reason=one.reason) for one in found]


def _given_name(kind: ResourceType, logical_name: str, inputs: Properties) -> tuple[str, ...] | None:
    """Return the name and its scope where the program fixed them, None where the provider made a name up."""
    known = {name: reveal(value) for name, value in inputs.items() if not has_unknown(value)}
    name = kind.physical_name(known)
    if not name or is_autoname(name, logical_name, kind.catalogue.autonaming):
        return None
    return (name, *kind.scope(known))
