"""Physical names a provider makes up where the program gives none."""

import hashlib
import re

from holdfast.simulator.clouds.catalogue import Autonaming
from holdfast.simulator.clouds.resource_type import ResourceType
from holdfast.simulator.errors import RehearsalError
from holdfast.simulator.pulumi.values import Properties, Value, strip_secrets


def with_name(
    kind: ResourceType, logical_name: str, *, inputs: Properties, old_inputs: Properties, seed: bytes
) -> dict[str, Value]:
    """Return inputs with a physical name: the given one, the one made before, or a new one from the seed.

    Raises RehearsalError where a made-up name would be longer than the cloud allows.
    """
    prop = kind.name_property
    if not prop or prop in inputs or f"{prop}Prefix" in inputs:
        return dict(inputs)
    old = strip_secrets(old_inputs.get(prop))
    if isinstance(old, str) and is_autoname(old, logical_name, kind.catalogue.autonaming):
        return {**inputs, prop: old}
    return {**inputs, prop: _new_name(kind, logical_name, seed)}


def is_autoname(name: str, logical_name: str, autonaming: Autonaming) -> bool:
    """Tell whether a physical name was made up for a logical one."""
    shape = f"{re.escape(logical_name + autonaming.separator)}[0-9a-f]{{{autonaming.digits}}}"
    return re.fullmatch(shape, name) is not None


def _new_name(kind: ResourceType, logical_name: str, seed: bytes) -> str:
    autonaming = kind.catalogue.autonaming
    digest = hashlib.sha256(seed + kind.token.encode() + logical_name.encode()).hexdigest()
    name = f"{logical_name}{autonaming.separator}{digest[: autonaming.digits]}"
    longest = kind.rules.longest_name
    if longest is not None and len(name) > longest:
        raise RehearsalError(
            f"{kind.token} {logical_name!r}: the name made up for it, {name!r}, has {len(name)} characters of at "
            f"most {longest}; shorten the resource's name or set {kind.name_property!r}"
        )
    return name
