"""What an act of a rehearsal must have shown; pure."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from holdfast.scheduling.json import Json, JsonValue
from holdfast.simulator.clouds.state import CloudObject
from holdfast.simulator.errors import RehearsalError
from holdfast.simulator.kubernetes_client.client import KubeClient
from holdfast.simulator.kubernetes_client.errors import NoSuchKind
from holdfast.simulator.kubernetes_client.objects import identity, mapping
from holdfast.simulator.pulumi import Outcome
from holdfast.simulator.pulumi.checkpoint import Checkpoint, Recorded

# How many things a message names before it says how many more there are.
_NAMED = 5


def refuse_changes(moment: str, outcome: Outcome) -> None:
    """Raise RehearsalError where a run changed something that had nothing to change, with what it changed."""
    if outcome.changed:
        raise RehearsalError(f"{moment} changed {some([step.told for step in outcome.steps])}")


def refuse_leftovers(left: Sequence[str]) -> None:
    """Raise RehearsalError where a destroyed stack has left something behind."""
    if left:
        raise RehearsalError(f"the destroyed stack has left {some(left)}")


def some(told: Sequence[str]) -> str:
    """Return the first few of several things, and how many more there are."""
    more = f" and {len(told) - _NAMED} more" if len(told) > _NAMED else ""
    return f"{', '.join(told[:_NAMED])}{more}"


# What runs on after its stack and costs money, or stands in the way of the next one of its name.
_KINDS = (("v1", "Node"), ("karpenter.sh/v1", "NodeClaim"), ("karpenter.sh/v1", "NodePool"))
_RELEASES = "owner=helm"


def left_in_clouds(objects: Iterable[CloudObject], kept: Collection[str]) -> list[str]:
    """Return a line for each object of a stack that is left, those of the URNs in `kept` apart.

    What no program made, a cloud made of its own accord: it is not the stack's to remove.
    """
    return [f"{one.type} {one.id}" for one in objects if one.urn and one.urn not in kept]


def kept_in_clouds(objects: Iterable[CloudObject], kept: Collection[str]) -> list[str]:
    """Return the names of the objects that were kept on purpose, and are there."""
    return [one.urn.rsplit("::", 1)[-1] for one in objects if one.urn in kept]


def left_in_cluster(client: KubeClient) -> list[str]:
    """Return a line for each machine, pool and release that is left on an API server."""
    found = [one for kind in _KINDS for one in _listed(client, *kind)]
    releases = client.list("v1", "Secret", label_selector=_RELEASES)
    return [*map(identity, found), *sorted({_release(each) for each in releases})]


def _listed(client: KubeClient, api_version: str, kind: str) -> list[Json]:
    try:
        return client.list(api_version, kind)
    except NoSuchKind:
        return []


def _release(secret: Json) -> str:
    metadata = mapping(secret.get("metadata"))
    return f"release {metadata.get('namespace')}/{mapping(metadata.get('labels')).get('name')}"


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
