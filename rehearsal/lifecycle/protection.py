"""What is protected in a stack, what it leaves behind on purpose, and the way to take it down all the same."""

from collections.abc import Iterable, Mapping

from holdfast.scheduling.json import Json, JsonValue
from holdfast.simulator.pulumi.checkpoint import Checkpoint, Recorded

PLATFORM = "holdfast:platform"
FIELD = "protected"


def protected(checkpoint: Checkpoint) -> list[Recorded]:
    """Return the resources that the engine refuses to delete."""
    return [one for one in checkpoint.resources if one.protected]


def retained(checkpoint: Checkpoint) -> frozenset[str]:
    """Return the URNs of the resources that outlive the stack on purpose."""
    return frozenset(one.urn for one in checkpoint.resources if one.retained)


def unprotected(settings: Json) -> Json:
    """Return a stack's settings with its platform's protection lifted: what its owner writes before a destroy."""
    config = _mapping(settings.get("config"))
    platform: Json = {**_mapping(config.get(PLATFORM)), FIELD: False}
    return {**settings, "config": {**config, PLATFORM: platform}}


def names(resources: Iterable[Recorded]) -> list[str]:
    """Return the names of resources, those of components left out where there are others."""
    found = list(resources)
    made = [one for one in found if one.id and not one.type.startswith("pulumi:")] or found
    return [one.name for one in made]


def _mapping(value: JsonValue) -> Json:
    return value if isinstance(value, Mapping) else {}
